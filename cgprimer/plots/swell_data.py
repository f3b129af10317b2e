"""Expression swell: how the formula of a derivative grows with the depth of nesting.

A value that is used twice is written twice in a formula, and the product rule copies it once
more, so the formula grows by a factor at each level. Reverse mode names every value once, and
grows by a few operations at each level.

Source: Baydin, Pearlmutter, Radul and Siskind, "Automatic differentiation in machine learning: a
survey" (2018), table 1, for the logistic map.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cgprimer.analysis.whole_numbers import as_counts
from cgprimer.core.derivatives import tape as tape_of
from cgprimer.core.graph import ExpressionGraph, parse
from cgprimer.core.methods import differentiate
from cgprimer.core.methods.symbolic import written_out_size
from cgprimer.errors import ExpressionSwellError, UsageError, name_hint

LIMIT = 20_000  # operations beyond which a formula is not written out


def product_graph(depth: int) -> ExpressionGraph:
    """A nested product: each variable is the one before times a function of itself.

    >>> print(product_graph(2))
    x1 = xa*sin(xa)
    x2 = x1*sin(x1)
    """
    return _chain(depth, lambda before: f"{before}*sin({before})")


def logistic_graph(depth: int) -> ExpressionGraph:
    """The logistic map, repeated: `4*x*(1 - x)` of itself."""
    return _chain(depth, lambda before: f"4*{before}*(1 - {before})")


def softmax_graph(depth: int) -> ExpressionGraph:
    """The softmax of a softmax of ... of three numbers; the output is the first component."""
    names = ["xa", "xb", "xc"]
    lines = []
    for level in range(1, depth + 1):
        total = " + ".join(f"exp({name})" for name in names)
        made = [f"x{letter}{level}" for letter in "abc"]
        kept = made if level < depth else made[:1]
        lines += [f"{new} = exp({old})/({total})" for new, old in zip(kept, names, strict=False)]
        names = made
    return parse("\n".join(lines))


FAMILIES: dict[str, Callable[[int], ExpressionGraph]] = {
    "product": product_graph,
    "logistic": logistic_graph,
    "softmax": softmax_graph,
}
DEPTHS = {"product": range(1, 11), "logistic": range(1, 11), "softmax": range(1, 6)}


@dataclass(frozen=True, slots=True)
class Swell:
    """Counts of operations for one depth; None where the formula is larger than the limit.

    Attributes:
        depth: levels of nesting.
        expression: of the expression, each value named once.
        written_out: of the expression as one formula.
        formula: of the expression and its derivative, the derivative written as one formula: the
            symbolic method without sharing.
        shared: of the same with equal parts computed once.
        reverse: of the expression and its derivative by reverse mode.
    """

    depth: int
    expression: int
    written_out: int
    formula: int | None
    shared: int | None
    reverse: int


def swell(
    family: str = "product", depths: int | Sequence[int] = (), *, limit: int = LIMIT
) -> tuple[Swell, ...]:
    """Counts for each depth of a family.

    Args:
        family: ``product``, ``logistic`` or ``softmax``.
        depths: levels of nesting, a number or several; a range that suits the family unless given.
        limit: the largest formula that is made.

    Raises:
        UsageError: an unknown family, or a depth that is not positive.

    >>> [(row.depth, row.expression, row.formula, row.reverse) for row in swell("product", [1, 4])]
    [(1, 2, 6, 5), (4, 8, 280, 26)]
    """
    if family not in FAMILIES:
        raise UsageError(f"there is no family {family!r}", hint=name_hint(family, FAMILIES))
    given = DEPTHS[family] if isinstance(depths, Sequence) and not depths else depths
    rows = []
    too_large = False
    for depth in sorted(set(as_counts(given, "depths"))):
        tape = tape_of(FAMILIES[family](depth))
        (root,) = tape.outputs.values()
        formula = None if too_large else _symbolic(FAMILIES[family](depth), False, limit)
        shared = None if formula is None else _symbolic(FAMILIES[family](depth), True, limit)
        too_large = formula is None
        reverse = differentiate(tape, wrt="xa", method="reverse").operation_count
        rows.append(Swell(depth, len(tape), written_out_size(tape, root), formula, shared, reverse))
    return tuple(rows)


def _symbolic(graph: ExpressionGraph, share: bool, limit: int) -> int | None:
    """Operations of the symbolic derivative; None where it is too large."""
    try:
        program = differentiate(
            tape_of(graph), wrt="xa", method="symbolic", share=share, limit=limit
        )
    except ExpressionSwellError:
        return None
    return program.operation_count if program.operation_count <= limit else None


def _chain(depth: int, level: Callable[[str], str]) -> ExpressionGraph:
    names = ["xa", *(f"x{k}" for k in range(1, depth + 1))]
    lines = [f"{new} = {level(old)}" for old, new in pairwise(names)]
    return parse("\n".join(lines))
