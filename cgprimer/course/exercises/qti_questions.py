"""Quiz questions as a QTI 1.2 package for Canvas: a ZIP file with a quiz and its pictures.

Canvas has no question with several fields for numbers. A problem is therefore a text with numbered
cells, followed by one question for each number. Several problems of one kind are a question group,
from which Canvas selects one at random; each of them asks only for the last number of its table.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from cgprimer.course.checks.sheets.sheet_problems import Blank, Sheet
from cgprimer.course.exercises.quiz_questions import (
    ChoiceField,
    Field,
    NumberField,
    QuestionPool,
    QuizQuestion,
    clean_title,
    collect_pools,
)
from cgprimer.support.number_format import format_number
from cgprimer.support.templates import Markup, render_template

_PICTURES = "images"
_ROOT = "%24IMS-CC-FILEBASE%24"  # Canvas replaces it by the address of the package's files


@dataclass(frozen=True)
class _Item:
    """A question of a package, as its template needs it.

    Attributes:
        identifier: the identifier, different for each question.
        title: the title in the question bank.
        kind: Canvas's type of the question.
        points: the points.
        text: the question as HTML.
        field: the field, or None for a text without a question.
        limits: the smallest and the largest correct number.
        solution: the feedback with the solution, as HTML.
        mistakes: the feedback on wrong answers, as HTML.
    """

    identifier: str
    title: str
    kind: str
    points: str
    text: str
    field: Field | None = None
    limits: tuple[str, str] = ("", "")
    solution: str = ""
    mistakes: str = ""


@dataclass(frozen=True)
class _Group:
    """Questions in order, or a pool from which Canvas selects one.

    Attributes:
        identifier: the identifier of the pool; empty for questions in order.
        title: the title of the pool.
        points: the points of the selected question.
        items: the questions.
    """

    identifier: str
    title: str
    points: str
    items: list[_Item]


def format_qti(sheets: Sequence[Sheet]) -> bytes:
    """Format the problems of all sheets as a QTI package, a ZIP file that Canvas imports."""
    title, pools = clean_title(sheets), collect_pools(sheets)
    groups = [_build_group(pool) for pool in pools]
    questions = [question for pool in pools for question in pool.questions]
    pictures = {
        _name_picture(question): question.draw_picture()
        for question in questions
        if question.section.picture
    }
    content = " ".join([title, *(question.identifier for question in questions)])
    identifier = f"cgprimer_{sha256(content.encode()).hexdigest()[:16]}"
    total = sum(
        float(points)
        for group in groups
        for points in ([group.points] if group.identifier else [i.points for i in group.items])
    )
    values = {
        "identifier": identifier,
        "title": title,
        "groups": groups,
        "pictures": sorted(pictures),
        "points": format_number(total),
    }
    files = {
        "imsmanifest.xml": "course/exercises/qti_manifest.xml",
        f"{identifier}/assessment_meta.xml": "course/exercises/qti_settings.xml",
        f"{identifier}/{identifier}.xml": "course/exercises/qti_assessment.xml",
    }
    texts = {name: render_template(path, **values).encode() for name, path in files.items()}
    return _build_archive({**texts, **pictures})


def _build_archive(files: dict[str, bytes]) -> bytes:
    """Build a ZIP archive that depends only on the content of its files."""
    archive = io.BytesIO()
    with ZipFile(archive, "w") as zip_file:
        for name, content in files.items():
            entry = ZipInfo(name)  # without a date, so that equal seeds give equal archives
            entry.compress_type = ZIP_DEFLATED
            zip_file.writestr(entry, content)
    return archive.getvalue()


def _name_picture(question: QuizQuestion) -> str:
    """Return the path of a question's picture in the package."""
    return f"{_PICTURES}/{question.identifier}.svg"


def _build_group(pool: QuestionPool) -> _Group:
    """Build the questions of one problem, or a pool with a question for each of several."""
    if len(pool.questions) == 1:
        (question,) = pool.questions
        return _Group("", "", "", [*_build_items(question)])
    points = str(pool.questions[0].section.problem.asked.get("points") or 1)
    items = [_build_pool_item(question, points) for question in pool.questions]
    identifier = sha256(" ".join(item.identifier for item in items).encode()).hexdigest()[:16]
    return _Group(f"group_{identifier}", pool.kind, points, items)


def _build_items(question: QuizQuestion) -> Iterator[_Item]:
    """Yield the text of a problem and one question for each field."""
    identifier = f"q_{question.identifier}"
    sentence = "Answer the questions below; the numbers in parentheses mark the cells."
    text = question.render(
        lambda field: Markup(f"({field.number})"), _locate_picture(question), paragraphs=[sentence]
    )
    yield _Item(f"{identifier}_0", question.name, "text_only_question", "0", text)
    fields = question.list_fields()
    total = sum(field.weight for _, field in fields)
    problem = question.section.problem
    points = problem.asked.get("points") or sum(problem.points_of_blanks(len(question.fields)))
    for blank, field in fields:
        prompt = f"({field.number}) {_describe_cell(blank, field)}"
        text = render_template("course/exercises/qti_prompt.html", prompt=prompt)
        share = format_number(points * field.weight / total, 6)
        yield _build_item(question, field, f"{identifier}_{field.number}", share, text)


def _build_pool_item(question: QuizQuestion, points: str) -> _Item:
    """Build a question that shows a problem and asks only for its last number."""
    fields = question.list_fields()
    numbers = [pair for pair in fields if isinstance(pair[1], NumberField)] or fields
    blank, last = numbers[-1]

    def mark_field(field: Field) -> Markup:
        """Mark the cell of the question; all other cells are for the student's notes."""
        return Markup("<strong>?</strong>" if field is last else "…")

    sentence = "Complete the table on paper, and answer only the marked cell:"
    prompt = f"{sentence} {_describe_cell(blank, last)}."
    text = question.render(mark_field, _locate_picture(question), paragraphs=[prompt])
    return _build_item(question, last, f"q_{question.identifier}", points, text)


def _locate_picture(question: QuizQuestion) -> str:
    """Return the address of a question's picture in HTML."""
    return f"{_ROOT}/{_name_picture(question)}"


def _describe_cell(blank: Blank, field: Field) -> str:
    """Return the position of a field in its table."""
    position = f"{blank.row}, {blank.column}"
    return f"{position}, {field.entry}" if field.entry else position


def _build_item(
    question: QuizQuestion, field: Field, identifier: str, points: str, text: str
) -> _Item:
    """Build the question for one field, with its feedback."""
    solution = question.render_solution()
    if isinstance(field, ChoiceField):
        kind = "multiple_answers_question" if field.multiple else "multiple_choice_question"
        return _Item(identifier, question.name, kind, points, text, field, solution=solution)
    value, tolerance = Decimal(field.value), Decimal(f"{field.tolerance:.6g}")
    limits = f"{value - tolerance:f}", f"{value + tolerance:f}"
    mistakes = ""
    if field.predicted:
        mistakes = render_template("course/exercises/qti_mistakes.html", numbers=field.predicted)
    return _Item(
        identifier, question.name, "numerical_question", points, text, field,
        limits=limits, solution=solution, mistakes=mistakes,
    )  # fmt: skip
