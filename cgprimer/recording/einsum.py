"""``einsum``, ``tensordot`` and ``kron`` of recorded values, computed as matrix products."""

from __future__ import annotations

import math
from string import ascii_letters
from typing import Any

import numpy as np

from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.errors import DifferentiationError, ShapeError
from cgprimer.recording.rearranging import create_position_array, gather, to_value


def kron(a: Any, b: Any) -> Any:
    """Return the Kronecker product, as ``numpy.kron`` does."""
    a, b = to_value(a), to_value(b)
    rank = max(a.ndim, b.ndim)
    left, right = ((1,) * (rank - x.ndim) + x.shape for x in (a, b))
    product = a.reshape([n for size in left for n in (size, 1)]) * b.reshape(
        [n for size in right for n in (1, size)]
    )
    return product.reshape([n * m for n, m in zip(left, right, strict=True)])


def einsum(subscripts: Any, *operands: Any, optimize: Any = None) -> Any:
    """Return the sum of products that the subscripts describe, as ``numpy.einsum`` does.

    Operands are multiplied pairwise from the left, each time as a product of matrices
    (``optimize`` has no effect); axes that no later operand needs are summed first.

    Raises:
        DifferentiationError: the subscripts are not a string of letters.
        ShapeError: the subscripts do not match the operands, or a letter has conflicting sizes.
    """
    values = [to_value(operand) for operand in operands]
    terms, out, sizes = _parse_subscripts(subscripts, values)
    a, letters = _reduce_axes(values[0], terms[0], out + "".join(terms[1:]))
    for i, (b, other) in enumerate(zip(values[1:], terms[1:], strict=True), 2):
        later = out + "".join(terms[i:])
        a, letters = _reduce_axes(a, letters, later + other)
        b, other = _reduce_axes(b, other, later + letters)  # noqa: PLW2901
        batch = "".join(c for c in letters if c in other and c in later)
        inner = "".join(c for c in letters if c in other and c not in later)
        left = "".join(c for c in letters if c not in batch + inner)
        right = "".join(c for c in other if c not in batch + inner)
        product = _group_axes(a, letters, sizes, batch, left, inner) @ _group_axes(
            b, other, sizes, batch, inner, right
        )
        letters = batch + left + right
        a = product.reshape([sizes[c] for c in letters])
    a, letters = _reduce_axes(a, letters, out)
    return a.transpose([letters.index(c) for c in out])


def _parse_subscripts(subscripts: Any, values: list[Any]) -> tuple[list[str], str, dict[str, int]]:
    """Parse subscripts; return the indices of operands and result, and the size of each index."""
    text = subscripts.replace(" ", "") if isinstance(subscripts, str) else "."
    left, arrow, out = text.partition("->")
    terms = left.split(",")
    if set(text.replace("->", "")) - {*ascii_letters, ","}:
        raise DifferentiationError(
            f"einsum subscripts of recorded values must be letters, got {subscripts!r}",
            hint="write, for example, np.einsum('ij,jk->ik', a, b)",
        )
    if [len(term) for term in terms] != [v.ndim for v in values]:
        shapes = " and ".join(format_shape(v.shape) for v in values)
        raise ShapeError(f"einsum subscripts {left!r} must have one letter per axis of {shapes}")
    sizes: dict[str, int] = {}
    for term, value in zip(terms, values, strict=True):
        for letter, n in zip(term, value.shape, strict=True):
            if sizes.setdefault(letter, n) != n:
                raise ShapeError(
                    f"einsum subscript {letter!r} has conflicting sizes {sizes[letter]} and {n}"
                )
    if not arrow:
        out = "".join(sorted(c for c in sizes if left.count(c) == 1))
    if len(set(out)) < len(out) or set(out) - sizes.keys():
        raise ShapeError(
            f"einsum output subscripts must be distinct and occur in the operands, got {out!r}"
        )
    return terms, out, sizes


def _reduce_axes(a: Any, letters: str, needed: str) -> tuple[Any, str]:
    """Take diagonals of repeated subscripts, and sum over subscripts that are not needed."""
    unique = "".join(dict.fromkeys(letters))
    if unique != letters:
        a = gather(a, np.einsum(f"{letters}->{unique}", create_position_array(a)))
    summed = tuple(i for i, c in enumerate(unique) if c not in needed)
    return (a.sum(summed) if summed else a), "".join(c for c in unique if c in needed)


def _group_axes(a: Any, letters: str, sizes: dict[str, int], batch: str, *groups: str) -> Any:
    """Transpose batch axes to the front, and merge each other group of axes into a single axis."""
    a = a.transpose([letters.index(c) for c in batch + "".join(groups)])
    merged = [math.prod(sizes[c] for c in group) for group in groups]
    return a.reshape([*(sizes[c] for c in batch), *merged])


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Return the tensor dot product over the given axes, as ``numpy.tensordot`` does."""
    a, b = to_value(a), to_value(b)
    pairs = (range(-axes, 0), range(axes)) if isinstance(axes, int) else axes
    axes_of_a, axes_of_b = (np.atleast_1d(side) for side in pairs)
    left, right = list(ascii_letters[: a.ndim]), list(ascii_letters[a.ndim : a.ndim + b.ndim])
    for i, j in zip(axes_of_a, axes_of_b, strict=True):
        right[j] = left[i]
    out = [c for c in left + right if (left + right).count(c) == 1]
    return einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", a, b)
