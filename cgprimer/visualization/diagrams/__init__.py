"""Graphs as boxes and arrows, and the pen with which every slide and page is drawn.

What is drawn is plain data (`diagram.py`, made by `graph_diagrams.py`); where everything goes is
worked out without a drawing library (`layout.py`, `labels.py`, `slide_layout.py`); matplotlib is
imported only when a figure is asked for (`pen.py`, `figure.py`), and never through pyplot, so a
machine without a display draws the same pictures.
"""
