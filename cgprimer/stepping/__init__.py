"""Stepping through the methods: what happens at each instruction, as data, as a page, as slides.

`steps.py` says what a step is and runs steps in Python; `scene.py` decides rows and vertices;
`walks.py` turns each method's derivative program into steps; `frames.py` puts the methods of one
graph together and says what is known at each frame; `placing.py`, `page.py` and `slides.py`
show it. Python's numbers are the truth; the page recomputes them only when a slider moves.
"""
