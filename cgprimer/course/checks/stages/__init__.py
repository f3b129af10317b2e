"""The ladder: ten stages on which students write an engine, each with a page and its checks."""
