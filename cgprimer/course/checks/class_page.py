"""A page of a class: who made which mistake, and who has how many points.

One file without scripts or anything from outside; all text from outside is escaped. For the
projector (large letters, both ways of light) and for paper (tables that break between rows).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

from cgprimer.course.checks.batch_checks import by_mistake, several_of_one, student_of
from cgprimer.course.checks.check_results import Part, Result, Verdict
from cgprimer.errors import join_names, pluralize

_MARKS: dict[Verdict, str] = {"right": "✓", "wrong": "✗", "suspicious": "?", "not run": "–"}
_STYLE = """
:root { color-scheme: light dark; --line: #999; --faint: #f2f2f2; }
@media (prefers-color-scheme: dark) { :root { --line: #777; --faint: #2a2a2a; } }
body { font: clamp(1rem, 1.5vw, 1.8rem)/1.4 system-ui, sans-serif; margin: 1.5rem auto;
  max-width: 90em; padding: 0 1rem; }
h1 { font-size: 1.6em; } h2 { font-size: 1.25em; margin-top: 1.6em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border-bottom: 1px solid var(--line); padding: .3em .7em; text-align: left;
  vertical-align: top; }
thead th { border-bottom-width: 3px; white-space: nowrap; }
tbody tr:nth-child(even) { background: var(--faint); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tbody th { font-weight: inherit; min-width: 9em; overflow-wrap: anywhere; }
.mark { text-align: center; }
.bar { background: currentColor; display: inline-block; height: .7em; min-width: 2px; }
.names { min-width: 12em; }
pre { font-size: .85em; margin: .3em 0; white-space: pre-wrap; overflow-wrap: anywhere; }
summary { cursor: pointer; }
body:has(#hide:checked) .names { display: none; }
body:has(#wrong:checked) :is(.full, .right) { display: none; }
@media (max-width: 40em) {
  .bars { display: none; } th, td { padding: .3em .4em; }
  tbody th { min-width: 6em; } .names { min-width: 9em; }
}
@media print {
  body { font-size: 10pt; margin: 0; max-width: none; } tr { break-inside: avoid; }
  thead { display: table-header-group; } .scroll { overflow: visible; } label { display: none; }
}
"""


def class_page(results: Sequence[Result], title: str, same: Mapping[str, str] | None = None) -> str:
    """Return the page as HTML.

    >>> "&lt;b&gt;" in class_page([Result("gradient", "<b>.py", ())], "Homework 1")
    True
    """
    mistakes = by_mistake(results)
    lines = [
        _summary(results),
        *(
            f'<p class="names">{escape(f"{student} has {len(own)}: {join_names(own)}.")}</p>'
            for student, own in several_of_one(result.submission for result in results).items()
        ),
        '<p><label><input type="checkbox" id="hide"> without names</label>'
        ' <label><input type="checkbox" id="wrong"> only what is wrong</label></p>',
        "<h2>By mistake</h2>",
        _by_mistake(mistakes) if mistakes else "<p>None.</p>",
        *_by_part(results),
        *_by_student(results, same or {}),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(lines) + "\n</body>\n</html>\n"
    )


def _summary(results: Sequence[Result]) -> str:
    """Return a paragraph with the median and how many have all points."""
    ordered = sorted(results, key=lambda result: result.percent)
    median = ordered[len(ordered) // 2] if ordered else None
    points = (
        f"{median.points:g} of {median.possible:g} points ({_percent(median)})" if median else "–"
    )
    full = sum(result.points >= result.possible for result in results)
    submissions = pluralize(len(results), "submission")
    return f"<p>{submissions}; the median is {points}; {full} have all of them.</p>"


def _percent(result: Result) -> str:
    return f"{result.percent:.0f} %"


def _name(submission: str) -> str:
    """Return a student's name as HTML; names from right to left do not reorder what follows."""
    return f"<bdi>{escape(student_of(submission))}</bdi>"


def _by_mistake(mistakes: Mapping[str, Sequence[str]]) -> str:
    """Return the table of mistakes."""
    width = 8 / max(map(len, mistakes.values()), default=1)
    rows = [
        [
            escape(mistake),
            str(len(who)),
            f'<span class="bar" style="width:{width * len(who):.2f}em"></span>',
            ", ".join(_name(submission) for submission in who),
        ]
        for mistake, who in mistakes.items()
    ]
    columns = [("mistake", ""), ("how many", "number"), ("", "bars"), ("whose", "names")]
    return _table(columns, rows)


def _groups(results: Sequence[Result]) -> list[str]:
    """Return the names of problems, or of parts that belong to none."""
    return list(dict.fromkeys(_group(part) for result in results for part in result.parts))


def _group(part: Part) -> str:
    return part.problem or part.name


def _by_part(results: Sequence[Result]) -> list[str]:
    """Return the verdicts on each part, or on the parts of each problem, and the points."""
    counts = Counter((_group(p), p.verdict) for result in results for p in result.parts)
    reached, possible = Counter[str](), Counter[str]()
    for part in (part for result in results for part in result.parts):
        reached[_group(part)] += part.points  # type: ignore[assignment]
        possible[_group(part)] += part.possible  # type: ignore[assignment]
    rows = [
        [
            escape(name),
            *(str(counts[name, verdict]) for verdict in _MARKS),
            f"{100 * reached[name] / possible[name]:.0f} %" if possible[name] else "–",
        ]
        for name in _groups(results)
    ]
    columns = [("part", ""), *((verdict, "number") for verdict in _MARKS), ("points", "number")]
    return ["<h2>By part</h2>", _table(columns, rows)]


def _by_student(results: Sequence[Result], same: Mapping[str, str]) -> list[str]:
    """Return a table with a row for each submission."""
    groups = _groups(results)
    columns = [("student", ""), ("points", "number"), ("percent", "number")]
    columns += [(name, "mark") for name in groups] + [("mistakes", "")]
    classes = ["full" if r.points >= r.possible and not r.failure else "" for r in results]
    rows = [_row(result, groups, same.get(result.submission, "")) for result in results]
    legend = ", ".join(f"{mark} {verdict}" for verdict, mark in _MARKS.items())
    return [
        '<div class="names">',
        "<h2>By student</h2>",
        f"<p>{legend}</p>",
        _table(columns, rows, classes),
        "</div>",
    ]


def _table(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[str]],
    classes: Sequence[str] = (),
) -> str:
    """Return a table from headings and classes of columns, the HTML of cells, and rows' classes."""
    head = "".join(f'<th scope="col" class="{kind}">{escape(n)}</th>' for n, kind in columns)
    body = ""
    for (first, *more), kind in zip(rows, classes or [""] * len(rows), strict=True):
        kinds = zip(more, columns[1:], strict=True)
        cells = "".join(f'<td class="{kind}">{cell}</td>' for cell, (_, kind) in kinds)
        body += f'\n<tr class="{kind}"><th scope="row">{first}</th>{cells}</tr>'
    return (
        f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}\n</tbody>\n</table></div>"
    )


def _row(result: Result, groups: Sequence[str], same: str) -> list[str]:
    details: list[tuple[str, str]] = [
        (f"{p.name}: {p}", p.verdict) for p in result.parts if p.message
    ]
    details += [(note, "") for note in result.notes if note.startswith("imports")]
    if result.failure:
        details.insert(0, (str(result.failure), ""))
    if same:
        details.insert(0, (f"the same file as {student_of(same)}'s", ""))
    named = escape(", ".join(result.mistakes)) or ("the same file" if same else "")
    lines = "\n".join(
        f'<span class="right">{escape(line)}</span>' if verdict == "right" else escape(line)
        for line, verdict in details
    )
    shown = f"<details><summary>{named or 'details'}</summary><pre>{lines}</pre></details>"
    return [
        _name(result.submission),
        f"{result.points:g} of {result.possible:g}",
        _percent(result),
        *(_mark(result, name) for name in groups),
        shown if details else named,
    ]


def _mark(result: Result, group: str) -> str:
    """Return the mark of a part, or the points of a problem."""
    parts = [part for part in result.parts if _group(part) == group]
    if not parts:
        return ""
    if group in result.subtotals:
        reached, possible = result.subtotals[group]
        kind = "right" if reached >= possible else ""
        return f'<span class="{kind}">{reached:g} of {possible:g}</span>'
    verdict = parts[0].verdict
    kind = "right" if verdict == "right" else ""
    return f'<span class="{kind}" title="{escape(verdict)}">{_MARKS[verdict]}</span>'
