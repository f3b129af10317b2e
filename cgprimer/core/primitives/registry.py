"""Looking rows up."""

from __future__ import annotations

from functools import lru_cache

from cgprimer.core.language.parser import parse_expression
from cgprimer.core.language.syntax import Expression
from cgprimer.core.primitives.row import Primitive
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


def put_row(row: Primitive) -> None:
    """Put a row into the table, at the end or in the place of the one with its name."""
    _GENERATION[0] += 1
    _TABLE[row.name] = row


def add_row(row: Primitive) -> None:
    """Put a new row at the end of the table."""
    put_row(row)
    if row.spelling:
        _SPELLINGS.setdefault(row.spelling, []).append(row)


def remove_row(row: Primitive) -> None:
    """Take a row out of the table."""
    _GENERATION[0] += 1
    del _TABLE[row.name]
    _SPELLINGS[row.spelling].remove(row)
    if not _SPELLINGS[row.spelling]:
        del _SPELLINGS[row.spelling]


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
        from cgprimer.core.primitives.registration import check_partials

        row = _OUTSIDE[name]
        check_partials(row)
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


@lru_cache(maxsize=4096)
def partial_tree(text: str) -> Expression:
    """The text of a partial derivative as a syntax tree; each text is parsed once."""
    return parse_expression(text, FUNCTIONS, source_name="partial derivative")
