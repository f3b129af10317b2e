"""Wrong use: exit code 2, one readable message on standard error, nothing on standard output."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import cgprimer
from tests.approval import approved, lines_with_values, refused
from tests.cli.cli_tools import LECTURE, bad, good, run

# Command lines, each followed by the values in its message.
REFUSALS = lines_with_values(Path(__file__).with_name("refusals.txt"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with files of most kinds, right and wrong, which no test changes."""
    folder = tmp_path_factory.mktemp("refusals")
    texts = {
        "graph.cg": "xw = k*xa + b; parameter k = 3, b = -1",
        "wrong.cg": "# a comment\nxa = 1\nxw = (2*xa + 1\n",
        "empty.cg": "",
        "text.dot": "my homework",
        "text.html": "my homework",
        "d.csv": "xa,xw\n1,2\n0,1\n",
        "words.csv": "xa,xw\n1,2\n3,oops\n",
        "empty.csv": "name,id\n",
        "sub.py": "def gradient(xa, k): return xa",
        "broken.json": '{"format": "cgprimer-fit"}',
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "binary.cg").write_bytes(bytes(range(256)))
    graph = cgprimer.load(folder / "graph.cg")
    data = cgprimer.make_dataset(graph, samples=10)
    cgprimer.train(graph, data, epochs=0).save(folder / "none.json")
    cgprimer.train(graph, data, epochs=2).save(folder / "run.json")
    fields = json.loads((folder / "run.json").read_text())
    fields |= {name: ["nan"] * len(fields[name]) for name in ("step_losses", "epoch_losses")}
    (folder / "nan.json").write_text(json.dumps(fields))
    return folder


@pytest.mark.parametrize(("line", "values"), REFUSALS, ids=[line for line, _ in REFUSALS])
def test_wrong_use_is_refused_and_changes_no_file(line: str, values: str, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    message = bad(*shlex.split(line), cwd=folder)
    approved(message.replace(f"{folder}/", ""), values)
    assert "defect" not in message
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("train graph.cg --optimizer sgd --learning-rate 1e300", "--learning-rate"),
        ("grad lecture --method path-sum --path-limit 1 --wrt xa", "--path-limit"),
        ("fit lecture --samples 50 --algorithm gauss-newton --json", "singular"),
    ],
)
def test_failed_jobs_have_exit_code_1(line: str, values: str, folder: Path) -> None:
    process = run(*shlex.split(line), cwd=folder)
    assert process.returncode == 1
    approved(process.stderr, values)


def test_unreadable_texts_are_refused() -> None:
    text = "xw = xa" + " + xa" * 99  # too long for the name of a file
    assert "File name too long" in bad("grad", text)
    assert "unknown command 'xw" in bad(text)
    for stdin in ("", "xa = = 1"):
        approved(bad("grad", "-", stdin=stdin), "<stdin>")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device")
def test_endless_files_are_refused() -> None:
    approved(bad("grad", "/dev/zero"))


def test_generated_files_are_replaced_and_texts_of_users_are_kept(tmp_path: Path) -> None:
    for name in ("a.dot", "a.mmd", "a.tex", "a.png"):
        (tmp_path / name).touch()  # an empty file of mktemp
        for _ in range(2):
            good("draw", "-e", "xw = k*xa", "-o", name, cwd=tmp_path)
    page = tmp_path / "a.html"
    for _ in range(2):
        good("compare", LECTURE, "-o", page)
    page.write_text("my homework")
    with refused(cgprimer.UsageError):
        cgprimer.step(cgprimer.parse("xw = k*xa"), {"k": 1, "xa": 2}, output=page)
    assert page.read_text() == "my homework"
