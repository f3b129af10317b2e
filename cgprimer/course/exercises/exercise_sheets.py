"""Exercise sheets for one student or for a class, determined by a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from random import Random
from typing import Any

from cgprimer.core.derivatives import resolve_output
from cgprimer.core.graph.expression_graph import FrozenDict
from cgprimer.course.checks.label_domains import resolve_restrictions
from cgprimer.course.checks.sheets.answer_forms import format_csv_form
from cgprimer.course.checks.sheets.sheet_problems import (
    KINDS,
    MAX_POINTS,
    Problem,
    Sheet,
)
from cgprimer.course.exercises import documents
from cgprimer.course.exercises.problem_generation import list_suitable_kinds, sample_problem
from cgprimer.course.exercises.roster import Student
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.validation import check_choice, check_integer

DIFFICULTIES = {"1": 1, "2": 2, "3": 3, "easy": 1, "medium": 2, "hard": 3}
POINTS = 10  #: of a problem on the sheets of a class
_MAX_PROBLEMS = 50  # of one kind on a sheet
_MAX_NUMBERS = 64  # elements of all inputs and parameters of a graph
_MAX_ATTEMPTS = 40  # to sample a sheet that no other student has


@dataclass(frozen=True, slots=True, repr=False)
class Exercise(Sheet):
    """An exercise sheet that can be rendered in several formats.

    Created by :func:`cgprimer.exercise`.
    """

    def to_markdown(self, *, solution: bool = False) -> str:
        """Render the sheet or its solution as Markdown, with tables for the answers."""
        return documents.render_markdown(self, solution=solution)

    def to_html(self, *, solution: bool = False) -> str:
        """Render the sheet or its solution as a self-contained HTML page for printing."""
        from cgprimer.course.exercises.printed_sheets import sheet_page

        return sheet_page(self, solution=solution)

    def to_latex(self, *, solution: bool = False) -> str:
        """Render the sheet or its solution as a LaTeX document for ``pdflatex``."""
        from cgprimer.course.exercises.printed_sheets import latex_document

        return latex_document(self, solution=solution)

    def to_notebook(self, *, solution: bool = False) -> str:
        """Render the sheet or its solution as a notebook (nbformat 4.5).

        The sheet has a cell for the answers to each problem.
        """
        from cgprimer.course.exercises.printed_sheets import draw_svg_element

        return documents.render_notebook(self, solution=solution, svg=draw_svg_element)

    def to_moodle(self) -> str:
        """Return the problems with their answers as Moodle XML, one question for each problem."""
        from cgprimer.course.exercises.moodle_questions import format_moodle

        return format_moodle([self])

    def to_qti(self) -> bytes:
        """Return the problems with their answers as a QTI package (ZIP file) for Canvas."""
        from cgprimer.course.exercises.qti_questions import format_qti

        return format_qti([self])

    def to_csv(self) -> str:
        """Return the answer form of the sheet as CSV, with one line per blank."""
        return format_csv_form(self)


def exercise(
    graph: ExpressionGraph | None = None,
    *,
    kinds: str | Sequence[str] = "all",
    seed: int = 0,
    difficulty: int | str = 1,
    count: int = 1,
    of: str | None = None,
    keep: Sequence[str] | str = (),
    domain: Mapping[str, Any] | None = None,
    title: str = "Exercises",
    student: str = "",
) -> Exercise:
    """Create an exercise sheet whose problems have simple numbers, determined by a seed.

    Args:
        graph: the graph of all problems; by default, each problem has a random graph. The values of
            inputs and parameters are sampled, even if the graph declares values.
        kinds: one or more of ``trace``, ``tangent``, ``adjoint``, ``paths``, ``gradient``,
            ``shapes``, ``optimizer``, ``picture``, ``mistake``; or ``all`` suitable kinds.
        seed: random seed; equal seeds give equal sheets.
        difficulty: 1, 2 or 3; or ``easy``, ``medium``, ``hard``.
        count: number of problems of each kind.
        of: the variable to compute or differentiate; by default the only output.
        keep: inputs of the graph that keep their declared values.
        domain: domains from which inputs of the graph are sampled, such as ``{"y": (0, 1)}`` or
            ``{"y": "one-hot"}``; they replace domains that the graph declares.
        title: the heading.
        student: the name of the student; each student gets different numbers and random graphs.

    Returns:
        The sheet, which contains no answers. :func:`cgprimer.check_trace` grades answers to it.

    Raises:
        UsageError: an unknown kind or difficulty, a kind that is not suitable for the graph, or a
            graph for which no simple numbers were found.

    >>> sheet = exercise(kinds="adjoint", seed=3)
    >>> print(sheet.problems[0].graph)
    input x1 = 3
    parameter a = 4, b = 1
    xp = x1*a
    xq = xp*a
    xr = xq*b
    xw = a^2 + b + xr
    output xw
    """
    sample_sheet = _create_sampler(graph, kinds, difficulty, count, of, title, keep, domain)
    return sample_sheet(f"{check_integer('the seed', seed)}/{student}", student)


def exercises_for(
    students: Iterable[Student],
    graph: ExpressionGraph | None = None,
    *,
    seed: int = 0,
    points: int | None = POINTS,
    **about: Any,
) -> Iterator[tuple[Student, Exercise]]:
    """Yield a different exercise sheet for each student of a class.

    A sheet does not depend on the other students of the class, unless two sheets would be equal.

    Args:
        students: the class.
        graph: as in :func:`exercise`.
        seed: as in :func:`exercise`.
        points: points of each problem, equal for all sheets; None for one point per blank.
        about: further arguments of :func:`exercise`.

    Raises:
        UsageError: as in :func:`exercise`, or there are fewer different sheets than students.
    """
    if points is not None and check_integer("points", points, minimum=1) > MAX_POINTS:
        raise UsageError(f"points must be at most {MAX_POINTS}, got {points}")
    sample_sheet = _create_sampler(graph, **about)
    used: set[str] = set()
    for student in students:
        for attempt in range(_MAX_ATTEMPTS):
            key = f"{seed}/{student.key}" + (f"/{attempt}" if attempt else "")
            sheet = sample_sheet(key, student.name)
            if (questions := repr(sheet.problems)) not in used:
                break
        else:
            raise UsageError(
                "cannot create a different sheet for each student: only"
                f" {len(used)} different sheets exist",
                hint="use more kinds, a higher difficulty, or random graphs",
            )
        used.add(questions)
        yield student, sheet if points is None else _set_points(sheet, points)


def _set_points(sheet: Exercise, points: int) -> Exercise:
    """Return a sheet in which each problem is worth the given number of points."""
    problems = (replace(p, asked={**p.asked, "points": points}) for p in sheet.problems)
    return replace(sheet, problems=tuple(problems))


def _create_sampler(
    graph: ExpressionGraph | None, kinds: str | Sequence[str] = "all", difficulty: int | str = 1,
    count: int = 1, of: str | None = None, title: str = "Exercises",
    keep: Sequence[str] | str = (), domain: Mapping[str, Any] | None = None,
) -> Callable[[str, str], Exercise]:  # fmt: skip
    """Check the arguments of :func:`exercise`, and return a function that samples a sheet.

    The function takes the seed as a string, and the name of the student.
    """
    level = str(difficulty).casefold()
    check_choice("difficulty", level, DIFFICULTIES)
    selected_kinds = _select_kinds(graph, kinds)
    if check_integer("count", count, minimum=1) > _MAX_PROBLEMS:
        raise UsageError(f"count must be at most {_MAX_PROBLEMS}, got {count}")
    output = resolve_output(graph, of) if graph is not None else of
    if graph is None and (keep or domain):
        message = "`keep` and `domain` (--keep, --domain) require a graph"
        raise UsageError(message, hint="pass a graph: a FILE or -e TEXT")
    fixed: tuple[str, ...] = ()
    if graph is not None:
        limits = resolve_restrictions(graph, keep, domain)
        fixed, graph = limits.fixed_inputs, replace(graph, domains=FrozenDict(limits.domains))

    def sample_sheet(seed: str, student: str) -> Exercise:
        """Sample the sheet of a student; equal seeds give equal sheets."""
        problems: list[Problem] = []
        for kind in selected_kinds:
            used = set[str]()
            for k in range(count):
                for attempt in range(_MAX_ATTEMPTS):
                    random = Random(f"{seed}/{DIFFICULTIES[level]}/{kind}/{k}/{attempt}")
                    problem = sample_problem(
                        kind, random, DIFFICULTIES[level], graph, output, fixed
                    )
                    if (text := repr(problem)) not in used:
                        break
                used.add(text)
                problems.append(problem)
        return Exercise(tuple(problems), title, student)

    return sample_sheet


def _select_kinds(graph: ExpressionGraph | None, kinds: str | Sequence[str]) -> tuple[str, ...]:
    """Expand ``all`` to the suitable kinds of problems, and reject kinds that are not suitable."""
    if graph is not None:
        numbers = sum(prod(graph.shapes.get(n, ())) for n in (*graph.inputs, *graph.parameters))
        if not 0 < numbers <= _MAX_NUMBERS:
            message = (
                f"the graph must have 1 to {_MAX_NUMBERS} inputs and parameters, got {numbers:,}"
            )
            raise UsageError(message)
    suitable = list_suitable_kinds(graph)
    selected = (kinds,) if isinstance(kinds, str) else tuple(dict.fromkeys(kinds))
    for kind in selected:
        check_choice("kind of exercise", kind, (*KINDS, "all"))
    if "all" in selected or not selected:
        selected = suitable
    unsuitable = [kind for kind in selected if kind not in suitable] or (
        [] if suitable else ["all"]
    )
    if unsuitable:
        assert graph is not None
        hint = "use a graph without dropout and batchnorm"
        if suitable:
            hint = f"choose one of {', '.join(suitable)}"
        reason = _explain_unsuitable_kind(graph, unsuitable[0])
        raise UsageError(f"kind {unsuitable[0]!r} is not suitable: {reason}", hint=hint)
    return selected


def _explain_unsuitable_kind(graph: ExpressionGraph, kind: str) -> str:
    """Return the reason why a kind of problem is not suitable for a graph."""
    if graph.layered:
        return "the graph has layers that differ between training and use"
    if graph.shapes:
        return "the graph has arrays"
    if kind == "shapes":
        return "the graph has only scalars"
    if kind == "optimizer":
        return "the graph has no parameters"
    return "no name has two to six paths to an output"
