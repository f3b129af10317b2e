"""Convert tapes with arrays to tapes of scalars, and arrays to their elements and back.

``scalarize`` interprets the tape with arrays of *values of the new tape* instead of numbers:
reshaping moves the values, adding them emits additions. Methods, engines and pictures that support
only scalars use the result.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import Any

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.verifier import verify
from cgprimer.support.value_names import Element, parse_element


def scalarize(tape: Tape) -> Tape:
    """Return an equivalent tape of scalars: the elements of ``W`` are ``W[0,0]``, ``W[0,1]``, ...

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
    if not tape.has_arrays:
        return tape
    import numpy as np

    from cgprimer.core.operations.array_operation import emit_elementwise

    builder = Builder(simplify=False)
    values: list[Any] = []  # for each value of the tape, an array of values of the new tape
    for leaf in tape.leaves:
        if leaf.kind == "constant":
            values.append(np.array(builder.constant(leaf.value)))
        else:
            ids = [builder.leaf(leaf.kind, name) for name in elements(leaf.name, leaf.shape)]
            values.append(np.array(ids, dtype=int).reshape(leaf.shape))
    for index, (name, operands) in enumerate(tape.instructions, len(tape.leaves)):
        before = len(builder.entries)
        arrays = [values[o] for o in operands]
        if isinstance(name, str):
            result = emit_elementwise(builder, name, *arrays)
        else:
            result = name.scalarize(builder, *arrays)
        if index in tape.labels:
            result = _name_elements(builder, result, tape.labels[index], before)
        values.append(result)

    def index_elements(table: Mapping[str, int]) -> dict[str, int]:
        """Return the value on the new tape for each array element, keyed by element name."""
        return {
            element: int(value)
            for name, index in table.items()
            for element, value in zip(
                elements(name, tape.shapes[index]), values[index].flat, strict=True
            )
        }

    builder.names = {**index_elements(tape.names), **builder.names}
    return verify(builder.finish(index_elements(tape.outputs)))


def estimate_scalar_cost(tape: Tape) -> tuple[int, int]:
    """Estimate the number of scalar operations of a tape, and count its scalar inputs and outputs.

    >>> import cgprimer
    >>> graph = cgprimer.parse("parameter w[2]; input x[2]; xh = w @ x")
    >>> estimate_scalar_cost(cgprimer.tape(graph))
    (2, 5)
    """
    work, shapes = 0, tape.shapes
    for index, (name, operands) in enumerate(tape.instructions, len(tape.leaves)):
        products = not isinstance(name, str) and name.sums_products
        work += prod(shapes[index]) * (shapes[operands[0]][-1] if products else 1)
    ends = [*range(len(tape.leaves)), *tape.outputs.values()]
    return work, sum(prod(shapes[index]) for index in ends)


def elements(name: str, shape: Shape) -> Iterator[str]:
    """Yield the names of the elements of an array; only the name itself for a scalar.

    >>> list(elements("W", (2, 2))), list(elements("k", ()))
    (['W[0,0]', 'W[0,1]', 'W[1,0]', 'W[1,1]'], ['k'])
    """
    if not shape:
        return iter((name,))
    indices = itertools.product(*map(range, shape))
    return (str(Element(name, index)) for index in indices)


def add_element_outputs(tape: Tape, names: Iterable[str]) -> Tape:
    """Return a tape with additional outputs: elements of arrays, such as ``xs[0]``.

    Raises:
        ShapeError: an index is outside the array.

    >>> import cgprimer
    >>> print(add_element_outputs(cgprimer.tape(cgprimer.parse("input x[3]; xs = 2*x")), ["xs[0]"]))
    input     x      # [3]
    xs = 2*x       # [3]
    xs[0] = xs[0]
    output    xs
    output    xs[0]
    """
    from cgprimer.core.operations.element_operations import take

    builder = Builder(simplify=False)
    value = builder.extend(tape)
    outputs = {name: value[index] for name, index in tape.outputs.items()}
    for name in names:
        array, index = parse_element(name)
        outputs[name] = builder.name(take(builder, value[tape.index(array)], index), name)
    return verify(builder.finish(outputs))


def split_arrays(arrays: Mapping[str, Any], shapes: Mapping[str, Shape]) -> dict[str, Any]:
    """Split arrays into their elements, keyed by names such as ``W[0,1]``.

    Args:
        arrays: an array for each name; leading axes are samples.
        shapes: the shape of one sample for each name; ``()`` for a scalar.

    Returns:
        For each element a float, or an array of samples.
    """
    if not any(shapes.values()):
        return dict(arrays)
    import numpy as np

    result: dict[str, Any] = {}
    for name, value in arrays.items():
        shape = shapes.get(name, ())
        if not shape:
            result[name] = value
            continue
        rows = np.asarray(value)
        flat = np.moveaxis(rows.reshape(*rows.shape[: rows.ndim - len(shape)], prod(shape)), -1, 0)
        result.update(
            (element, np.ascontiguousarray(part) if part.ndim else float(part))
            for element, part in zip(elements(name, shape), flat, strict=True)
        )
    return result


def join_arrays(elements_by_name: Mapping[str, Any], shapes: Mapping[str, Shape]) -> dict[str, Any]:
    """Join elements into arrays: the inverse of :func:`split_arrays`.

    Args:
        elements_by_name: a float or an array of samples for each element.
        shapes: the shapes of the arrays; ``()`` for scalars.
    """
    import numpy as np

    result = {}
    for name, shape in shapes.items():
        if not shape:
            result[name] = elements_by_name[name]
            continue
        parts = [np.asarray(elements_by_name[e]) for e in elements(name, shape)]
        row = np.stack(np.broadcast_arrays(*parts), axis=-1) if parts else np.zeros(0)
        result[name] = row.reshape(row.shape[:-1] + shape)
    return result


def _name_elements(builder: Builder, array: Any, name: str, before: int) -> Any:
    """Name the elements of an array, and copy shared ones, so that vertices are separate values.

    Args:
        builder: the builder of the new tape.
        array: an array of values of the builder.
        name: the name of the array.
        before: the number of entries of the builder before the array was computed.

    Returns:
        The array, with the values of the copies.
    """
    import numpy as np

    ids, values = [], array.reshape(-1).tolist()
    uses = Counter(values)  # several elements can have the same value
    for element, index in zip(elements(name, array.shape), values, strict=True):
        if builder.names.get(element) != index:  # else the element already has the name
            shared = index < before or uses[index] > 1 or builder.value_of(index) is not None
            if shared or index in builder.pinned:
                index = builder.emit("copy", index, pinned=True)  # noqa: PLW2901
            builder.pin(index)
        ids.append(builder.name(index, element))
    return np.array(ids, dtype=int).reshape(array.shape)
