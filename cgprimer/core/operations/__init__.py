"""The operations that a tape can apply: elementwise primitives and array operations.

A primitive is one row of the table in ``primitive_table.py``. It states the partial derivatives as
**expressions of cgprimer's own language**: ``a``, ``b``, ``c`` are the operands and ``out`` is the
result, so the partial derivative of ``tanh`` is ``"1 - out*out"``. All modes of differentiation
read these expressions, so they cannot disagree.

The derivative at a point where a function is not differentiable is a convention, which the row
documents under ``edges``: ``relu'(0) = 0``, ``abs'(0) = 0``, ``max`` and ``min`` share a tie
equally, ``heaviside(0) = 1/2``. As in IEEE 754, a function is ``nan`` outside its domain and
infinite at a pole; no function raises an exception.

``primitive_registry.py`` finds a primitive by name. Each arithmetic has one file with the
functions that compute the primitives: ``float_arithmetic.py``, ``numpy_arithmetic.py`` and
``symbolic_arithmetic.py`` (sympy, mpmath).
"""

from cgprimer.core.operations import primitive_table as primitive_table  # fills the registry
from cgprimer.core.operations.primitive_registry import OPERANDS as OPERANDS
from cgprimer.core.operations.primitive_registry import RESULT as RESULT
from cgprimer.core.operations.primitive_registry import Primitive as Primitive
from cgprimer.core.operations.primitive_registry import find_primitive as find_primitive
from cgprimer.core.operations.primitive_registry import primitives as primitives
