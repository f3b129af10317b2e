"""Graphs whose values have shapes."""
