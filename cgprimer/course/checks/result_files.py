"""Results as CSV, JUnit XML and Gradescope's JSON."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any
from unicodedata import normalize
from xml.etree import ElementTree as xml

from cgprimer.course.checks.check_results import Part, Result, sanitize


def format_csv(
    results: Sequence[Result],
    same: Mapping[str, str] | None = None,
    roster: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """Format results as CSV for spreadsheets, one row per submission.

    The columns are the points of every part, the mistakes and the failures. A cell that a
    spreadsheet would interpret as a formula begins with an apostrophe.

    Args:
        results: the results.
        same: an earlier identical submission, keyed by submission.
        roster: the student's row of the class list, keyed by submission.
    """
    roster = roster or {}
    columns = list(dict.fromkeys(heading for entry in roster.values() for heading in entry))
    problems = list(dict.fromkeys(name for result in results for name in result.subtotals))
    parts = list(dict.fromkeys(part.name for result in results for part in result.parts))
    parts = [name for name in parts if name not in problems]
    file = io.StringIO()
    rows = csv.writer(file, lineterminator="\n")
    head = ["submission", "points", "possible", *parts, "mistakes", "failure", "seconds", "same as"]
    head += ["percent", *problems, *columns]  # after the columns of earlier versions
    rows.writerow(map(_escape_formula, map(sanitize, head)))
    for result in results:
        points = {part.name: f"{part.points:g}" for part in result.parts}
        subtotals = {name: f"{reached:g}" for name, (reached, _) in result.subtotals.items()}
        entry = roster.get(result.submission, {})
        row = [result.submission, f"{result.points:g}", f"{result.possible:g}"]
        row += [points.get(name, "") for name in parts]
        row += ["; ".join(result.mistakes)]
        row += [str(result.failure).splitlines()[0] if result.failure else ""]
        row += [f"{result.seconds:.2f}", (same or {}).get(result.submission, "")]
        row += [f"{result.percent:.1f}", *(subtotals.get(name, "") for name in problems)]
        row += [entry.get(heading, "") for heading in columns]
        rows.writerow(map(_escape_formula, map(sanitize, row)))
    return file.getvalue()


def _escape_formula(text: str) -> str:
    """Prefix a cell with an apostrophe if a spreadsheet would interpret the cell as a formula."""
    number = re.fullmatch(r"-?\d+(\.\d+)?(e[-+]\d+)?", text)
    first = normalize(
        "NFKC", text.lstrip()[:1]
    )  # some spreadsheets accept full-width signs as well
    formula = first in ("=", "+", "-", "@") or text[:1] in ("\t", "\r", "\n")
    return f"'{text}" if formula and not number else text


def format_junit_xml(results: Sequence[Result]) -> str:
    """Format results as JUnit XML, which continuous integration servers read.

    Each submission is a suite and each part a case. A part that was not run is an error, and a part
    without all its points is a failure.
    Source: the schema of Jenkins' JUnit plugin, ``junit-10.xsd``.
    """
    root = xml.Element("testsuites", name="cgprimer check")
    for result in results:
        name = sanitize(result.submission)
        suite = xml.SubElement(root, "testsuite", name=name)
        suite.attrib |= {"skipped": "0", "time": f"{result.seconds:.3f}"}
        for part in result.parts:
            attributes = {"name": sanitize(part.name), "classname": name, "time": "0"}
            case = xml.SubElement(suite, "testcase", attributes)
            if _is_failed(part):
                kind = "error" if part.verdict == "not run" else "failure"
                text = sanitize(str((kind == "error" and result.failure) or part))
                head = f"{part.points:g} of {part.possible:g} points"
                attributes = {"message": f"{head}: {text.splitlines()[0]}"}
                attributes["type"] = sanitize(part.mistake or part.verdict)
                xml.SubElement(case, kind, attributes).text = text
        if result.output:
            xml.SubElement(suite, "system-out").text = sanitize(result.output)
    counted = {"tests": "testcase", "failures": "failure", "errors": "error"}
    for element in (root, *root):
        element.attrib |= {n: str(len([*element.iter(tag)])) for n, tag in counted.items()}
    xml.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{xml.tostring(root, encoding="unicode")}\n'


def _is_failed(part: Part) -> bool:
    """Return whether a part did not earn full points, is wrong or was not run."""
    return part.points < part.possible or part.verdict in ("wrong", "not run")


def convert_to_gradescope(result: Result) -> dict[str, Any]:
    """Convert a result to the format of Gradescope's ``results.json``.

    Students see the tests. ``stdout_visibility`` hides the grader's own output from them, and only
    instructors see ``extra_data``. Source: Gradescope's "Autograder Specifications",
    output format.
    """
    about = [str(result.failure)] if result.failure else []
    if result.output:
        about.append(f"Your program printed:\n{result.output}")
    tests = [
        {
            "name": part.name,
            "name_format": "text",
            "number": str(number),
            "score": part.points,
            "max_score": part.possible,
            "status": "failed" if _is_failed(part) else "passed",
            "output": str(part),
            "output_format": "text",
            "visibility": "visible",
        }
        for number, part in enumerate(result.parts, 1)
    ]
    return {
        "score": result.points,
        "execution_time": round(result.seconds, 2),
        "output": "\n\n".join(about),
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {"mistakes": list(result.mistakes), "notes": list(result.notes)},
    }
