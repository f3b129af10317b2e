"""The table of primitives: one row per function, every mode of differentiation derived from it.

A row states the partial derivatives **as text in cgprimer's own language**: ``a``, ``b``, ``c``
are the operands and ``out`` is the result, so ``tanh`` says ``"1 - out*out"``. Every mode of
differentiation reads that text and nothing else: no second place could disagree with it.

Conventions at the points where a derivative does not exist are choices, and each row states its
own under ``edges``: ``relu'(0) = 0``, ``abs'(0) = 0``, ``max`` and ``min`` share a tie equally,
``heaviside(0) = 1/2``. Outside its domain a function is ``nan`` and at a pole it is infinite, as
IEEE 754 has it; nothing raises.

The rows are in ``primitive_table.py``; ``primitive_registry.py`` looks them up. The functions that
compute them are in one file per arithmetic: ``float_arithmetic.py``, ``numpy_arithmetic.py`` and
``symbolic_arithmetic.py`` (sympy, mpmath).
"""

from cgprimer.core.operations import primitive_table as primitive_table  # fills the registry
from cgprimer.core.operations.primitive_registry import OPERANDS as OPERANDS
from cgprimer.core.operations.primitive_registry import RESULT as RESULT
from cgprimer.core.operations.primitive_registry import Primitive as Primitive
from cgprimer.core.operations.primitive_registry import find_primitive as find_primitive
from cgprimer.core.operations.primitive_registry import primitives as primitives
