"""Curves and surfaces for slides: each module computes the data of one plot and draws it."""
