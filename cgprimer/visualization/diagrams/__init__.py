"""Graphs as boxes and arrows, and the pen that draws every slide.

Diagrams are plain data (`diagram.py`, built by `graph_diagrams.py`). Positions are computed without
a drawing library (`layout.py`, `edge_labels.py`, `slide_layout.py`). matplotlib is imported only
for figures (`slide_pen.py`, `diagram_figure.py`), and never through pyplot, so a machine without a
display draws the same pictures.
"""
