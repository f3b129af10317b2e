"""The table of primitives: one row per function, every mode of differentiation derived from it.

A row states the partial derivatives **as text in cgprimer's own language**: ``a``, ``b``, ``c``
are the operands and ``out`` is the result, so ``tanh`` says ``"1 - out*out"``. Forward and
reverse mode, edge partials and the homework checks read that text and nothing else; there is no
second place that could disagree with it.

Conventions at the points where a derivative does not exist are choices, and each row states its
own under ``edges``: ``relu'(0) = 0``, ``abs'(0) = 0``, ``max`` and ``min`` share a tie equally,
``heaviside(0) = 1/2``. Outside its domain a function is ``nan`` and at a pole it is infinite, as
IEEE 754 has it; nothing raises.

The rows stand in ``table.py``; ``registry.py`` looks them up and takes rows from outside. How they
are computed stands in one file for each arithmetic: ``floats.py``, ``arrays.py``, ``exact.py`` and
``formulas.py``. ``notation.py`` is the language with these functions in it.
"""

from cgprimer.core.primitives import table as table  # fills the registry
from cgprimer.core.primitives.registry import (
    RESERVED,
    function_names,
    generation,
    primitive,
    primitives,
    spelled,
)
from cgprimer.core.primitives.row import OPERANDS, RESULT, Primitive

__all__ = [
    "OPERANDS",
    "RESERVED",
    "RESULT",
    "Primitive",
    "function_names",
    "generation",
    "primitive",
    "primitives",
    "spelled",
]
