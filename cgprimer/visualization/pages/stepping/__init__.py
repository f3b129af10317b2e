"""Stepping through the methods instruction by instruction: as data, as a page and as slides.

`step_values.py` defines a step; `scene.py` selects the rows and vertices. `program_lines.py` reads
a derivative program line by line, with the flow along each edge; `method_walks.py` turns it into
the steps of each method; `step_frames.py` combines the methods of one graph and lists the values
that are known after each step. `vertex_positions.py`, `step_page.py` (with `step_page.html`,
`step_page.css` and the scripts) and `step_slides.py` show the frames. All numbers come from Python;
the page recomputes them only when a slider moves. `messages.js` exchanges messages with the window
around the page, and `step_shell.py` renders the page without data for that window.
"""
