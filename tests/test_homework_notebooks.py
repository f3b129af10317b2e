"""The notebooks under examples/notebooks run, and their checks fail without solutions."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples" / "notebooks").glob("*.ipynb"))
HOMEWORK = [path for path in NOTEBOOKS if path.stem.startswith("homework")]
SOLUTION, HIDDEN = (
    re.compile(rf"^( *)### BEGIN {part}\n.*?^ *### END {part}\n?", re.DOTALL | re.MULTILINE)
    for part in ("SOLUTION", "HIDDEN TESTS")
)


each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
each_homework = pytest.mark.parametrize("path", HOMEWORK, ids=lambda path: path.stem)


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


def nbgrader_metadata(cell: dict[str, Any]) -> dict[str, Any]:
    return cell["metadata"].get("nbgrader", {})  # type: ignore[no-any-return]


def text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"]) + "\n"


def without_solutions(cell: dict[str, Any]) -> str:
    """Return what nbgrader's ClearSolutions and ClearHiddenTests leave of a cell."""
    stub = r"\1# YOUR CODE HERE\n\1raise NotImplementedError()\n"
    if cell["cell_type"] == "markdown":
        stub = "YOUR ANSWER HERE\n"
    return HIDDEN.sub("", SOLUTION.sub(stub, text(cell)))


def runs(sources: list[tuple[dict[str, Any], str]]) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield each cell of code and its exception, as Jupyter would run them."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell, source in sources:
        if cell["cell_type"] == "code":
            try:
                exec(compile(source, cell["id"], "exec"), names)  # noqa: S102
                ended = None
            except Exception as error:
                ended = error
            plt.close("all")
            yield cell, ended


def first_failure(sources: list[tuple[dict[str, Any], str]]) -> tuple[dict[str, Any], Any]:
    """Return the first cell that ends with an exception, and the exception."""
    return next((cell, error) for cell, error in runs(sources) if error is not None)


@each_notebook
def test_cells_have_valid_nbgrader_metadata_and_no_outputs(path: Path) -> None:
    found = cells(path)
    assert len({cell["id"] for cell in found}) == len(found)
    for cell in found:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
        own, source = nbgrader_metadata(cell), text(cell)
        if not own:
            assert path not in HOMEWORK
            continue
        assert own["schema_version"] == 3
        assert own["grade_id"] == cell["id"]
        assert own["task"] is False
        assert own["solution"] is bool(SOLUTION.search(source)), cell["id"]
        assert own["locked"] is not own["solution"]
        assert ("points" in own) is own["grade"]
        assert not HIDDEN.search(source) or (own["grade"] and not own["solution"])
        assert source.count("### BEGIN") == source.count("### END")
    points = sum(nbgrader_metadata(cell).get("points", 0) for cell in found)
    assert path not in HOMEWORK or points >= 15


@pytest.mark.slow
@each_notebook
def test_notebooks_with_solutions_run(path: Path) -> None:
    for cell, error in runs([(cell, text(cell)) for cell in cells(path)]):
        assert error is None, cell["id"]


@pytest.mark.slow
@each_notebook
def test_notebooks_run_in_a_kernel(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="the extra 'notebook' has it")
    nbclient = pytest.importorskip("nbclient", reason="the extra 'notebook' has it")
    pytest.importorskip("ipykernel", reason="the extra 'notebook' has it")
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    shown = {cell["id"] for cell in book.cells if any("data" in o for o in cell.get("outputs", []))}
    pictures = {"gradient-picture", "network-picture", "compare-run", "adjoints"}
    assert shown & pictures, shown


@each_homework
def test_first_failure_without_solutions_is_a_check(path: Path) -> None:
    given = [(cell, without_solutions(cell)) for cell in cells(path)]
    assert not any("SOLUTION" in source or "HIDDEN" in source for _, source in given)
    cell, error = first_failure(given)
    assert nbgrader_metadata(cell)["grade"], (cell["id"], error)
    assert type(error) is AssertionError
    assert re.search(r"not written yet|^0 of \d+ points$", str(error))
    (*_, (frame, _)) = traceback.walk_tb(error.__traceback__)
    assert "cgprimer" not in frame.f_code.co_filename, "it ends in a cell, not in ours"


@pytest.mark.slow
@each_homework
def test_every_check_fails_without_solutions(path: Path) -> None:
    for cell, error in runs([(cell, without_solutions(cell)) for cell in cells(path)]):
        if nbgrader_metadata(cell)["grade"]:
            assert type(error) is AssertionError, (cell["id"], error)
        else:
            assert error is None or type(error) is NotImplementedError, (cell["id"], error)


@pytest.mark.parametrize(
    ("stem", "right", "wrong", "check", "said"),
    [
        ("homework_2", "parent.grad +=", "parent.grad =", "sweep-check", "= instead of +="),
        ("homework_2", "for value in order:\n        value.grad = 0.0", "pass", "sweep-check",
         "the adjoint 54.0"),
        ("homework_3", "self.velocity.get(k, 0.0) + gradient\n            parameters[k] -=",
         "self.velocity.get(k, 0.0) + gradient\n            parameters[k] +=", "momentum-check",
         "sign"),
    ],
)  # fmt: skip
def test_check_finds_a_mistake(
    stem: str, right: str, wrong: str, check: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = next(p for p in HOMEWORK if p.stem.startswith(stem))
    planted = [(c, text(c)) for c in cells(path) if not c["id"].endswith("-picture")]
    assert any(right in s for _, s in planted)
    cell, error = first_failure([(c, s.replace(right, wrong)) for c, s in planted])
    assert cell["id"] == check, error
    assert type(error) is AssertionError
    assert said in capsys.readouterr().out + str(error)
