"""Curves and surfaces, one kind a file: its data and its drawing."""
