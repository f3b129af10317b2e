"""Products of arrays by the letters of their axes: each is one of matrices.

Source of what they mean: numpy's reference, ``einsum``, ``tensordot`` and ``kron``.
"""

from __future__ import annotations

import math
from string import ascii_letters
from typing import Any

import numpy as np

from cgprimer.core.primitives.structural import shape_text
from cgprimer.errors import DifferentiationError, ShapeError
from cgprimer.recording.rearranging import placed, places_of, value_of


def kron(a: Any, b: Any) -> Any:
    """``numpy.kron``: an array of every element of the one times the other."""
    a, b = value_of(a), value_of(b)
    rank = max(a.ndim, b.ndim)
    left, right = ((1,) * (rank - x.ndim) + x.shape for x in (a, b))
    made = a.reshape([n for size in left for n in (size, 1)]) * b.reshape(
        [n for size in right for n in (1, size)]
    )
    return made.reshape([n * m for n, m in zip(left, right, strict=True)])


def einsum(subscripts: Any, *operands: Any, optimize: Any = None) -> Any:
    """``numpy.einsum`` of one operand or more, by letters.

    Products are made two by two from the left, each as one of matrices (``optimize`` changes
    nothing); other letters are summed over before.

    Raises:
        DifferentiationError: the subscripts are no text of letters.
        ShapeError: the letters do not fit the operands, or the sizes not each other.
    """
    text = subscripts.replace(" ", "") if isinstance(subscripts, str) else "."
    given, arrow, out = text.partition("->")
    names, values = given.split(","), [value_of(o) for o in operands]
    if set(text.replace("->", "")) - {*ascii_letters, ","}:
        raise DifferentiationError(
            "numpy.einsum is recorded with letters alone", hint="np.einsum('ij,jk->ik', a, b)"
        )
    if [len(name) for name in names] != [v.ndim for v in values]:
        shapes = " and ".join(shape_text(v.shape) for v in values)
        raise ShapeError(f"the letters {given!r} do not fit {shapes}: one for each axis")
    sizes: dict[str, int] = {}
    for letter, n in ((c, n) for w, v in zip(names, values, strict=True)
                      for c, n in zip(w, v.shape, strict=True)):  # fmt: skip
        if sizes.setdefault(letter, n) != n:
            raise ShapeError(f"the letter {letter!r} stands for the sizes {sizes[letter]} and {n}")
    if not arrow:
        out = "".join(sorted(c for c in sizes if given.count(c) == 1))
    if len(set(out)) < len(out) or set(out) - sizes.keys():
        raise ShapeError(f"the result {out!r} has letters twice, or such as no operand has")

    def alone(a: Any, own: str, wanted: str) -> tuple[Any, str]:
        """Letters that stand twice are a diagonal, those that nobody wants are summed over."""
        once = "".join(dict.fromkeys(own))
        if once != own:
            a = placed(a, np.einsum(f"{own}->{once}", places_of(a)))
        gone = tuple(i for i, c in enumerate(once) if c not in wanted)
        return (a.sum(gone) if gone else a), "".join(c for c in once if c in wanted)

    def shaped_as(a: Any, own: str, *groups: str) -> Any:
        """Axes in the order of their letters, each group after the first as one axis."""
        a = a.transpose([own.index(c) for c in "".join(groups)])
        whole = [math.prod(sizes[c] for c in group) for group in groups[1:]]
        return a.reshape([*(sizes[c] for c in groups[0]), *whole])

    a, own = alone(values[0], names[0], out + "".join(names[1:]))
    for i, (b, other) in enumerate(zip(values[1:], names[1:], strict=True), 2):
        later = out + "".join(names[i:])
        a, own = alone(a, own, later + other)
        b, other = alone(b, other, later + own)  # noqa: PLW2901
        both = "".join(c for c in own if c in other and c in later)
        inner = "".join(c for c in own if c in other and c not in later)
        left, right = ("".join(c for c in w if c not in both + inner) for w in (own, other))
        made = shaped_as(a, own, both, left, inner) @ shaped_as(b, other, both, inner, right)
        own = both + left + right
        a = made.reshape([sizes[c] for c in own])
    a, own = alone(a, own, out)
    return a.transpose([own.index(c) for c in out])


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """``numpy.tensordot``: axes of the one are summed over with axes of the other."""
    a, b = value_of(a), value_of(b)
    pairs = (range(-axes, 0), range(axes)) if isinstance(axes, int) else axes
    ours, theirs = (np.atleast_1d(places) for places in pairs)
    left, right = list(ascii_letters[: a.ndim]), list(ascii_letters[a.ndim : a.ndim + b.ndim])
    for i, j in zip(ours, theirs, strict=True):
        right[j] = left[i]
    out = [c for c in left + right if (left + right).count(c) == 1]
    return einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", a, b)
