"""Graphs recorded from running Python: values that remember how they were computed."""
