"""Options and reports that all commands of ``cgprimer check`` share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from itertools import chain
from pathlib import Path
from typing import Any

import click

from cgprimer.cli.common import check_outputs, echo_json, make_command, note, progress_bar
from cgprimer.cli.grouped_help import combine_options, option
from cgprimer.cli.option_values import NAMES, PATH, POSITIVE_INTEGER
from cgprimer.cli.shared_options import NumberRange
from cgprimer.course.checks.batch_checks import Batch, Check, check_all
from cgprimer.course.checks.check_results import Failure, Result, create_failed_result
from cgprimer.course.checks.result_files import convert_to_gradescope, format_csv, format_junit_xml
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

_REPORT, _BATCH = "Report options", "Batch options"
_LIMITS, _FILES = "Sandbox options", "File options"
_VALUE_OPTIONS = {  # options with a value that are not part of an autograder
    "--autograder", "--otter", "--nbgrader", "--csv", "--page", "--junit", "--gradescope",
    "--jobs", "--journal", "--students",
}  # fmt: skip
_SWITCHES = {"--force", "--fresh", "--json", "--only-wrong"}


@dataclass(frozen=True)
class CheckOptions:
    """The values of the options that all kinds of checks share, except for sandbox limits."""

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


_REPORT_OPTIONS = (
    option(
        "--feedback",
        group=_REPORT,
        type=click.Choice(["points", "part", "mistake"]),
        default="mistake",
        help="Level of feedback: total points, verdict on each part, or likely mistakes.",
    ),
    option(
        "--only-wrong", group=_REPORT, is_flag=True, help="Show only parts without full points."
    ),
    option("--json", "as_json", group=_REPORT, is_flag=True, help="Print the result as JSON."),
    option(
        "--students",
        group=_REPORT,
        **PATH,
        help="Class list (CSV) whose columns are added to the --csv file.",
    ),
    option(
        "--csv",
        group=_REPORT,
        **PATH,
        help="Write a CSV file with one row per submission (default for a folder: FOLDER.csv).",
    ),
    option(
        "--page",
        group=_REPORT,
        **PATH,
        help="Write an HTML page with all mistakes (default for a folder: FOLDER.html).",
    ),
    option("--junit", group=_REPORT, **PATH, help="Write the results as JUnit XML."),
    option(
        "--gradescope",
        group=_REPORT,
        **PATH,
        help="Write results for Gradescope: results.json, or a folder for multiple submissions.",
    ),
)
_BATCH_OPTIONS = (
    option(
        "--jobs",
        group=_BATCH,
        **POSITIVE_INTEGER,
        default=1,
        help="Number of submissions to check in parallel.",
    ),
    option(
        "--journal",
        group=_BATCH,
        **PATH,
        help="File of finished results, to resume a check (default for a folder: FOLDER.journal).",
    ),
    option(
        "--fresh",
        group=_BATCH,
        is_flag=True,
        help="Check all submissions again, and ignore the results in the journal.",
    ),
)
_SANDBOX_OPTIONS = (
    option(
        "--time",
        group=_LIMITS,
        metavar="NUMBER",
        type=NumberRange(min=0.1, max=3600.0),
        default=5.0,
        help="Time limit per submission, in seconds.",
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
        help="Limit of the printed output, in kilobytes.",
    ),
    option(
        "--processes",
        group=_LIMITS,
        metavar="N",
        type=click.IntRange(min=1, max=10000),
        default=16,
        help="Maximum number of processes and threads.",
    ),
    option(
        "--forbid",
        group=_LIMITS,
        **NAMES,
        help="Modules that submissions may not import, such as cgprimer,torch.",
    ),
)
_FILE_OPTIONS = (
    option(
        "--skeleton", group=_FILES, is_flag=True, help="Print a template for submissions, and exit."
    ),
    option("--autograder", group=_FILES, **PATH, help="Write an autograder for Gradescope (.zip)."),
    option("--otter", group=_FILES, **PATH, help="Write a test file for Otter."),
    option(
        "--nbgrader",
        group=_FILES,
        **PATH,
        help="Write a notebook with autograded cells for nbgrader.",
    ),
    option("--force", group=_FILES, is_flag=True, help="Overwrite existing files."),
)
_SUBMISSIONS = click.argument("submissions", nargs=-1, type=click.Path(), metavar="SUBMISSION...")


submission_options = combine_options(
    *_REPORT_OPTIONS, *_BATCH_OPTIONS, *_SANDBOX_OPTIONS, *_FILE_OPTIONS, _SUBMISSIONS
)
"""The argument SUBMISSION and the options that all kinds of checks share."""


def check_command() -> Callable[[Callable[..., Check]], click.Command]:
    """Return a decorator that turns a function that returns a :class:`Check` into a command.

    Parameters of the function come before ``submission_options``::

        @check_command()
        @option("--points", type=click.IntRange(min=1), default=100, help="Number of points.")
        @click.argument("file", type=click.Path())
        @submission_options
        def command(file: str, points: int) -> Check: ...
    """

    def decorate(function: Callable[..., Check]) -> click.Command:
        """Create a command that checks submissions with the check that the function returns."""

        @wraps(function)
        def run_check(submissions: tuple[str, ...], **arguments: Any) -> None:
            """Write the requested files, and check the submissions."""
            options = CheckOptions(
                **{one.name: arguments.pop(one.name) for one in fields(CheckOptions)}
            )
            limits = Limits(
                arguments.pop("time"), arguments.pop("memory"), arguments.pop("output_limit"),
                arguments.pop("processes"), forbidden=arguments.pop("forbid"),
            )  # fmt: skip
            check = function(**arguments)
            written = _write_files(check, submissions, options)
            if submissions or not written:
                _check_submissions(check, list(map(Path, submissions)), limits, options)

        return make_command()(run_check)

    return decorate


def _write_files(check: Check, submissions: Sequence[str], options: CheckOptions) -> bool:
    """Write the skeleton, autograder and notebooks; return whether any was requested."""
    if (options.otter or options.nbgrader) and not check.call:
        raise UsageError(
            "--otter and --nbgrader require a single sheet",
            hint="pass one sheet instead of sheets.json",
        )
    check_outputs(options.force, options.autograder, options.otter, options.nbgrader)
    contents: dict[str, bytes | str] = {}
    if options.autograder or options.otter or options.nbgrader:
        from cgprimer.course.checks import course_files

        if options.autograder:
            check_arguments = [argument for argument in sys.argv[1:] if argument not in submissions]
            arguments, files = _select_autograder_arguments(check_arguments)
            contents[options.autograder] = course_files.build_autograder(
                check.name, arguments, files
            )
        if options.otter:
            contents[options.otter] = course_files.format_otter_test(check, options.feedback)
        if options.nbgrader:
            contents[options.nbgrader] = course_files.format_nbgrader_notebook(
                check, options.feedback
            )
    for path, content in contents.items():
        write_atomically(path, content)
        note(f"wrote {path}")
    if options.skeleton:
        click.echo(check.skeleton, nl=False)
    return bool(contents) or options.skeleton


def _select_autograder_arguments(arguments: Sequence[str]) -> tuple[list[str], dict[str, bytes]]:
    """Return the arguments that an autograder needs, and the files to which they refer."""
    selected: list[str] = []
    files: dict[str, bytes] = {}
    rest = iter(arguments[arguments.index("check") + 2 :])
    for argument in rest:
        flag, _, value = argument.partition("=")
        if flag in _VALUE_OPTIONS:
            if not value:
                next(rest, None)
        elif flag not in _SWITCHES:
            path = Path(argument)
            if not argument.startswith("-") and path.is_file():
                files[f"files/{path.name}"] = path.read_bytes()
                argument = f"files/{path.name}"  # noqa: PLW2901
            selected.append(argument)
    return selected, files


def _check_submissions(
    check: Check, paths: Sequence[Path], limits: Limits, options: CheckOptions
) -> None:
    """Check all submissions, write the result files and print the results."""
    for_gradescope = (options.gradescope or "").endswith(".json")  # a single submission
    if for_gradescope:
        files = _find_single_submission(check, paths, options)
        if not files:
            return
    else:
        files = find_submissions(paths, check.endings, check.name)
    folder = next((path for path in paths if path.is_dir()), None)
    if folder and not for_gradescope:
        name = folder.resolve().name
        options = replace(
            options,
            csv=options.csv or f"{name}.csv",
            page=options.page or f"{name}.html",
            journal=options.journal or f"{name}.journal",
        )
    journal = ResultJournal(Path(options.journal) if options.journal else None, fresh=options.fresh)
    _check_result_paths(options, set(journal.written_files), for_gradescope)
    students = read_roster(options.students) if options.students else []
    with progress_bar("checking", len(files) > 1) as on_result:
        batch = check_all(
            check, files, limits, jobs=options.jobs, journal=journal, on_result=on_result,
            students=students,
        )  # fmt: skip
    title = f"{check.name}: {folder.resolve().name if folder else 'submissions'}"
    written = _write_result_files(batch, title, options, students)
    own_files = {str(Path(path).resolve()) for path in written}
    journal.written_files = sorted(own_files | {*journal.written_files})
    journal.save()
    shown = [result.at(options.feedback) for result in batch.results]
    _print_batch(batch, shown, options, one=len(files) == 1)
    for path in written:
        note(f"wrote {path}")
    if batch.missing:
        note(f"checked {len(shown)} of {pluralize(len(files), 'submission')}")
        if options.journal:
            note("repeat the command to continue")
        raise KeyboardInterrupt


def _find_single_submission(
    check: Check, paths: Sequence[Path], options: CheckOptions
) -> dict[str, Path]:
    """Return the only submission; for Gradescope, write errors to the result file.

    Returns:
        The path of the submission keyed by its name; empty if there is no submission, as the
        result file then says.

    Raises:
        UsageError: there are several submissions.
    """
    target = str(options.gradescope)
    check_outputs(options.force, target)

    def write_failure(text: str) -> None:
        """Write a failed result with an error message to the result file."""
        failure = Failure("missing", text)
        result = create_failed_result(check.name, "", check.parts, failure)
        _write_gradescope(target, [result])

    try:
        files = find_submissions(paths, check.endings, check.name)
    except UsageError as error:
        if not all(path.exists() for path in paths):
            raise
        write_failure(error.message)
        return {}
    matches = {name: path for name, path in files.items() if remove_ending(name) == check.name}
    files = matches if len(matches) == 1 else files
    if len(files) > 1:
        expected = f"{check.name}{check.endings[0]}"
        write_failure(f"found {join_names(files)}: submit one file, or name one of them {expected}")
        raise UsageError(
            f"{target} can contain only one result",
            hint="pass a folder to --gradescope for several submissions",
        )
    return files


def _check_result_paths(options: CheckOptions, own_files: set[str], for_gradescope: bool) -> None:
    """Refuse to overwrite files, except for files that an earlier run of the check wrote."""
    if options.fresh:
        check_outputs(options.force, options.journal)
    paths = [path for path in (options.csv, options.page, options.junit) if path]
    check_outputs(
        options.force, *(path for path in paths if str(Path(path).resolve()) not in own_files)
    )
    folder = options.gradescope
    if folder and not for_gradescope and str(Path(folder).resolve()) not in own_files:
        check_outputs(options.force, folder=folder)


def _write_result_files(
    batch: Batch, title: str, options: CheckOptions, students: Sequence[Student]
) -> list[str]:
    """Write the requested result files, and return their paths.

    Table and page are for the instructor and contain all details; JUnit and Gradescope show what
    ``--feedback`` allows.
    """
    results = batch.results
    shown = [result.at(options.feedback) for result in results]
    contents: dict[str, str] = {}
    if options.csv:
        columns = _select_class_list_columns(students, results)
        contents[options.csv] = format_csv(results, batch.same, columns)
    if options.page:
        from cgprimer.course.checks.class_page import render_class_page

        contents[options.page] = render_class_page(results, title, batch.same)
    if options.junit:
        contents[options.junit] = format_junit_xml(shown)
    for path, text in contents.items():
        write_atomically(path, text)
    if options.gradescope:
        _write_gradescope(options.gradescope, shown)
    return [*contents, *([options.gradescope] if options.gradescope else [])]


def _write_gradescope(path: str, results: Sequence[Result]) -> None:
    """Write results.json for one submission, or a folder with one file per submission."""
    if path.endswith(".json"):
        for result in results:
            write_atomically(path, format_json(convert_to_gradescope(result)))
        return
    Path(path).mkdir(exist_ok=True)
    several = list(chain(*find_repeated_submissions(r.submission for r in results).values()))
    for result in results:
        name = Path(remove_ending(result.submission)).name
        if result.submission in several:  # a file for each
            name = result.submission.replace(os.sep, "_")
        write_atomically(Path(path, f"{name}.json"), format_json(convert_to_gradescope(result)))


def _select_class_list_columns(
    students: Sequence[Student], results: Sequence[Result]
) -> dict[str, dict[str, str]]:
    """Return the class-list columns for each submission; note students without a submission."""
    names = {r.submission: Path(remove_ending(r.submission)).name for r in results}
    students_by_name = students_by_submission(students, names)
    if students and (unknown := [name for name in names if name not in students_by_name]):
        note(f"note: the class list does not contain {join_names(unknown, 8)}")
    present = {student.key for student in students_by_name.values()}
    if absent := [student.name for student in students if student.key not in present]:
        note(f"note: no submission from {join_names(absent, 8)}")
    empty = {heading: "" for student in students[:1] for heading, _ in student.columns}
    return {
        name: dict(students_by_name[name].columns) if name in students_by_name else empty
        for name in names
    }


def _print_batch(batch: Batch, results: Sequence[Result], options: CheckOptions, one: bool) -> None:
    """Print a single result in full, or several results as a table."""
    if options.as_json:
        entries = [result.to_dict() for result in results]
        echo_json(entries[0] if one and entries else entries)
        return
    if one:
        for result in results:
            click.echo(result.only_wrong() if options.only_wrong else result)
        return
    if options.only_wrong:
        results = [r for r in results if r.points < r.possible or r.failure]
    from cgprimer.analysis.text_tables import table

    rows = [
        [r.submission, f"{r.points:g}", f"{r.possible:g}", ", ".join(r.mistakes)] for r in results
    ]
    click.echo(table(["submission", "points", "of", "mistakes"], rows, left=(0, 3)))
    for mistake, who in group_by_mistake(results).items():
        click.echo(f"{len(who)} x {mistake}")
    for result in batch.results:
        if result.failure and result.failure.kind == "sheet":
            note(f"note: {result.submission}: {result.failure.message}")
    for name, earlier in batch.same.items():
        note(f"note: {name} and {earlier} have identical contents")
    for student, repeated in find_repeated_submissions(
        result.submission for result in results
    ).items():
        note(f"note: {student} has {len(repeated)} submissions: {join_names(repeated)}")
    if batch.reused:
        note(f"note: reused {pluralize(batch.reused, 'result')} from the journal")
