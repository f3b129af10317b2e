"""Pictures: graphs as boxes and arrows, and losses as curves.

What a picture is drawn from is plain data (`diagram.py`); where everything goes is worked out
without a drawing library (`layout.py`, `routes.py`, `labels.py`); matplotlib is imported only
when a figure is asked for (`graph_picture.py`, `curves.py`), and never through pyplot, so a
machine without a display draws the same pictures.
"""
