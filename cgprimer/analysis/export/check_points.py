"""Points at which an exported file checks itself, with the expected values."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cgprimer.core.evaluation.evaluator import (
    choose_arithmetic,
    evaluate_instructions,
    ignore_numpy_warnings,
    prepare_instructions,
)
from cgprimer.core.evaluation.passes import run_passes
from cgprimer.core.methods.derivative_program import Inputs
from cgprimer.core.operations.primitive_registry import Applied
from cgprimer.support.array_values import all_finite
from cgprimer.tapes import DerivativeProgram, Leaf, Tape

_SAMPLED_POINTS = 3  # in addition to the given point
_NONZERO_POINTS = 2  # further points with nonzero derivatives, if some are 0 at all points
_MAX_TRIALS = 40  # to find points at which all values are finite
_NOISY_RUNS = 6  # with random rounding
_EXACT = "neg copy abs sign heaviside step max min clamp stop_gradient where less equal relu"


@dataclass(frozen=True)
class CheckPoint:
    """A point at which an exported file checks itself, with the expected results.

    Attributes:
        at: the values of the leaves.
        right: the expected value, keyed by "", and the derivatives, keyed by name.
        rounding: tolerances for rounding errors, with the keys of ``right``.
        smooth: False if a derivative jumps next to the point. At kinks, other libraries have their
            own conventions.
    """

    at: dict[str, Any]
    right: dict[str, Any]
    rounding: dict[str, float]
    smooth: bool


def iterate_check_points(
    program: DerivativeProgram, leaves: Sequence[Leaf], known_values: Mapping[str, Any]
) -> Iterator[CheckPoint]:
    """Yield the given point, if it is complete, and random points with finite derivatives.

    If a derivative is 0 at all points, like the derivative of a relu may be, further points are
    sampled.

    Args:
        program: the derivative program.
        leaves: the arguments of the exported functions.
        known_values: values at the given point, keyed by name.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("xw = k*xa^2"))
    >>> program = cgprimer.differentiate(tape)
    >>> first, *sampled = iterate_check_points(program, tape.leaves[:2], {"xa": 3.0, "k": 2.0})
    >>> first.right, first.smooth, len(sampled)
    ({'': 18.0, 'k': 9.0}, True, 3)
    """
    rng, n_points = random.Random(0), 0
    common_zeros: set[tuple[str, int]] | None = None  # elements that are 0 at every point
    if all(leaf.name in known_values for leaf in leaves):
        first = _create_check_point(
            program, {leaf.name: known_values[leaf.name] for leaf in leaves}, rng
        )
        common_zeros = _find_zeros(first.right)
        yield first
    for trial in range(_MAX_TRIALS):
        near = trial % 2 == 0  # the domain may be a neighborhood of the given point
        at = {
            leaf.name: _sample_value(leaf, known_values.get(leaf.name), near, rng)
            for leaf in leaves
        }
        results = _run_program(program, at)
        is_finite = all(map(all_finite, results.values()))
        is_last_resort = (
            trial == _MAX_TRIALS - 1 and n_points == 0 and known_values.keys() < at.keys()
        )
        zeros = _find_zeros(results)
        if common_zeros is not None:
            zeros &= common_zeros
        is_new = n_points < _SAMPLED_POINTS or zeros != common_zeros
        if is_last_resort or (is_finite and is_new):
            yield _create_check_point(program, at, rng)
            n_points, common_zeros = n_points + 1, zeros
        is_complete = n_points >= _SAMPLED_POINTS and not common_zeros
        if is_complete or n_points == _SAMPLED_POINTS + _NONZERO_POINTS:
            return


def _find_zeros(results: Mapping[str, Any]) -> set[tuple[str, int]]:
    """Return the results that are 0, as pairs of a name and a flattened index."""
    flat = {name: getattr(value, "flat", [value]) for name, value in results.items()}
    return {(name, k) for name, row in flat.items() for k, x in enumerate(row) if x == 0.0}


def _sample_value(leaf: Leaf, known_value: Any, near: bool, rng: random.Random) -> Any:
    """Sample a random value for a leaf: a scalar with three decimals, or an array of them.

    Args:
        leaf: the leaf that gets the value.
        known_value: the value at the given point; None if unknown.
        near: sample around the given value instead of 0.
        rng: the random generator.
    """

    def sample(center: float) -> float:
        """Sample a number uniformly from an interval around the center."""
        center = center if near and math.isfinite(center) else 0.0
        return round(center + rng.uniform(-1.5, 1.5), 3)

    if not leaf.shape:
        return sample(0.5 if known_value is None else known_value)
    import numpy as np

    centers = np.broadcast_to(0.5 if known_value is None else known_value, leaf.shape)
    return np.array([sample(x) for x in centers.flat]).reshape(leaf.shape)


def _create_check_point(
    program: DerivativeProgram, at: dict[str, Any], rng: random.Random
) -> CheckPoint:
    """Compute the expected results, tolerances and smoothness at one point."""
    expected = _run_program(program, at)
    noisy = [_run_program(program, at, rng) for _ in range(_NOISY_RUNS)]
    rounding = {n: _estimate_rounding(v, [run[n] for run in noisy]) for n, v in expected.items()}
    smooth = all(math.isfinite(_compute_max_magnitude(value)) for value in expected.values())
    for _ in range(4 * smooth):
        shifted = _run_program(program, {n: v + _sample_shift(v, rng) for n, v in at.items()})
        for name, value in expected.items():
            change = _compute_max_magnitude(shifted[name] - value)
            smooth = smooth and change <= 1e-3 * (1 + _compute_max_magnitude(value))
    return CheckPoint(at, expected, rounding, smooth)


def _sample_shift(value: Any, rng: random.Random) -> float:
    """Sample a random shift of relative size 1e-8 or less for a value."""
    return rng.uniform(-1e-8, 1e-8) * (1 + _compute_max_magnitude(value))


def _compute_max_magnitude(value: Any) -> float:
    """Return the maximum absolute value of the elements; nan if any element is nan."""
    if isinstance(value, float):
        return abs(value)
    import numpy as np

    return float(np.max(np.abs(value), initial=0.0))


def _estimate_rounding(expected: Any, noisy: list[Any]) -> float:
    """Estimate a tolerance for rounding errors from results with random rounding.

    If the rounding changes a value completely (a tie), the tolerance is tiny.

    >>> _estimate_rounding(2.0, [2.0 + 2**-50]), _estimate_rounding(0.5, [1.0])
    (2.4e-14, 5e-14)
    >>> _estimate_rounding(float("inf"), [1.0])
    0.0
    """
    size = _compute_max_magnitude(expected)
    if not math.isfinite(size):
        return 0.0
    difference = max(_compute_max_magnitude(value - expected) for value in noisy)
    if not difference <= 1e-3 * max(size, 1.0):
        return float(f"{1e-13 * size:.1e}")
    return float(f"{4 * difference + 1e-14 * size:.1e}")


def _run_program(
    program: DerivativeProgram, at: Inputs, noise: random.Random | None = None
) -> dict[str, Any]:
    """Run a derivative program at a point; ``noise`` rounds each operation randomly."""
    tape = program.tape

    def execute(columns: Inputs, scalars: Inputs, samples: int) -> dict[str, Any]:
        """Evaluate the outputs of the tape, keyed by name."""
        values = _evaluate_tape(tape, {**scalars, **columns}, noise)
        return {name: values[index] for name, index in tape.outputs.items()}

    columns = {leaf.name: at[leaf.name] for leaf in tape.leaves if leaf.name in at}
    # Like in the exported file, zero seeds are ordinary numbers.
    result = run_passes(program, execute, columns, {}, 1)
    derivatives = {name: value for (_, name), value in result.derivatives.items()}
    return {"": result.values[program.of[0]], **derivatives}


def _evaluate_tape(tape: Tape, point: Inputs, noise: random.Random | None) -> list[Any]:
    """Compute all values of a tape at a point; ``noise`` rounds each operation randomly."""
    start = [f.value if f.kind == "constant" else point.get(f.name, 0.0) for f in tape.leaves]
    lookup = choose_arithmetic(start)
    if tape.has_arrays:  # operations on scalars may return arrays
        from cgprimer.core.operations import numpy_arithmetic

        lookup = numpy_arithmetic.numpy_function
    steps = prepare_instructions(tape, lookup)
    if noise:
        exact = _EXACT.split()
        steps = [
            step
            if name in exact or _only_moves_elements(name)
            else (step[0], partial(_apply_with_noise, step[1], noise), *step[2:])
            for (name, _), step in zip(tape.instructions, steps, strict=True)
        ]
    with ignore_numpy_warnings(lookup):
        return evaluate_instructions(steps, start)


def _only_moves_elements(name: Applied) -> bool:
    """Return whether an array operation only moves elements, without arithmetic."""
    return not isinstance(name, str) and not (name.sums_products or name.combines_samples)


def _apply_with_noise(function: Callable[..., Any], noise: random.Random, *operands: Any) -> Any:
    """Apply a function, then move its result up or down by one rounding unit at random."""
    result = function(*operands)
    if isinstance(result, float):
        return result * (1.0 + noise.choice((-1, 1)) * 2.0**-52)
    import numpy as np

    signs = [noise.choice((-1, 1)) for _ in range(np.size(result))]
    return result * (1.0 + np.reshape(signs, np.shape(result)) * 2.0**-52)
