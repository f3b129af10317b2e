"""A tape arranged in steps that an engine executes."""
