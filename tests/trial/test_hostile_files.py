"""Damaged and hostile files end in an error message or in results.

No change of a file may end in a traceback, in "a defect of cgprimer", in a file outside of the
folder or in minutes of work.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from tests.approval import approved
from tests.checking.submissions import read_rows
from tests.cli.cli_tools import COMMAND, EXAMPLES, bad, environment, good, run

pytestmark = pytest.mark.slow

ROWS = read_rows(Path(__file__).with_name("tables.txt"))
READERS = (
    ("train", "lecture", "--epochs", 3, "--samples", 60, "--resume"),
    ("plot", "loss", "-o", "loss.svg"),
    ("grad", "lecture", "--at"),
)
TRAIN = ("train", "-e", "xw = p*xa", "--epochs", 1, "--data")


def iterate_slots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container of nested data with a key; of lists only the first and the last."""
    keys: Any = ()
    if isinstance(value, dict | list) and value:
        keys = [*value] if isinstance(value, dict) else {0, len(value) - 1}
    for key in keys:
        yield value, key
        yield from iterate_slots(value[key])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run.json"
    good("train", "lecture", "--epochs", 2, "--samples", 60, "--batch-size", 20, "--save", path)
    return path


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader[0])
def test_changed_run_files(reader: tuple[Any, ...], trained: Path, tmp_path: Path) -> None:
    root = [json.loads(trained.read_text())]
    generator, tried = random.Random(reader[0]), 0
    for index, (container, key) in enumerate(iterate_slots(root)):
        if reader[0] == "plot" and index % 4:
            continue  # pictures of the changes that are valid take their time
        old, texts = container[key], []
        for odd in generator.sample(ROWS["odd values"][0], 3):
            container[key] = odd
            texts.append(json.dumps(root[0]))
        if isinstance(container, dict):
            del container[key]
            texts.append(json.dumps(root[0]))
        container[key] = old
        for text in texts:
            (tmp_path / "run.json").write_text(text)
            done = run(*reader, "run.json", cwd=tmp_path)
            assert done.returncode in (0, 1, 2), (key, done.stderr)
            assert "\x1b" not in done.stdout + done.stderr
            tried += 1
    assert tried > 30


TEXTS = dict(ROWS["invalid run files"])


@pytest.mark.parametrize("text", TEXTS, ids=str)
@pytest.mark.parametrize("reader", READERS, ids=lambda r: r[0])
def test_invalid_run_files_are_rejected(text: str, reader: tuple[Any, ...], tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(TEXTS[text].encode(errors="surrogateescape"))
    assert "run.json" in bad(*reader, "run.json", cwd=tmp_path)


CHARACTERS = "xapW0123456789.eE+-*/^=();,[]@# \n\t\r\x00\x1b\u202e\udcff\u00e9\U0001f600"


def mutate_text(text: str, generator: random.Random) -> str:
    """Remove, insert, repeat or replace a few characters of a text, or all at its end."""
    for _ in range(generator.randint(1, 4)):
        at, length = generator.randrange(len(text) + 1), generator.choice((0, 1, 1, 1, 2, 9, 10**9))
        piece = generator.choice(("", generator.choice(CHARACTERS), text[at : at + length] * 2))
        text = text[:at] + piece + text[at + length :]
    return text


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.cg")), ids=lambda path: path.stem)
def test_changed_texts_are_graphs_or_errors(example: Path) -> None:
    text, generator = example.read_text(), random.Random(example.stem)
    kinds, messages = set(), []
    for _ in range(300):  # most changes of a text with long comments change nothing
        try:
            graph = cgprimer.parse(mutate_text(text, generator))
            again = cgprimer.parse(str(graph))
            assert (again.depends_on, again.parameters) == (graph.depends_on, graph.parameters)
            kinds.add(cgprimer.ExpressionGraph)
            graph.evaluate(dict.fromkeys((*graph.inputs, *graph.parameters), 0.5))
        except cgprimer.CgprimerError as error:
            kinds.add(type(error))
            messages.append(str(error))
    assert len(kinds) >= 2
    assert not set("".join(messages)) & set("\x00\x1b\u202e")


@pytest.mark.parametrize("name", ["data.csv", "data.npz"])
def test_changed_data_files(name: str, tmp_path: Path) -> None:
    generator, path = random.Random(0), tmp_path / name
    np.savez(tmp_path / "data.npz", xa=np.arange(5.0), xw=np.arange(5.0))
    (tmp_path / "data.csv").write_text("xa,xw\n" + "1,2e3\n" * 4 + '"3","4"')
    whole = path.read_bytes().decode("latin-1")
    for number in range(150):
        path.write_bytes(mutate_text(whole, generator).encode("latin-1", errors="replace"))
        done = run(*TRAIN, name, cwd=tmp_path)
        assert done.returncode in (0, 1, 2), (number, path.read_bytes())
        assert not set(done.stderr + done.stdout) & set("\x00\x1b\u202e"), path.read_bytes()


def test_arrays_that_are_not_read_take_no_memory(tmp_path: Path) -> None:
    arrays = {"xa": np.arange(3.0), "xw": 2 * np.arange(3.0), "junk": np.zeros(50_000_000)}
    np.savez_compressed(tmp_path / "large.npz", **arrays)
    # The maximum of getrusage would include this process, from which the child is forked.
    code = (
        "import atexit, pathlib; from cgprimer.cli import main;"
        "atexit.register(lambda: print(pathlib.Path('/proc/self/status').read_text())); main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, TRAIN), "large.npz"],
        capture_output=True, text=True, cwd=tmp_path, env=environment(), check=True,
    )  # fmt: skip
    peak = re.search(r"VmHWM:\s+(\d+) kB", done.stdout)
    assert peak
    assert int(peak[1]) < 350_000, "the array of 400 MB was read"


def test_control_characters_never_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "a.cg").write_text("xw = p*xa \x1b[31m + \x07 \u202e\n")
    line, carets = bad("grad", "a.cg", cwd=tmp_path).splitlines()[1:3]
    assert line.index("\u241b") == carets.index("^")
    (tmp_path / "a.csv").write_text("xa,x\x1b]0;title\x07w\n1,2\n")
    assert "\x07" not in bad(*TRAIN, "a.csv", cwd=tmp_path)


def test_names_that_are_not_utf_8(tmp_path: Path) -> None:
    name = os.fsdecode(b"a\xff.cg")
    (tmp_path / name).write_text("input xa=2; parameter p=1; xw=p*xa")
    for command, output in (("step", "s.html"), ("compare", "c.html"), ("draw", "d.svg")):
        good(command, name, "-o", output, cwd=tmp_path)
        assert (tmp_path / output).read_text(encoding="utf-8")
    good("draw", name, "--title", os.fsdecode(b"t\xff"), "-o", "t.png", cwd=tmp_path)


def test_names_that_are_too_long(tmp_path: Path) -> None:
    train = ("train", "lecture", "--epochs", 1, "--samples", 20, "--save")
    good(*train, f"{'a' * 250}.json", cwd=tmp_path)
    for command in (train, ("draw", "lecture", "-o"), ("data", "lecture", "-o")):
        approved(bad(*command, f"{'a' * 300}.csv", cwd=tmp_path))


def run_in_shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the shell that ends without a traceback."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=folder,
                          env=environment(CGPRIMER_CACHE="off"), check=False)  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "defect" not in done.stderr
    return done


@pytest.mark.parametrize("job", ["fit --save f.json", "ensemble --epochs 2 --directory members"])
def test_results_are_shown_if_they_cannot_be_saved(job: str, tmp_path: Path) -> None:
    name, *options = job.split()
    command = shlex.join([str(COMMAND), name, "lecture", "--samples", "40", *options])
    done = run_in_shell(f"ulimit -f 0; exec {command}", tmp_path)  # no file may grow; pipes may
    approved(done.stderr, "error")
    assert done.returncode == 2
    assert ("squared error" if name == "ensemble" else "standard error") in done.stdout


@pytest.mark.parametrize(("arguments", "code"), ROWS["closed streams"])
def test_closed_streams_and_full_disks(arguments: str, code: int, tmp_path: Path) -> None:
    done = run_in_shell(f'"{COMMAND}" grad {arguments}', tmp_path)
    assert done.returncode == code
    assert ("No space left" in done.stderr) is ("full" in arguments)


def test_huge_number_of_operations_is_shown_as_a_power() -> None:
    squares = "x0 = p*xin; " + "; ".join(f"x{i} = x{i - 1}*x{i - 1}" for i in range(1, 16_000))
    comparison = cgprimer.compare(cgprimer.parse(squares), {"p": 1.0, "xin": 1.0})
    assert "has about 10^4816 operations" in str(comparison)


def test_message_of_a_long_cycle_is_short() -> None:
    count = 20_000
    with pytest.raises(cgprimer.CycleError) as caught:
        cgprimer.parse("; ".join(f"x{i} = x{(i + 1) % count} + p" for i in range(count)))
    assert len(str(caught.value)) < 500
    assert len(caught.value.path) == count + 1


@pytest.mark.parametrize(("command", "message"), ROWS["impossible arguments"])
def test_impossible_arguments_are_rejected(command: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "long.csv").write_text(f'xa,xw\n1,2\n"{"1" * 200_000}",3\n')
    assert message in bad(*command.split(), cwd=tmp_path)[:200]
