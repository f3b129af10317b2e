"""The class of the lecture: its scripts only have to import ``from cgprimer.lecture import *``.

The class has the methods of the module ComputationalGraphPrimer, versions 1.0.2 to 1.1.5, which
accompanies Avinash Kak's lectures on computational graphs (Purdue University). This package does
the computation: ``docs/teach/lecture-class.md`` lists the differences.
"""

from cgprimer.course.lecture_class.primer import ComputationalGraphPrimer

__all__ = ["ComputationalGraphPrimer"]
__path__: list[str] = []  # deprecated names of submodules: see support/moved_modules.py
