"""Helpers that every package needs: files, the disk cache, number format, plugins, validation.

The package imports only `cgprimer.errors`. Start with `validation.py`, which checks the numbers and
names that a user passes, and `plugins.py`, which looks up methods, engines and formats by name.
"""
