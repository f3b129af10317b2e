"""``record``: the graph of a Python function, with its variable names and source lines.

The function runs once, on recorded values. Its operations are translated to the expression
language, so everything that works on a text works on the result. ``if`` and ``for`` are not part of
the graph: it contains the branch that was taken and every iteration of the loop.
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
from cgprimer.errors import UsageError, pluralize
from cgprimer.recording.graph_writer import GraphWriter
from cgprimer.recording.recording_state import set_recording
from cgprimer.recording.transforms import map_leaves
from cgprimer.recording.value import Value
from cgprimer.recording.value_base import ValueBase, get_data

_COLUMN_WIDTH = 60  # largest width of the column of expressions in a listing


class Line(NamedTuple):
    """A line of Python source code.

    Attributes:
        file: path of the source file.
        number: line number.
        text: the line without indentation.
    """

    file: str
    number: int
    text: str

    @classmethod
    def from_location(cls, location: tuple[str, int]) -> Line:
        """Read the source line at a location (file and line number)."""
        return cls(*location, linecache.getline(*location).strip())


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """The recorded graph of a Python function: the result of :func:`record`.

    Attributes:
        graph: the operations of the function, as an expression graph.
        tape: the same operations as a tape.
        value: the result of the function, as plain scalars and arrays.
        lines: the line of Python that computed each vertex, keyed by vertex name.
    """

    graph: ExpressionGraph
    tape: Tape
    value: Any
    lines: Mapping[str, Line]

    def __repr__(self) -> str:
        return f"<Recording {self.graph.source.name}: {pluralize(len(self.lines), 'line')}>"

    def __str__(self) -> str:
        """Return the text of the graph, with the lines of Python next to each definition."""
        rows = []
        for text in self.graph.text.split("\n"):
            line = self.lines.get(text.partition(" = ")[0])
            rows.append((text, _truncate_line(f"{line.number:>4}  {line.text}") if line else ""))
        width = min(_COLUMN_WIDTH, max((len(text) for text, code in rows if code), default=0))
        return "\n".join(f"{_truncate_line(text):<{width}}  {code}".rstrip() for text, code in rows)


def record(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Recording:
    """Run a function and return the expression graph of its operations.

    Args:
        function: a function of numbers, arrays, and lists, tuples and dictionaries of them,
            written with numpy, ``if`` and ``for``.
        args: arguments of the function. Floats and arrays of floats become parameters with the
            names in the signature; values become parameters too, or inputs if they do not require
            grad. Integers and all other arguments are passed unchanged.
        kwargs: keyword arguments of the function, treated in the same way.

    Returns:
        The recording. Vertices have the names of the function's variables; a variable that is
        assigned several times becomes ``h``, ``h_2``, ``h_3``. Plain arrays become inputs.

    Raises:
        UsageError: ``function`` is not callable, its result does not depend on any argument, or a
            value was changed in place.
        ShapeError: shapes do not match; the message shows the line of Python.

    Comparisons use plain numbers: the graph contains the branch that was taken.

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
        raise UsageError(f"record() requires a function, got {function!r}")
    writer, watcher = GraphWriter(), _VariableWatcher(function)
    function_name = getattr(function, "__name__", "y")
    source = function_name if function_name.isidentifier() else "y"
    args, kwargs = _convert_arguments(writer, function, args, kwargs)
    result = _call_with_watcher(function, args, kwargs, watcher)
    for name, value in watcher.list_variables():
        writer.suggest_name(name, value)
    outputs: dict[str, Any] = {}
    map_leaves(outputs.setdefault, result, source)
    outputs = {n: v for n, v in outputs.items() if _is_numeric(v)}
    if not any(isinstance(v, ValueBase) for v in outputs.values()):
        raise UsageError(
            "cannot record the function: its result does not depend on its arguments",
            hint="pass floats or arrays of floats, such as 3.0 instead of 3: integers are not"
            " recorded",
        )
    graph = writer.build_graph(outputs, source)
    _check_results(graph, writer)
    computed = {name: writer.values_by_name.get(name) for name in graph.definitions}
    lines = {
        n: Line.from_location(watcher.find_location(v))
        for n, v in computed.items()
        if v is not None and v.line
    }
    plain_result = map_leaves(lambda _, v: get_data(v), result)
    return Recording(graph, tape_of(graph), plain_result, lines)


def _call_with_watcher(
    function: Callable[..., Any], args: Any, kwargs: Any, watcher: _VariableWatcher
) -> Any:
    """Call a function while recording its operations and source lines and tracing variables."""
    previous = sys.gettrace()
    with set_recording(True, with_lines=True, extra_depth=1):  # also records derivatives
        try:
            sys.settrace(watcher.trace_call)
            return function(*args, **kwargs)
        finally:
            sys.settrace(previous)


def _check_results(graph: ExpressionGraph, writer: GraphWriter) -> None:
    """Check that the recorded graph and the function return equal values.

    Raises:
        UsageError: the results differ, because a value was modified in place.
    """
    values = graph.evaluate()
    for name in graph.outputs:
        recorded = writer.values_by_name[name]
        if recorded is None:
            continue
        tolerance = 1e-3 if np.asarray(recorded._data).dtype == np.float32 else 1e-9
        if not np.allclose(values[name], recorded._data, tolerance, tolerance, equal_nan=True):
            raise UsageError(
                f"cannot record {name!r}: the function modified a value in place",
                hint="create a new value outside of no_grad(): w = w - step",
            )


def _truncate_line(text: str) -> str:
    """Truncate a line of a listing to 120 characters."""
    limit = 2 * _COLUMN_WIDTH
    return text if len(text) <= limit else f"{text[:limit]} ..."


class _VariableWatcher:
    """A tracer (``sys.settrace``) of the variables that a function assigns.

    Also traces the functions of the same file that the function calls; names that the function
    itself assigns have priority.

    Args:
        function: the function to trace.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._assigned: list[tuple[str, Any]] = []  # in the function itself
        self._assigned_in_calls: list[tuple[str, Any]] = []
        self._locations: dict[Any, tuple[str, int]] = {}  # statements that named a value
        self._entered = False
        inner: Any = inspect.unwrap(getattr(function, "func", function))
        inner = inner if hasattr(inner, "__code__") else getattr(inner, "__call__", None)  # noqa: B004
        self._code: CodeType | None = getattr(inner, "__code__", None)
        self._global_names = dict(getattr(getattr(inner, "__self__", None), "__dict__", {}))
        for name in self._code.co_names if self._code else ():
            self._global_names.setdefault(name, getattr(inner, "__globals__", {}).get(name))

    def list_variables(self) -> list[tuple[str, Any]]:
        """Return the names and values of traced variables, names with priority first."""
        names = [*self._assigned, *self._global_names.items(), *self._assigned_in_calls]
        return [(name, value) for name, value in names if isinstance(value, np.ndarray | ValueBase)]

    def find_location(self, value: Any) -> tuple[str, int]:
        """Return the location in the traced function that computed a value or assigned its name."""
        computed_at: tuple[str, int] = value.line
        file, number = computed_at
        code = self._code
        if code and file == code.co_filename and number in {n for *_, n in code.co_lines()}:
            return computed_at
        return self._locations.get(value, computed_at)

    def trace_call(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Trace the first call to the function, and calls to functions of the same file."""
        code = frame.f_code
        if self._code is None or code.co_filename != self._code.co_filename:
            return None
        is_function = code is self._code and not self._entered
        self._entered = self._entered or is_function
        assigned = self._assigned if is_function else self._assigned_in_calls
        line = frame.f_lineno
        previous: dict[str, Any] = {}

        def trace_line(frame: FrameType, event: str, arg: Any) -> Any:
            """Store the variables that the previous line assigned."""
            nonlocal line
            for name, value in frame.f_locals.items():
                if previous.get(name) is not value:
                    previous[name] = value
                    assigned.append((name, value))
                    if is_function and isinstance(value, ValueBase):
                        self._locations.setdefault(value, (code.co_filename, line))
            line = frame.f_lineno
            return trace_line

        return trace_line


def _convert_arguments(
    writer: GraphWriter, function: Any, args: Any, kwargs: Any
) -> tuple[Any, Any]:
    """Convert numeric arguments to values, declared as leaves with the parameter names."""

    def to_leaf(name: str, argument: Any) -> Any:
        """Convert a numeric argument to a declared leaf; return other arguments unchanged."""
        role, data = "parameter", argument
        if isinstance(argument, ValueBase):
            role = "parameter" if argument.requires_grad else "input"
            name, data = argument.name or name, argument._data
        elif (
            not _is_numeric(argument)
            or isinstance(argument, int)
            or np.asarray(argument).dtype.kind != "f"
        ):
            return argument
        leaf = Value(data, name=name)
        writer.declare_leaf(role, name, leaf)
        return leaf

    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except ValueError:  # a function without a signature
        return tuple(to_leaf("x", argument) for argument in args), kwargs
    except TypeError as error:
        raise UsageError(
            f"the arguments do not match the signature of the function: {error}"
        ) from None
    for name, argument in bound.arguments.items():
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            leaves = {key: map_leaves(to_leaf, part, key) for key, part in argument.items()}
            bound.arguments[name] = leaves
        else:
            bound.arguments[name] = map_leaves(to_leaf, argument, name)
    return bound.args, bound.kwargs


def _is_numeric(argument: Any) -> bool:
    """Return whether an argument is a number, an array, or a nonempty list of numbers."""
    if isinstance(argument, list):
        return all(_is_numeric(part) for part in argument) and bool(argument)
    kinds = (float, int, np.floating, np.ndarray, ValueBase)
    return isinstance(argument, kinds) and not isinstance(argument, bool)
