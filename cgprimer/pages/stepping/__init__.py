"""Stepping through the methods: what happens at each instruction, as data, as a page, as slides.

`steps.py` says what a step is and runs steps in Python; `scene.py` decides rows and vertices;
`walks.py` and `differences.py` turn each method's derivative program into steps; `flows.py` finds
out along which edges derivatives flow, and `sharing.py` shows their shares; `frames.py` puts the
methods of one graph together and says what is known at each frame; `placing.py`, `page.py` (with
`page.html`, `page.css` and the scripts) and `slides.py` show it.
Python's numbers are the truth; the page recomputes them only when a slider moves.
"""
