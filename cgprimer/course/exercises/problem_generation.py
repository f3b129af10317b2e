"""Problems drawn from a seed: candidates are tried until one is neat."""

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
from cgprimer.course.exercises import neat, random_graphs
from cgprimer.errors import CgprimerError, PathLimitError, UsageError
from cgprimer.expressions import ExpressionGraph, Number, names_in, parse
from cgprimer.support.number_format import format_number
from cgprimer.tapes import tape

_TRIES = 2000  # candidates; of a graph that is given the second half may have rounded numbers
_MOST_ROWS, _MOST_VERTICES = 18, 40
_UNWRITTEN = ("reshape", "broadcast", "stop_gradient", "largest")  # rows that no student writes
_FEW = 4  # names that all have numbers of different size
_MOST_PATHS = {1: 2, 2: 3, 3: 6}
_RULES = {
    1: ("sgd", "decaying rate", "weight decay"),
    2: ("momentum", "nesterov", "proximal l1", "max-norm"),
    3: ("adagrad", "rmsprop", "adam"),
}
_PLANTED = {
    s.SIGN, s.OVERWRITTEN, s.NO_UPSTREAM, s.NO_LOCAL, s.NO_FACTOR, s.POINT, s.EXPONENT, s.OPERATION,
}  # fmt: skip
_ROOTS = ("adagrad", "rmsprop", "adam", "max-norm")  # rules whose numbers are rounded
_SETTINGS = {
    "rate": (0.1, 0.5, 0.2), "beta": (0.5, 0.9), "lambda": (0.5, 0.1, 0.25), "gamma": (0.5, 0.9),
    "t": (1.0, 2.0, 3.0), "c": (1.0, 2.0, 5.0), "alpha": (0.5, 0.9), "beta1": (0.5, 0.9),
    "beta2": (0.5, 0.9, 0.99),
}  # fmt: skip
_STATE = {"v": (-1.0, 1.0, 2.0, 3.0, -2.0), "m": (-1.0, 1.0, 2.0), "s": (1.0, 4.0)}


def problem(
    kind: str,
    draw: Random,
    difficulty: int,
    graph: ExpressionGraph | None = None,
    of: str | None = None,
    keep: Collection[str] = (),
) -> Problem:
    """A neat problem of a kind. Inputs in `keep` stay at their declared values.

    Raises:
        UsageError: no neat numbers were found for the graph that was given.

    >>> made = problem("adjoint", Random(1), 1)
    >>> print(made.graph)
    input x1 = -2
    parameter a = -3
    xp = x1*a
    xq = xp*x1
    xr = xq + a
    xw = xr + a
    output xw
    """
    for attempt in range(_TRIES):
        found = _candidate(kind, draw, difficulty, graph, of, keep)
        if found is None:
            continue
        accepted = _accepted(*found, difficulty, loose=graph is not None and attempt > _TRIES // 10)
        if accepted is not None:
            return accepted
    if graph is not None and found is not None:
        build_worksheet(found[1])  # says what is wrong with the graph, where it is that
    name = graph.source.name if graph is not None else "made-up graphs"
    raise UsageError(
        f"no numbers were found for which a student can work out {kind!r} of {name} by hand",
        hint="another --kind, or a smaller graph",
    )


def fitting_kinds(graph: ExpressionGraph | None) -> tuple[str, ...]:
    """The kinds that a graph can be asked about.

    >>> fitting_kinds(parse("xw = sum(W @ x); input x[2]; parameter W[3,2]"))
    ('shapes',)
    """
    if graph is None:
        return KINDS
    if graph.layered:
        return ()
    if tape(graph).has_arrays:
        return ("shapes",)
    ends = [_paths(graph, of, n) for of in graph.outputs for n in _named(graph)]
    several = any(1 < len(paths) <= _MOST_PATHS[3] for paths in ends)
    without = {"shapes"} | (set() if several else {"paths", "picture"})
    without |= set() if graph.parameters else {"optimizer"}
    return tuple(kind for kind in KINDS if kind not in without)


def _candidate(
    kind: str,
    draw: Random,
    difficulty: int,
    given: ExpressionGraph | None,
    of: str | None,
    keep: Collection[str],
) -> tuple[ExpressionGraph, Problem, bool] | None:
    """A problem as drawn, and whether its numbers may be rounded; None where it cannot be asked."""
    make = {"optimizer": random_graphs.quadratic, "shapes": random_graphs.matrices}.get(
        kind, random_graphs.made_up
    )
    bare = given or parse(make(draw, difficulty))
    whole = difficulty == 1 or kind == "shapes" or len(bare.parameters) > 3
    small = bool(bare.shapes) and neat.has_functions(bare)  # sums of many large ones
    level = 0 if small else 1 if whole else difficulty
    values = {
        name: bare.values[name] if name in keep else _sampled_value(draw, bare, name, level)
        for name in _named(bare)
    }
    free = [values[name] for name in values if name not in keep and name not in bare.domains]
    single = [abs(v) for v in free if isinstance(v, float)]
    if 1 < len(single) <= _FEW and len({*single}) < len(single):
        return None  # equal numbers hide which of them was taken
    graph = parse(neat.with_values(bare, values), name=bare.source.name)
    most = _MOST_PATHS[difficulty if given is None else 3]
    asked = _asked(kind, draw, difficulty, graph, of or graph.outputs[0], most)
    if asked is None:
        return None
    rounded = neat.has_functions(graph) or asked.get("rule") in _ROOTS
    return graph, Problem(kind, graph.source.text, {"digits": 0, **asked}), rounded


def _sampled_value(draw: Random, graph: ExpressionGraph, name: str, difficulty: int) -> Any:
    """A number from the name's domain or a neat one; of an array nested tuples of them."""
    shape, domain = graph.shapes.get(name, ()), graph.domains.get(name)
    values = sample_values(draw, shape, 1, domain, lambda _: neat.drawn_value(draw, difficulty))
    return _as_tuples(values[0].tolist())


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _asked(
    kind: str, draw: Random, difficulty: int, graph: ExpressionGraph, of: str, most: int
) -> dict[str, Any] | None:
    names = _named(graph)
    level: Any = "operations" if tape(graph).size <= _MOST_ROWS else "variables"
    if kind in ("trace", "tangent", "adjoint"):
        given = {"values_given": True} if difficulty == 1 and kind == "adjoint" else {}
        seed = {"wrt": draw.choice(names)} if kind == "tangent" else {}
        return {"of": of, "level": level, **seed, **given}
    if kind == "shapes":
        unwritten = any(operator_name(n) in _UNWRITTEN for n, _ in tape(graph).instructions)
        return {"of": of, **({"level": "variables"} if unwritten else {})}
    if kind == "optimizer":
        return _step(draw, draw.choice(_RULES[difficulty]), graph, of)
    if kind == "mistake":
        table = draw.choice(("trace", "adjoint") if difficulty == 1 else ("tangent", "adjoint"))
        seed = {"wrt": draw.choice(names)} if table == "tangent" else {}
        return {"table": table, "of": of, "level": level, **seed}
    if len(graph.variables) > _MOST_VERTICES:
        raise UsageError(f"the graph has {len(graph.variables)} variables, too many for {kind!r}")
    if kind == "gradient":
        wrt = list(names) if len(names) <= 4 else draw.sample(names, 4)
        return {"of": of, "wrt": sorted(wrt, key=names.index)}
    ends = {n: _paths(graph, of, n) for n in names}
    several = [n for n, paths in ends.items() if 2 <= len(paths) <= most]
    if not several:  # one path is little to ask for
        return None
    if kind == "paths":
        return {"of": of, "wrt": draw.choice(several)}
    inner = [n for n in graph.variables if n in graph.depends_on]
    tails = [n for n in graph.variables if len(graph.leads_to.get(n, ())) > 1]
    starts = [n for n in graph.inputs if 0 < len(ends[n]) <= most] or several
    if not inner:
        return None
    questions: list[list[Any]] = [["inputs"]] if difficulty == 1 else []
    questions += [["depends_on", draw.choice(inner)]]
    questions += [["leads_to", draw.choice(tails)]] if tails else []
    if starts:
        start = draw.choice(starts)
        questions.append(["count", start, of])
        if difficulty > 1:
            questions.append(["path", start, of, list(draw.choice(ends[start]))])
        if difficulty > 2:
            questions.append(["sum", start, of])
    return {"questions": questions}


def _named(graph: ExpressionGraph) -> tuple[str, ...]:
    return (*graph.inputs, *graph.parameters)


def _paths(graph: ExpressionGraph, of: str, wrt: str) -> tuple[tuple[str, ...], ...]:
    try:
        return list_paths(graph, of, wrt)
    except PathLimitError:
        return ()


def _step(draw: Random, rule: str, graph: ExpressionGraph, of: str) -> dict[str, Any]:
    """Settings and state for one step; whole numbers and tenths."""
    wrt = list(graph.parameters[:3])
    steps = dict(parse_rule(rule))
    used = {name: names_in(expression) for name, expression in steps.items()}
    state = {}
    for part, values in _STATE.items():
        if part in used.get(part, ()):  # what was before the step is in it
            pool = (1.0, 2.0, 4.0) if (rule, part) == ("adam", "v") else values
            state[part] = {name: draw.choice(pool) for name in wrt}
    words = sorted(_SETTINGS.keys() & {name for names in used.values() for name in names})
    settings = {word: draw.choice(_SETTINGS[word]) for word in words}
    if rule == "adam":
        settings["t"] = draw.choice((2.0, 3.0))
    return {"rule": rule, "of": of, "wrt": wrt, "settings": settings, "state": state}


def _accepted(
    graph: ExpressionGraph, asked: Problem, rounded: bool, difficulty: int, *, loose: bool
) -> Problem | None:
    """The problem, with the digits that it asks for, if it is neat."""
    try:
        if asked.kind == "mistake":
            return _with_mistake(graph, asked, rounded or loose, difficulty)
        made = build_worksheet(asked)
    except CgprimerError:
        return None
    if not made.blanks or neat.is_degenerate(made, tape(graph), graph.point(None)):
        return None
    norms = [b.value for b in made.blanks if asked.kind == "optimizer" and b.row == "n"]
    if norms and norms[0] <= asked.asked["settings"]["c"]:  # nothing is cut off
        return None
    if not rounded and neat.is_exact(made, difficulty):
        return asked
    if (rounded or loose) and neat.is_readable(made):
        return replace(asked, asked={**asked.asked, "digits": neat.ROUNDED})
    return None


def _with_mistake(
    graph: ExpressionGraph, asked: Problem, rounded: bool, difficulty: int
) -> Problem | None:
    """The worked table with one slip in it, and what follows from that."""
    kind = asked.asked["table"]
    rows, blanks = build_trace_table(graph, asked.asked, kind)
    right = Worksheet("", (), (), (), tuple(blanks), {}, 0)
    if neat.is_degenerate(right, tape(graph), graph.point(None)):
        return None
    digits = neat.ROUNDED if rounded else 0
    column = "value" if kind == "trace" else kind
    found_by = [None if isinstance(b.tree, Number) else b.column for b in blanks]
    places = [k for k, found in enumerate(found_by) if found == column]
    draw = Random(asked.graph)  # the text is drawn: no other seed is needed
    at = draw.choice(places[:-1] or places)
    known: dict[str, Any] = {row.name: row.value for row in rows if row.tree is None}
    shown = []
    for k, blank in enumerate(blanks):
        assert blank.tree is not None
        value = evaluate_formula(blank.tree, known)
        if k == at:
            options = {
                other
                for name, other in s.predict_wrong_answers(blank, known)
                if name in _PLANTED and other and not is_same_number(other, value, digits or 4)
                and abs(other - value) > 0.02 * max(abs(other), abs(value))
            }  # fmt: skip
            if not options or not value:
                return None
            value = draw.choice(sorted(options))
        known[blank.name] = float(format_number(value, digits)) if digits else value
        shown.append(known[blank.name])
    wrong = replace(
        right, blanks=tuple(replace(b, value=v) for b, v in zip(blanks, shown, strict=True))
    )
    fine = all(
        neat.is_readable(made) if digits else neat.is_exact(made, difficulty)
        for made in (right, wrong)
    )
    found = replace(asked, asked={**asked.asked, "digits": digits, "shown": shown})
    return found if fine and build_worksheet(found).blanks[0].value == blanks[at].row else None
