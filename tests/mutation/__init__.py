"""A mutation trial: planted bugs that the tests must catch. ``python -m tests.mutation --help``."""
