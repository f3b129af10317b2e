"""A comparison of methods as a picture: slides, a page, and what a notebook shows.

`words.py` has every text and short number; `panel.py` arranges the graph in the room that there
is; `tables.py` and `slides.py` draw slides of 16 to 9; `page.py` writes a page; `output.py` files.
"""
