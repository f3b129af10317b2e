"""The methods side by side: each derivative, its error, and what it cost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any

from cgprimer.analysis.element_graph import numbers_of
from cgprimer.analysis.latex import latex_name
from cgprimer.analysis.reference import digits_of, is_known, reference_derivatives, relative_error
from cgprimer.analysis.scalar_points import point_values
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
from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.core.tape.scalarization import split_arrays
from cgprimer.errors import DifferentiationError, UsageError, join_names, name_hint, pluralize
from cgprimer.expressions import ExpressionGraph, Shape, parse_element
from cgprimer.support.array_values import Value
from cgprimer.support.number_format import DIGITS, format_latex_number, format_number
from cgprimer.support.validation import check_choice
from cgprimer.tapes import differentiate, elements, scalarize, values_of

_REPEATS = 5
_EXACT = ("forward", "reverse", "path-sum")
_FLAT = {"coth", "sigmoid", "tanh"}  # slopes made of the result: see their edges
_MOST_WORK = 200_000  # derivatives times operations beyond which there is no reference
_MOST_NUMBERS = 2_000  # of arrays
_MOST_COLUMNS = 5  # derivatives beyond which they get a table of their own


@dataclass(frozen=True, slots=True)
class MethodResult:
    """What one method gave and what it cost.

    Attributes:
        method: its name.
        derivatives: name to derivative; empty where the method refused. Arrays are there by their
            elements, ``W[0,1]``.
        errors: name to relative error against the reference.
        passes: runs over the graph; paths, for the sum over paths.
        operations: instructions executed for the whole gradient.
        live_values: the most values alive at one time.
        seconds: for the whole gradient, once compiled: the least of five runs.
        refused: why the method could not do it; empty if it could.
        scheme: which difference quotient, if several were compared.
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
        """The method with its scheme, as tables show it: ``finite-difference (forward)``."""
        return f"{self.method} ({self.scheme})" if self.scheme else self.method

    @property
    def worst_error(self) -> float | None:
        """The largest relative error; None without a reference."""
        errors = self.errors.values()
        return max(errors, key=lambda e: math.inf if math.isnan(e) else e, default=None)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All methods on one graph at one point.

    Attributes:
        of: what is differentiated; ``value`` is its value.
        wrt: with respect to which names: those of the elements, where there are arrays.
        at: the point; arrays are whole.
        reference: derivatives to fifty digits, as texts; None where there are none.
        primal_operations: instructions of the graph's own tape.
        results: one per method.
        graph: what was differentiated, for pictures.
        flat: functions whose slope lost digits here, because they are flat.
        shapes: of the arrays whose elements are in ``wrt``, whole ones only.
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
        made = pluralize(len(self.results), "method")
        return f"<Comparison d{self.of}/d({join_names(self.wrt)}): {made}>"

    def result(self, method: str) -> MethodResult:
        """The result of a method.

        Raises:
            UsageError: it is none of those that were compared.
        """
        found = {result.name: result for result in self.results}
        if str(method) not in found:
            raise UsageError(f"there is no method {method!r} here", hint=name_hint(method, found))
        return found[method]

    def to_table(self, style: str = "text") -> str:
        """Derivatives, then costs, as ``text``, ``markdown``, ``latex`` or ``csv``."""
        if len(self.wrt) > _MOST_COLUMNS:
            return f"{self._derivative_rows(style)}\n\n{self._cost_rows(style, ())}"
        return self._cost_rows(style, self.wrt)

    def _derivative_rows(self, style: str) -> str:
        """A row per name, a column per method."""
        able = [r for r in self.results if not r.refused]
        heads, show = self._headings(self.wrt, style), _shown_in(style)
        pairs = zip(heads, self.wrt, strict=True)
        rows = [[head, *(show(r.derivatives[n]) for r in able)] for head, n in pairs]
        return table(["", *(r.name for r in able)], rows, style=style)

    def _headings(self, names: tuple[str, ...], style: str) -> list[str]:
        """What the derivatives are called."""
        if style == "latex":
            of = latex_name(self.of)
            return [rf"$\partial {of} / \partial {latex_name(n)}$" for n in names]
        return [f"d{self.of}/d{n}" for n in names]

    def _cost_rows(self, style: str, shown: tuple[str, ...]) -> str:
        """A row per method: the derivatives shown, and what they cost."""
        names, show = self._headings(shown, style), _shown_in(style)
        rows = [
            [r.name, *["refused"] * len(names), *[""] * 5]
            if r.refused
            else [
                r.name,
                *(show(r.derivatives[n]) for n in shown),
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
        return table(["method", *names, *costs], rows, style=style)

    def __str__(self) -> str:
        cost = f"computed with {self.primal_operations} operations"
        lines = [f"{self.of} = {format_number(self.value)}, {cost}", "", self.to_table()]
        refused = [f"{r.name}: {r.refused}" for r in self.results if r.refused]
        kinks = [n for n in self.wrt if self.reference and self.reference[n] == "nan"]
        if kinks:
            refused.append(
                f"there is no derivative with respect to {', '.join(kinks)} here (a kink, a pole or"
                " an edge of the domain), so no error is counted; each method has its convention"
            )
        if self.flat:
            refused.append(
                f"{' and '.join(self.flat)}: slopes lose digits where a function is flat"
                f" (cgprimer primitives {self.flat[0]})"
            )
        return "\n".join([*lines, *([""] if refused else []), *refused])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, arrays as nested lists; ``docs/command-line.md`` has the keys."""
        own = ("of", "value", "wrt", "at", "reference", "primal_operations")
        methods = [
            {"relative_errors" if name == "errors" else name: self._nested(value)
             for name, value in one.items() if name != "scheme" or value}
            for one in map(asdict, self.results)
        ]  # fmt: skip
        found = {n: self._nested(getattr(self, n)) for n in own}
        return found | {"wrt": list(self._nested(dict.fromkeys(self.wrt))), "methods": methods}

    def _nested(self, table: Any) -> Any:
        """A table with whole arrays as nested lists in the place of their elements."""
        if not isinstance(table, dict) or not table:
            return table
        made, left = {}, dict(table)
        for name, shape in self.shapes.items():
            flat = [left.pop(one, None) for one in elements(name, shape) if one in table]
            for size in shape[:0:-1] if len(flat) == math.prod(shape) else ():
                flat = [flat[i : i + size] for i in range(0, len(flat), size)]
            if flat:
                made[name] = flat
        return {**made, **left}


def _shown_in(style: str) -> Callable[..., str]:
    """How numbers are written in a table."""
    if style != "latex":
        return format_number
    return lambda value, digits=DIGITS: f"${format_latex_number(value, digits)}$"


def checked_comparison(found: object) -> Comparison:
    """What was given for a comparison, which must be one.

    Raises:
        UsageError: it is something else, such as the graph to be compared.
    """
    if isinstance(found, Comparison):
        return found
    hint = "cgprimer.compare(graph) makes one"
    raise UsageError(f"expected a Comparison, not {type(found).__name__}", hint=hint)


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
    """All methods (or those named) on the same derivatives.

    The reference is computed to fifty digits by a way of its own, see
    :mod:`cgprimer.analysis.reference`.

    Args:
        graph: the graph.
        at: a value for each input and parameter; declared values fill the rest.
        of: the variable to differentiate; the only output unless given. Of an array an element,
            such as ``s[0]``.
        wrt: with respect to which names; all parameters unless given (all inputs where there
            are no parameters). Arrays are compared element by element.
        loss: a loss to put behind the outputs, as in :func:`cgprimer.graph_with_loss`.
        methods: which methods; all unless given.
        schemes: difference quotients, each with a row of its own in place of one for
            ``finite-difference``: ``forward`` (n + 1 evaluations), ``central`` (2n) and
            ``complex-step`` (n).
        engine: what runs them.

    Raises:
        UsageError: an unknown name or method. A method that refuses is a row that says so.
        MissingValueError: a value is missing.

    >>> from cgprimer.core.graph import parse
    >>> side_by_side = compare(parse("xw = sin(k*xa)"), {"xa": 1, "k": 2})
    >>> [(r.method, r.passes, round(r.derivatives["k"], 6)) for r in side_by_side.results[2:]]
    [('forward', 1, -0.416147), ('reverse', 1, -0.416147), ('path-sum', 1, -0.416147)]
    """
    graph = graph_with_loss(graph, loss, check_point(at))
    target = resolve_output(graph, of)
    asked = resolve_wrt(graph, wrt or graph.parameters or graph.inputs)
    primal = tape_with_elements(graph, (target, *asked))
    if shape := primal.shapes[primal.index(target)]:
        one = next(elements(target, shape)).replace("][", ",")
        raise UsageError(
            f"{target!r} is an array of shape {format_shape(shape)}: one of its elements is"
            " compared",
            hint=f"such as of={one!r} (--of {one!r}), or their sum as an output of its own",
        )
    point = point_values(graph, at, of=target)
    columns = {name: point[name] for name in graph.inputs}
    scalars = {name: value for name, value in point.items() if name not in columns}
    own = {name: primal.shapes[primal.index(name)] for name in point}
    whole = tuple(dict.fromkeys(parse_element_of(graph, name)[0] for name in asked))
    shapes = {name: primal.shapes[primal.index(name)] for name in whole}
    names = tuple(dict.fromkeys(e for n in asked for e in _elements_of(n, shapes)))
    if any(shapes.values()) and len(names) > _MOST_NUMBERS:
        raise UsageError(
            f"{join_names(asked)}: {len(names):,} numbers are more than the {_MOST_NUMBERS:,}"
            " by which all methods differentiate one after the other",
            hint="name a smaller array with wrt=... (--wrt NAME), or take a smaller network",
        )
    if any(parse_element_of(graph, name)[1] for name in asked) and not primal.custom:
        numbers, inside = numbers_of(graph, at)  # in which they are moved alone
        alone = compare(
            numbers, inside, of=target, wrt=names, methods=methods, schemes=schemes, engine=engine
        )
        return replace(alone, graph=graph, at=point)
    flat = primal if primal.custom else scalarize(primal)
    if len(names) * len(flat) <= _MOST_WORK and not primal.custom:
        reference = reference_derivatives(flat, target, names, split_arrays(point, own))
    else:
        reference = None
    certain = {n: exact for n, exact in (reference or {}).items() if is_known(exact)}
    value = float(values_of(primal, point, roots=[primal.index(target)])[primal.index(target)])
    results = []
    for method, scheme in _rows(methods, schemes):
        options = {"scheme": scheme} if scheme else {}
        try:
            program = differentiate(primal, target, whole, method=method, **options)
        except DifferentiationError as error:
            results.append(MethodResult(method, refused=error.message, scheme=scheme))
            continue
        runner = Runner(program, engine="plain" if engine == "auto" else engine)
        best = math.inf
        for _ in range(_REPEATS):
            start = time.perf_counter()
            found = runner(columns, scalars, 1)
            best = min(best, time.perf_counter() - start)
        every = split_arrays({n: found.derivatives[target, n] for n in whole}, shapes)
        derivatives = {n: reshape_to_samples(every[n], ()) for n in names}
        errors = {n: relative_error(derivatives[n], exact) for n, exact in certain.items()}
        if program.tape.has_arrays and not primal.custom:  # counted in numbers, as the others are
            program = replace(program, tape=scalarize(program.tape))
        cost = (program.pass_count, program.operation_count, program.live_values, best)
        results.append(MethodResult(method, derivatives, errors, *cost, scheme=scheme))
    digits = reference and {n: digits_of(v) for n, v in reference.items()}
    lossy = [r for r in results if r.method in _EXACT and 1e-12 < (r.worst_error or 0.0) < 1.0]
    slopes = (
        tuple(sorted({operator_name(s.primitive) for s in flat.instructions} & _FLAT))
        if lossy
        else ()
    )
    made, arrays = tuple(results), {n: shapes[n] for n in asked if shapes.get(n)}
    count = len(flat)
    return Comparison(target, value, names, point, digits, count, made, graph, slopes, arrays)


def _rows(methods: Names, schemes: Names) -> list[tuple[str, str]]:
    """Return the methods to compare, each with its scheme, or with none."""
    asked = (
        [check_choice("scheme", s, SCHEMES) for s in normalize_names(schemes, "schemes")]
        if schemes
        else []
    )
    names = normalize_names(methods or all_methods(), "methods")
    if asked and "finite-difference" not in names:
        hint = "leave it out, or compare finite-difference as well"
        raise UsageError("a scheme belongs to the method finite-difference", hint=hint)
    return [
        (name, scheme)
        for name in names
        for scheme in (asked if name == "finite-difference" and asked else [""])
    ]


def _elements_of(name: str, shapes: Mapping[str, Shape]) -> list[str]:
    """The numbers of an array, or those of a row or an element of it."""
    array, place = (name, ()) if name in shapes else parse_element(name)
    shape = shapes[array]
    wanted = tuple(k % n for k, n in zip(place, shape, strict=False))
    every = zip(elements(array, shape), product(*map(range, shape)), strict=True)
    return [one for one, at in every if at[: len(wanted)] == wanted]
