"""Sheets for one or for a class, from one seed, and the files that they are written to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
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
    format_sheets,
)
from cgprimer.course.exercises import documents
from cgprimer.course.exercises.problem_generation import fitting_kinds, problem
from cgprimer.course.exercises.roster import Student
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.files import check_writable, write_atomically
from cgprimer.support.validation import check_choice, check_integer

FORMATS = {"markdown": "md", "latex": "tex", "pdf": "pdf", "html": "html", "notebook": "ipynb"}
DIFFICULTIES = {"1": 1, "2": 2, "3": 3, "easy": 1, "medium": 2, "hard": 3}
STUDENTS, GRADER = "students", "grader"  # folders: what is handed out, and what is not
POINTS = 10  #: of a problem on the sheets of a class
_MOST = 50  # problems of a kind on a sheet
_MOST_NUMBERS = 64  # inputs and parameters of a graph, those of matrices one by one
_AGAIN = 40  # times that a sheet which somebody has is drawn anew


@dataclass(frozen=True, slots=True, repr=False)
class Exercise(Sheet):
    """A sheet that can be written: :func:`cgprimer.exercise` makes it."""

    def to_markdown(self, *, solution: bool = False) -> str:
        """The sheet, or its solution, as Markdown; its tables are the form for answers."""
        return documents.render_markdown(self, solution=solution)

    def to_html(self, *, solution: bool = False) -> str:
        """As a page that needs nothing beside it, and prints on paper."""
        from cgprimer.course.exercises.printed_sheets import sheet_page

        return sheet_page(self, solution=solution)

    def to_latex(self, *, solution: bool = False) -> str:
        """As a document for ``pdflatex``."""
        from cgprimer.course.exercises.printed_sheets import latex_document

        return latex_document(self, solution=solution)

    def to_notebook(self, *, solution: bool = False) -> str:
        """As a notebook (nbformat 4.5), with a cell for the answers to each problem."""
        from cgprimer.course.exercises.printed_sheets import svg_element

        return documents.render_notebook(self, solution=solution, svg=svg_element)

    def to_csv(self) -> str:
        """A form for answers: a line for each blank."""
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
    """A sheet of problems with neat numbers, drawn from a seed.

    Args:
        graph: what the problems are about; graphs are made up unless given. Its numbers are drawn
            anew, whatever it declares.
        kinds: of ``trace``, ``tangent``, ``adjoint``, ``paths``, ``gradient``, ``shapes``,
            ``optimizer``, ``picture``, ``mistake``; ``all`` for those that fit the graph.
        seed: of everything that is drawn; the same seed gives the same sheet.
        difficulty: 1, 2 or 3; or ``easy``, ``medium``, ``hard``.
        count: how many problems of each kind.
        of: the variable that the problems are about; the only output unless given.
        keep: inputs of the graph that stay at their declared values.
        domain: for inputs of the graph the values from which they are sampled, ``{"y": (0, 1)}``
            or ``{"y": "one-hot"}``, in the place of domains that the graph declares.
        title: the heading.
        student: whom it is for: everybody gets other numbers, and other made-up graphs.

    Returns:
        The sheet; no answer is stored in it. :func:`cgprimer.check_trace` grades answers to it.

    Raises:
        UsageError: an unknown kind or difficulty, a kind that does not fit the graph, or a graph
            for which no numbers were found that can be worked with by hand.

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
    draw = _drawer(graph, kinds, difficulty, count, of, title, keep, domain)
    return draw(f"{check_integer('the seed', seed)}/{student}", student)


def exercises_for(
    students: Iterable[Student],
    graph: ExpressionGraph | None = None,
    *,
    seed: int = 0,
    points: int | None = POINTS,
    **about: Any,
) -> Iterator[tuple[Student, Exercise]]:
    """Yield a sheet for each student, no two alike.

    Who else is on the roster changes nothing, unless two would get the same.

    Args:
        students: the class.
        graph: as in :func:`exercise`.
        seed: as in :func:`exercise`.
        points: of each problem, so that all sheets are worth the same; None for one per blank.
        about: further arguments of :func:`exercise`.

    Raises:
        UsageError: as in :func:`exercise`, or there are too few different sheets.
    """
    if points is not None and check_integer("points", points, minimum=1) > MAX_POINTS:
        raise UsageError(f"points must be at most {MAX_POINTS}, got {points}")
    draw = _drawer(graph, **about)
    known: set[str] = set()
    for student in students:
        for again in range(_AGAIN):
            own = f"{seed}/{student.key}" + (f"/{again}" if again else "")
            made = draw(own, student.name)
            if (questions := repr(made.problems)) not in known:
                break
        else:
            raise UsageError(
                f"only {len(known)} different sheets were found, and there are more students",
                hint="more kinds, a higher --difficulty, or no FILE: graphs are made up",
            )
        known.add(questions)
        yield student, made if points is None else _with_points(made, points)


def _with_points(sheet: Exercise, points: int) -> Exercise:
    """Return a sheet whose problems are worth equally many points."""
    problems = (replace(p, asked={**p.asked, "points": points}) for p in sheet.problems)
    return replace(sheet, problems=tuple(problems))


def _drawer(
    graph: ExpressionGraph | None, kinds: str | Sequence[str] = "all", difficulty: int | str = 1,
    count: int = 1, of: str | None = None, title: str = "Exercises",
    keep: Sequence[str] | str = (), domain: Mapping[str, Any] | None = None,
) -> Callable[[str, str], Exercise]:  # fmt: skip
    """What draws a sheet from a text, for a student; all that is asked for is checked before."""
    level = str(difficulty).casefold()
    check_choice("difficulty", level, DIFFICULTIES)
    chosen = _kinds(graph, kinds)
    if check_integer("the number of problems", count, minimum=1) > _MOST:
        raise UsageError(f"a sheet has at most {_MOST} problems of a kind, not {count}")
    about = resolve_output(graph, of) if graph is not None else of
    if graph is None and (keep or domain):
        what = "keep and domain (--keep, --domain) are about the inputs of a graph"
        raise UsageError(what, hint="give a graph: a FILE or -e TEXT")
    kept: tuple[str, ...] = ()
    if graph is not None:
        limits = resolve_restrictions(graph, keep, domain)
        kept, graph = limits.fixed_inputs, replace(graph, domains=FrozenDict(limits.domains))

    def draw(seed: str, student: str) -> Exercise:
        problems: list[Problem] = []
        for kind in chosen:
            known = set[str]()
            for k in range(count):
                for again in range(_AGAIN):
                    own = Random(f"{seed}/{DIFFICULTIES[level]}/{kind}/{k}/{again}")
                    made = problem(kind, own, DIFFICULTIES[level], graph, about, kept)
                    if (text := repr(made)) not in known:
                        break
                known.add(text)
                problems.append(made)
        return Exercise(tuple(problems), title, student)

    return draw


def _kinds(graph: ExpressionGraph | None, kinds: str | Sequence[str]) -> tuple[str, ...]:
    if graph is not None:
        numbers = sum(prod(graph.shapes.get(n, ())) for n in (*graph.inputs, *graph.parameters))
        if not 0 < numbers <= _MOST_NUMBERS:
            what = f"the graph has {numbers:,} inputs and parameters"
            raise UsageError(f"{what}: a problem by hand has 1 to {_MOST_NUMBERS}")
    fitting = fitting_kinds(graph)
    wanted = (kinds,) if isinstance(kinds, str) else tuple(dict.fromkeys(kinds))
    for kind in wanted:
        check_choice("kind of exercise", kind, (*KINDS, "all"))
    if "all" in wanted or not wanted:
        wanted = fitting
    if misfit := [kind for kind in wanted if kind not in fitting] or ([] if fitting else ["all"]):
        assert graph is not None
        if graph.layered:
            why = "with layers that train in one way and are used in another"
        elif graph.shapes or misfit[0] == "shapes":
            why = "of arrays" if graph.shapes else "of single numbers"
        elif misfit[0] == "optimizer":
            why = "without parameters"
        else:
            why = "in which nothing reaches an output along two to six paths"
        hint = f"choose one of {', '.join(fitting)}" if fitting else "a graph without such layers"
        raise UsageError(f"{misfit[0]!r} does not fit a graph {why}", hint=hint)
    return wanted


# --- files ---------------------------------------------------------------------------------------


def write_exercises(
    sheets: Iterable[tuple[Student, Exercise]],
    folder: str | Path,
    *,
    formats: Sequence[str] = ("markdown",),
) -> int:
    """Write sheets and forms into ``students``, solutions and ``sheets.json`` into ``grader``.

    Returns:
        How many sheets were written.

    Raises:
        UsageError: a folder cannot be written to, or an unknown format.
    """
    for name in formats:
        check_choice("format of a sheet", name, FORMATS)
    if "pdf" in formats:
        from cgprimer.course.exercises.printed_sheets import check_pdflatex

        check_pdflatex()
    root, made = Path(folder), list[Sheet]()
    for student, sheet in sheets:
        if not made:  # a graph that does not fit leaves no folders behind
            _make_folders(root)
        made.append(sheet)
        write_atomically(root / STUDENTS / f"{student.file}.csv", format_csv_form(sheet))
        for name in formats:
            for part, ending in ((STUDENTS, ""), (GRADER, "-solution")):
                path = root / part / f"{student.file}{ending}.{FORMATS[name]}"
                write_atomically(path, _written(sheet, name, part == GRADER, path))
    write_atomically(root / GRADER / "sheets.json", format_sheets(made))
    return len(made)


def _make_folders(root: Path) -> None:
    for part in (STUDENTS, GRADER):
        try:
            (root / part).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot write {root / part}: {error.strerror or error}") from None
        check_writable(root / part / "sheet")


def _written(sheet: Exercise, name: str, solution: bool, path: Path) -> str | bytes:
    """A sheet in a format; pictures of Markdown are files beside it."""
    from cgprimer.course.exercises import printed_sheets

    if name == "pdf":
        return printed_sheets.sheet_pdf(sheet, solution=solution)
    if name != "markdown":
        return str(getattr(sheet, f"to_{name}")(solution=solution))

    def picture(section: documents.Section) -> str:
        assert section.picture
        file = path.with_name(f"{path.stem}-{section.number}.svg")
        write_atomically(file, printed_sheets.svg_element(section.picture))
        return f"![the graph]({file.name})"

    return documents.render_markdown(sheet, solution=solution, format_picture=picture)


EVERYBODY = [Student("", "", "sheet")]  # one sheet, for all
