"""A comparison of methods as a picture: slides, a page, and what a notebook shows.

`sentences.py` says what there is to say, tables among it; `fitted_graph.py` finds room for the
graph; `slides.py` draws slides of 16 to 9 and writes files, `page.py` makes pages.
"""
