"""The points that an exported file checks itself at, and what the package finds there."""

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

_MORE = 3  # points beside the one that is given
_OTHER = 2  # and, if need be, at which something is not 0 that is 0 at all of these
_TRIES = 40  # to find one at which all is finite
_NOISE = 6  # runs with other roundings
_EXACT = "neg copy abs sign heaviside step max min clamp stop_gradient where less equal relu"


@dataclass(frozen=True)
class Checked:
    """A point and what is right there.

    Attributes:
        at: a number, or an array, for each leaf.
        right: the value, called "", and the slopes by name.
        rounding: by how much rounding errors may move each.
        smooth: whether the derivative has no jump right beside the point: other libraries have
            their own conventions at kinks.
    """

    at: dict[str, Any]
    right: dict[str, Any]
    rounding: dict[str, float]
    smooth: bool


def points(
    program: DerivativeProgram, leaves: Sequence[Leaf], given: Mapping[str, Any]
) -> Iterator[Checked]:
    """The given point, if it has all values, and some beside it at which all is finite.

    Where a derivative is 0 at all of them, as that of a relu may be, another is looked for.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("xw = k*xa^2"))
    >>> program = cgprimer.differentiate(tape)
    >>> first, *more = points(program, tape.leaves[:2], {"xa": 3.0, "k": 2.0})
    >>> first.right, first.smooth, len(more)
    ({'': 18.0, 'k': 9.0}, True, 3)
    """
    rng, made = random.Random(0), 0
    always: set[tuple[str, int]] | None = None  # what is 0 at every point
    if all(leaf.name in given for leaf in leaves):
        first = _checked(program, {leaf.name: given[leaf.name] for leaf in leaves}, rng)
        always = _zeros(first.right)
        yield first
    for number in range(_TRIES):
        near = number % 2 == 0  # what is given may stand where nothing else is in the domain
        at = {leaf.name: _number(leaf, given.get(leaf.name), near, rng) for leaf in leaves}
        found = _run(program, at)
        finite = all(map(all_finite, found.values()))
        last_resort = number == _TRIES - 1 and not made and given.keys() < at.keys()
        zeros = _zeros(found) if always is None else always & _zeros(found)
        if last_resort or (finite and (made < _MORE or zeros != always)):
            yield _checked(program, at, rng)
            made, always = made + 1, zeros
        if made == _MORE + _OTHER or (made >= _MORE and not always):
            return


def _zeros(found: Mapping[str, Any]) -> set[tuple[str, int]]:
    """Which elements are 0."""
    flat = {name: getattr(value, "flat", [value]) for name, value in found.items()}
    return {(name, k) for name, row in flat.items() for k, x in enumerate(row) if x == 0.0}


def _number(leaf: Leaf, given: Any, near: bool, rng: random.Random) -> Any:
    """A number of three decimals, or an array of them."""

    def one(about: float) -> float:
        return round((about if near and math.isfinite(about) else 0.0) + rng.uniform(-1.5, 1.5), 3)

    if not leaf.shape:
        return one(0.5 if given is None else given)
    import numpy as np

    about = np.broadcast_to(0.5 if given is None else given, leaf.shape)
    return np.array([one(x) for x in about.flat]).reshape(leaf.shape)


def _checked(program: DerivativeProgram, at: dict[str, Any], rng: random.Random) -> Checked:
    here, noisy = _run(program, at), [_run(program, at, rng) for _ in range(_NOISE)]
    rounding = {name: _rounding(v, [one[name] for one in noisy]) for name, v in here.items()}
    smooth = all(math.isfinite(_most(number)) for number in here.values())
    for _ in range(4 * smooth):
        moved = _run(program, {n: v + _nudge(v, rng) for n, v in at.items()})
        for name, number in here.items():
            smooth = smooth and _most(moved[name] - number) <= 1e-3 * (1 + _most(number))
    return Checked(at, here, rounding, smooth)


def _nudge(value: Any, rng: random.Random) -> float:
    """Next to nothing, beside a number or an array, to one side or the other."""
    return rng.uniform(-1e-8, 1e-8) * (1 + _most(value))


def _most(value: Any) -> float:
    """The largest size in an array, or of a number; nan if there is one."""
    if isinstance(value, float):
        return abs(value)
    import numpy as np

    return float(np.max(np.abs(value), initial=0.0))


def _rounding(right: Any, others: list[Any]) -> float:
    """Some times what other roundings make of a number; where they decide a tie, next to nothing.

    >>> _rounding(2.0, [2.0 + 2**-50]), _rounding(0.5, [1.0]), _rounding(float("inf"), [1.0])
    (2.4e-14, 5e-14, 0.0)
    """
    size = _most(right)
    if not math.isfinite(size):
        return 0.0
    off = max(_most(other - right) for other in others)
    if not off <= 1e-3 * max(size, 1.0):
        return float(f"{1e-13 * size:.1e}")
    return float(f"{4 * off + 1e-14 * size:.1e}")


def _run(
    program: DerivativeProgram, at: Inputs, noise: random.Random | None = None
) -> dict[str, Any]:
    """A program at a point of numbers and arrays; with noise every operation is rounded anew."""
    tape = program.tape

    def execute(columns: Inputs, scalars: Inputs, samples: int) -> dict[str, Any]:
        values = _values(tape, {**scalars, **columns}, noise)
        return {name: values[index] for name, index in tape.outputs.items()}

    columns = {leaf.name: at[leaf.name] for leaf in tape.leaves if leaf.name in at}
    # No pass is isolated, as in the exported file: a seed of 0 is a number like any other.
    found = run_passes(program, execute, columns, {}, 1)
    return {"": found.values[program.of[0]], **{n: v for (_, n), v in found.derivatives.items()}}


def _values(tape: Tape, given: Inputs, noise: random.Random | None) -> list[Any]:
    start = [f.value if f.kind == "constant" else given.get(f.name, 0.0) for f in tape.leaves]
    lookup = choose_arithmetic(start)
    if tape.has_arrays:  # of numbers, arrays may be made
        from cgprimer.core.operations import numpy_arithmetic

        lookup = numpy_arithmetic.numpy_function
    steps = prepare_instructions(tape, lookup)
    if noise:
        exact = _EXACT.split()
        steps = [
            step
            if name in exact or _moves(name)
            else (step[0], partial(_rounded, step[1], noise), *step[2:])
            for (name, _), step in zip(tape.instructions, steps, strict=True)
        ]
    with ignore_numpy_warnings(lookup):
        return evaluate_instructions(steps, start)


def _moves(name: Applied) -> bool:
    return not isinstance(name, str) and not (name.sums_products or name.combines_samples)


def _rounded(function: Callable[..., Any], noise: random.Random, *operands: Any) -> Any:
    made = function(*operands)
    if isinstance(made, float):
        return made * (1.0 + noise.choice((-1, 1)) * 2.0**-52)
    import numpy as np

    signs = [noise.choice((-1, 1)) for _ in range(np.size(made))]
    return made * (1.0 + np.reshape(signs, np.shape(made)) * 2.0**-52)
