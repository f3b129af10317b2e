"""The tape: a straight-line program in single-assignment form, and what is done to tapes."""
