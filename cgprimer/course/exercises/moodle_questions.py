"""Quiz questions as a Moodle XML file, which Moodle imports into its question bank.

Each problem is a question of the type *Embedded answers (Cloze)*: its table contains a field for
each blank. Problems of one kind are one category, from which Moodle selects random questions.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape

from cgprimer.course.checks.sheets.sheet_problems import Sheet
from cgprimer.course.exercises.quiz_questions import (
    ChoiceField,
    Field,
    NumberField,
    QuizQuestion,
    clean_title,
    collect_pools,
)
from cgprimer.support.templates import Markup, render_template

_SPECIAL = re.compile(r"[^A-Za-z0-9 .,:;()+*_-]")  # includes the letters of other alphabets
_PICTURE = "graph.svg"


def format_moodle(sheets: Sequence[Sheet]) -> str:
    """Format the problems of all sheets as one Moodle XML file, with a category for each kind."""
    title = clean_title(sheets).replace("/", "//")  # a single slash separates categories
    return render_template(
        "course/exercises/moodle_questions.xml",
        pools=[
            {
                "category": f"$course$/top/{title}/{pool.kind}",
                "questions": map(_describe_question, pool.questions),
            }
            for pool in collect_pools(sheets)
        ],
    )


def _describe_question(question: QuizQuestion) -> dict[str, str]:
    """Return the texts of a question in a Moodle XML file."""
    return {
        "name": question.name,
        "text": question.render(_format_field, f"@@PLUGINFILE@@/{_PICTURE}"),
        "solution": question.render_solution(),
        "file": _PICTURE,
        "picture": b64encode(question.draw_picture()).decode(),
    }


def _format_field(field: Field) -> Markup:
    """Format a field in the notation of Cloze questions, such as ``{1:NUMERICAL:=3:0.01}``."""
    if isinstance(field, NumberField):
        kind, alternatives = "NUMERICAL", _list_numbers(field)
    else:
        kind = "MULTIRESPONSE_H" if field.multiple else "MULTICHOICE"
        alternatives = _list_options(field)
    return Markup(f"{{{field.weight}:{kind}:{'~'.join(alternatives)}}}")


def _list_numbers(field: NumberField) -> Iterable[str]:
    """Yield the correct number and the predicted wrong numbers, with tolerance and feedback."""
    yield f"={field.value}:{field.tolerance:.6g}"
    for number in field.predicted:
        credit = f"%{100 * number.fraction:g}%" if number.fraction else ""
        yield f"{credit}{number.value}:{number.tolerance:.6g}#{escape_cloze(number.message)}"


def _list_options(field: ChoiceField) -> Iterable[str]:
    """Yield the options; if several are correct, a wrong one cancels all points."""
    wrong = "%-100%" if field.multiple else ""
    for option in field.options:
        yield f"{'=' if option in field.correct else wrong}{escape_cloze(option)}"


def escape_cloze(text: str) -> str:
    """Escape a string so that Moodle shows it as written in the feedback or option of a field.

    Moodle decodes the character references of a field once, and then shows the result as HTML.

    >>> escape_cloze("f'*g"), escape_cloze("a~b}")
    ('f&#38;&#35;x27;*g', 'a&#126;b&#125;')
    """
    return _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", escape(text))
