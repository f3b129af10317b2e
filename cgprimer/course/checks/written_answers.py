"""Answers as they are written by hand: components by name or in order, read and computed.

They are read by the package's own parser, usual notation included (see `notation_reader.py`), and
never run; ``pi`` and ``e`` are known, and so are the graph's inner variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import numpy as np

from cgprimer.analysis.derivation import size
from cgprimer.core.language.syntax_tree import Operator
from cgprimer.core.operations import float_arithmetic, symbolic_arithmetic
from cgprimer.course.checks.gradient_questions import Points, Question
from cgprimer.course.checks.notation_reader import read_formula
from cgprimer.errors import UsageError, join_names, name_hint
from cgprimer.expressions import Apply, Expression, Name, fold, names_in, unparse

Array = Any
_DIGITS = 30  # to compute a formula with
_MAX_EXPONENT = 20_000  # of 2 in an intermediate result; the range of doubles ends at 1024
_MAX_NODES = 5_000  # of the tree of an answer


def components(answer: str, question: Question) -> dict[str, tuple[str, Expression]]:
    """Text and tree of each component that an answer has.

    Raises:
        SourceError: one cannot be read.
        UsageError: another number of components, or a name that is none.
    """
    sources = question.sources
    texts = _split(answer)
    named = [re.split(r"(?<![<>=!])=", text, maxsplit=1) for text in texts]
    found: dict[str, str] = {}
    if any(len(pair) > 1 for pair in named):
        for text, pair in zip(texts, named, strict=True):
            if len(pair) == 1:
                raise UsageError(f"{text!r} has no name", hint="name all components, or none")
            names = _meant(pair[0], question)
            parts = [pair[1].strip()] if len(names) == 1 else _split(_flat(pair[1]))
            if len(parts) != len(names):
                said = f"{len(parts)} numbers for the {len(names)} of {pair[0].strip()}"
                raise UsageError(said, hint=f"expected {join_names(names)}, in this order")
            for name, part in zip(names, parts, strict=True):
                if name in found:
                    raise UsageError(f"there are two answers for {name}")
                found[name] = part
    elif len(texts) != len(sources):
        raise UsageError(
            f"{len(texts)} of {len(sources)} components: expected {join_names(sources)},"
            " in this order",
            hint=f"or by name: d{sources[0]} = ...; the decimal mark is a point: 3.5",
        )
    else:
        found = dict(zip(sources, texts, strict=True))
    return {name: (text, tree_of(text, name, question)) for name, text in found.items()}


def _split(answer: str) -> list[str]:
    """The components: what commas, semicolons and ends of lines outside of parentheses part."""
    text = answer.strip()
    depths = _depths(text)
    if text[:1] + text[-1:] in ("()", "[]") and "," in text and depths.index(0) == len(text) - 1:
        text = text[1:-1]
    texts, begin = [], 0
    for place, (letter, depth) in enumerate(zip(f"{text},", _depths(text), strict=True)):
        if letter in ",;\n" and depth <= 0:
            texts.append(text[begin:place].strip())
            begin = place + 1
    return [text for text in texts if text]


def _depths(text: str) -> list[int]:
    """How many parentheses are open behind each letter; at the end of the text none."""
    return [*accumulate((c in "([") - (c in ")]") for c in text), 0]


def _flat(text: str) -> str:
    """The numbers of an array without its brackets; those of an index stay."""
    return re.sub(r"(?<!\w)\[|\](?=\s*(?:[,;\]]|$))", " ", text)


def _meant(text: str, question: Question) -> list[str]:
    """The numbers that a left side means: ``a``, ``da``, ``dy/da``, ``d/da``, of an array all."""
    written = re.sub(r"\s", "", text).replace("∂", "d")
    for name in (written, written.removeprefix("d"), written.rpartition("/d")[2]):
        if name in question.wrt:
            return question.elements(name)
        if name in question.sources:
            return [name]
    near = written.rpartition("/")[2].removeprefix("d")
    hint = name_hint(near, dict.fromkeys((*question.wrt, *question.sources)))
    raise UsageError(f"{text.strip()!r} is no component of the gradient", hint=hint)


def tree_of(text: str, name: str, question: Question, variable: str = "") -> Expression:
    """Return the tree of one component.

    Functions without an argument are applied to ``variable``, if there is one.

    Raises:
        SourceError: the text cannot be read.
        UsageError: the text contains a name that the graph does not define.
    """
    graph = question.graph
    known = {*graph.variables, *graph.parameters, "pi", "e"}
    tree = read_formula(text, known, f"<answer for {name}>", variable=variable)
    if size(tree) > _MAX_NODES:
        raise UsageError(f"the answer for {name} has more than {_MAX_NODES:,} operations and names")
    for unknown in [name for name in names_in(tree) if name not in known]:
        message = f"unknown name {unknown!r} in the answer for {name}"
        raise UsageError(message, hint=name_hint(unknown, sorted(known - {"pi", "e", question.of})))
    return tree


def values_at(question: Question, tree: Expression, drawn: Points) -> Array:
    """A formula at the points, computed with many digits; nan where it has no value."""
    import mpmath

    graph, found = question.graph, []
    inner = names_in(tree).keys() & graph.definitions.keys()
    if inner and graph.shapes:
        raise UsageError(
            f"{min(inner)} is computed by a graph of arrays: write inputs and parameters"
        )
    with mpmath.workdps(_DIGITS):
        for place in range(len(drawn)):
            known: dict[str, Any] = {"pi": mpmath.pi(), "e": mpmath.e()}
            known |= {n: mpmath.mpf(float(v[place])) for n, v in drawn.given.items()}
            if inner:
                for name, definition in graph.definitions.items():
                    known[name] = _value(definition, known)
            found.append(float(_value(tree, known)))
    return np.array(found)


def _value(tree: Expression, known: Mapping[str, Any]) -> Any:
    import mpmath

    def leaf(node: Any) -> Any:
        if isinstance(node, Name):
            return known.get(node.name, node)  # of an array what its index will look up
        return mpmath.mpf(repr(node.value))

    def apply(name: str | Operator, arguments: list[Any]) -> Any:
        if not isinstance(name, str):
            if not all(isinstance(argument, Name) for argument in arguments):
                raise UsageError(
                    f"[{', '.join(name.format_settings())}] stands behind a single number"
                )
            element = unparse(Apply(name, tuple(arguments)))
            if element not in known:
                raise UsageError(f"{element} is no single number")
            return known[element]
        try:
            return _bounded(name, arguments)
        except UsageError:  # a function from outside: with the digits of a double
            return mpmath.mpf(float_arithmetic.float_function(name)(*map(float, arguments)))

    found = fold(tree, leaf, apply)
    if isinstance(found, Name):
        raise UsageError(f"{found.name} is an array: write one of its numbers, {found.name}[0]")
    return found


def _bounded(name: str, arguments: list[Any]) -> Any:
    """Apply a primitive to mpmath's numbers, whose exponents have no bound of their own.

    Results far outside of the range of doubles become infinite or 0, so that no power takes long.
    """
    import mpmath

    if name == "pow" and all(map(mpmath.isfinite, arguments)) and arguments[0]:
        base, exponent = arguments
        bits = exponent * mpmath.log(abs(base), 2)
        if abs(bits) > _MAX_EXPONENT:
            odd = base < 0 and exponent % 2 == 1
            size = mpmath.inf if bits > 0 else mpmath.mpf(0)
            return mpmath.nan if base < 0 and exponent % 1 else -size if odd else size
    value = symbolic_arithmetic.mpmath_function(name)(*arguments)
    if not mpmath.isfinite(value) or not value:
        return value
    magnitude = mpmath.mag(value)
    if abs(magnitude) <= _MAX_EXPONENT:
        return value
    return mpmath.sign(value) * mpmath.inf if magnitude > 0 else mpmath.mpf(0)
