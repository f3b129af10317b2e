"""Stepping through the methods: what happens at each instruction, as data, as a page, as slides.

`step_values.py` defines a step; `scene.py` decides which rows and vertices are shown.
`program_lines.py` reads a derivative program line by line, with the flow along each edge;
`method_walks.py` makes the steps of each method from it; `step_frames.py` joins the methods of one
graph and lists what is known at each frame. `vertex_positions.py`, `step_page.py` (with
`page.html`, `page.css` and the scripts) and `step_slides.py` show the frames. Numbers come from
Python; the page computes them again only when a slider moves.
"""
