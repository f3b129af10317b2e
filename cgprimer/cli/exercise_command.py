"""``cgprimer exercise``: problem sheets with neat numbers, and what grades them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cgprimer.cli.common import check_outputs, graph_command, note, progress_bar
from cgprimer.cli.options import DOMAIN, FORCE, KEEP
from cgprimer.course.checks.label_domains import resolve_restrictions
from cgprimer.course.checks.sheets.sheet_problems import KINDS, MAX_POINTS
from cgprimer.course.exercises.exercise_sheets import (
    DIFFICULTIES,
    EVERYBODY,
    FORMATS,
    POINTS,
    Exercise,
    exercises_for,
    write_exercises,
)
from cgprimer.course.exercises.roster import Student, read_roster
from cgprimer.errors import pluralize
from cgprimer.expressions import ExpressionGraph


@graph_command(
    f"--kind {'|'.join((*KINDS, 'all'))}...  What is asked (default: all kinds that fit).",
    "--seed 0.. =0  Of everything that is drawn.",
    f"--difficulty {'|'.join(DIFFICULTIES)} =1  From whole numbers and three operations on.",
    "--count 1..50 =1  How many problems of each kind.",
    "--of NAME  The variable that the problems are about (default: the only output).",
    KEEP,
    DOMAIN,
    '--students PATH  A CSV file with a column "name" or "id": everybody gets a sheet.',
    f"--points 1..{MAX_POINTS}  Points of each problem (default: {POINTS} with --students, else one"
    " for each blank).",
    f"--format {'|'.join(FORMATS)}...  How sheets are written (default: markdown).",
    "--title TEXT =Exercises  The heading.",
    "-o, --to PATH =exercises  The folder.",
    FORCE,
    optional=True,
)
def command(
    graph: ExpressionGraph | None,
    kind: tuple[str, ...],
    students: str | None,
    points: int | None,
    format: tuple[str, ...],
    to: str,
    force: bool,
    **about: Any,
) -> None:
    """Write problem sheets, their solutions, and what grades them, from one seed.

    \b
    Examples:
      cgprimer exercise
      cgprimer exercise lecture --kind adjoint --kind paths --format html -o homework
      cgprimer exercise --difficulty 2 --count 2 --seed 7 --format latex -o exam

    Without FILE graphs are made up; with one the problems are about it, with other numbers than it
    declares. In the folder stand students/, with sheets and forms for answers, in which no answer
    stands, and grader/, with the solutions and sheets.json for cgprimer check trace.
    """
    roster = read_roster(students) if students else EVERYBODY
    check_outputs(force, folder=to)
    points = POINTS if points is None and students else points
    sheets = exercises_for(roster, graph, points=points, kinds=kind or "all", **about)
    for text in resolve_restrictions(graph, about["keep"], about["domain"]).notes if graph else ():
        note(f"note: {text}")
    formats = tuple(dict.fromkeys(format)) or ("markdown",)
    with progress_bar("sheets") as on_progress:

        def counted() -> Iterator[tuple[Student, Exercise]]:
            for done, pair in enumerate(sheets):
                if on_progress:
                    on_progress(done, len(roster))
                yield pair

        many = write_exercises(counted(), to, formats=formats)
    folder = Path(to)
    note(f"wrote {pluralize(many, 'sheet')} to {folder / 'students'}")
    grader = "solutions, and sheets.json for cgprimer check trace,"
    note(f"{grader} are in {folder / 'grader'}")
