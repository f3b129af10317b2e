"""A page of a class: who made which mistake, and who has how many points.

One file without scripts or anything from outside; all text from outside is escaped. For the
projector (large letters, both ways of light) and for paper (tables that break between rows).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from cgprimer.checking.batch import by_mistake, several_of_one, student_of
from cgprimer.checking.results import Part, Result, Verdict
from cgprimer.errors import listed, plural

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
tbody th { font-weight: inherit; min-width: 9em; }
.mark { text-align: center; }
.bar { background: currentColor; display: inline-block; height: .7em; min-width: 2px; }
.names { min-width: 12em; }
pre { font-size: .85em; margin: .3em 0; white-space: pre-wrap; overflow-wrap: anywhere; }
summary { cursor: pointer; }
body:has(#hide:checked) .names { display: none; }
@media (max-width: 40em) { .bars { display: none; } }
@media print {
  body { font-size: 10pt; margin: 0; max-width: none; } tr { break-inside: avoid; }
  thead { display: table-header-group; } .scroll { overflow: visible; } label { display: none; }
}
"""


def class_page(results: Sequence[Result], title: str, same: dict[str, str] | None = None) -> str:
    """The page as HTML.

    >>> "&lt;b&gt;" in class_page([Result("gradient", "<b>.py", ())], "Homework 1")
    True
    """
    same = same or {}
    points = sorted(result.points for result in results)
    middle = f"{points[len(points) // 2]:g}" if points else "–"
    possible = max((result.possible for result in results), default=0)
    full = sum(result.points >= result.possible for result in results)
    counts = Counter((part.name, part.verdict) for result in results for part in result.parts)
    parts = list(dict.fromkeys(name for name, _ in counts))
    mistakes = by_mistake(results)
    width = 8 / max(map(len, mistakes.values()), default=1)
    lines = [
        f"<p>{plural(len(results), 'submission')}; the middle one has {middle} of {possible:g}"
        f" points; {full} have all of them.</p>",
        *(
            f'<p class="names">{escape(f"{student} has {len(own)}: {listed(own)}.")}</p>'
            for student, own in several_of_one(result.submission for result in results).items()
        ),
        '<p><label><input type="checkbox" id="hide"> without names</label></p>',
        "<h2>By mistake</h2>",
        _table(
            [("mistake", ""), ("how many", "number"), ("", "bars"), ("whose", "names")],
            [
                [
                    escape(mistake),
                    str(len(who)),
                    f'<span class="bar" style="width:{width * len(who):.2f}em"></span>',
                    escape(", ".join(map(student_of, who))),
                ]
                for mistake, who in mistakes.items()
            ],
        )
        if mistakes
        else "<p>None.</p>",
        "<h2>By part</h2>",
        _table(
            [("part", ""), *((verdict, "number") for verdict in _MARKS)],
            [[escape(name), *(str(counts[name, v]) for v in _MARKS)] for name in parts],
        ),
        '<div class="names">',
        "<h2>By student</h2>",
        f"<p>{', '.join(f'{mark} {verdict}' for verdict, mark in _MARKS.items())}</p>",
        _table(
            [("student", ""), ("points", "number")]
            + [(name, "mark") for name in parts]
            + [("mistakes", "")],
            [_row(result, parts, same.get(result.submission, "")) for result in results],
        ),
        "</div>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(lines) + "\n</body>\n</html>\n"
    )


def _table(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]) -> str:
    """A table: of each column its heading and its class, of each row the HTML of its cells."""
    head = "".join(f'<th scope="col" class="{kind}">{escape(n)}</th>' for n, kind in columns)
    body = ""
    for first, *more in rows:
        kinds = zip(more, columns[1:], strict=True)
        cells = "".join(f'<td class="{kind}">{cell}</td>' for cell, (_, kind) in kinds)
        body += f'\n<tr><th scope="row">{first}</th>{cells}</tr>'
    return (
        f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}\n</tbody>\n</table></div>"
    )


def _row(result: Result, parts: Sequence[str], same: str) -> list[str]:
    known = {part.name: part for part in result.parts}
    details = [f"{part.name}: {part}" for part in result.parts if part.message]
    details += [note for note in result.notes if note.startswith("imports")]
    if result.failure:
        details.insert(0, str(result.failure))
    if same:
        details.insert(0, f"the same file as {student_of(same)}'s")
    named = escape(", ".join(result.mistakes)) or ("the same file" if same else "")
    shown = f"<details><summary>{named or 'details'}</summary><pre>{escape(chr(10).join(details))}"
    return [
        escape(student_of(result.submission)),
        f"{result.points:g} of {result.possible:g}",
        *(_mark(known.get(name)) for name in parts),
        f"{shown}</pre></details>" if details else named,
    ]


def _mark(part: Part | None) -> str:
    return f'<span title="{escape(part.verdict)}">{_MARKS[part.verdict]}</span>' if part else ""
