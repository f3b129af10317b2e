"""Identifiability: the combinations of parameters that the data determine.

The derivatives of the outputs with respect to the parameters, one row per sample and output, form
the Jacobian. A change of the parameters in its null space changes no output, so the data do not
determine how far the parameters are from the ground truth in such a direction. The rank of the
Jacobian is the number of combinations of parameters that are determined.

Source: Bellman and Astrom 1970, "On structural identifiability"; the rank test of Jacquez and
Greif 1985.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.core.derivatives import jacobian
from cgprimer.core.graph import check_graph
from cgprimer.errors import join_words, pluralize
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number
from cgprimer.support.validation import check_choice
from cgprimer.training.data import Blocks, Dataset, resolve_dataset
from cgprimer.training.parameter_vector import ParameterVectors

Array = Any
_TOLERANCE = 1e-9  # singular values below this fraction of the maximum are zero
_MAX_SAMPLES = 1_000
MAX_PARAMETERS = 500
_OTHER_POINTS = 8
_MAX_SENTENCES = 5  # a network with ReLU has a null direction for each hidden unit
_MAX_NAMES = 5  # in a sentence
_ILL_CONDITIONED = 1e3  # condition number above which some combinations are hardly determined


@dataclass(frozen=True, slots=True)
class Identifiability:
    """The result of an identifiability analysis: determined and undetermined parameters.

    Combinations map names to coefficients. The null direction of a product ``a*b`` depends on the
    point; the determined combination is then not linear and is not listed.

    Attributes:
        parameters: names of the parameters, elements of arrays included.
        rank: number of independent combinations that are determined.
        null_directions: changes of parameters that change no output.
        determined: determined combinations of parameters that are nowhere determined separately.
        everywhere: for each null direction, whether it is null for other parameter values as well.
        condition: ratio of the maximum to the minimum nonzero singular value, parameters scaled.
    """

    parameters: tuple[str, ...]
    rank: int
    null_directions: tuple[dict[str, float], ...]
    determined: tuple[dict[str, float], ...]
    everywhere: tuple[bool, ...]
    condition: float = 1.0

    def undetermined(self) -> tuple[str, ...]:
        """Return the parameters whose values the data do not determine separately."""
        return tuple(n for n in self.parameters if any(n in d for d in self.null_directions))

    def sentences(self, outputs: Sequence[str], *, every: bool = False) -> list[str]:
        """Describe the determined and undetermined parameters in sentences.

        Args:
            outputs: names of the outputs that are compared with the data.
            every: describe every direction; by default, directions of many parameters are counted.
        """
        output_names, lines = " and ".join(outputs), []
        if self.null_directions:
            count = f"{self.rank} of {len(self.parameters)} parameters"
            lines.append(f"The data determine {count} (rank of the Jacobian).")
        pairs = list(zip(self.null_directions, self.everywhere, strict=True))
        readable = pairs
        if not every:
            readable = [pair for pair in pairs if len(pair[0]) <= _MAX_NAMES][:_MAX_SENTENCES]
        lines += [
            _describe_null_direction(direction, output_names, everywhere)
            for direction, everywhere in readable
        ]
        if more := len(pairs) - len(readable):
            changes = pluralize(more, f"{'other ' if readable else ''}combined change")
            verb = "leaves" if more == 1 else "leave"
            lines.append(
                f"{changes} of several parameters {verb} {output_names} unchanged"
                " ('cgprimer identifiability' and --json list all of them)."
            )
        determined = [c for c in self.determined if every or len(c) <= _MAX_NAMES]
        if determined:
            texts = ", ".join(map(format_combination, determined))
            lines.append(f"Combinations that the data determine: {texts}.")
        if self.condition > _ILL_CONDITIONED:
            lines.append(
                f"The data hardly determine some combinations (condition number"
                f" {format_number(self.condition, 1)}): parameters far from the result can"
                " fit the data nearly as well."
            )
        return lines


def _describe_null_direction(direction: Mapping[str, float], outputs: str, everywhere: bool) -> str:
    """Explain in a sentence what a null direction of the Jacobian means for its parameters."""
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
        f"{join_words(direction)} cannot be determined separately{where}:"
        f" {order}{join_words(moves)} leaves {outputs} unchanged."
    )


def identifiability(
    graph: ExpressionGraph,
    dataset: Dataset | Blocks | str | Path,
    parameters: Mapping[str, Any],
    *,
    wrt: Sequence[str] = (),
) -> Identifiability | None:
    """Determine which parameters the data identify, from the rank of the Jacobian.

    Args:
        graph: the graph.
        dataset: the data or the path of a data file, of which up to 1,000 evenly spaced samples
            of the first block are used.
        parameters: the values at which the Jacobian is evaluated.
        wrt: names of the elements of parameters to analyse, with the others fixed; by default all.

    Returns:
        The result, or None if the Jacobian has over 500 parameters or is not finite.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.training.data import make_dataset
    >>> graph = parse("xw = (ab + bc)*xa; parameter ab = 1, bc = 2")
    >>> result = identifiability(graph, make_dataset(graph), graph.values)
    >>> result.rank, result.null_directions, result.determined
    (1, ({'ab': 1.0, 'bc': -1.0},), ({'ab': 1.0, 'bc': 1.0},))
    """
    check_graph(graph)
    vectors = ParameterVectors(graph)
    for name in wrt:
        check_choice("parameter", name, vectors.elements)
    names = tuple(wrt) or vectors.elements
    indices = [k for k, name in enumerate(vectors.elements) if name in names]
    dataset = resolve_dataset(dataset, graph).block(0)
    samples = select_spaced_samples(dataset)
    inputs = {n: dataset.inputs[n][samples] for n in graph.inputs}
    if len(names) > MAX_PARAMETERS:
        return None
    values = vectors.vector(parameters)

    def compute_jacobian_at(point: Array) -> Array | None:
        """Compute the Jacobian at the given parameter values; None if an entry is not finite."""
        moved = values.copy()
        moved[indices] = point
        matrix = compute_jacobian_matrix(graph, inputs, vectors.values(moved))
        return None if matrix is None else matrix[:, indices]

    if (matrix := compute_jacobian_at(values[indices])) is None:
        return None
    # Columns are scaled to norm 1, so that small effects of a parameter count as effects.
    norms = np.linalg.norm(matrix, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    is_wide = len(matrix) < len(norms)  # only then do null vectors require the full matrix
    _, singular, rows = np.linalg.svd(matrix / scale, full_matrices=is_wide)
    rank = int((singular > _TOLERANCE * max(singular[0], 1e-300)).sum()) if singular.size else 0
    basis = _reduce_to_echelon_form(rows[rank:] / scale * scale.max())
    # A direction that is null at random points is a property of the graph, not of this point.
    generator = np.random.default_rng(0)
    random_jacobians = [
        compute_jacobian_at(generator.normal(0.0, 1.0 + np.abs(values[indices])))
        for _ in range(_OTHER_POINTS)
    ]
    everywhere = tuple(
        all(_is_null_direction(other, row) for other in random_jacobians if other is not None)
        for row in basis
    )
    condition = float(singular[0] / singular[rank - 1]) if rank else 1.0
    determined = _find_determined_combinations(names, basis, everywhere)
    directions = _name_coefficients(names, basis)
    return Identifiability(names, rank, directions, determined, everywhere, condition)


def format_combination(combination: Mapping[str, float]) -> str:
    """Format a linear combination of parameters, such as ``ab + 2*bc - cd``.

    >>> format_combination({"ab": 1.0, "bc": 2.0, "cd": -1.0})
    'ab + 2*bc - cd'
    """

    def format_term(name: str, coefficient: float) -> str:
        """Format one term of a linear combination, including its sign."""
        size = abs(coefficient)
        factor = "" if abs(size - 1) < 1e-9 else f"{format_number(size, 3)}*"
        return f"{'-' if coefficient < 0 else '+'} {factor}{name}"

    terms = [format_term(name, c) for name, c in combination.items()]
    return " ".join(terms).removeprefix("+ ").replace("- ", "-", terms[0].startswith("-"))


def _is_null_direction(matrix: Array, direction: Array) -> bool:
    """Return whether the Jacobian maps a direction to zero, up to rounding errors."""
    change = np.abs(matrix @ direction).max()
    return bool(change <= 1e-7 * (np.abs(matrix) @ np.abs(direction)).max())


def select_spaced_samples(dataset: Dataset) -> Array:
    """Return the indices of up to 1,000 evenly spaced samples of a dataset."""
    return np.unique(np.linspace(0, len(dataset) - 1, _MAX_SAMPLES).astype(int))


def compute_jacobian_matrix(
    graph: ExpressionGraph, inputs: Mapping[str, Array], parameters: Mapping[str, Any]
) -> Array | None:
    """Return the Jacobian of all outputs with respect to all parameters as one matrix.

    The matrix has one row per output, sample and element, in this order, and one column per
    element of the parameters. The result is None if an entry is not finite.
    """
    derivatives = jacobian(graph, {**inputs, **parameters})
    samples = next((len(column) for column in inputs.values()), 1)

    def stack_rows(output: str, name: str) -> Array:
        """Return the derivatives of one output with respect to one parameter as a matrix."""
        array, size = np.asarray(derivatives[output][name]), np.size(parameters[name])
        batched = array if inputs else array[None]
        return batched.reshape(samples, -1, size).reshape(-1, size)

    matrix = np.block([[stack_rows(o, n) for n in graph.parameters] for o in graph.outputs])
    return matrix if np.isfinite(matrix).all() else None


def _reduce_to_echelon_form(rows: Array) -> Array:
    """Return the reduced row echelon form, a basis with many zeros."""
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
    integers = np.round(rows)
    # Adding 0.0 turns -0.0 into 0.0.
    return np.where(np.abs(rows - integers) < 1e-6, integers, rows) + 0.0


def _find_determined_combinations(
    names: tuple[str, ...], basis: Array, everywhere: tuple[bool, ...]
) -> tuple[dict[str, float], ...]:
    """Return the combinations of non-identifiable parameters that no null direction changes."""
    is_global = np.array(everywhere, dtype=bool)
    is_local_parameter = basis[~is_global].any(axis=0)
    constant = basis[is_global & ~basis[:, is_local_parameter].any(axis=1)]
    affected = np.flatnonzero(constant.any(axis=0))
    if len(affected) <= len(constant):
        return ()
    _, _, directions = np.linalg.svd(constant[:, affected], full_matrices=True)
    orthogonal = _reduce_to_echelon_form(directions[len(constant) :])
    return _name_coefficients([names[i] for i in affected], orthogonal)


def _name_coefficients(names: Sequence[str], rows: Array) -> tuple[dict[str, float], ...]:
    """Convert each row of coefficients to a dict of its nonzero entries, keyed by name."""
    return tuple({n: float(c) for n, c in zip(names, row, strict=True) if c} for row in rows)
