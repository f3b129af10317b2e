"""Generation of problems: candidates are sampled until one of them has simple numbers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from random import Random
from typing import Any

from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.course.checks.point_sampling import sample_values
from cgprimer.course.checks.sheets import formula_mistakes as s
from cgprimer.course.checks.sheets.optimizer_worksheet import parse_rule
from cgprimer.course.checks.sheets.sheet_problems import KINDS, Problem, Worksheet
from cgprimer.course.checks.sheets.sheet_questions import (
    build_worksheet,
    is_same_number,
)
from cgprimer.course.checks.sheets.sheet_tables import (
    build_trace_table,
    evaluate_formula,
    list_paths,
)
from cgprimer.course.exercises import random_graphs, simple_numbers
from cgprimer.errors import CgprimerError, PathLimitError, UsageError
from cgprimer.expressions import ExpressionGraph, Number, names_in, parse
from cgprimer.support.number_format import format_number
from cgprimer.tapes import tape

_TRIES = (
    2000  # candidates; after a tenth of them, problems of a given graph may have rounded numbers
)
_MAX_ROWS, _MAX_VARIABLES = 18, 40
_UNWRITTEN = (
    "reshape",
    "broadcast",
    "stop_gradient",
    "largest",
)  # operations that students do not write
_MAX_DISTINCT = 4  # names whose values have different absolute values
_MAX_PATHS = {1: 2, 2: 3, 3: 6}
_RULES = {
    1: ("sgd", "decaying rate", "weight decay"),
    2: ("momentum", "nesterov", "proximal l1", "max-norm"),
    3: ("adagrad", "rmsprop", "adam"),
}
_PLANTED = {
    s.SIGN, s.OVERWRITTEN, s.NO_UPSTREAM, s.NO_LOCAL, s.NO_FACTOR, s.POINT, s.EXPONENT, s.OPERATION,
}  # fmt: skip
_ROUNDED_RULES = ("adagrad", "rmsprop", "adam", "max-norm")  # rules with square roots
_SETTINGS = {
    "rate": (0.1, 0.5, 0.2), "beta": (0.5, 0.9), "lambda": (0.5, 0.1, 0.25), "gamma": (0.5, 0.9),
    "t": (1.0, 2.0, 3.0), "c": (1.0, 2.0, 5.0), "alpha": (0.5, 0.9), "beta1": (0.5, 0.9),
    "beta2": (0.5, 0.9, 0.99),
}  # fmt: skip
_STATE = {"v": (-1.0, 1.0, 2.0, 3.0, -2.0), "m": (-1.0, 1.0, 2.0), "s": (1.0, 4.0)}


def sample_problem(
    kind: str,
    random: Random,
    difficulty: int,
    graph: ExpressionGraph | None = None,
    of: str | None = None,
    keep: Collection[str] = (),
) -> Problem:
    """Sample a problem of the given kind with simple numbers.

    Args:
        kind: the kind of problem.
        random: the random number generator.
        difficulty: 1, 2 or 3.
        graph: the graph of the problem; a random graph by default.
        of: the variable to compute or differentiate; the first output by default.
        keep: inputs that keep their declared values.

    Raises:
        UsageError: no simple numbers were found for the graph.

    >>> print(sample_problem("adjoint", Random(1), 1).graph)
    input x1 = -2
    parameter a = -3
    xp = x1*a
    xq = xp*x1
    xr = xq + a
    xw = xr + a
    output xw
    """
    for attempt in range(_TRIES):
        candidate = _sample_candidate(kind, random, difficulty, graph, of, keep)
        if candidate is None:
            continue
        accepted = _accept_candidate(
            *candidate, difficulty, loose=graph is not None and attempt > _TRIES // 10
        )
        if accepted is not None:
            return accepted
    if graph is not None and candidate is not None:
        build_worksheet(candidate[1])  # raises an error if the graph itself is the cause
    name = graph.source.name if graph is not None else "random graphs"
    raise UsageError(
        f"cannot find simple numbers for a problem of kind {kind!r} about {name}",
        hint="use another kind or a smaller graph",
    )


def list_suitable_kinds(graph: ExpressionGraph | None) -> tuple[str, ...]:
    """Return the kinds of problems that can be asked about a graph.

    >>> list_suitable_kinds(parse("xw = sum(W @ x); input x[2]; parameter W[3,2]"))
    ('shapes',)
    """
    if graph is None:
        return KINDS
    if graph.layered:
        return ()
    if tape(graph).has_arrays:
        return ("shapes",)
    ends = [_find_paths(graph, of, n) for of in graph.outputs for n in _list_leaves(graph)]
    several = any(1 < len(paths) <= _MAX_PATHS[3] for paths in ends)
    without = {"shapes"} | (set() if several else {"paths", "picture"})
    without |= set() if graph.parameters else {"optimizer"}
    return tuple(kind for kind in KINDS if kind not in without)


def _sample_candidate(
    kind: str,
    random: Random,
    difficulty: int,
    graph: ExpressionGraph | None,
    of: str | None,
    keep: Collection[str],
) -> tuple[ExpressionGraph, Problem, bool] | None:
    """Sample values for a graph and a problem about it, or return None if no problem is suitable.

    Returns:
        The graph with its values, the problem, and whether the answers may be rounded.
    """
    make = {
        "optimizer": random_graphs.sample_loss,
        "shapes": random_graphs.sample_matrix_graph,
    }.get(kind, random_graphs.sample_scalar_graph)
    bare = graph or parse(make(random, difficulty))
    has_integers = difficulty == 1 or kind == "shapes" or len(bare.parameters) > 3
    is_small = bool(bare.shapes) and simple_numbers.uses_functions(bare)  # sums would be large
    level = 0 if is_small else 1 if has_integers else difficulty
    values = {
        name: bare.values[name]
        if name in keep
        else _sample_declared_value(random, bare, name, level)
        for name in _list_leaves(bare)
    }
    free = [values[name] for name in values if name not in keep and name not in bare.domains]
    single = [abs(v) for v in free if isinstance(v, float)]
    if 1 < len(single) <= _MAX_DISTINCT and len({*single}) < len(single):
        return None  # with equal numbers, some mistakes would not be visible
    sampled = parse(simple_numbers.declare_values(bare, values), name=bare.source.name)
    max_paths = _MAX_PATHS[difficulty if graph is None else 3]
    settings = _sample_settings(
        kind, random, difficulty, sampled, of or sampled.outputs[0], max_paths
    )
    if settings is None:
        return None
    is_rounded = simple_numbers.uses_functions(sampled) or settings.get("rule") in _ROUNDED_RULES
    return sampled, Problem(kind, sampled.source.text, {"digits": 0, **settings}), is_rounded


def _sample_declared_value(
    random: Random, graph: ExpressionGraph, name: str, difficulty: int
) -> Any:
    """Sample a value from the domain of a name, or a simple number if it has no domain.

    Arrays are nested tuples.
    """
    shape, domain = graph.shapes.get(name, ()), graph.domains.get(name)

    def sample_element(_: int, n: int) -> list[float]:
        """Return simple numbers for one array element."""
        return [simple_numbers.sample_value(random, difficulty) for _ in range(n)]

    values = sample_values(random, shape, 1, domain, sample_element)
    return _convert_to_tuples(values[0].tolist())


def _convert_to_tuples(value: Any) -> Any:
    """Convert nested lists to nested tuples."""
    return tuple(map(_convert_to_tuples, value)) if isinstance(value, list) else value


def _sample_settings(
    kind: str, random: Random, difficulty: int, graph: ExpressionGraph, of: str, max_paths: int
) -> dict[str, Any] | None:
    """Sample the settings of a problem, such as ``wrt``, or return None for an unsuitable graph."""
    names = _list_leaves(graph)
    level: Any = "operations" if tape(graph).size <= _MAX_ROWS else "variables"
    if kind in ("trace", "tangent", "adjoint"):
        values = {"values_given": True} if difficulty == 1 and kind == "adjoint" else {}
        seed = {"wrt": random.choice(names)} if kind == "tangent" else {}
        return {"of": of, "level": level, **seed, **values}
    if kind == "shapes":
        unwritten = any(operator_name(n) in _UNWRITTEN for n, _ in tape(graph).instructions)
        return {"of": of, **({"level": "variables"} if unwritten else {})}
    if kind == "optimizer":
        return _sample_update(random, random.choice(_RULES[difficulty]), graph, of)
    if kind == "mistake":
        table = random.choice(("trace", "adjoint") if difficulty == 1 else ("tangent", "adjoint"))
        seed = {"wrt": random.choice(names)} if table == "tangent" else {}
        return {"table": table, "of": of, "level": level, **seed}
    if len(graph.variables) > _MAX_VARIABLES:
        raise UsageError(
            f"problems of kind {kind!r} require a graph with at most {_MAX_VARIABLES} variables,"
            f" got {len(graph.variables)}"
        )
    if kind == "gradient":
        wrt = list(names) if len(names) <= 4 else random.sample(names, 4)
        return {"of": of, "wrt": sorted(wrt, key=names.index)}
    ends = {n: _find_paths(graph, of, n) for n in names}
    several = [n for n, paths in ends.items() if 2 <= len(paths) <= max_paths]
    if not several:  # a single path is too simple
        return None
    if kind == "paths":
        return {"of": of, "wrt": random.choice(several)}
    inner = [n for n in graph.variables if n in graph.depends_on]
    tails = [n for n in graph.variables if len(graph.leads_to.get(n, ())) > 1]
    if not inner:
        return None
    starts = [n for n in graph.inputs if 0 < len(ends[n]) <= max_paths] or several
    questions: list[list[Any]] = [["inputs"]] if difficulty == 1 else []
    questions += [["depends_on", random.choice(inner)]]
    questions += [["leads_to", random.choice(tails)]] if tails else []
    start = random.choice(starts)
    questions.append(["count", start, of])
    if difficulty > 1:
        questions.append(["path", start, of, list(random.choice(ends[start]))])
    if difficulty > 2:
        questions.append(["sum", start, of])
    return {"questions": questions}


def _list_leaves(graph: ExpressionGraph) -> tuple[str, ...]:
    """Return the names of the inputs and parameters of a graph."""
    return (*graph.inputs, *graph.parameters)


def _find_paths(graph: ExpressionGraph, of: str, wrt: str) -> tuple[tuple[str, ...], ...]:
    """Return the paths from ``wrt`` to ``of``, or an empty tuple if there are too many."""
    try:
        return list_paths(graph, of, wrt)
    except PathLimitError:
        return ()


def _sample_update(random: Random, rule: str, graph: ExpressionGraph, of: str) -> dict[str, Any]:
    """Sample the hyperparameters and the previous state for an optimizer problem."""
    wrt = list(graph.parameters[:3])
    steps = dict(parse_rule(rule))
    used = {name: names_in(expression) for name, expression in steps.items()}
    state = {}
    for part, values in _STATE.items():
        if part in used.get(part, ()):  # the rule reads the previous value
            pool = (1.0, 2.0, 4.0) if (rule, part) == ("adam", "v") else values
            state[part] = {name: random.choice(pool) for name in wrt}
    hyperparameters = sorted(_SETTINGS.keys() & {name for names in used.values() for name in names})
    settings = {name: random.choice(_SETTINGS[name]) for name in hyperparameters}
    if rule == "adam":
        settings["t"] = random.choice((2.0, 3.0))
    return {"rule": rule, "of": of, "wrt": wrt, "settings": settings, "state": state}


def _accept_candidate(
    graph: ExpressionGraph, problem: Problem, rounded: bool, difficulty: int, *, loose: bool
) -> Problem | None:
    """Return a candidate problem with its number of digits, or None if its answers are not simple.

    Args:
        graph: the graph of the problem, with values.
        problem: the problem.
        rounded: whether the answers may be rounded.
        difficulty: 1, 2 or 3.
        loose: accept rounded answers even if exact answers are possible.
    """
    try:
        if problem.kind == "mistake":
            return _plant_mistake(graph, problem, rounded or loose, difficulty)
        worksheet = build_worksheet(problem)
    except CgprimerError:
        return None
    if not worksheet.blanks or simple_numbers.is_degenerate(
        worksheet, tape(graph), graph.point(None)
    ):
        return None
    norms = [b.value for b in worksheet.blanks if problem.kind == "optimizer" and b.row == "n"]
    if norms and norms[0] <= problem.asked["settings"]["c"]:  # the norm is not reduced
        return None
    if not rounded and simple_numbers.is_exact(worksheet, difficulty):
        return problem
    if (rounded or loose) and simple_numbers.is_readable(worksheet):
        return replace(problem, asked={**problem.asked, "digits": simple_numbers.ROUNDED})
    return None


def _plant_mistake(
    graph: ExpressionGraph, problem: Problem, rounded: bool, difficulty: int
) -> Problem | None:
    """Plant a wrong number in a problem's table; return None if later numbers are not simple."""
    kind = problem.asked["table"]
    rows, blanks = build_trace_table(graph, problem.asked, kind)
    correct = Worksheet("", (), (), (), tuple(blanks), {}, 0)
    if simple_numbers.is_degenerate(correct, tape(graph), graph.point(None)):
        return None
    digits = simple_numbers.ROUNDED if rounded else 0
    column = "value" if kind == "trace" else kind
    candidates = [
        k for k, b in enumerate(blanks) if b.column == column and not isinstance(b.tree, Number)
    ]
    random = Random(problem.graph)  # the text of the graph is random
    planted = random.choice(candidates[:-1] or candidates)
    values: dict[str, Any] = {row.name: row.value for row in rows if row.tree is None}
    shown = []
    for k, blank in enumerate(blanks):
        assert blank.tree is not None
        value = evaluate_formula(blank.tree, values)
        if k == planted:
            options = {
                other
                for name, other in s.predict_wrong_answers(blank, values)
                if name in _PLANTED and other and not is_same_number(other, value, digits or 4)
                and abs(other - value) > 0.02 * max(abs(other), abs(value))
            }  # fmt: skip
            if not options or not value:
                return None
            value = random.choice(sorted(options))
        values[blank.name] = float(format_number(value, digits)) if digits else value
        shown.append(values[blank.name])
    wrong = replace(
        correct, blanks=tuple(replace(b, value=v) for b, v in zip(blanks, shown, strict=True))
    )
    is_simple = all(
        simple_numbers.is_readable(worksheet)
        if digits
        else simple_numbers.is_exact(worksheet, difficulty)
        for worksheet in (correct, wrong)
    )
    result = replace(problem, asked={**problem.asked, "digits": digits, "shown": shown})
    is_found = is_simple and build_worksheet(result).blanks[0].value == blanks[planted].row
    return result if is_found else None
