"""Damaged and hostile files end in an error message or in results.

No change of a file may end in a traceback, in "a defect of cgprimer", in a file outside of the
folder or in minutes of work.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from tests.approval import approved
from tests.cli.cli_tools import COMMAND, EXAMPLES, bad, environment, good, run

pytestmark = pytest.mark.slow

ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1e308, 2**70, "", "x", "nan", "1e400", "\x1b[31m", [], [[]], {}, {"a": 1},
    [1, "x"], ["nan"], [1e308] * 3,
)  # fmt: skip


def iterate_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to each value in nested data; for lists only the first and the last."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from iterate_paths(value[key], (*path, key))
    elif isinstance(value, list):
        for key in {0, len(value) - 1} if value else ():
            yield from iterate_paths(value[key], (*path, key))


def replace_value(value: Any, path: tuple[Any, ...], to: Any, *, drop: bool = False) -> Any:
    if not path:
        return to
    first, *rest = path
    made = dict(value) if isinstance(value, dict) else list(value)
    if drop and not rest:
        del made[first]
    else:
        made[first] = replace_value(value[first], tuple(rest), to, drop=drop)
    return made


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run.json"
    good("train", "lecture", "--epochs", 2, "--samples", 60, "--batch-size", 20, "--save", path)
    return path


READERS = (
    ("train", "lecture", "--epochs", 3, "--samples", 60, "--resume"),
    ("plot", "loss", "-o", "loss.svg"),
    ("grad", "lecture", "--at"),
)


@pytest.mark.parametrize("how", range(3))
def test_changed_run_files(how: int, trained: Path, tmp_path: Path) -> None:
    whole = json.loads(trained.read_text())
    generator, tried = random.Random(how), 0
    for path in iterate_paths(whole):
        candidates = [
            replace_value(whole, path, odd)
            for odd in generator.sample(ODD, 1 if READERS[how][0] == "plot" else 3)
        ]
        if path and not isinstance(path[-1], int):
            candidates.append(replace_value(whole, path, None, drop=True))
        for candidate in candidates:
            (tmp_path / "run.json").write_text(json.dumps(candidate))
            done = run(*READERS[how], "run.json", cwd=tmp_path)
            assert done.returncode in (0, 1, 2), (path, done.stderr)
            assert "\x1b" not in done.stdout + done.stderr
            tried += 1
    assert tried > 70


TEXTS = {
    "deep": "[" * 100_000,
    "deep object": '{"a":' * 50_000 + "1" + "}" * 50_000,
    "huge number": '{"format": 1e400}',
    "digits": '{"format": ' + "9" * 5_000 + "}",
    "cut off": '{"format": "cgprimer run", "losses": [1, 2',
    "empty": "",
    "not UTF-8": "\udcff\udcfe",
    "twice": '{"a": 1, "a": 2}',
}


@pytest.mark.parametrize("text", TEXTS, ids=str)
@pytest.mark.parametrize("reader", READERS, ids=lambda r: r[0])
def test_invalid_run_files_are_rejected(text: str, reader: tuple[Any, ...], tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(TEXTS[text].encode(errors="surrogateescape"))
    assert "run.json" in bad(*reader, "run.json", cwd=tmp_path)


# --- texts, CSV and NPZ, changed at random -------------------------------------------------------

CHARACTERS = "xapW0123456789.eE+-*/^=();,[]@# \n\t\r\x00\x1b\u202e\udcff\u00e9\U0001f600"


def mutate_text(text: str, generator: random.Random) -> str:
    """Remove, insert, repeat or replace a few characters of a text."""
    for _ in range(generator.randint(1, 4)):
        at, length = generator.randrange(len(text) + 1), generator.choice((0, 1, 1, 2, 9))
        piece = generator.choice(("", generator.choice(CHARACTERS), text[at : at + length] * 2))
        text = text[:at] + piece + text[at + length :]
    return text


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.cg")), ids=lambda path: path.stem)
def test_changed_texts_are_graphs_or_errors(example: Path) -> None:
    text, generator = example.read_text(), random.Random(example.stem)
    kinds, said = set(), []
    for _ in range(300):  # most changes of a text with long comments change nothing
        try:
            graph = cgprimer.parse(mutate_text(text, generator))
            again = cgprimer.parse(str(graph))
            assert (again.depends_on, again.parameters) == (graph.depends_on, graph.parameters)
            kinds.add(cgprimer.ExpressionGraph)
            graph.evaluate(dict.fromkeys((*graph.inputs, *graph.parameters), 0.5))
        except cgprimer.CgprimerError as error:
            kinds.add(type(error))
            said.append(str(error))
    assert len(kinds) >= 3
    assert not set("".join(said)) & set("\x00\x1b\u202e")


def test_changed_tables(tmp_path: Path) -> None:
    generator, whole = random.Random(0), "xa,xw\n" + "1.5,2e3\n" * 4 + '"3","4"\n'
    for number in range(150):
        text = mutate_text(whole, generator)
        (tmp_path / "data.csv").write_bytes(text.encode(errors="surrogateescape"))
        done = run("train", "-e", "xw = p*xa", "--data", "data.csv", "--epochs", 1, cwd=tmp_path)
        assert done.returncode in (0, 1, 2), (number, text)
        assert not set(done.stderr + done.stdout) & set("\x00\x1b\u202e"), text


def test_changed_archives(tmp_path: Path) -> None:
    generator, path = random.Random(0), tmp_path / "data.npz"
    np.savez(path, xa=np.arange(5.0), xw=np.arange(5.0))
    whole = path.read_bytes()
    for number in range(150):
        data = bytearray(whole)
        for _ in range(generator.randint(1, 5)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        path.write_bytes(data if number % 3 else data[: generator.randrange(len(data))])
        done = run("train", "-e", "xw = p*xa", "--data", "data.npz", "--epochs", 1, cwd=tmp_path)
        assert done.returncode in (0, 1, 2), number


def test_archives_are_read_without_objects_and_unused_arrays(tmp_path: Path) -> None:
    good_part = {"xa": np.arange(3.0), "xw": 2 * np.arange(3.0)}
    np.savez(tmp_path / "objects.npz", **good_part, junk=np.array([{}], object))
    args = ("train", "-e", "xw = p*xa", "--epochs", 1, "--data")
    assert "p " in good(*args, "objects.npz", cwd=tmp_path)
    np.savez(tmp_path / "objects.npz", xa=np.array([{}] * 3, object), xw=np.arange(3.0))
    assert "objects.npz" in bad(*args, "objects.npz", cwd=tmp_path)
    # 1.6 GB of zeros in 1.5 MB: what nobody asks for is not unpacked
    np.savez_compressed(tmp_path / "large.npz", **good_part, junk=np.zeros(200_000_000))
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    good(*args, "large.npz", cwd=tmp_path, env={})
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= max(before, 400_000)  # kB


def test_input_and_target_can_have_the_same_name(tmp_path: Path) -> None:
    arrays = {"inputs/xa": np.arange(4.0), "targets/xa": np.full(4, 9.0), "targets/xw": np.ones(4)}
    np.savez(tmp_path / "data.npz", **arrays)
    read = cgprimer.Dataset.load(tmp_path / "data.npz")
    assert read.inputs["xa"].tolist() == [0.0, 1.0, 2.0, 3.0]


# --- names and texts that reach a terminal, a picture or a page ----------------------------------


def test_control_characters_never_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "a.cg").write_text("xw = p*xa \x1b[31m + \x07 \u202e\n")
    said = bad("grad", "a.cg", cwd=tmp_path)
    line, carets = said.splitlines()[1:3]
    assert line.index("\u241b") == carets.index("^")
    (tmp_path / "a.csv").write_text("xa,x\x1b]0;title\x07w\n1,2\n")
    said = bad("train", "-e", "xw = p*xa", "--data", "a.csv", cwd=tmp_path)
    assert "\x07" not in said


def test_names_that_are_not_utf_8(tmp_path: Path) -> None:
    name = os.fsdecode(b"a\xff.cg")
    (tmp_path / name).write_text("input xa=2; parameter p=1; xw=p*xa")
    for made in ("s.html", "c.html", "c.svg", "d.svg"):
        command = {"s": "step", "c": "compare", "d": "draw"}[made[0]]
        good(command, name, "-o", made, cwd=tmp_path)
        assert (tmp_path / made).read_text(encoding="utf-8")
    good("draw", name, "--title", os.fsdecode(b"t\xff"), "-o", "t.png", cwd=tmp_path)


def test_names_that_are_too_long(tmp_path: Path) -> None:
    train = ("train", "lecture", "--epochs", 1, "--samples", 20, "--save")
    good(*train, f"{'a' * 250}.json", cwd=tmp_path)
    for command in (train, ("draw", "lecture", "-o"), ("data", "lecture", "-o")):
        approved(bad(*command, f"{'a' * 300}.csv", cwd=tmp_path))


def test_full_disk_behind_standard_output(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [str(COMMAND), "grad", "lecture"], stdout=full, stderr=subprocess.PIPE, text=True,
            env=environment(), check=False,
        )  # fmt: skip
    assert (done.returncode, "No space left" in done.stderr) == (1, True)
    assert "defect" not in done.stderr


@pytest.mark.parametrize("job", ["fit --save f.json", "ensemble --epochs 2 --directory members"])
def test_results_are_shown_if_they_cannot_be_saved(job: str, tmp_path: Path) -> None:
    what, *options = job.split()
    command = [str(COMMAND), what, "lecture", "--samples", "40", *options]
    shell = f"ulimit -f 0; exec {shlex.join(command)}"  # no file may grow; pipes may
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, cwd=tmp_path,
                          env=environment(CGPRIMER_CACHE="off"), check=False)  # fmt: skip
    approved(done.stderr, "error")
    assert done.returncode == 2
    assert ("squared error" if what == "ensemble" else "standard error") in done.stdout


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_closed_streams(closed: str) -> None:
    what = "grad -" if closed == "<&-" else "grad lecture"
    done = subprocess.run(
        ["bash", "-c", f'"{COMMAND}" {what} {closed}'], capture_output=True, text=True,
        env=environment(), check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "defect" not in done.stderr
    assert done.returncode == (2 if closed == "<&-" else 0)


def test_huge_number_of_operations_is_shown_as_a_power() -> None:
    squares = "x0 = p*xin; " + "; ".join(f"x{i} = x{i - 1}*x{i - 1}" for i in range(1, 16_000))
    graph = cgprimer.parse(squares)
    said = str(cgprimer.compare(graph, {"p": 1.0, "xin": 1.0}))
    assert "has about 10^4816 operations" in said


def test_message_of_a_long_cycle_is_short() -> None:
    count = 20_000
    with pytest.raises(cgprimer.CycleError) as caught:
        cgprimer.parse("; ".join(f"x{i} = x{(i + 1) % count} + p" for i in range(count)))
    assert len(str(caught.value)) < 500
    assert len(caught.value.path) == count + 1


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("step lecture --speed nan", "nan"),
        ("plot function -e xw=xa^2 --range=-1e308:1e308 -o a.svg", "1e+308"),
        ("ensemble lecture --members 2 --epochs 1 --directory file/members", "file/members"),
    ],
)
def test_impossible_arguments_are_rejected(command: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert message in bad(*command.split(), cwd=tmp_path)


def test_errors_in_tables_name_the_line(tmp_path: Path) -> None:
    args = ("train", "-e", "xw = p*xa", "--epochs", 1, "--data", "a.csv")
    (tmp_path / "a.csv").write_text('xa,xw\n"1","2"\n"3","a"\n')
    approved(bad(*args, cwd=tmp_path), "a.csv:3 ... 'a' ... 'xw'")
    (tmp_path / "a.csv").write_text(f'xa,xw\n1,2\n"{"1" * 200_000}",3\n')
    assert "a.csv:3" in bad(*args, cwd=tmp_path)[:200]
