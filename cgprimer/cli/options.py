"""Options of commands, written as they are read: a line each.

    -o, --output PATH            A file; `PATH!` must be given.
    --level top|bottom =top      A choice, with its default; `top|bottom...` may be repeated.
    --samples 1.. =100           A whole number of at least 1; `0.1..50`: a number.
    --json (as_json)             A switch, and what the command calls it.
    --wrt NAME,...               Names; N,... are whole numbers, NAME=VALUE,... values by name.
    --l2 NUMBER|NAME=VALUE,...   One number, or values by name; NAME=LOW:HIGH,...: two by name.
    --domain NAME=VALUES,...     Sets of numbers by name, or a word: y=0,1, t=one-hot.
    --range LOW:HIGH             Two numbers; `LOW:HIGH...` may be repeated; NUMBER, INTEGER: one.

Anything else in capital letters is a text. A line that begins with spaces goes on with the one
before. What several commands share stands here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from cgprimer.core.methods import methods
from cgprimer.core.methods.finite_difference import SCHEMES
from cgprimer.errors import UsageError

if TYPE_CHECKING:
    from cgprimer.training.runs import TrainingRun

F = TypeVar("F", bound=Callable[..., Any])

AT = """\
--at NAME=VALUE,...  Values of inputs and parameters; declared values fill the rest. Several, for as
  many points: LOW:HIGH:COUNT. The file of a run stands for what it has learnt."""
JSON = "--json (as_json)  Print the result as JSON."
ENGINE = "--engine NAME =auto  What runs the tape; 'cgprimer info' lists the engines."
MOST = 100_000  # numbers of a range
FORCE = "--force  Write over files that are there."
DARK = "--dark  For dark slides."
LOSS = "--loss LOSS  Put a loss behind the outputs, a vertex of its own: --at target=VALUE with it."
WRT = """\
--wrt NAME,...  Names to differentiate with respect to (default: all parameters, or all inputs of a
  graph without parameters)."""
KEEP = "--keep NAME,...  Inputs that stay at their declared values."
DOMAIN = """\
--domain NAME=VALUES,...  Values from which an input is sampled: y=0,1 or y=one-hot (default: the
  domain that the graph declares)."""
COLUMNS = "--columns NAME=COLUMN,...  Where columns have other names in files: y=label,x[0]=height."
TRUTH = "--truth NAME=VALUE,...  True values of parameters; declared values fill the rest."
SAMPLES = "--samples 1.. =10000  Number of samples to make."
SAMPLING_OF = """\
--seed 0.. =0  Random seed.
--low NUMBER =-1.0  Lower bound of inputs.
--high NUMBER =1.0  Upper bound of inputs.
--noise 0.0.. =0.0  Standard deviation added to every target."""
SAMPLING = f"{SAMPLES}\n{SAMPLING_OF}"

_OPTION = re.compile(
    r"(?P<flags>-\S+(?:, --\S+)?)"
    r"(?: \((?P<name>\w+)\))?"
    r'(?: (?P<takes>"[^"]*"|[^\s=]\S*))?'
    r"(?: =(?P<default>\S+))?"
    r" \s+(?P<help>\S.*)"
)
_RANGE = re.compile(r"(\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)?")
OWN_OPTIONS = {  # option of the command line -> method and that method's name for it
    "scheme": ("finite-difference", "scheme"),
    "step": ("finite-difference", "step"),
    "symbolic_share": ("symbolic", "share"),
    "symbolic_limit": ("symbolic", "limit"),
    "path_limit": ("path-sum", "limit"),
    "carry": ("forward", "carry"),
}


def options(*texts: str, **readers: Callable[[Any], Any]) -> Callable[[F], F]:
    """The options that some texts describe, and by their names in Python what reads their values.

    >>> @click.command()
    ... @options("--steps 1.. =3  How many.")
    ... def command(steps: int) -> None: ...
    >>> [(p.name, p.default, p.help) for p in command.params]
    [('steps', '3', 'How many.')]
    """

    def decorate(function: F) -> F:
        for line in reversed(re.sub(r"\n +", " ", "\n".join(texts).strip()).splitlines()):
            read = _OPTION.fullmatch(line)
            assert read, line
            flags = read["flags"].split(", ")
            name = read["name"] or flags[-1].partition("/")[0].strip("-").replace("-", "_")
            settings = _taken(read["takes"], read["default"], switch="/" not in flags[-1])
            reader = readers.get(name) or _READERS.get(read["takes"] or "")
            if reader:
                settings["callback"] = partial(_read, reader)
            function = click.option(*flags, name, help=read["help"], **settings)(function)
        return function

    return decorate


def _read(reader: Callable[[Any], Any], _: object, __: object, value: Any) -> Any:
    try:
        return reader(value)
    except UsageError as error:
        raise click.BadParameter(str(error)) from None


class _Between(click.FloatRange):
    def convert(self, value: Any, *where: Any) -> Any:
        found = super().convert(value, *where)
        return self.fail(f"{value!r} is not a number", *where) if isnan(found) else found


def _taken(takes: str | None, default: str | None, *, switch: bool) -> dict[str, Any]:
    """What click is told about the value that an option takes."""
    if takes is None:
        return {"is_flag": True} if switch else {"default": True if default else None}
    found: dict[str, Any] = {} if default is None else {"default": default, "show_default": True}
    if limits := _RANGE.fullmatch(takes):
        number = float if "." in limits[1] else int
        ends: list[Any] = [number(limit) if limit else None for limit in limits.groups()]
        return found | {"type": (click.IntRange if number is int else _Between)(*ends)}
    if "|" in takes and takes == takes.lower():
        choices = click.Choice(takes.removesuffix("...").split("|"))
        return found | {"type": choices, "multiple": takes.endswith("...")}
    found |= {"required": takes.endswith("!"), "multiple": takes.endswith("...")}
    word = re.sub(r"!$|(?<!,)\.\.\.$", "", takes)
    if word in ("NUMBER", "INTEGER"):
        return found | {"type": float if word == "NUMBER" else int}
    return found | {"metavar": word, "type": click.Path() if word == "PATH" else None}


def _assignments(given: tuple[str, ...]) -> dict[str, Any]:
    learnt: dict[str, Any] = {}
    named = _named(given, "VALUE, or the file of a run", learnt)
    values = {name: _value(name, value) for name, value in named}
    return learnt | values


def _named(
    given: tuple[str, ...], what: str, learnt: dict[str, Any] | None = None
) -> Iterator[tuple[str, str]]:
    """Names and the texts behind their equals signs; what runs have learnt goes into `learnt`."""
    known, last = set(), ""
    for part in (p for text in given for p in _parts(re.sub(r"\s*=\s*", "=", text))):
        name, equals, value = (p.strip() for p in part.partition("="))
        if learnt is not None and name and not equals and os.path.exists(name):
            learnt |= _learnt(name)
            continue
        if not equals or not name:
            several = f"; a list stands in brackets: {last}=[1,2]" if last else ""
            raise click.BadParameter(f"expected NAME={what}, got {part!r}{several}")
        if name in known:
            raise click.BadParameter(f"{name} is given twice")
        known.add(last := name)
        yield name, value


def read_files() -> set[str]:
    """The files that options of this command were read from; ``--watch`` follows them."""
    found: set[str] = click.get_current_context().meta.setdefault("cgprimer.files", set())
    return found


def _learnt(path: str) -> dict[str, Any]:
    """What a run, or a fit, has learnt: its parameters, by name."""
    read_files().add(path)
    run = run_or_fit(path)
    if names := ", ".join(key.partition("/")[2] for key in run.scales):
        what = f"note: {path} was trained on normalised columns: its parameters are for those,"
        own = "and so are values given beside them; predict and score take columns as they are"
        click.echo(f"{what} ({names} less the mean, by the deviation) {own}", err=True)
    point = run.point.items()
    return {name: getattr(value, "tolist", lambda v=value: v)() for name, value in point}


def run_or_fit(path: str) -> TrainingRun:
    """What train --save or fit --save wrote."""
    from cgprimer.training.checkpoint import load_run
    from cgprimer.training.fitting.fit_result import load_fit_as_run

    return load_fit_as_run(path) or load_run(path)


def _number_or_assignments(given: tuple[str, ...]) -> Any:
    """One number for all, or numbers by name."""
    if len(given) == 1 and "=" not in given[0]:
        return _value("all", given[0])
    return _assignments(given) or None


def _bounds(given: tuple[str, ...]) -> dict[str, Any]:
    """Two ends by name; one that is left out is open."""
    named = _named(given, "LOW:HIGH")
    return {n: _range(re.sub(":$", ":inf", re.sub("^:", "-inf:", v))) for n, v in named}


def _parts(text: str) -> Iterator[str]:
    """What commas, semicolons and spaces outside of brackets keep apart."""
    depth, part = 0, ""
    for letter in text + ",":
        depth += (letter == "[") - (letter == "]")
        if depth <= 0 and letter in ",; \t\n":
            yield from filter(None, (part,))
            part = ""
        else:
            part += letter
    if part.strip(", "):
        raise click.BadParameter(f"a bracket is not closed in {part.strip(', ')!r}")


def _value(name: str, text: str) -> Any:
    """A number, numbers in brackets as nested lists, or so many numbers from one to another.

    >>> _value("w", "−2"), _value("w", "[[1,2]]"), _value("w", "0:1:3")
    (-2.0, [[1.0, 2.0]], [0.0, 0.5, 1.0])
    """
    text = text.replace("−", "-")  # as in a text that was copied
    try:
        if ":" in text:
            low, high, count = text.split(":")
            return evenly(float(low), float(high), int(count))
        if not text.startswith("["):
            return float(text)
        return _floats(json.loads(re.sub(r"[^][,\s]+", r'"\g<0>"', text)))
    except ValueError:
        kind = "a list of numbers, as [1,2] or [[1,2],[3,4]] are" if "[" in text else "a number"
        kind = f"a range LOW:HIGH:COUNT of 2 to {MOST:,} numbers" if ":" in text else kind
        raise click.BadParameter(f"{text!r}, given for {name}, is not {kind}") from None


def evenly(low: float, high: float, count: int) -> list[float]:
    """So many numbers at even distances, the ends among them.

    Raises:
        ValueError: too few, too many, or an end that is not finite.
    """
    if not (2 <= count <= MOST and isfinite(low) and isfinite(high)):
        raise ValueError
    import numpy as np

    found: list[float] = np.linspace(low, high, count).tolist()
    return found


def _floats(rows: Any) -> Any:
    return list(map(_floats, rows)) if isinstance(rows, list) else float(rows)


def _names(given: tuple[str, ...]) -> tuple[str, ...]:
    parts = (part for text in given for part in re.split(r",(?![^\[]*\])", text))  # not in W[0,1]
    return tuple(part.strip() for part in parts if part.strip())


def _domains(given: tuple[str, ...]) -> dict[str, Any]:
    """Sets of numbers, or a word, by name.

    >>> _domains(("y=0,1,t=-1,1", "c = one-hot"))
    {'y': (0.0, 1.0), 't': (-1.0, 1.0), 'c': 'one-hot'}
    """
    texts: dict[str, list[str]] = {}
    for text in given:
        values: list[str] | None = None
        for part in _parts(re.sub(r"\s*=\s*", "=", text.replace("{", " ").replace("}", " "))):
            name, equals, value = part.rpartition("=")
            if name in texts:
                raise click.BadParameter(f"{name} is given twice")
            if equals and name:
                values = texts[name] = []
            if values is None or (equals and not name):
                raise click.BadParameter(f"expected NAME=VALUES, such as y=0,1, got {part!r}")
            values += [value] if value else []
    return {name: _domain(name, parts) for name, parts in texts.items()}


def _domain(name: str, parts: list[str]) -> Any:
    """Numbers, or the word one-hot."""
    if len(parts) == 1 and parts[0][:1].isalpha() and parts[0] not in ("inf", "nan"):
        return parts[0]
    try:
        return tuple(float(part.replace("−", "-")) for part in parts)
    except ValueError:
        what = f"the domain of {name} must be numbers or one-hot, got {','.join(parts)!r}"
        raise click.BadParameter(f"{what}; such as {name}=0,1 or {name}=one-hot") from None


def _columns(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [(part, *map(str.strip, part.partition("="))) for part in _names(given)]
    if bad := next((part for part, ours, _, theirs in pairs if not (ours and theirs)), ""):
        raise click.BadParameter(f"expected NAME=COLUMN, got {bad!r}")
    return {ours: theirs for _, ours, _, theirs in pairs}


def _whole_numbers(given: tuple[str, ...]) -> tuple[int, ...]:
    for text in _names(given):
        if not text.isdecimal() or int(text) < 1:
            raise click.BadParameter(f"{text!r} is no positive whole number")
    return tuple(map(int, _names(given)))


def _range(given: str | None) -> tuple[float, float] | None:
    if given is None:
        return None
    low, _, high = given.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise click.BadParameter(f"expected LOW:HIGH, such as -3:3, got {given!r}") from None


_READERS: dict[str, Callable[[Any], Any]] = {
    "TEXT": lambda given: given and given.encode("utf-8", "replace").decode(),
    "LOW:HIGH": _range,
    "LOW:HIGH...": lambda given: tuple(map(_range, given)),
    "N,...": _whole_numbers,
    "NAME,...": _names,
    "NAME=VALUE,...": _assignments,
    "NUMBER|NAME=VALUE,...": _number_or_assignments,
    "NAME=LOW:HIGH,...": _bounds,
    "NAME=COLUMN,...": _columns,
    "NAME=VALUES,...": _domains,
}


def method_lines(default: str = "") -> str:
    """``--method`` and the options that belong to one method each."""
    return f"""\
--method {"|".join(methods())}{default and f" ={default}"}  How to differentiate.
--scheme {"|".join(SCHEMES)}  finite-difference: which quotient (default: central).
--step NUMBER  finite-difference: the step (default: by size).
--symbolic-share/--no-symbolic-share  symbolic: compute equal parts of the formulas once (default),
  or not.
--symbolic-limit 1..  symbolic: the largest expression, in operations.
--path-limit 1..  path-sum: the most paths to walk.
--carry  forward: carry all tangents along in one pass."""


def own_options(method: str | None, given: dict[str, Any]) -> dict[str, Any]:
    """The options of the method, taken out of all options of the command."""
    found = {}
    for name, (owner, theirs) in OWN_OPTIONS.items():
        value = given.pop(name)
        if not is_given(name):
            continue
        if method is None:
            raise click.UsageError("the options of a method need a --method")
        if owner != method:
            flag = name.replace("_", "-")
            raise click.UsageError(f"--{flag} belongs to --method {owner}, not to {method}")
        found[theirs] = value
    return found


def refuse_made(truth: Any, allowed: str = "") -> None:
    """Refuse what says how data are made where they are read from a file, except `allowed`."""
    context = click.get_current_context()
    for name in ("truth", "samples", "low", "high", "noise"):  # of a run.toml they may stay
        if name == allowed:
            continue
        source = context.get_parameter_source(name)
        if source is ParameterSource.COMMANDLINE or (name == "truth" and truth):
            raise click.UsageError(f"--{name} makes data, --data reads them: give one of the two")


def is_given(option: str) -> bool:
    """Whether an option stands on the command line."""
    source = click.get_current_context().get_parameter_source(option)
    return source is not ParameterSource.DEFAULT
