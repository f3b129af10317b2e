"""Results as CSV, JUnit XML and Gradescope's JSON."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any
from unicodedata import normalize
from xml.etree import ElementTree as xml

from cgprimer.course.checks.check_results import Part, Result, readable

# --- one row for each ----------------------------------------------------------------------------


def csv_text(
    results: Sequence[Result],
    same: Mapping[str, str] | None = None,
    roster: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """Return a table for spreadsheets: points of every part, the mistakes, and failures.

    Texts that a spreadsheet would take for a formula begin with an apostrophe.

    Args:
        results: a row each.
        same: for a submission an earlier one that is equal.
        roster: for a submission the student's columns in the class list.
    """
    roster = roster or {}
    columns = list(dict.fromkeys(heading for own in roster.values() for heading in own))
    problems = list(dict.fromkeys(name for result in results for name in result.subtotals))
    parts = list(dict.fromkeys(part.name for result in results for part in result.parts))
    parts = [name for name in parts if name not in problems]
    file = io.StringIO()
    rows = csv.writer(file, lineterminator="\n")
    head = ["submission", "points", "possible", *parts, "mistakes", "failure", "seconds", "same as"]
    head += ["percent", *problems, *columns]  # behind those that earlier versions wrote
    rows.writerow(map(_cell, map(readable, head)))
    for result in results:
        points = {part.name: f"{part.points:g}" for part in result.parts}
        subtotals = {name: f"{reached:g}" for name, (reached, _) in result.subtotals.items()}
        own = roster.get(result.submission, {})
        row = [result.submission, f"{result.points:g}", f"{result.possible:g}"]
        row += [points.get(name, "") for name in parts]
        row += ["; ".join(result.mistakes)]
        row += [str(result.failure).splitlines()[0] if result.failure else ""]
        row += [f"{result.seconds:.2f}", (same or {}).get(result.submission, "")]
        row += [f"{result.percent:.1f}", *(subtotals.get(name, "") for name in problems)]
        row += [own.get(heading, "") for heading in columns]
        rows.writerow(map(_cell, map(readable, row)))
    return file.getvalue()


def _cell(text: str) -> str:
    number = re.fullmatch(r"-?\d+(\.\d+)?(e[-+]\d+)?", text)
    first = normalize("NFKC", text.lstrip()[:1])  # some spreadsheets read full-width signs, too
    formula = first in ("=", "+", "-", "@") or text[:1] in ("\t", "\r", "\n")
    return f"'{text}" if formula and not number else text


def junit_xml(results: Sequence[Result]) -> str:
    """JUnit's XML, which test servers read: a suite for each submission, a case for each part.

    A part that was not run is an error, one without all its points a failure.
    Source: the schema of Jenkins' JUnit plugin, ``junit-10.xsd``.
    """
    root = xml.Element("testsuites", name="cgprimer check")
    for result in results:
        name = readable(result.submission)
        suite = xml.SubElement(root, "testsuite", name=name)
        suite.attrib |= {"skipped": "0", "time": f"{result.seconds:.3f}"}
        for part in result.parts:
            named = {"name": readable(part.name), "classname": name, "time": "0"}
            case = xml.SubElement(suite, "testcase", named)
            if _failed(part):
                kind = "error" if part.verdict == "not run" else "failure"
                text = readable(str((kind == "error" and result.failure) or part))
                head = f"{part.points:g} of {part.possible:g} points"
                given = {"message": f"{head}: {text.splitlines()[0]}"}
                given["type"] = readable(part.mistake or part.verdict)
                xml.SubElement(case, kind, given).text = text
        if result.output:
            xml.SubElement(suite, "system-out").text = readable(result.output)
    counted = {"tests": "testcase", "failures": "failure", "errors": "error"}
    for element in (root, *root):
        element.attrib |= {n: str(len([*element.iter(tag)])) for n, tag in counted.items()}
    xml.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{xml.tostring(root, encoding="unicode")}\n'


def _failed(part: Part) -> bool:
    return part.points < part.possible or part.verdict in ("wrong", "not run")


def gradescope(result: Result) -> dict[str, Any]:
    """What Gradescope reads from ``results.json``.

    Students see the tests; ``stdout_visibility`` keeps from them what the grader itself prints,
    and ``extra_data`` is for instructors. Source: Gradescope's "Autograder Specifications",
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
            "status": "failed" if _failed(part) else "passed",
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
