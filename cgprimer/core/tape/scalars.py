"""Any tape written out in numbers: the pass ``scalarize``, and arrays taken apart and put together.

It runs the tape as an interpreter does, but on arrays of *values of the new tape* in the place of
numbers: moving elements moves them, adding them emits additions. So every method, engine and
picture that knows numbers alone works on every graph.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial, reduce
from math import prod
from typing import Any

from cgprimer.core.language.syntax import Shape, Structural, element_place
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape, shape_of
from cgprimer.core.tape.verifier import checked
from cgprimer.errors import TapeError


def scalarize(tape: Tape) -> Tape:
    """The same tape in numbers: ``W`` of shape (2, 3) is ``W[0,0]``, ``W[0,1]``, and so on.

    >>> import cgprimer
    >>> print(scalarize(cgprimer.tape(cgprimer.parse("parameter w[2]; input x[2]; xh = w @ x"))))
    input     x[0]
    input     x[1]
    parameter w[0]
    parameter w[1]
    v1 = w[0]*x[0]
    v2 = w[1]*x[1]
    xh = v1 + v2
    output    xh
    """
    if not tape.shapes:
        return tape
    import numpy as np

    builder = Builder(simplify=False)
    values: list[Any] = []  # an array of values of the new tape for each value of the old
    for leaf in tape.leaves:
        if leaf.kind == "constant":
            values.append(np.array(builder.constant(leaf.value)))
        else:
            ids = [builder.leaf(leaf.kind, name) for name in elements(leaf.name, leaf.shape)]
            values.append(np.array(ids, dtype=int).reshape(leaf.shape))
    for index, (name, operands) in enumerate(tape.instructions, len(tape.leaves)):
        before = len(builder.entries)
        made = _emitted(builder, name, [values[o] for o in operands])
        if index in tape.labels:
            made = _named(builder, made, tape.labels[index], before)
        values.append(made)

    def written_out(table: Mapping[str, int]) -> dict[str, int]:
        return {
            element: int(value)
            for name, index in table.items()
            for element, value in zip(
                elements(name, shape_of(tape, index)), values[index].flat, strict=True
            )
        }

    builder.names = {**written_out(tape.names), **builder.names}
    return checked(builder.finish(written_out(tape.outputs)))


def cost_of_numbers(tape: Tape) -> tuple[int, int]:
    """About how many operations the tape is in numbers, and how many of them go in and come out.

    >>> import cgprimer
    >>> cost_of_numbers(cgprimer.tape(cgprimer.parse("parameter w[2]; input x[2]; xh = w @ x")))
    (2, 5)
    """
    work, shapes = 0, tape.shapes
    for index, (name, operands) in enumerate(tape.instructions, len(tape.leaves)):
        products = isinstance(name, Structural) and name.kind in ("matmul", "sum")
        work += prod(shapes[index]) * (shapes[operands[0]][-1] if products else 1)
    ends = [*range(len(tape.leaves)), *tape.outputs.values()]
    return work, sum(prod(shapes[index]) for index in ends)


def elements(name: str, shape: Shape) -> Iterator[str]:
    """What the numbers of a value are called; its own name where it is a single number.

    >>> list(elements("W", (2, 2))), list(elements("k", ()))
    (['W[0,0]', 'W[0,1]', 'W[1,0]', 'W[1,1]'], ['k'])
    """
    if not shape:
        return iter((name,))
    places = itertools.product(*map(range, shape))
    return (f"{name}[{','.join(map(str, place))}]" for place in places)


def with_elements(tape: Tape, names: Iterable[str]) -> Tape:
    """A tape on which elements of arrays, such as ``xs[0]``, are values with these names.

    Raises:
        ShapeError: there is no such element.

    >>> import cgprimer
    >>> print(with_elements(cgprimer.tape(cgprimer.parse("input x[3]; xs = 2*x")), ["xs[0]"]))
    input     x      # [3]
    xs = 2*x       # [3]
    xs[0] = xs[0]
    output    xs
    output    xs[0]
    """
    from cgprimer.core.primitives.shaped import take

    builder = Builder(simplify=False)
    value = builder.extend(tape)
    outputs = {name: value[index] for name, index in tape.outputs.items()}
    for name in names:
        base, place = element_place(name)
        outputs[name] = builder.name(take(builder, value[tape.index(base)], place), name)
    return checked(builder.finish(outputs))


def apart(given: Mapping[str, Any], shapes: Mapping[str, Shape]) -> dict[str, Any]:
    """Numbers, or columns of samples, of arrays whose last axes have these shapes."""
    if not any(shapes.values()):
        return dict(given)
    import numpy as np

    found: dict[str, Any] = {}
    for name, value in given.items():
        shape = shapes.get(name, ())
        if not shape:
            found[name] = value
            continue
        rows = np.asarray(value)
        flat = np.moveaxis(rows.reshape(*rows.shape[: rows.ndim - len(shape)], prod(shape)), -1, 0)
        found.update(
            (element, np.ascontiguousarray(part) if part.ndim else float(part))
            for element, part in zip(elements(name, shape), flat, strict=True)
        )
    return found


def together(found: Mapping[str, Any], shapes: Mapping[str, Shape]) -> dict[str, Any]:
    """Arrays of their numbers: the opposite of :func:`apart`.

    Args:
        found: a number or an array of samples for each element.
        shapes: what to put together; ``()`` for single numbers.
    """
    import numpy as np

    made = {}
    for name, shape in shapes.items():
        if not shape:
            made[name] = found[name]
            continue
        parts = [np.asarray(found[e]) for e in elements(name, shape)]
        row = np.stack(np.broadcast_arrays(*parts), axis=-1) if parts else np.zeros(0)
        made[name] = row.reshape(row.shape[:-1] + shape)
    return made


def _emitted(builder: Builder, name: str, operands: list[Any]) -> Any:
    """An instruction on arrays of values."""
    import numpy as np

    from cgprimer.core.primitives.arrays import STRUCTURAL
    from cgprimer.core.primitives.structural import result_shape

    if not isinstance(name, Structural) or name.kind == "batch_mean":
        own = Structural("batch_mean", 0) if isinstance(name, Structural) else name
        arrays = np.broadcast_arrays(*operands)
        ids = [
            builder.emit(own, *map(int, one)) for one in zip(*(a.flat for a in arrays), strict=True)
        ]
        return np.array(ids, dtype=int).reshape(arrays[0].shape)

    match name.kind:
        case "custom" | "backward":
            if any(o.ndim for o in operands):
                called = f"{name.setting[0].name!r} takes arrays whole"
                raise TapeError(f"{called}: it cannot be written out in numbers")
            return np.array(builder.emit(name, *map(int, operands)))
        case "sum" | "largest":
            (a,), (axes,) = operands, name.setting
            rows = np.moveaxis(a, axes, range(-len(axes), 0))
            kept = rows.shape[: a.ndim - len(axes)]
            emit = "add" if name.kind == "sum" else "max"
            return _folded(builder, emit, rows.reshape(*kept, prod(rows.shape[len(kept) :])))
        case "matmul":
            a, b = operands
            left = a if name.setting[0] > 1 else a[..., None, :]
            right = b if name.setting[1] > 1 else b[..., None]
            pairs = [left[..., :, None, :], np.swapaxes(right, -1, -2)[..., None, :, :]]
            made = _folded(builder, "add", _emitted(builder, "mul", pairs))
            return made.reshape(result_shape(name, a.shape, b.shape))
        case "scatter":
            key, shape = name.setting
            places = STRUCTURAL["take"](np.arange(prod(shape)).reshape(shape), key)
            made = np.full(prod(shape), builder.constant(0.0))
            seen: dict[int, int] = {}
            for place, value in zip(places.flat, map(int, operands[0].flat), strict=True):
                known = seen.get(place)
                seen[place] = value if known is None else builder.emit("add", known, value)
            made[list(seen)] = list(seen.values())
            return made.reshape(shape)
    return STRUCTURAL[name.kind](*operands, *name.setting)  # what only moves elements


def _folded(builder: Builder, emit: str, rows: Any) -> Any:
    """The last axis put together, two by two from the left."""
    import numpy as np

    flat = rows.reshape(prod(rows.shape[:-1]), rows.shape[-1])
    step = partial(builder.emit, emit)
    ids = [reduce(step, row) if row else builder.constant(0.0) for row in flat.tolist()]
    return np.array(ids, dtype=int).reshape(rows.shape[:-1])


def _named(builder: Builder, made: Any, name: str, before: int) -> Any:
    """A named value of its own for each element, as every vertex is one."""
    import numpy as np

    ids, values = [], made.reshape(-1).tolist()
    alike = Counter(values)  # computed once for several elements, each of which can be moved
    for element, index in zip(elements(name, made.shape), values, strict=True):
        if builder.names.get(element) != index:  # else an element that was asked for by its name
            known = index < before or alike[index] > 1 or builder.value_of(index) is not None
            if known or index in builder.pinned:
                index = builder.emit("copy", index, pinned=True)  # noqa: PLW2901
            builder.pin(index)
        ids.append(builder.name(index, element))
    return np.array(ids, dtype=int).reshape(made.shape)
