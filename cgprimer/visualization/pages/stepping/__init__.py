"""Stepping through the methods: what happens at each instruction, as data, as a page, as slides.

`steps.py` says what a step is; `scene.py` decides rows and vertices. `program_lines.py` reads a
derivative program line by line, and what flows along which edge; `method_steps.py` makes each
method's steps of that; `frames.py` puts the methods of one graph together and says what is
known at each frame. `graph_places.py`, `page.py` (with `page.html`, `page.css` and the scripts) and
`slides.py` show it. Python's numbers are the truth; the page computes them anew only when a slider
moves.
"""
