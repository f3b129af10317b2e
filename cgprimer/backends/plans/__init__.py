"""Execution plans: the instructions of a tape, arranged in the steps that a backend runs."""
