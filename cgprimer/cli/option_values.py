"""Callbacks of options: lists of names, values by name, ranges and domains as Python objects.

Each function has the signature of a click callback. Options that accept several values may be
repeated, so their callbacks receive a tuple of strings.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from cgprimer.training.runs import TrainingRun

MAX_RANGE = 100_000  #: maximum number of values of a range LOW:HIGH:COUNT
_READ_FILES = "cgprimer.files"  # key of a click context


def replace_invalid_characters(context: object, option: object, text: str | None) -> str | None:
    """Replace bytes of an option value that are not valid UTF-8 by question marks."""
    return text and text.encode("utf-8", "replace").decode()


def read_range(context: object, option: object, text: str | None) -> tuple[float, float] | None:
    """Parse an option value ``LOW:HIGH`` into two floats."""
    return None if text is None else _split_range(text)


def read_ranges(
    context: object, option: object, texts: Sequence[str]
) -> tuple[tuple[float, float], ...]:
    """Parse the values ``LOW:HIGH`` of a repeatable option into pairs of floats."""
    return tuple(_split_range(text) for text in texts)


def read_names(context: object, option: object, texts: Sequence[str]) -> tuple[str, ...]:
    """Parse names separated by commas, such as ``xa,W[0,1]``."""
    return _split_names(texts)


def read_positive_integers(
    context: object, option: object, texts: Sequence[str]
) -> tuple[int, ...]:
    """Parse positive integers separated by commas."""
    names = _split_names(texts)
    for text in names:
        if not text.isdecimal() or int(text) < 1:
            raise click.BadParameter(f"{text!r} is not a positive integer")
    return tuple(map(int, names))


def read_assignments(context: object, option: object, texts: Sequence[str]) -> dict[str, Any]:
    """Parse ``NAME=VALUE,...`` into a dictionary; a run file stands for its parameters."""
    learned: dict[str, Any] = {}
    assignments = _split_assignments(texts, "VALUE, or a saved run", learned)
    values = {name: _parse_value(name, value) for name, value in assignments}
    return learned | values


def read_number_or_assignments(context: object, option: object, texts: Sequence[str]) -> Any:
    """Parse one number for all parameters, or ``NAME=VALUE,...`` into a dictionary."""
    if len(texts) == 1 and "=" not in texts[0]:
        return _parse_value("", texts[0])
    return read_assignments(context, option, texts) or None


def read_bounds(context: object, option: object, texts: Sequence[str]) -> dict[str, Any]:
    """Parse ``NAME=LOW:HIGH,...`` into bounds keyed by name; an omitted bound is infinite."""
    return {
        name: _split_range(re.sub(":$", ":inf", re.sub("^:", "-inf:", value)))
        for name, value in _split_assignments(texts, "LOW:HIGH")
    }


def read_columns(context: object, option: object, texts: Sequence[str]) -> dict[str, str]:
    """Parse ``NAME=COLUMN,...`` into names of data columns keyed by variable."""
    pairs = [(part, *map(str.strip, part.partition("="))) for part in _split_names(texts)]
    for part, name, _, column in pairs:
        if not (name and column):
            raise click.BadParameter(f"expected NAME=COLUMN, got {part!r}")
    return {name: column for _, name, _, column in pairs}


def read_domains(context: object, option: object, texts: Sequence[str]) -> dict[str, Any]:
    """Parse ``NAME=VALUES,...`` into tuples of numbers or the string one-hot, keyed by name.

    >>> read_domains(None, None, ("y=0,1,t=-1,1", "c = one-hot"))
    {'y': (0.0, 1.0), 't': (-1.0, 1.0), 'c': 'one-hot'}
    """
    domains: dict[str, list[str]] = {}
    for text in texts:
        values: list[str] | None = None
        for part in _split_list(re.sub(r"\s*=\s*", "=", text.replace("{", " ").replace("}", " "))):
            name, equals, value = part.rpartition("=")
            if name in domains:
                raise click.BadParameter(f"{name} is given twice")
            if equals and name:
                values = domains[name] = []
            if values is None or (equals and not name):
                raise click.BadParameter(f"expected NAME=VALUES, such as y=0,1, got {part!r}")
            values += [value] if value else []
    return {name: _parse_domain(name, values) for name, values in domains.items()}


def read_fraction(context: object, option: click.Parameter, number: float) -> float:
    """Check that an option value is between 0 and 1, and return it."""
    if not 0 < number < 1:
        raise click.BadParameter(f"--{option.name} must be between 0 and 1, got {number:g}")
    return number


def build_range(low: float, high: float, count: int) -> list[float]:
    """Return `count` evenly spaced numbers from `low` to `high`.

    Raises:
        ValueError: `count` is out of range, or a bound is not finite.
    """
    if not (2 <= count <= MAX_RANGE and isfinite(low) and isfinite(high)):
        raise ValueError
    import numpy as np

    numbers: list[float] = np.linspace(low, high, count).tolist()
    return numbers


def followed_files() -> set[str]:
    """Return the set of files that ``--watch`` monitors for changes; callers may add files."""
    files: set[str] = click.get_current_context().meta.setdefault(_READ_FILES, set())
    return files


def load_run_or_fit(path: str) -> TrainingRun:
    """Load a run from a file that ``train --save`` or ``fit --save`` wrote."""
    from cgprimer.training.checkpoint import load_run
    from cgprimer.training.fitting.fit_result import load_fit_as_run

    return load_fit_as_run(path) or load_run(path)


def _load_parameters(path: str) -> dict[str, Any]:
    """Load learned parameters from a run file; print a note if the data were normalized."""
    followed_files().add(path)
    run = load_run_or_fit(path)
    if names := ", ".join(key.partition("/")[2] for key in run.scales):
        click.echo(
            f"note: {path} was trained on normalized columns ({names}); its parameters, and values"
            " given with --at, refer to normalized columns. predict and score accept the original"
            " columns",
            err=True,
        )
    point = run.point.items()
    return {name: getattr(value, "tolist", lambda v=value: v)() for name, value in point}


def _split_assignments(
    texts: Sequence[str], expected: str, learned: dict[str, Any] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each ``NAME=VALUE`` as strings.

    If `learned` is given, parameters of run files are added to this dictionary.
    """
    names, last = set(), ""
    for part in (p for text in texts for p in _split_list(re.sub(r"\s*=\s*", "=", text))):
        name, equals, value = (p.strip() for p in part.partition("="))
        if learned is not None and name and not equals and os.path.exists(name):
            learned |= _load_parameters(name)
            continue
        if not equals or not name:
            hint = f"; write a list in brackets: {last}=[1,2]" if last else ""
            raise click.BadParameter(f"expected NAME={expected}, got {part!r}{hint}")
        if name in names:
            raise click.BadParameter(f"{name} is given twice")
        names.add(last := name)
        yield name, value


def _split_list(text: str) -> Iterator[str]:
    """Yield the parts of a string between commas, semicolons and spaces outside of brackets."""
    depth, part = 0, ""
    for letter in text + ",":
        depth += (letter == "[") - (letter == "]")
        if depth <= 0 and letter in ",; \t\n":
            yield from filter(None, (part,))
            part = ""
        else:
            part += letter
    if part.strip(", "):
        raise click.BadParameter(f"missing closing bracket in {part.strip(', ')!r}")


def _split_names(texts: Sequence[str]) -> tuple[str, ...]:
    """Split strings at the commas outside of brackets, as in ``xa,W[0,1]``."""
    parts = (part for text in texts for part in re.split(r",(?![^\[]*\])", text))
    return tuple(part.strip() for part in parts if part.strip())


def _split_range(text: str) -> tuple[float, float]:
    """Parse ``LOW:HIGH`` into two floats."""
    low, _, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise click.BadParameter(f"expected LOW:HIGH, such as -3:3, got {text!r}") from None


def _parse_value(name: str, text: str) -> Any:
    """Parse a number, nested lists of numbers, or a range ``LOW:HIGH:COUNT``.

    >>> _parse_value("w", "−2"), _parse_value("w", "[[1,2]]"), _parse_value("w", "0:1:3")
    (-2.0, [[1.0, 2.0]], [0.0, 0.5, 1.0])
    """
    text = text.replace("−", "-")  # the minus sign of a copied text
    try:
        if ":" in text:
            low, high, count = text.split(":")
            return build_range(float(low), float(high), int(count))
        if not text.startswith("["):
            return float(text)
        return _convert_to_floats(json.loads(re.sub(r"[^][,\s]+", r'"\g<0>"', text)))
    except ValueError:
        kind = "a number"
        if ":" in text:
            kind = f"a range LOW:HIGH:COUNT of 2 to {MAX_RANGE:,} numbers"
        elif "[" in text:
            kind = "a list of numbers, such as [1,2] or [[1,2],[3,4]]"
        value = f"the value {text!r} of {name}" if name else repr(text)
        raise click.BadParameter(f"{value} is not {kind}") from None


def _convert_to_floats(rows: Any) -> Any:
    """Convert all elements of nested lists to floats."""
    return list(map(_convert_to_floats, rows)) if isinstance(rows, list) else float(rows)


def _parse_domain(name: str, values: list[str]) -> Any:
    """Parse the allowed values of an input into a tuple of floats, or return ``one-hot``."""
    if len(values) == 1 and values[0][:1].isalpha() and values[0] not in ("inf", "nan"):
        return values[0]
    try:
        return tuple(float(value.replace("−", "-")) for value in values)
    except ValueError:
        raise click.BadParameter(
            f"the domain of {name} must be numbers or one-hot, got {','.join(values)!r};"
            f" such as {name}=0,1 or {name}=one-hot"
        ) from None


# Attributes of options with the same kind of value, as in ``option("--at", **ASSIGNMENTS)``.
PATH: dict[str, Any] = {"metavar": "PATH", "type": click.Path()}
TEXT: dict[str, Any] = {"metavar": "TEXT", "callback": replace_invalid_characters}
INTEGER: dict[str, Any] = {"metavar": "N", "type": int}
POSITIVE_INTEGER: dict[str, Any] = {"metavar": "N", "type": click.IntRange(min=1)}
NUMBER: dict[str, Any] = {"metavar": "NUMBER", "type": float}
NAMES: dict[str, Any] = {"metavar": "NAME,...", "multiple": True, "callback": read_names}
POSITIVE_INTEGERS: dict[str, Any] = {
    "metavar": "N,...",
    "multiple": True,
    "callback": read_positive_integers,
}
RANGES: dict[str, Any] = {"metavar": "LOW:HIGH", "multiple": True, "callback": read_ranges}
ASSIGNMENTS: dict[str, Any] = {
    "metavar": "NAME=VALUE,...",
    "multiple": True,
    "callback": read_assignments,
}
