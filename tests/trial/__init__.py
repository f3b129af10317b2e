"""Hostile trials: numbers, files and interrupts that no lecture shows."""
