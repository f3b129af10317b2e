"""A tape arranged in steps that an engine executes: passes over plans, and their verifier."""
