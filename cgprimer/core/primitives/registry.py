"""Looking rows up, and adding rows from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from cgprimer.core.language.parser import parse_expression
from cgprimer.core.language.syntax import Expression, Name, leaves
from cgprimer.core.primitives.row import OPERANDS, RESULT, Primitive
from cgprimer.errors import UsageError, did_you_mean
from cgprimer.plugins import Registry

# Steps into which engines put several instructions; see cgprimer.native.plans.plan.
RESERVED = ("fma", "fms", "fnma", "sincos", "affine", "sum", "dot", "outer")
_TABLE: dict[str, Primitive] = {}
_OUTSIDE: Registry[Primitive] = Registry("primitive", "cgprimer.primitives")
_SPELLINGS: dict[str, list[Primitive]] = {}
_GENERATION = [0]


def generation() -> int:
    """A number that changes whenever the table does: what was compiled before is stale then."""
    return _GENERATION[0]


def add_row(row: Primitive) -> None:
    """Put a row at the end of the table."""
    _GENERATION[0] += 1
    _TABLE[row.name] = row
    if row.spelling:
        _SPELLINGS.setdefault(row.spelling, []).append(row)


def primitive(name: str) -> Primitive:
    """The row called ``name``.

    >>> primitive("tanh").partials
    ('1 - out*out',)

    Raises:
        UsageError: there is no such row; near names are suggested.
    """
    try:
        return _TABLE[name]
    except KeyError:
        raise UsageError(
            f"there is no primitive {name!r}", hint=did_you_mean(name, _TABLE)
        ) from None


def primitives() -> tuple[Primitive, ...]:
    """All rows, in the order of the table."""
    return tuple(_TABLE.values())


def spelled(name: str) -> tuple[Primitive, ...]:
    """The rows that an expression may mean by ``name(...)``; empty where it is no function."""
    if name not in _SPELLINGS and name in _OUTSIDE:  # of an installed package
        row = _OUTSIDE[name]
        _check_partials(row)
        add_row(row)
    return tuple(_SPELLINGS.get(name, ()))


def function_names() -> tuple[str, ...]:
    """Every name that may stand before a parenthesis, sorted."""
    return tuple(sorted(_SPELLINGS))


class _Functions:
    """The table as the parser is given it."""

    spelled = staticmethod(spelled)
    function_names = staticmethod(function_names)


FUNCTIONS = _Functions()


def register_primitive(
    name: str,
    numpy: Callable[..., Any],
    *,
    partials: Sequence[str] | str,
    sympy: Callable[..., Any] | None = None,
    domain: str = "all real numbers",
    edges: str = "",
    source: str = "",
    analytic: bool = False,
) -> Primitive:
    """Add a row of one's own: a function with its own derivative, usable in expressions at once.

    Args:
        name: the function's name in expressions; an identifier that is not taken yet.
        numpy: the function on floats and arrays (element by element, any shape).
        partials: the derivative with respect to each operand, as text in which the operands
            are ``a``, ``b``, ``c`` and the result is ``out``. It need not be the true
            derivative: a straight-through estimator says ``"1"``.
        sympy, domain, edges, source, analytic: as in :class:`Primitive`.

    Raises:
        UsageError: the name is taken or no identifier, or a partial does not parse.

    >>> import numpy as np
    >>> row = register_primitive("swish", lambda a: a / (1 + np.exp(-a)),
    ...                          partials="sigmoid(a) + a*sigmoid(a)*(1 - sigmoid(a))")
    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = swish(k*xa)")
    >>> cgprimer.gradient(graph, {"k": 0.0, "xa": 2.0})
    {'k': 1.0}
    >>> unregister_primitive("swish")
    """
    texts = (partials,) if isinstance(partials, str) else partials
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise UsageError(
            f"the partials of {name!r} are texts, one per operand, not {partials!r}",
            hint="partials='cos(a)' for a function of one operand, ('b', 'a') for one of two",
        )
    if not callable(numpy):
        raise UsageError(f"{name!r} needs a function of floats and arrays, not {numpy!r}")
    if not name.isidentifier() or name in OPERANDS or name == RESULT:
        raise UsageError(f"{name!r} cannot be the name of a function")
    if name in _TABLE or name in _SPELLINGS:
        raise UsageError(f"there is a primitive {name!r} already")
    if name in RESERVED:
        raise UsageError(f"{name!r} is what engines call a step of their own: take another name")
    if not 1 <= len(texts) <= len(OPERANDS):
        raise UsageError(f"a primitive has one to three operands, {name!r} has {len(texts)}")
    operands = ", ".join("{" + o + "}" for o in OPERANDS[: len(texts)])
    shown = name.replace("_", chr(92) + "_")
    latex = rf"\operatorname{{{{{shown}}}}}\left({operands}\right)"
    row = Primitive(
        name, tuple(texts), latex, domain, edges, source, analytic, name,
        function=numpy, sympy=sympy,
    )  # fmt: skip
    _check_partials(row)
    add_row(row)
    return row


def unregister_primitive(name: str) -> None:
    """Take a row that :func:`register_primitive` added out again.

    Raises:
        UsageError: the row belongs to the package, or there is none.
    """
    row = primitive(name)
    if row.built_in:
        raise UsageError(f"{name!r} belongs to the package and stays")
    _GENERATION[0] += 1
    del _TABLE[name]
    _SPELLINGS[row.spelling].remove(row)
    if not _SPELLINGS[row.spelling]:
        del _SPELLINGS[row.spelling]


@contextmanager
def replaced(row: Primitive) -> Iterator[None]:
    """Put another row in the place of the one with its name, for the length of a ``with`` block.

    Tests plant wrong derivatives with it, to see the checks catch them.
    """
    old = primitive(row.name)
    _TABLE[row.name] = row
    _GENERATION[0] += 1
    try:
        yield
    finally:
        _TABLE[row.name] = old
        _GENERATION[0] += 1


@lru_cache(maxsize=4096)
def partial_tree(text: str) -> Expression:
    """The text of a partial derivative as a syntax tree; each text is parsed once."""
    return parse_expression(text, FUNCTIONS, source_name="partial derivative")


def _check_partials(row: Primitive) -> None:
    """Refuse a partial that names anything but the operands and the result."""
    allowed = {*OPERANDS[: row.arity], RESULT}
    for text in row.partials:
        for leaf in leaves(partial_tree(text)):
            if isinstance(leaf, Name) and leaf.name not in allowed:
                raise UsageError(
                    f"the partial {text!r} of {row.name!r} names {leaf.name!r}",
                    hint=f"it may name {', '.join(sorted(allowed))}",
                )
