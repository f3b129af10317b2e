"""Execution plans: a tape arranged in the steps that a backend executes."""
