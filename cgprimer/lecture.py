"""The lecture's own class: ``from cgprimer.lecture import *`` is all that its scripts change.

The calls are those of the module ComputationalGraphPrimer, which accompanies Avinash Kak's
lectures on computational graphs (Purdue University), in its versions 1.0.2 to 1.1.5. What they
compute is this package's: ``docs/lecture-class.md`` lists what differs.
"""

from cgprimer.course.lecture_class.primer import ComputationalGraphPrimer

__all__ = ["ComputationalGraphPrimer"]
__path__: list[str] = []  # deprecated names of submodules: see support/moved_modules.py
