"""Diagrams of graphs, plots, pages and slides, and the display of objects in notebooks.

The package may import `errors`, `support`, `core`, `recording`, `networks`, `backends`, `analysis`
and `training`. Start with `diagrams/drawing.py`, whose `draw` turns a graph into a picture.
"""
