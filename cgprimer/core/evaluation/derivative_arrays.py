"""Derivatives of arrays, assembled from the derivatives of elements, rows or columns."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.core.methods.derivative_program import DerivativeProgram, Derivatives, Entry, Number
from cgprimer.core.tape.scalarization import elements, join_arrays
from cgprimer.support.value_names import parse_element


def join_elements(
    program: DerivativeProgram, outputs: Mapping[str, Number], totals: dict[Entry, Number]
) -> Derivatives:
    """Assemble arrays from the values and derivatives of elements; 0 where there is no edge."""
    shapes = program.shapes
    parts_by_name = {(of, wrt): total for (of, wrt, _, _), total in totals.items()}
    pairs = [*product(program.of, program.wrt)] or {  # else all edges of a graph
        (parse_element(of).array, parse_element(wrt).array): 0 for of, wrt in parts_by_name
    }
    derivatives: dict[tuple[str, str], Number] = {}
    for of, wrt in pairs:
        head, tail = shapes.get(of, ()), shapes.get(wrt, ())
        if not head and not tail:
            derivatives[of, wrt] = parts_by_name[of, wrt]
            continue
        parts = [
            parts_by_name.get(p, 0.0) for p in product(elements(of, head), elements(wrt, tail))
        ]
        result = np.stack(np.broadcast_arrays(*parts), axis=-1) if parts else np.zeros(0)
        derivatives[of, wrt] = result.reshape(result.shape[:-1] + head + tail)
    return Derivatives(
        join_arrays(outputs, {n: shapes.get(n, ()) for n in program.of}), derivatives
    )


def join_blocks(
    program: DerivativeProgram, totals: dict[Entry, Number]
) -> dict[tuple[str, str], Number]:
    """Assemble the derivatives of arrays from rows or columns of separate passes."""
    blocks: dict[tuple[str, str], list[tuple[Entry, Number]]] = {}
    for entry, total in totals.items():
        blocks.setdefault(entry[:2], []).append((entry, total))
    return {
        (of, wrt): _assemble_array(parts, program.shapes.get(of, ()), program.shapes.get(wrt, ()))
        for (of, wrt), parts in blocks.items()
    }


def _assemble_array(parts: list[tuple[Entry, Number]], head: Shape, tail: Shape) -> Number:
    """Assemble a derivative of shape samples + head + tail from its rows or columns."""
    (_, _, row, column), first = parts[0]
    if not row and not column:
        return first  # a single part needs no copy
    own_axes = len(() if row else head) + len(() if column else tail)
    samples = np.shape(first)[: np.ndim(first) - own_axes]
    result = np.zeros(samples + head + tail, np.result_type(*(part for _, part in parts)))
    if 0 not in result.shape:
        every = slice(None)
        for (_, _, row, column), part in parts:
            rows, columns = row or [every] * len(head), column or [every] * len(tail)
            result[(*[every] * len(samples), *rows, *columns)] = part
    return result
