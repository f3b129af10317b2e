"""Graphs and their derivative programs as source files in other languages."""
