"""Read derivatives that are written by hand: by name or in order, as formulas or numbers.

Formulas are read by the package's own parser, usual notation included (see `notation_reader.py`),
and never run as Python. They may contain ``pi``, ``e`` and the variables of the graph.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate

from cgprimer.analysis.derivation import count_nodes
from cgprimer.course.checks.gradient_questions import Question
from cgprimer.course.checks.notation_reader import read_formula
from cgprimer.errors import UsageError, join_names, name_hint
from cgprimer.expressions import Expression, names_in

_MAX_NODES = 5_000  # of the tree of an answer
_NUMBER = re.compile(r"[+-]?\d*\.?\d*(?:[eE][+-]?\d+)?")
_MIN_DIGITS = 3  # of a rounded number: with fewer digits it may be correct by chance


@dataclass(frozen=True)
class WrittenAnswer:
    """A derivative with respect to one element, as a string and as an expression tree."""

    text: str
    tree: Expression

    @property
    def is_number(self) -> bool:
        """True if the answer contains no names."""
        return not names_in(self.tree)

    @property
    def has_decimals(self) -> bool:
        """True if the answer contains a decimal number, which may be rounded."""
        return bool(re.search(r"\.\d", self.text))

    @property
    def last_digit_unit(self) -> float:
        """The unit of the last decimal digit, such as 0.01; 0 for fewer than three digits."""
        text = self.text.lower().strip()
        if not _NUMBER.fullmatch(text) or "." not in text:
            return 0.0
        mantissa, _, power = text.partition("e")
        if len(mantissa.lstrip("+-0.").replace(".", "")) < _MIN_DIGITS:
            return 0.0
        return 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))


def read_answers(text: str, question: Question) -> dict[str, WrittenAnswer]:
    """Parse a student's answer into one derivative per element of the gradient.

    Raises:
        SourceError: a formula cannot be read.
        UsageError: the number of answers is wrong, or a name is not part of the gradient.
    """
    parts = _split_components(text)
    pairs = [re.split(r"(?<![<>=!])=", part, maxsplit=1) for part in parts]
    if any(len(pair) > 1 for pair in pairs):
        formulas = _read_named_answers(parts, pairs, question)
    else:
        formulas = _read_ordered_answers(parts, question)
    return {name: read_answer(formula, name, question) for name, formula in formulas.items()}


def read_answer(
    text: str, name: str, question: Question, *, function_argument: str = ""
) -> WrittenAnswer:
    """Parse a student's formula for the derivative with respect to one element.

    Args:
        text: the formula.
        name: the element, for messages.
        question: the question.
        function_argument: the argument of functions without one, as in ``-csch^2``.

    Raises:
        SourceError: the formula cannot be read.
        UsageError: the formula contains a name that the graph does not define.
    """
    graph = question.graph
    names = {*graph.variables, *graph.parameters, "pi", "e"}
    tree = read_formula(text, names, f"<answer for {name}>", variable=function_argument)
    if count_nodes(tree) > _MAX_NODES:
        raise UsageError(f"the answer for {name} has more than {_MAX_NODES:,} operations and names")
    for unknown in [name for name in names_in(tree) if name not in names]:
        message = f"unknown name {unknown!r} in the answer for {name}"
        raise UsageError(message, hint=name_hint(unknown, sorted(names - {"pi", "e", question.of})))
    return WrittenAnswer(text, tree)


# --- formats -------------------------------------------------------------------------------------


def _read_ordered_answers(parts: list[str], question: Question) -> dict[str, str]:
    """Assign the k-th formula to the k-th element of the gradient."""
    sources = question.sources
    if len(parts) != len(sources):
        raise UsageError(
            f"expected {len(sources)} components, in the order {join_names(sources)}, got"
            f" {len(parts)}",
            hint=f"name each component (d{sources[0]} = ...); write decimals with a point (3.5)",
        )
    return dict(zip(sources, parts, strict=True))


def _read_named_answers(
    parts: list[str], pairs: list[list[str]], question: Question
) -> dict[str, str]:
    """Assign formulas such as ``da = 2*x`` to elements; an array requires a list of formulas."""
    formulas: dict[str, str] = {}
    for part, pair in zip(parts, pairs, strict=True):
        if len(pair) == 1:
            raise UsageError(f"{part!r} has no name", hint="name all components or none")
        names = _resolve_left_side(pair[0], question)
        values = (
            [pair[1].strip()] if len(names) == 1 else _split_components(_remove_brackets(pair[1]))
        )
        if len(values) != len(names):
            raise UsageError(
                f"{pair[0].strip()} requires {len(names)} values (one per element), got"
                f" {len(values)}",
                hint=f"write the values in the order {join_names(names)}",
            )
        for name, value in zip(names, values, strict=True):
            if name in formulas:
                raise UsageError(f"more than one answer for {name}")
            formulas[name] = value
    return formulas


def _resolve_left_side(text: str, question: Question) -> list[str]:
    """Return the elements that a left-hand side such as ``a``, ``da`` or ``dy/da`` stands for."""
    written = re.sub(r"\s", "", text).replace("∂", "d")
    for name in (written, written.removeprefix("d"), written.rpartition("/d")[2]):
        if name in question.wrt:
            return question.list_elements(name)
        if name in question.sources:
            return [name]
    similar = written.rpartition("/")[2].removeprefix("d")
    hint = name_hint(similar, dict.fromkeys((*question.wrt, *question.sources)))
    raise UsageError(f"unknown component {text.strip()!r} of the gradient", hint=hint)


def _split_components(answer: str) -> list[str]:
    """Split an answer at commas, semicolons and line breaks outside of parentheses."""
    text = answer.strip()
    depths = _count_open_parentheses(text)
    if text[:1] + text[-1:] in ("()", "[]") and "," in text and depths.index(0) == len(text) - 1:
        text = text[1:-1]
    parts, start = [], 0
    for index, (character, depth) in enumerate(
        zip(f"{text},", _count_open_parentheses(text), strict=True)
    ):
        if character in ",;\n" and depth <= 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [part for part in parts if part]


def _count_open_parentheses(text: str) -> list[int]:
    """Return the number of open parentheses after each character; append a final 0."""
    return [*accumulate((c in "([") - (c in ")]") for c in text), 0]


def _remove_brackets(text: str) -> str:
    """Remove the brackets around array elements, but keep the brackets around indices."""
    return re.sub(r"(?<!\w)\[|\](?=\s*(?:[,;\]]|$))", " ", text)
