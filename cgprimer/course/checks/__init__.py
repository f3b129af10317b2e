"""Checks of homework: submissions run in a sandbox, and their answers are compared and scored."""
