"""A page about the results of a class: the mistakes of each student, and their points.

The page is a single file without scripts. Its letters are large enough for a projector, and its
tables can be printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from cgprimer.course.checks.check_results import Part, Result, Verdict
from cgprimer.course.checks.submission_search import (
    find_repeated_submissions,
    group_by_mistake,
    remove_ending,
)
from cgprimer.errors import join_names, pluralize
from cgprimer.visualization.pages.page_rendering import render_page

_MARKS: dict[Verdict, str] = {"right": "✓", "wrong": "✗", "suspicious": "?", "not run": "–"}
_WIDEST_BAR = 8.0  # em


class MistakeRow(NamedTuple):
    """A row of the mistakes table: a mistake, the students who made it, and its bar width in em."""

    name: str
    students: list[str]
    bar_width: float


class PartRow(NamedTuple):
    """A row of the parts table: the number of submissions per verdict, and the points earned."""

    name: str
    counts: list[int]
    points: str


class Mark(NamedTuple):
    """A cell of the students table: the mark for a part, or the points for a problem."""

    text: str
    is_right: bool
    description: str = ""


class DetailLine(NamedTuple):
    """A line in the details of a submission, such as a message or a failure."""

    text: str
    is_right: bool = False


class StudentRow(NamedTuple):
    """A row of the students table: the points, marks, mistakes and details of one student."""

    name: str
    is_complete: bool
    points: str
    percent: str
    marks: list[Mark | None]
    mistakes: str
    details: list[DetailLine]


def render_class_page(
    results: Sequence[Result], title: str, same: Mapping[str, str] | None = None
) -> str:
    """Render the results of a class as an HTML page.

    Args:
        results: one result per submission.
        title: the title.
        same: an earlier identical submission, keyed by submission.

    >>> "&lt;b&gt;" in render_class_page([Result("gradient", "<b>.py", ())], "Homework 1")
    True
    """
    repeated = find_repeated_submissions(result.submission for result in results)
    groups = list(dict.fromkeys(_get_group_name(p) for result in results for p in result.parts))
    copies = same or {}
    return render_page(
        "course/checks/class_page.html",
        title,
        summary=_summarize_results(results),
        repeated_submissions=[
            f"{student} has {len(submissions)} submissions: {join_names(submissions)}."
            for student, submissions in repeated.items()
        ],
        mistakes=_build_mistake_rows(results),
        marks=_MARKS,
        parts=_build_part_rows(results, groups),
        students=[
            _build_student_row(result, groups, copies.get(result.submission, ""))
            for result in results
        ],
    )


def _summarize_results(results: Sequence[Result]) -> str:
    """Return a sentence with the median, and the numbers of all and of complete submissions."""
    middle = f"{median(result.percent for result in results):.0f} %" if results else "–"
    possible = {result.possible for result in results}
    if len(possible) == 1:  # otherwise, points of different results are not comparable
        points = median(result.points for result in results)
        middle = f"{points:g} of {possible.pop():g} points ({middle})"
    n_complete = sum(r.points >= r.possible and not r.failure for r in results)
    submissions = pluralize(len(results), "submission")
    return f"{submissions}; median: {middle}; {n_complete} with all points."


def _format_percent(result: Result) -> str:
    """Format the percentage of points of a result, such as ``75 %``."""
    return f"{result.percent:.0f} %"


def _get_group_name(part: Part) -> str:
    """Return the problem to which a part belongs, or the name of a part without a problem."""
    return part.problem or part.name


def _build_mistake_rows(results: Sequence[Result]) -> list[MistakeRow]:
    """Return the rows of the mistakes table, one row per mistake."""
    mistakes = group_by_mistake(results)
    unit = _WIDEST_BAR / max(map(len, mistakes.values()), default=1)
    return [
        MistakeRow(name, list(map(remove_ending, submissions)), unit * len(submissions))
        for name, submissions in mistakes.items()
    ]


def _build_part_rows(results: Sequence[Result], groups: Sequence[str]) -> list[PartRow]:
    """Return the rows of the parts table: one per part or, for grouped parts, one per problem."""
    parts = [part for result in results for part in result.parts]
    counts = Counter((_get_group_name(part), part.verdict) for part in parts)
    reached, possible = dict.fromkeys(groups, 0.0), dict.fromkeys(groups, 0.0)
    for part in parts:
        reached[_get_group_name(part)] += part.points
        possible[_get_group_name(part)] += part.possible
    return [
        PartRow(
            name,
            [counts[name, verdict] for verdict in _MARKS],
            f"{100 * reached[name] / possible[name]:.0f} %" if possible[name] else "–",
        )
        for name in groups
    ]


def _build_student_row(result: Result, groups: Sequence[str], original: str) -> StudentRow:
    """Return a row of the students table; ``original`` names an earlier, identical submission."""
    mistakes = ", ".join(result.mistakes) or ("identical file" if original else "")
    return StudentRow(
        remove_ending(result.submission),
        result.points >= result.possible and not result.failure,
        f"{result.points:g} of {result.possible:g}",
        _format_percent(result),
        [_mark_group(result, name) for name in groups],
        mistakes,
        _list_details(result, original),
    )


def _list_details(result: Result, original: str) -> list[DetailLine]:
    """Return the detail lines of a submission: identical file, failure, messages and imports."""
    lines = []
    if original:
        lines.append(DetailLine(f"identical to the file of {remove_ending(original)}"))
    if result.failure:
        lines.append(DetailLine(str(result.failure)))
    lines += [
        DetailLine(f"{part.name}: {part}", part.verdict == "right")
        for part in result.parts
        if part.message
    ]
    return lines + [DetailLine(note) for note in result.notes if note.startswith("imports")]


def _mark_group(result: Result, group: str) -> Mark | None:
    """Return the mark for a part, or the points for a problem; None if the result has neither."""
    parts = [part for part in result.parts if _get_group_name(part) == group]
    if not parts:
        return None
    if group in result.subtotals:
        reached, possible = result.subtotals[group]
        return Mark(f"{reached:g} of {possible:g}", reached >= possible)
    verdict = parts[0].verdict
    return Mark(_MARKS[verdict], verdict == "right", verdict)
