"""What the commands of ``cgprimer check`` share: submissions, limits, and the ways to report."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import click

from cgprimer.cli.common import check_outputs, echo_json, make_command, note, progress_bar
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import read_names
from cgprimer.cli.shared_options import NumberRange
from cgprimer.course.checks.batch_checks import Batch, Check, check_all
from cgprimer.course.checks.check_results import Failure, Result, create_failed_result
from cgprimer.course.checks.result_files import csv_text, gradescope, junit_xml
from cgprimer.course.checks.result_journal import ResultJournal
from cgprimer.course.checks.sandbox import Limits
from cgprimer.course.checks.submission_search import (
    find_repeated_submissions,
    find_submissions,
    group_by_mistake,
    remove_ending,
)
from cgprimer.course.exercises.roster import Student, read_roster, students_by_submission
from cgprimer.errors import UsageError, join_names, pluralize
from cgprimer.support.files import format_json, write_atomically

F = TypeVar("F", bound=Callable[..., Any])
_REPORT, _BATCH = "Report options", "Batch options"
_LIMITS, _FILES = "Sandbox options", "File options"
_OWN = {"--autograder", "--otter", "--nbgrader", "--csv", "--page", "--junit"}
_OWN |= {
    "--gradescope",
    "--jobs",
    "--journal",
    "--students",
}  # with a value; not part of an autograder
_OWN_SWITCHES = {"--force", "--fresh", "--json", "--only-wrong"}


@dataclass(frozen=True)
class _How:
    """The options that all kinds share, but for limits."""

    feedback: str
    only_wrong: bool
    as_json: bool
    students: str | None
    csv: str | None
    page: str | None
    junit: str | None
    gradescope: str | None
    jobs: int
    journal: str | None
    fresh: bool
    skeleton: bool
    autograder: str | None
    otter: str | None
    nbgrader: str | None
    force: bool


def submission_options(function: F) -> F:
    """Add the submissions and the options of all kinds of checks."""
    decorators = (
        option(
            "--feedback",
            group=_REPORT,
            type=click.Choice(["points", "part", "mistake"]),
            default="mistake",
            help="Detail of the feedback: points, parts, or the kind of mistake.",
        ),
        option(
            "--only-wrong", group=_REPORT, is_flag=True, help="Show only parts without full points."
        ),
        option("--json", "as_json", group=_REPORT, is_flag=True, help="Print the result as JSON."),
        option(
            "--students",
            group=_REPORT,
            metavar="PATH",
            type=click.Path(),
            help="Class list as CSV; its columns are added to --csv.",
        ),
        option(
            "--csv",
            group=_REPORT,
            metavar="PATH",
            type=click.Path(),
            help="CSV file with one row per submission (default: FOLDER.csv).",
        ),
        option(
            "--page",
            group=_REPORT,
            metavar="PATH",
            type=click.Path(),
            help="HTML page with the mistakes of all submissions (default: FOLDER.html).",
        ),
        option(
            "--junit",
            group=_REPORT,
            metavar="PATH",
            type=click.Path(),
            help="Write the results as JUnit XML.",
        ),
        option(
            "--gradescope",
            group=_REPORT,
            metavar="PATH",
            type=click.Path(),
            help="Write results.json of one submission, or a folder of result files.",
        ),
        option(
            "--jobs",
            group=_BATCH,
            metavar="N",
            type=click.IntRange(min=1),
            default=1,
            help="Number of submissions to check at the same time.",
        ),
        option(
            "--journal",
            group=_BATCH,
            metavar="PATH",
            type=click.Path(),
            help="File with finished results, to resume from (default: FOLDER.journal).",
        ),
        option("--fresh", group=_BATCH, is_flag=True, help="Ignore the results in the journal."),
        option(
            "--time",
            group=_LIMITS,
            metavar="NUMBER",
            type=NumberRange(min=0.1, max=3600.0),
            default=5.0,
            help="Time limit of a submission, in seconds.",
        ),
        option(
            "--memory",
            group=_LIMITS,
            metavar="N",
            type=click.IntRange(min=64, max=1000000),
            default=1024,
            help="Memory limit per process, in megabytes.",
        ),
        option(
            "--output-limit",
            group=_LIMITS,
            metavar="N",
            type=click.IntRange(min=1, max=100000),
            default=1000,
            help="Limit of printed output, in kilobytes.",
        ),
        option(
            "--processes",
            group=_LIMITS,
            metavar="N",
            type=click.IntRange(min=1, max=10000),
            default=16,
            help="Limit of processes and threads.",
        ),
        option(
            "--forbid",
            group=_LIMITS,
            metavar="NAME,...",
            multiple=True,
            callback=read_names,
            help="Modules that submissions may not import, such as cgprimer,torch.",
        ),
        option(
            "--skeleton", group=_FILES, is_flag=True, help="Print a file to start from, and stop."
        ),
        option(
            "--autograder",
            group=_FILES,
            metavar="PATH",
            type=click.Path(),
            help="Write a .zip autograder for Gradescope.",
        ),
        option(
            "--otter",
            group=_FILES,
            metavar="PATH",
            type=click.Path(),
            help="Write a test file for Otter.",
        ),
        option(
            "--nbgrader",
            group=_FILES,
            metavar="PATH",
            type=click.Path(),
            help="Write a notebook with autograded cells.",
        ),
        option("--force", group=_FILES, is_flag=True, help="Overwrite existing files."),
        click.argument("submissions", nargs=-1, type=click.Path(), metavar="SUBMISSION..."),
    )
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def check_command() -> Callable[[Callable[..., Check]], click.Command]:
    """Create a command that checks submissions; its function returns the :class:`Check`.

    Parameters of the function come before :func:`submission_options`::

        @check_command()
        @option("--points", type=click.IntRange(min=1), default=100, help="Number of points.")
        @click.argument("file", type=click.Path())
        @submission_options
        def command(file: str, points: int) -> Check: ...
    """

    def decorate(function: Callable[..., Check]) -> click.Command:
        @wraps(function)
        def checking(submissions: tuple[str, ...], **given: Any) -> None:
            how = _How(**{one.name: given.pop(one.name) for one in fields(_How)})
            limits = Limits(
                given.pop("time"), given.pop("memory"), given.pop("output_limit"),
                given.pop("processes"), forbidden=given.pop("forbid"),
            )  # fmt: skip
            check = function(**given)
            written = _write_files(check, submissions, how)
            if submissions or not written:
                _check(check, list(map(Path, submissions)), limits, how)

        return make_command()(checking)

    return decorate


def _write_files(check: Check, submissions: Sequence[str], how: _How) -> bool:
    """Write what students and courses need; whether any of it was asked for."""
    if (how.otter or how.nbgrader) and not check.call:
        raise UsageError("of several sheets there is no notebook", hint="give it one sheet")
    check_outputs(how.force, how.autograder, how.otter, how.nbgrader)
    made: dict[str, bytes | str] = {}
    if how.autograder or how.otter or how.nbgrader:
        from cgprimer.course.checks import course_files

        if how.autograder:
            words = [word for word in sys.argv[1:] if word not in submissions]
            arguments, files = _for_autograder(words)
            made[how.autograder] = course_files.autograder(check.name, arguments, files)
        if how.otter:
            made[how.otter] = course_files.otter_test(check, how.feedback)
        if how.nbgrader:
            made[how.nbgrader] = course_files.nbgrader_notebook(check, how.feedback)
    for path, content in made.items():
        write_atomically(path, content)
        note(f"wrote {path}")
    if how.skeleton:
        click.echo(check.skeleton, nl=False)
    return bool(made) or how.skeleton


def _for_autograder(arguments: Sequence[str]) -> tuple[list[str], dict[str, bytes]]:
    """The arguments behind ``check KIND`` that stay, and the files that they name."""
    kept: list[str] = []
    files: dict[str, bytes] = {}
    rest = iter(arguments[arguments.index("check") + 2 :])
    for argument in rest:
        flag, _, value = argument.partition("=")
        if flag in _OWN:
            if not value:
                next(rest, None)
        elif flag not in _OWN_SWITCHES:
            path = Path(argument)
            if not argument.startswith("-") and path.is_file():
                files[f"files/{path.name}"] = path.read_bytes()
                argument = f"files/{path.name}"  # noqa: PLW2901
            kept.append(argument)
    return kept, files


def _check(check: Check, paths: Sequence[Path], limits: Limits, how: _How) -> None:
    students = read_roster(how.students) if how.students else []
    csv, page, journal, gradescope = how.csv, how.page, how.journal, how.gradescope
    for_one = bool(gradescope and gradescope.endswith(".json"))
    if gradescope and for_one:
        check_outputs(how.force, gradescope)
        try:
            files = find_submissions(paths, check.endings, check.name)
        except UsageError as error:  # a student's mistake, to be read on Gradescope
            if not all(path.exists() for path in paths):
                raise
            missing = Failure("missing", error.message)
            _write_gradescope(
                gradescope, [create_failed_result(check.name, "", check.parts, missing)]
            )
            return
        named = {n: path for n, path in files.items() if remove_ending(n) == check.name}
        files = named if len(named) == 1 else files
        if len(files) > 1:
            file = f"{check.name}{check.endings[0]}"
            several = f"there are {join_names(files)}: hand in one file, or call one of them {file}"
            failure = Failure("missing", several)
            _write_gradescope(
                gradescope, [create_failed_result(check.name, "", check.parts, failure)]
            )
            raise UsageError(f"{gradescope} holds one result", hint="a folder, for many")
    else:
        files = find_submissions(paths, check.endings, check.name)
    folder = next((path for path in paths if path.is_dir()), None)
    if folder and not for_one:
        name = folder.resolve().name
        csv, page = csv or f"{name}.csv", page or f"{name}.html"
        journal = journal or f"{name}.journal"
    known = ResultJournal(Path(journal) if journal else None, fresh=how.fresh)
    if how.fresh:
        check_outputs(how.force, journal)
    ours = set(known.written_files)
    check_outputs(
        how.force, *(f for f in (csv, page, how.junit) if f and str(Path(f).resolve()) not in ours)
    )
    if gradescope and not for_one and str(Path(gradescope).resolve()) not in ours:
        check_outputs(how.force, folder=gradescope)
    with progress_bar("checking", len(files) > 1) as on_result:
        batch = check_all(check, files, limits, jobs=how.jobs, journal=known, on_result=on_result)
    found = batch.results  # for the instructor, as in the table and on the page
    shown = [result.at(how.feedback) for result in found]
    written: dict[str, str] = {}
    if csv:
        written[csv] = csv_text(found, batch.same, _columns(students, found))
    if page:
        from cgprimer.course.checks.class_page import class_page

        title = f"{check.name}: {folder.resolve().name if folder else 'submissions'}"
        written[page] = class_page(found, title, batch.same)
    if how.junit:
        written[how.junit] = junit_xml(shown)
    for path, text in written.items():
        write_atomically(path, text)
    if gradescope:
        _write_gradescope(gradescope, shown)
    own_files = {str(Path(p).resolve()) for p in (*written, gradescope) if p}
    known.written_files = sorted(own_files | ours)
    known.save()
    _say(batch, shown, how, one=len(files) == 1)
    for path in filter(None, (*written, gradescope)):
        note(f"wrote {path}")
    if batch.missing:
        note(f"{pluralize(len(found), 'submission')} of {len(files)} checked")
        if journal:
            note("the same command goes on from here")
        raise KeyboardInterrupt


def _write_gradescope(path: str, results: Sequence[Result]) -> None:
    if path.endswith(".json"):
        for result in results:
            write_atomically(path, format_json(gradescope(result)))
        return
    Path(path).mkdir(exist_ok=True)
    several = list(chain(*find_repeated_submissions(r.submission for r in results).values()))
    for result in results:
        name = Path(remove_ending(result.submission)).name
        if result.submission in several:  # a file for each
            name = result.submission.replace(os.sep, "_")
        write_atomically(Path(path, f"{name}.json"), format_json(gradescope(result)))


def _columns(students: Sequence[Student], results: Sequence[Result]) -> dict[str, dict[str, str]]:
    """Return the columns of the class list for each submission; note who has none."""
    names = {r.submission: Path(remove_ending(r.submission)).name for r in results}
    known = students_by_submission(students, names)
    if students and (unknown := [name for name in names if name not in known]):
        note(f"note: not on the class list: {join_names(unknown, 8)}")
    present = {student.key for student in known.values()}
    if absent := [student.name for student in students if student.key not in present]:
        note(f"note: no submission of {join_names(absent, 8)}")
    empty = {heading: "" for student in students[:1] for heading, _ in student.columns}
    return {name: dict(known[name].columns) if name in known else empty for name in names}


def _say(batch: Batch, results: Sequence[Result], how: _How, one: bool) -> None:
    """Print the results: one at length, many in a table."""
    if how.as_json:
        found = [result.to_dict() for result in results]
        echo_json(found[0] if one and found else found)
        return
    if one:
        for result in results:
            click.echo(result.only_wrong() if how.only_wrong else result)
        return
    if how.only_wrong:
        results = [r for r in results if r.points < r.possible or r.failure]
    from cgprimer.analysis.text_tables import table

    rows = [
        [r.submission, f"{r.points:g}", f"{r.possible:g}", ", ".join(r.mistakes)] for r in results
    ]
    click.echo(table(["submission", "points", "of", "mistakes"], rows, left=(0, 3)))
    for mistake, who in group_by_mistake(results).items():
        click.echo(f"{len(who)} x {mistake}")
    for name, earlier in batch.same.items():
        note(f"note: {name} and {earlier} are the same file")
    for student, own in find_repeated_submissions(result.submission for result in results).items():
        note(f"note: {student} has {len(own)} submissions: {join_names(own)}")
    if batch.reused:
        note(f"note: {pluralize(batch.reused, 'result')} from the journal")
