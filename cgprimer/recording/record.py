"""The graph of what a Python function did, with its names and lines.

The function runs once, on values that remember how they were computed. What it did is written
down in the language, so that everything that works on a text works on it. An ``if`` or a ``for``
leaves no trace of its own: there are the branch that was taken and every turn of the loop.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.derivatives import tape as tape_of
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import UsageError, plural
from cgprimer.recording.eager import Recorded, recording
from cgprimer.recording.transforms import mapped
from cgprimer.recording.value import Value
from cgprimer.recording.written import Writer

_WIDEST = 60  # letters of an expression in a listing


class Line(NamedTuple):
    """A line of Python: its file, its number and what it says."""

    file: str
    number: int
    text: str

    @classmethod
    def of(cls, place: tuple[str, int]) -> Line:
        """The line of a file."""
        return cls(*place, linecache.getline(*place).strip())


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """What :func:`record` gives.

    Attributes:
        graph: what was done, as a graph like any other.
        tape: the same as a program.
        value: what the function returned, as plain numbers and arrays.
        lines: for each vertex that was computed the line of Python that did it.
    """

    graph: ExpressionGraph
    tape: Tape
    value: Any
    lines: Mapping[str, Line]

    def __repr__(self) -> str:
        return f"<Recording {self.graph.source.name}: {plural(len(self.lines), 'line')}>"

    def __str__(self) -> str:
        """The text of the graph, with the lines of Python beside it."""
        rows = []
        for text in self.graph.text.split("\n"):
            line = self.lines.get(text.partition(" = ")[0])
            rows.append((text, _cut(f"{line.number:>4}  {line.text}") if line else ""))
        width = min(_WIDEST, max((len(text) for text, said in rows if said), default=0))
        return "\n".join(f"{_cut(text):<{width}}  {said}".rstrip() for text, said in rows)


def record(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Recording:
    """Run a function and give the graph of what it did.

    Args:
        function: of numbers, arrays, and lists, tuples and dictionaries of them; written with
            numpy, ``if`` and ``for``.
        args: its arguments. Floats and arrays of floats become parameters, called as the function
            calls them; so do values, or inputs where they require no gradient. Whole numbers and
            everything else stay what they are.
        kwargs: the same, by name.

    Returns:
        The graph, its vertices called as the function's own variables; a variable that is assigned
        again gives ``h``, ``h_2``, ``h_3``. Plain arrays that were used are inputs.

    Raises:
        UsageError: it is no function, the result does not depend on any argument, or a value was
            changed in place.
        ShapeError: shapes do not go together; the message has the line of Python.

    What is compared is plain numbers: the graph is that of the branch that was taken.

    >>> def f(w, x):
    ...     h = w*x
    ...     return h.tanh() if h < 1.0 else h
    >>> print(record(f, 0.25, Value(2.0, requires_grad=False)).graph)
    input x = 2
    parameter w = 0.25
    h = w*x
    f = tanh(h)
    output f
    """
    if not callable(function):
        raise UsageError(f"record(f, ...) runs a function, and {function!r} is none")
    writer, watch = Writer(), _Watch(function)
    own = getattr(function, "__name__", "y")
    source = own if own.isidentifier() else "y"
    args, kwargs = _arguments(writer, function, args, kwargs)
    before = sys.gettrace()
    with recording(True, with_lines=True, deeper=1):  # a derivative that it takes is recorded, too
        try:
            sys.settrace(watch.called)
            result = function(*args, **kwargs)
        finally:
            sys.settrace(before)
    for name, value in watch.names():
        writer.hint(name, value)
    outputs: dict[str, Any] = {}
    mapped(outputs.setdefault, result, source)
    outputs = {n: v for n, v in outputs.items() if _is_number(v)}
    if not any(isinstance(v, Recorded) for v in outputs.values()):
        raise UsageError(
            "what the function returned was not computed from its arguments",
            hint="floats and arrays of floats are recorded; whole numbers are counts: 3.0, not 3",
        )
    graph = writer.graph(outputs, source)
    _check(graph, writer)
    made = {name: writer.named.get(name) for name in graph.definitions}
    lines = {name: Line.of(watch.place(v)) for name, v in made.items() if v is not None and v.line}
    plain = mapped(lambda _, v: getattr(v, "_data", v), result)
    return Recording(graph, tape_of(graph), plain, lines)


def _check(graph: ExpressionGraph, writer: Writer) -> None:
    """The graph must give what the function gave: nothing was changed behind its back."""
    found = graph.evaluate()
    for name in graph.outputs:
        value = writer.named[name]
        if value is None:
            continue
        near = 1e-3 if np.asarray(value._data).dtype == np.float32 else 1e-9
        if not np.allclose(found[name], value._data, near, near, equal_nan=True):
            raise UsageError(
                f"what was recorded gives another {name!r} than the function did: a value was"
                " changed in place while it ran",
                hint="give what is new a name of its own: w = w - step, outside of no_grad()",
            )


def _cut(text: str) -> str:
    """A line of a listing; an array's numbers are not read to their end."""
    return text if len(text) <= 2 * _WIDEST else f"{text[: 2 * _WIDEST]} ..."


class _Watch:
    """Sees the variables of a function while it runs: which name is given to which value, where.

    Functions of the same file are watched, too; the function's own names come first.

    Attributes:
        seen: names and values, and names and plain arrays, as they were assigned.
        within: those of functions that it called.
        places: of each value the file and line of the statement that gave it a name.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.seen: list[tuple[str, Any]] = []
        self.within: list[tuple[str, Any]] = []
        self.places: dict[Any, tuple[str, int]] = {}
        self.entered = False
        inner: Any = inspect.unwrap(getattr(function, "func", function))
        inner = inner if hasattr(inner, "__code__") else getattr(inner, "__call__", None)  # noqa: B004
        self.code: CodeType | None = getattr(inner, "__code__", None)
        self.outside = dict(getattr(getattr(inner, "__self__", None), "__dict__", {}))
        for name in self.code.co_names if self.code else ():
            self.outside.setdefault(name, getattr(inner, "__globals__", {}).get(name))

    def names(self) -> list[tuple[str, Any]]:
        """Names and what they were given to, those that count most first."""
        found = [*self.seen, *self.outside.items(), *self.within]
        return [(name, value) for name, value in found if isinstance(value, np.ndarray | Recorded)]

    def place(self, value: Any) -> tuple[str, int]:
        """Where a value was computed; if in another function, the statement that named it."""
        own: tuple[str, int] = value.line
        file, number = own
        code = self.code
        if code and file == code.co_filename and number in {n for *_, n in code.co_lines()}:
            return own
        return self.places.get(value, own)

    def called(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Of all calls the first of the function itself, and those of its file, are followed."""
        code = frame.f_code
        if self.code is None or code.co_filename != self.code.co_filename:
            return None
        own = code is self.code and not self.entered
        self.entered = self.entered or own
        seen = self.seen if own else self.within
        line = frame.f_lineno
        known: dict[str, Any] = {}

        def stepped(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal line
            for name, value in frame.f_locals.items():
                if known.get(name) is not value:
                    known[name] = value
                    seen.append((name, value))
                    if own and isinstance(value, Recorded):
                        self.places.setdefault(value, (code.co_filename, line))
            line = frame.f_lineno
            return stepped

        return stepped


def _arguments(writer: Writer, function: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments with numbers as values; their names are those of the signature."""

    def leaf(name: str, given: Any) -> Any:
        role, data = "parameter", given
        if isinstance(given, Recorded):
            role, name = ("parameter" if given.requires_grad else "input"), given.name or name
            data = given._data
        elif not _is_number(given) or isinstance(given, int) or np.asarray(given).dtype.kind != "f":
            return given
        made = Value(data, name=name)
        writer.leaf(role, name, made)
        return made

    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except ValueError:  # a function that does not say what it takes
        return tuple(leaf("x", given) for given in args), kwargs
    except TypeError as error:
        raise UsageError(f"the function takes other arguments: {error}") from None
    for name, given in bound.arguments.items():
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            named = {key: mapped(leaf, part, key) for key, part in given.items()}
            bound.arguments[name] = named
        else:
            bound.arguments[name] = mapped(leaf, given, name)
    return bound.args, bound.kwargs


def _is_number(given: Any) -> bool:
    """Whether it is a number or an array of them; a list of numbers is one, too."""
    if isinstance(given, list):
        return all(_is_number(part) for part in given) and bool(given)
    kinds = (float, int, np.floating, np.ndarray, Recorded)
    return isinstance(given, kinds) and not isinstance(given, bool)
