"""What the data can tell about the parameters, and what they cannot.

The outputs' derivatives with respect to the parameters, one row per sample and output, form the
Jacobian. A direction in which all rows are zero moves the parameters without moving any output:
no data of this kind can tell where along it the truth lies. The rank of the Jacobian says how
many combinations of parameters are determined.

Source: Bellman and Astrom 1970, "On structural identifiability"; the rank test of Jacquez and
Greif 1985.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.core.derivatives import jacobian
from cgprimer.core.graph import check_graph
from cgprimer.errors import pluralize
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number
from cgprimer.support.validation import check_choice
from cgprimer.training.data import Blocks, Dataset
from cgprimer.training.parameter_vector import Vectors

Array = Any
_TOLERANCE = 1e-9  # singular values below this share of the largest are zero
_MOST_SAMPLES = 1_000
_MOST_PARAMETERS = 500
_OTHER_POINTS = 8
_MOST_SENTENCES = 5  # a network with ReLU has a null direction for each hidden unit
_MOST_NAMES = 5  # in a sentence
_POOR = 1e3  # condition number beyond which parameters are hardly determined


@dataclass(frozen=True, slots=True)
class Identifiability:
    """Which combinations of parameters, name to coefficient, the data determine.

    A product ``a*b`` has a null direction at each point, but another one at each; what is
    determined is then no linear combination.
    """

    parameters: tuple[str, ...]
    rank: int  # how many independent combinations are determined
    null_directions: tuple[dict[str, float], ...]  # what changes nothing
    determined: tuple[dict[str, float], ...]  # of parameters that cannot be told apart anywhere
    everywhere: tuple[bool, ...]  # each null direction: at other values of parameters, too
    condition: float = 1.0  # largest over smallest nonzero singular value, parameters scaled

    def undetermined(self) -> tuple[str, ...]:
        """Parameters whose own value the data do not determine."""
        return tuple(n for n in self.parameters if any(n in d for d in self.null_directions))

    def sentences(self, outputs: Sequence[str], *, every: bool = False) -> list[str]:
        """Return sentences on what the data determine.

        Args:
            outputs: what was compared with the data.
            every: write out every direction; else those of a few parameters, and count the others.
        """
        seen, lines = " and ".join(outputs), []
        if self.null_directions:
            count = f"{self.rank} of {len(self.parameters)} parameters"
            lines.append(f"The data determine {count} (rank of the Jacobian).")
        pairs = list(zip(self.null_directions, self.everywhere, strict=True))
        readable = pairs
        if not every:
            readable = [pair for pair in pairs if len(pair[0]) <= _MOST_NAMES][:_MOST_SENTENCES]
        lines += [_sentence(direction, seen, everywhere) for direction, everywhere in readable]
        if more := len(pairs) - len(readable):
            what = pluralize(more, f"{'other ' if readable else ''}combined change")
            leave = "leaves" if more == 1 else "leave"
            lines.append(
                f"{what} of several parameters {leave} {seen} unchanged"
                " ('cgprimer identifiability' and --json list every one)."
            )
        determined = [c for c in self.determined if every or len(c) <= _MOST_NAMES]
        if determined:
            texts = ", ".join(map(combination_text, determined))
            lines.append(f"Combinations that the data determine: {texts}.")
        if self.condition > _POOR:
            lines.append(
                f"The data hardly determine some combinations (condition number"
                f" {format_number(self.condition, 1)}): parameters far from the ground truth can"
                " fit the data nearly as well."
            )
        return lines


def _sentence(direction: Mapping[str, float], outputs: str, everywhere: bool) -> str:
    """Return what a null direction means for the parameters in it."""
    *others, last = direction
    where = "" if everywhere else " near these values"
    if not others:
        return f"{last} has no effect on {outputs}{where}, so the data do not determine it."
    moves = [
        f"{'increasing' if c > 0 else 'decreasing'} {n} by {format_number(abs(c), 3)}"
        for n, c in direction.items()
    ]
    order = "" if everywhere else "to first order, "
    return (
        f"{', '.join(others)} and {last} cannot be determined separately{where}:"
        f" {order}{' and '.join(moves)} leaves {outputs} unchanged."
    )


def identifiability(
    graph: ExpressionGraph,
    dataset: Dataset | Blocks,
    parameters: Mapping[str, Any],
    *,
    wrt: Sequence[str] = (),
) -> Identifiability | None:
    """Rank and null directions of the Jacobian over the data, at given parameters.

    Args:
        graph: the graph.
        dataset: up to a thousand samples, spread evenly over it, are used; of its first block.
        parameters: where the Jacobian is taken.
        wrt: which of the parameters' numbers are in question, the others fixed; all unless given.

    Returns:
        None where it would be too large (over 500 parameters) or is not finite.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.training.data import make_dataset
    >>> graph = parse("xw = (ab + bc)*xa; parameter ab = 1, bc = 2")
    >>> found = identifiability(graph, make_dataset(graph), graph.values)
    >>> found.rank, found.null_directions, found.determined
    (1, ({'ab': 1.0, 'bc': -1.0},), ({'ab': 1.0, 'bc': 1.0},))
    """
    check_graph(graph)
    vectors = Vectors(graph)
    for name in wrt:
        check_choice("parameter", name, vectors.elements)
    names = tuple(wrt) or vectors.elements
    places = [k for k, name in enumerate(vectors.elements) if name in names]
    dataset = dataset.block(0)
    chosen = spread_samples(dataset)
    inputs = {n: dataset.inputs[n][chosen] for n in graph.inputs}
    if len(names) > _MOST_PARAMETERS:
        return None
    values = vectors.vector(parameters)

    def jacobian_at(numbers: Array) -> Array | None:
        at = values.copy()
        at[places] = numbers
        matrix = jacobian_matrix(graph, inputs, vectors.values(at))
        return None if matrix is None else matrix[:, places]

    if (matrix := jacobian_at(values[places])) is None:
        return None
    # Each parameter in its own scale: a small effect is an effect.
    norms = np.linalg.norm(matrix, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    wide = len(matrix) < len(norms)  # else the other side has the square of many samples' numbers
    _, singular, rows = np.linalg.svd(matrix / scale, full_matrices=wide)
    rank = int((singular > _TOLERANCE * max(singular[0], 1e-300)).sum()) if singular.size else 0
    basis = _row_echelon(rows[rank:] / scale * scale.max())
    # A direction that is null elsewhere too belongs to the graph; one that is not, to this point.
    random = np.random.default_rng(0)
    others = [
        jacobian_at(random.normal(0.0, 1.0 + np.abs(values[places]))) for _ in range(_OTHER_POINTS)
    ]
    everywhere = tuple(all(_is_null(m, row) for m in others if m is not None) for row in basis)
    condition = float(singular[0] / singular[rank - 1]) if rank else 1.0
    null, determined = _named(names, basis), _determined(names, basis, everywhere)
    return Identifiability(names, rank, null, determined, everywhere, condition)


def combination_text(combination: Mapping[str, float]) -> str:
    """A combination as it is written: ``ab + 2*bc - cd``.

    >>> combination_text({"ab": 1.0, "bc": 2.0, "cd": -1.0})
    'ab + 2*bc - cd'
    """

    def term(name: str, coefficient: float) -> str:
        size = abs(coefficient)
        factor = "" if abs(size - 1) < 1e-9 else f"{format_number(size, 3)}*"
        return f"{'-' if coefficient < 0 else '+'} {factor}{name}"

    terms = [term(name, c) for name, c in combination.items()]
    return " ".join(terms).removeprefix("+ ").replace("- ", "-", terms[0].startswith("-"))


def _is_null(matrix: Array, direction: Array) -> bool:
    """Whether moving along a direction changes nothing, against what its parts change alone."""
    moved = np.abs(matrix @ direction).max()
    return bool(moved <= 1e-7 * (np.abs(matrix) @ np.abs(direction)).max())


def spread_samples(dataset: Dataset) -> Array:
    """Return the indices of up to a thousand samples, spread evenly over a dataset."""
    return np.unique(np.linspace(0, len(dataset) - 1, _MOST_SAMPLES).astype(int))


def jacobian_matrix(
    graph: ExpressionGraph, inputs: Mapping[str, Array], parameters: Mapping[str, Any]
) -> Array | None:
    """Return the Jacobian of all outputs with respect to all parameters as one matrix.

    It has a row for each output, sample and element, in this order, and a column for each number
    of the parameters. None if an entry is not finite.
    """
    found = jacobian(graph, {**inputs, **parameters})
    samples = next((len(column) for column in inputs.values()), 1)

    def rows(output: str, name: str) -> Array:
        own, size = np.asarray(found[output][name]), np.size(parameters[name])
        here = own if inputs else own[None]
        return here.reshape(samples, -1, size).reshape(-1, size)

    matrix = np.block([[rows(o, n) for n in graph.parameters] for o in graph.outputs])
    return matrix if np.isfinite(matrix).all() else None


def _row_echelon(rows: Array) -> Array:
    """A basis of the same space with as many zeros as elimination gives, pivots 1."""
    rows, pivot = np.array(rows, dtype=float), 0
    for column in range(rows.shape[1] if len(rows) else 0):
        best = pivot + int(np.argmax(np.abs(rows[pivot:, column])))
        if abs(rows[best, column]) < 1e-7:
            continue
        rows[[pivot, best]] = rows[[best, pivot]]
        rows[pivot] /= rows[pivot, column]
        others = np.arange(len(rows)) != pivot
        rows[others] -= np.outer(rows[others, column], rows[pivot])
        pivot += 1
        if pivot == len(rows):
            break
    rows[np.abs(rows) < 1e-7] = 0.0
    near = np.round(rows)
    return np.where(np.abs(rows - near) < 1e-6, near, rows) + 0.0  # + 0.0: no minus zero


def _determined(
    names: tuple[str, ...], basis: Array, everywhere: tuple[bool, ...]
) -> tuple[dict[str, float], ...]:
    """In the span of the parameters that the null directions move, what is orthogonal to them."""
    always = np.array(everywhere, dtype=bool)
    changing = basis[~always].any(axis=0)
    fixed = basis[always & ~basis[:, changing].any(axis=1)]
    touched = np.flatnonzero(fixed.any(axis=0))
    if len(touched) <= len(fixed):
        return ()
    _, _, directions = np.linalg.svd(fixed[:, touched], full_matrices=True)
    return _named([names[i] for i in touched], _row_echelon(directions[len(fixed) :]))


def _named(names: Sequence[str], rows: Array) -> tuple[dict[str, float], ...]:
    return tuple({n: float(c) for n, c in zip(names, row, strict=True) if c} for row in rows)
