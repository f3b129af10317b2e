"""The comparison of methods as slides, as a page, and in a notebook.

`comparison_text.py` has the sentences and tables; `fitted_graph.py` fits the graph into an area;
`comparison_slides.py` draws slides of aspect 16:9 and writes files; `comparison_page.py` renders
the page with templates of the same folder.
"""
