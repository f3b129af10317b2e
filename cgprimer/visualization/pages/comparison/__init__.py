"""A comparison of methods as a picture: slides, a page, and the display in a notebook.

`sentences.py` has its sentences and tables; `fitted_graph.py` fits the graph into its space;
`comparison_slides.py` draws slides of 16 to 9 and writes files, `comparison_page.py` makes pages.
"""
