"""The language with the table's functions: what everybody calls to read and to write an expression.

``core/language`` knows the grammar and is given the functions; here they are put together.
"""

from __future__ import annotations

from cgprimer.core.language import parser
from cgprimer.core.language import unparse as writing
from cgprimer.core.language.syntax import Expression
from cgprimer.core.primitives.registry import FUNCTIONS, primitive


def parse_expression(text: str, *, source_name: str = "<expression>") -> Expression:
    """A single expression; see :func:`cgprimer.core.language.parser.parse_expression`."""
    return parser.parse_expression(text, FUNCTIONS, source_name=source_name)


def unparse(expression: Expression) -> str:
    """The text of an expression; see :func:`cgprimer.core.language.unparse.unparse`.

    >>> unparse(parse_expression("log(((xa)), 2)"))
    'log(xa, 2)'
    """
    return writing.unparse(expression, lambda name: primitive(name).spelling)
