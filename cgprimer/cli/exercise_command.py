"""``cgprimer exercise``: problem sheets with neat numbers, and what grades them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from cgprimer.cli.common import check_outputs, graph_command, note, progress_bar
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import PATH, TEXT
from cgprimer.cli.shared_options import domain_option, force_option, keep_option, seed_option
from cgprimer.course.checks.label_domains import resolve_restrictions
from cgprimer.course.exercises.exercise_sheets import POINTS, Exercise, exercises_for
from cgprimer.course.exercises.roster import Student, read_roster
from cgprimer.course.exercises.sheet_files import (
    EVERYBODY,
    FORMATS,
    QUESTION_FILES,
    write_exercises,
)
from cgprimer.errors import pluralize
from cgprimer.expressions import ExpressionGraph


@graph_command(optional=True)
@option(
    "--kind",
    type=click.Choice(
        [
            "trace",
            "tangent",
            "adjoint",
            "paths",
            "gradient",
            "shapes",
            "optimizer",
            "picture",
            "mistake",
            "all",
        ]
    ),
    multiple=True,
    help="Kind of problem; repeatable (default: all kinds that suit the graph).",
)
@seed_option
@option(
    "--difficulty",
    type=click.Choice(["1", "2", "3", "easy", "medium", "hard"]),
    default="1",
    help="Difficulty; level 1 has integers and three operations.",
)
@option(
    "--count",
    metavar="N",
    type=click.IntRange(min=1, max=50),
    default=1,
    help="Number of problems of each kind; for moodle and qti, the size of the question pool.",
)
@option(
    "--of", metavar="NAME", help="Variable to compute or differentiate (default: the only output)."
)
@keep_option
@domain_option
@option(
    "--students",
    **PATH,
    help="Class list: CSV file with a column 'name' or 'id'; writes one sheet per student.",
)
@option(
    "--points",
    metavar="N",
    type=click.IntRange(min=1, max=1000),
    help="Points awarded per problem (default: 10 with --students, otherwise one per blank).",
)
@option(
    "--format",
    type=click.Choice(["markdown", "latex", "pdf", "html", "notebook", "moodle", "qti"]),
    multiple=True,
    help="Format of the sheets, or of questions for Moodle and Canvas (qti); repeatable"
    " (default: markdown).",
)
@option("--title", **TEXT, default="Exercises", help="Title of the sheets.")
@option("-o", "--to", **PATH, default="exercises", help="Output folder.")
@force_option
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
    """Write problem sheets, their solutions, and files for grading.

    \b
    Examples:
      cgprimer exercise
      cgprimer exercise lecture --kind adjoint --kind paths --format html -o homework
      cgprimer exercise --difficulty 2 --count 2 --seed 7 --format latex -o exam
      cgprimer exercise --kind adjoint --count 30 --seed 7 --format moodle -o quiz

    Without FILE, the problems use random graphs. With FILE, they use its graph with new values. The
    folder students/ contains problem sheets and answer forms, without any answers; the folder
    grader/ contains the solutions and sheets.json for cgprimer check trace, and the files with
    questions for Moodle (moodle.xml) and Canvas (qti.zip), which contain the answers.
    """
    roster = read_roster(students) if students else EVERYBODY
    check_outputs(force, folder=to)
    points = POINTS if points is None and students else points
    sheets = exercises_for(roster, graph, points=points, kinds=kind or "all", **about)
    for text in resolve_restrictions(graph, about["keep"], about["domain"]).notes if graph else ():
        note(f"note: {text}")
    formats = tuple(dict.fromkeys(format)) or ("markdown",)
    with progress_bar("sheets") as on_progress:

        def report_progress() -> Iterator[tuple[Student, Exercise]]:
            """Yield the sheets, and update the progress bar after each sheet."""
            for completed, pair in enumerate(sheets):
                if on_progress:
                    on_progress(completed, len(roster))
                yield pair

        many = write_exercises(report_progress(), to, formats=formats)
    folder = Path(to)
    if any(name in FORMATS for name in formats):
        note(f"wrote {pluralize(many, 'sheet')} to {folder / 'students'}")
        note(f"wrote solutions, and sheets.json for cgprimer check trace, to {folder / 'grader'}")
    for name in (name for name in formats if name in QUESTION_FILES):
        file = folder / "grader" / QUESTION_FILES[name]
        note(f"wrote questions with their answers to {file}")
