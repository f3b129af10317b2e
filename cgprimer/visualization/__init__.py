"""What readers see: diagrams of graphs, plots, pages and slides, and objects in notebooks.

The package may import `errors`, `support`, `core`, `recording`, `networks`, `backends`, `analysis`
and `training`. Start with `diagrams/drawing.py`, whose `draw` turns a graph into a picture.
"""
