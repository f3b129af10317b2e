"""Comparison of differentiation methods: derivatives, errors and costs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any

from cgprimer.analysis.element_graph import expand_with_point
from cgprimer.analysis.latex import latex_name
from cgprimer.analysis.reference import (
    compute_reference_derivatives,
    compute_relative_error,
    format_reference,
    is_defined,
)
from cgprimer.analysis.scalar_points import check_scalar, complete_point
from cgprimer.analysis.text_tables import table
from cgprimer.core.derivatives import (
    parse_element_of,
    reshape_to_samples,
    resolve_output,
    resolve_wrt,
    tape_with_elements,
)
from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.core.loss_attachment import check_point, graph_with_loss
from cgprimer.core.methods import methods as all_methods
from cgprimer.core.methods.derivative_program import Names, normalize_names
from cgprimer.core.methods.finite_difference import SCHEMES
from cgprimer.core.tape.scalarization import split_arrays
from cgprimer.errors import DifferentiationError, UsageError, join_names, name_hint, pluralize
from cgprimer.expressions import ExpressionGraph, Shape, parse_element
from cgprimer.support.array_values import Value
from cgprimer.support.number_format import DIGITS, format_latex_number, format_number
from cgprimer.support.validation import check_choice
from cgprimer.tapes import Tape, differentiate, elements, scalarize, values_of

_TIMED_RUNS = 5
_EXACT = ("forward", "reverse", "path-sum")
_FLAT = {"coth", "sigmoid", "tanh"}  # partials computed from the result lose digits
_MAX_REFERENCE_WORK = 200_000  # derivatives times operations
_MAX_ELEMENTS = 2_000  # of arrays
_MAX_COLUMNS = 5  # more derivatives are shown in a separate table
_OR_SUM = ", or add the sum of the elements as an output"


@dataclass(frozen=True, slots=True)
class MethodResult:
    """The derivatives that one method computes, and their cost.

    Attributes:
        method: the name of the method.
        derivatives: the derivatives, keyed by name, or by element (``W[0,1]``) for arrays; empty if
            the method refuses.
        errors: the relative errors with respect to the reference, keyed by name.
        passes: the number of passes, or of paths for path-sum.
        operations: the number of instructions executed for the whole gradient.
        live_values: the maximum number of values in memory at the same time.
        seconds: the time for the whole gradient without compilation, the minimum of five runs.
        refused: the reason why the method refuses; empty if it does not.
        scheme: the difference quotient, if several are compared.
    """

    method: str
    derivatives: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    passes: int = 0
    operations: int = 0
    live_values: int = 0
    seconds: float = 0.0
    refused: str = ""
    scheme: str = ""

    @property
    def name(self) -> str:
        """The name of the method with its scheme, such as ``finite-difference (forward)``."""
        return f"{self.method} ({self.scheme})" if self.scheme else self.method

    @property
    def worst_error(self) -> float | None:
        """The maximum relative error over all derivatives; None without a reference."""
        errors = self.errors.values()
        return max(errors, key=lambda e: math.inf if math.isnan(e) else e, default=None)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The derivatives, errors and costs of several methods on one graph at one point.

    Attributes:
        of: the differentiated variable.
        value: the value of this variable.
        wrt: the names with respect to which it is differentiated; the names of elements for arrays.
        at: the point; arrays are not split into elements.
        reference: the derivatives as strings of fifty digits; None if they are unknown.
        primal_operations: the number of instructions of the graph's own tape.
        results: one result for each method.
        graph: the differentiated graph.
        flat: functions whose derivatives lost digits at this point because they are flat.
        shapes: the shapes of the arrays whose elements are all in ``wrt``.
    """

    of: str
    value: float
    wrt: tuple[str, ...]
    at: dict[str, Value]
    reference: dict[str, str] | None
    primal_operations: int
    results: tuple[MethodResult, ...]
    graph: ExpressionGraph = field(repr=False, compare=False)
    flat: tuple[str, ...] = ()
    shapes: dict[str, Shape] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        count = pluralize(len(self.results), "method")
        return f"<Comparison d{self.of}/d({join_names(self.wrt)}): {count}>"

    def result(self, method: str) -> MethodResult:
        """Return the result of the method with the given name.

        Raises:
            UsageError: the method is not part of this comparison.
        """
        results = {result.name: result for result in self.results}
        if str(method) not in results:
            hint = name_hint(method, results)
            raise UsageError(f"the comparison does not include the method {method!r}", hint=hint)
        return results[method]

    def to_table(self, style: str = "text") -> str:
        """Format tables of derivatives and costs as text, Markdown, LaTeX or CSV."""
        if len(self.wrt) > _MAX_COLUMNS:
            return f"{self._format_derivatives(style)}\n\n{self._format_costs(style, ())}"
        return self._format_costs(style, self.wrt)

    def _format_derivatives(self, style: str) -> str:
        """Format a table of the derivatives, with one row per name and one column per method."""
        results = [r for r in self.results if not r.refused]
        headings, show = self._list_headings(self.wrt, style), _choose_number_format(style)
        pairs = zip(headings, self.wrt, strict=True)
        rows = [[heading, *(show(r.derivatives[n]) for r in results)] for heading, n in pairs]
        return table(["", *(r.name for r in results)], rows, style=style)

    def _list_headings(self, names: tuple[str, ...], style: str) -> list[str]:
        """Return the table headings for the derivatives, such as ``dxw/dab``."""
        if style == "latex":
            of = latex_name(self.of)
            return [rf"$\partial {of} / \partial {latex_name(n)}$" for n in names]
        return [f"d{self.of}/d{n}" for n in names]

    def _format_costs(self, style: str, names: tuple[str, ...]) -> str:
        """Format a table of derivatives with the given names, and costs: one row per method."""
        headings, show = self._list_headings(names, style), _choose_number_format(style)
        rows = [
            [r.name, *["refused"] * len(headings), *[""] * 5]
            if r.refused
            else [
                r.name,
                *(show(r.derivatives[n]) for n in names),
                "no reference" if r.worst_error is None else show(r.worst_error, 2),
                pluralize(r.passes, "path") if r.method == "path-sum" else str(r.passes),
                str(r.operations),
                str(r.live_values),
                f"{r.seconds * 1e6:.0f}",
            ]
            for r in self.results
        ]
        costs = ["largest relative error", "passes", "operations", "live values"]
        costs.append(r"time/$\mu$s" if style == "latex" else "time/us")
        return table(["method", *headings, *costs], rows, style=style)

    def __str__(self) -> str:
        cost = f"computed with {pluralize(self.primal_operations, 'operation')}"
        lines = [f"{self.of} = {format_number(self.value)}, {cost}", "", self.to_table()]
        notes = [f"{r.name}: {r.refused}" for r in self.results if r.refused]
        kinks = [n for n in self.wrt if self.reference and self.reference[n] == "nan"]
        if kinks:
            notes.append(
                f"no derivative with respect to {', '.join(kinks)} at this point (a kink, a pole or"
                " the edge of a domain): errors are not computed, and methods may differ"
            )
        if self.flat:
            notes.append(
                f"{' and '.join(self.flat)}: derivatives lose digits where a function is flat"
                f" (cgprimer primitives {self.flat[0]})"
            )
        return "\n".join([*lines, *([""] if notes else []), *notes])

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as a dictionary for JSON."""
        fields = ("of", "value", "wrt", "at", "reference", "primal_operations")
        methods = [
            {"relative_errors" if name == "errors" else name: self._join_elements(value)
             for name, value in result.items() if name != "scheme" or value}
            for result in map(asdict, self.results)
        ]  # fmt: skip
        data = {name: self._join_elements(getattr(self, name)) for name in fields}
        names = list(self._join_elements(dict.fromkeys(self.wrt)))
        return data | {"wrt": names, "methods": methods}

    def _join_elements(self, values: Any) -> Any:
        """Combine the elements of each array in a dictionary into one nested list per array."""
        if not isinstance(values, dict) or not values:
            return values
        arrays, scalars = {}, dict(values)
        for name, shape in self.shapes.items():
            items = [scalars.pop(e, None) for e in elements(name, shape) if e in values]
            for size in shape[:0:-1] if len(items) == math.prod(shape) else ():
                items = [items[i : i + size] for i in range(0, len(items), size)]
            if items:
                arrays[name] = items
        return {**arrays, **scalars}


def _choose_number_format(style: str) -> Callable[..., str]:
    """Return the function that formats numbers for a table in the given style."""
    if style != "latex":
        return format_number
    return lambda value, digits=DIGITS: f"${format_latex_number(value, digits)}$"


def require_comparison(value: object) -> Comparison:
    """Return the argument if it is a Comparison; otherwise raise UsageError.

    Raises:
        UsageError: the object is not a comparison, but a graph, for example.
    """
    if isinstance(value, Comparison):
        return value
    hint = "use cgprimer.compare(graph)"
    raise UsageError(f"expected a Comparison, got {type(value).__name__}", hint=hint)


def compare(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
    of: str | None = None,
    wrt: Names | None = None,
    loss: str | None = None,
    methods: Names = (),
    schemes: Names = (),
    engine: str = "auto",
) -> Comparison:
    """Compare the derivatives, errors and costs of several differentiation methods.

    The reference has fifty digits and is computed independently, see
    :mod:`cgprimer.analysis.reference`.

    Args:
        graph: the graph.
        at: values of inputs and parameters; declared values are the defaults.
        of: the variable to differentiate, by default the only output; an element such as ``s[0]``
            if the variable is an array.
        wrt: names with respect to which it is differentiated, by default all parameters, or all
            inputs of a graph without parameters. Arrays are compared element by element.
        loss: a loss to add after the outputs, as in :func:`cgprimer.graph_with_loss`.
        methods: the methods to compare, by default all.
        schemes: difference quotients to compare, instead of the default one for
            ``finite-difference``: ``forward`` (n + 1 evaluations), ``central`` (2n) and
            ``complex-step`` (n).
        engine: the engine that runs the methods.

    Raises:
        UsageError: a name or method is unknown. If a method refuses, its result has the reason.
        MissingValueError: a value is missing.

    >>> from cgprimer.core.graph import parse
    >>> comparison = compare(parse("xw = sin(k*xa)"), {"xa": 1, "k": 2})
    >>> [(r.method, r.passes, round(r.derivatives["k"], 6)) for r in comparison.results[2:]]
    [('forward', 1, -0.416147), ('reverse', 1, -0.416147), ('path-sum', 1, -0.416147)]
    """
    graph = graph_with_loss(graph, loss, check_point(at))
    target = resolve_output(graph, of)
    requested = resolve_wrt(graph, wrt or graph.parameters or graph.inputs)
    primal = tape_with_elements(graph, (target, *requested))
    check_scalar(primal, target, "only scalars can be compared", alternative=_OR_SUM)
    point = complete_point(graph, at, of=target)
    arrays = tuple(dict.fromkeys(parse_element_of(graph, name)[0] for name in requested))
    shapes = {name: primal.shapes[primal.index(name)] for name in arrays}
    names = tuple(dict.fromkeys(e for n in requested for e in _list_elements(n, shapes)))
    if any(shapes.values()) and len(names) > _MAX_ELEMENTS:
        raise UsageError(
            f"cannot compare {len(names):,} elements of {join_names(requested)}: the maximum is"
            f" {_MAX_ELEMENTS:,}",
            hint="name a smaller array with wrt=... (--wrt NAME), or use a smaller network",
        )
    has_elements = any(parse_element_of(graph, name)[1] for name in requested)
    if has_elements and not primal.custom:  # differentiate with respect to these elements only
        expanded, expanded_point = expand_with_point(graph, at)
        comparison = compare(
            expanded,
            expanded_point,
            of=target,
            wrt=names,
            methods=methods,
            schemes=schemes,
            engine=engine,
        )
        return replace(comparison, graph=graph, at=point)
    scalar_tape = primal if primal.custom else scalarize(primal)
    reference = None
    if len(names) * len(scalar_tape) <= _MAX_REFERENCE_WORK and not primal.custom:
        point_shapes = {name: primal.shapes[primal.index(name)] for name in point}
        scalar_point = split_arrays(point, point_shapes)
        reference = compute_reference_derivatives(scalar_tape, target, names, scalar_point)
    task = _ComparisonTask(graph, primal, target, names, shapes, point, reference or {}, engine)
    results = tuple(_run_method(task, *row) for row in _list_methods(methods, schemes))
    root = primal.index(target)
    return Comparison(
        target,
        float(values_of(primal, point, roots=[root])[root]),
        names,
        point,
        reference and {name: format_reference(v) for name, v in reference.items()},
        len(scalar_tape),
        results,
        graph,
        _find_flat_functions(scalar_tape, results),
        {name: shapes[name] for name in requested if shapes.get(name)},
    )


@dataclass(frozen=True)
class _ComparisonTask:
    """The arguments that all compared methods share: graph, variables, point and reference.

    Attributes:
        graph: the graph.
        tape: the tape of the graph.
        of: the variable to differentiate.
        names: the names of the scalars with respect to which it is differentiated.
        shapes: the shapes of the variables and parameters that contain these scalars.
        point: the values of inputs and parameters.
        reference: the reference derivatives; empty if they are unknown.
        engine: the engine that runs the methods.
    """

    graph: ExpressionGraph
    tape: Tape
    of: str
    names: tuple[str, ...]
    shapes: Mapping[str, Shape]
    point: Mapping[str, Value]
    reference: Mapping[str, Any]
    engine: str


def _run_method(task: _ComparisonTask, method: str, scheme: str) -> MethodResult:
    """Compute the derivatives with one method, and measure its errors and costs."""
    options = {"scheme": scheme} if scheme else {}
    try:
        program = differentiate(task.tape, task.of, tuple(task.shapes), method=method, **options)
    except DifferentiationError as error:
        return MethodResult(method, refused=error.message, scheme=scheme)
    columns = {name: task.point[name] for name in task.graph.inputs}
    scalars = {name: value for name, value in task.point.items() if name not in columns}
    runner = Runner(program, engine="plain" if task.engine == "auto" else task.engine)
    seconds = math.inf
    for _ in range(_TIMED_RUNS):
        start = time.perf_counter()
        result = runner(columns, scalars, 1)
        seconds = min(seconds, time.perf_counter() - start)
    arrays = {name: result.derivatives[task.of, name] for name in task.shapes}
    values = split_arrays(arrays, task.shapes)
    derivatives = {name: reshape_to_samples(values[name], ()) for name in task.names}
    errors = {
        name: compute_relative_error(derivatives[name], exact)
        for name, exact in task.reference.items()
        if is_defined(exact)
    }
    if program.tape.has_arrays and not task.tape.custom:  # operations on scalars are comparable
        program = replace(program, tape=scalarize(program.tape))
    cost = (program.pass_count, program.operation_count, program.live_values, seconds)
    return MethodResult(method, derivatives, errors, *cost, scheme=scheme)


def _find_flat_functions(tape: Tape, results: tuple[MethodResult, ...]) -> tuple[str, ...]:
    """List a tape's functions with flat regions, such as tanh, if an exact method lost digits."""
    errors = [result.worst_error or 0.0 for result in results if result.method in _EXACT]
    if not any(1e-12 < error < 1.0 for error in errors):
        return ()
    names = {operator_name(instruction.primitive) for instruction in tape.instructions}
    return tuple(sorted(names & _FLAT))


def _list_methods(methods: Names, schemes: Names) -> list[tuple[str, str]]:
    """Return pairs of a method and one of its schemes; an empty scheme is the default."""
    requested = (
        [check_choice("scheme", s, SCHEMES) for s in normalize_names(schemes, "schemes")]
        if schemes
        else []
    )
    names = normalize_names(methods or all_methods(), "methods")
    if requested and "finite-difference" not in names:
        hint = "omit the scheme, or compare finite-difference as well"
        raise UsageError("schemes apply only to the method 'finite-difference'", hint=hint)
    return [
        (name, scheme)
        for name in names
        for scheme in (requested if name == "finite-difference" and requested else [""])
    ]


def _list_elements(name: str, shapes: Mapping[str, Shape]) -> list[str]:
    """Return the names of all scalar elements in the array, row or element with a given name."""
    array, indices = (name, ()) if name in shapes else parse_element(name)
    shape = shapes[array]
    start = tuple(index % size for index, size in zip(indices, shape, strict=False))
    positions = product(*map(range, shape))
    return [
        element
        for element, position in zip(elements(array, shape), positions, strict=True)
        if position[: len(start)] == start
    ]
