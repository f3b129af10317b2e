"""The files of the sheets of a class, in a folder for students and a folder for the grader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from cgprimer.course.checks.sheets.answer_forms import format_csv_form
from cgprimer.course.checks.sheets.sheet_problems import Sheet, format_sheets
from cgprimer.course.exercises import documents
from cgprimer.course.exercises.exercise_sheets import Exercise
from cgprimer.course.exercises.roster import Student
from cgprimer.errors import UsageError
from cgprimer.support.files import check_writable, write_atomically
from cgprimer.support.validation import check_choice

FORMATS = {"markdown": "md", "latex": "tex", "pdf": "pdf", "html": "html", "notebook": "ipynb"}
#: files with the questions of all sheets and their answers, for the question banks of courses
QUESTION_FILES = {"moodle": "moodle.xml", "qti": "qti.zip"}
STUDENTS, GRADER = "students", "grader"  #: folders: for students, and for the grader only
EVERYBODY = [Student("", "", "sheet")]  #: the roster of one sheet for all students


def write_exercises(
    sheets: Iterable[tuple[Student, Exercise]],
    folder: str | Path,
    *,
    formats: Sequence[str] = ("markdown",),
) -> int:
    """Write sheets and forms to ``students``, and solutions and ``sheets.json`` to ``grader``.

    The formats of course systems have answers: they are one file each, in ``grader``. If no other
    format is selected, the folder ``students`` is not created.

    Args:
        sheets: the students and their sheets.
        folder: the parent of both folders.
        formats: the formats, of :data:`FORMATS` and :data:`QUESTION_FILES`.

    Returns:
        The number of sheets.

    Raises:
        UsageError: a folder is not writable, or a format is unknown.
    """
    for name in formats:
        check_choice("format of a sheet", name, (*FORMATS, *QUESTION_FILES))
    if "pdf" in formats:
        from cgprimer.course.exercises.printed_sheets import check_pdflatex

        check_pdflatex()
    root, all_sheets = Path(folder), list[Sheet]()
    sheet_formats = [name for name in formats if name in FORMATS]
    for student, sheet in sheets:
        if not all_sheets:  # no folders are created if the first sheet fails
            _create_folders(root, (STUDENTS, GRADER) if sheet_formats else (GRADER,))
        all_sheets.append(replace(sheet, file=student.file if student.name else ""))
        if sheet_formats:
            write_atomically(root / STUDENTS / f"{student.file}.csv", format_csv_form(sheet))
        for name in sheet_formats:
            for part, ending in ((STUDENTS, ""), (GRADER, "-solution")):
                path = root / part / f"{student.file}{ending}.{FORMATS[name]}"
                write_atomically(path, _render_sheet(sheet, name, part == GRADER, path))
    for name in QUESTION_FILES.keys() & {*formats}:
        write_atomically(root / GRADER / QUESTION_FILES[name], _format_questions(all_sheets, name))
    write_atomically(root / GRADER / "sheets.json", format_sheets(all_sheets))
    return len(all_sheets)


def _create_folders(root: Path, parts: Iterable[str]) -> None:
    """Create folders of the given names, and check that they are writable."""
    for part in parts:
        try:
            (root / part).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot write {root / part}: {error.strerror or error}") from None
        check_writable(root / part / "sheet")


def _format_questions(sheets: Sequence[Sheet], name: str) -> str | bytes:
    """Format the questions of all sheets, with their answers, for a course system."""
    from cgprimer.course.exercises.moodle_questions import format_moodle
    from cgprimer.course.exercises.qti_questions import format_qti

    return format_moodle(sheets) if name == "moodle" else format_qti(sheets)


def _render_sheet(sheet: Exercise, name: str, solution: bool, path: Path) -> str | bytes:
    """Render a sheet in the format of ``path``; write the pictures of Markdown next to it."""
    from cgprimer.course.exercises import printed_sheets

    if name == "pdf":
        return printed_sheets.sheet_pdf(sheet, solution=solution)
    if name != "markdown":
        return str(getattr(sheet, f"to_{name}")(solution=solution))

    def write_picture(section: documents.Section) -> str:
        """Write the picture of a problem to a file, and return the Markdown that includes it."""
        assert section.picture
        file = path.with_name(f"{path.stem}-{section.number}.svg")
        write_atomically(file, printed_sheets.draw_svg_element(section.picture))
        return f"![the graph]({file.name})"

    return documents.render_markdown(sheet, solution=solution, format_picture=write_picture)
