"""A terminal, a pipe whose reader leaves, and Ctrl-C."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.cli_tools import COMMAND, LECTURE, computed, environment, read_json, run

LONG = ("--epochs", "1000000", "--samples", "100", "--schedule", "constant")


def on_terminal(*args: object, **extra: str) -> tuple[str, str, int]:
    """Standard output (a pipe), standard error (a terminal of 100 columns), the exit code."""
    main, other = pty.openpty()
    process = subprocess.Popen(
        [str(COMMAND), *map(str, args)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=other,
        env=environment(**{"TERM": "xterm-256color", "COLUMNS": "100", **extra}),
    )
    os.close(other)
    seen = b""
    with contextlib.suppress(OSError):  # Linux: EIO once the other side is closed
        while data := os.read(main, 65536):
            seen += data
    os.close(main)
    assert process.stdout is not None
    with process.stdout as pipe:
        out = pipe.read()
    return out.decode(), seen.decode(), process.wait(timeout=60)


def test_progress_bar_on_a_terminal() -> None:
    out, shown, code = on_terminal("train", LECTURE, "--epochs", "5", "--samples", "2000")
    assert code == 0
    assert "training" in shown
    assert "/200" in shown  # 5 epochs of 40 steps
    assert "loss" in shown
    assert "\x1b" in shown
    assert out.startswith("loss ")
    assert "\x1b" not in out


def test_no_color_on_a_terminal() -> None:
    _, shown, code = on_terminal(
        "train", LECTURE, "--epochs", "5", "--samples", "2000", NO_COLOR="1"
    )
    assert code == 0
    colors = [f"\x1b[{n}" for n in (*range(30, 38), *range(90, 98))]
    assert not any(c in shown for c in colors)


def test_a_dumb_terminal_gets_no_escape_codes() -> None:
    _, shown, code = on_terminal("train", LECTURE, "--epochs", "2", "--samples", "200", TERM="dumb")
    assert code == 0
    assert "\x1b" not in shown


def test_names_of_files_do_not_steer_a_terminal(tmp_path: Path) -> None:
    name = str(tmp_path / "a\x1b[2J\u202e.dot")
    for command in (["draw", LECTURE, "-o", name], ["info", LECTURE, name]):
        _, seen, _ = on_terminal(*command, TERM="dumb")
        assert "·.dot" in seen
        assert "\x1b" not in seen


@pytest.mark.parametrize(
    "command", ["data examples/lecture.cg", "primitives", "data examples/lecture.cg --samples 5"]
)
def test_a_reader_that_leaves_is_no_error(command: str) -> None:
    shell = f"set -o pipefail; {COMMAND} {command} | head -1; echo codes ${{PIPESTATUS[@]}}"
    done = subprocess.run(
        ["bash", "-c", shell],
        capture_output=True,
        text=True,
        check=False,
        cwd=LECTURE.parents[1],
        env=environment(),
    )
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 2
    assert done.stdout.splitlines()[1] == "codes 0 0"


def test_a_pipe_closed_before_the_start_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [str(COMMAND), "data", str(LECTURE)],
        stdout=writer,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        env=environment(),
    )
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode == 0


def interrupted(folder: Path, *args: object) -> tuple[int, str, str]:
    """A training run that gets Ctrl-C once the terminal shows a loss."""
    main, other = pty.openpty()
    output = folder / "standard output"  # a pipe would fill up while the terminal is read
    with output.open("wb") as written:
        process = subprocess.Popen(
            [str(COMMAND), "train", *map(str, args)],
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=other,
            cwd=folder,
            env=environment(TERM="xterm", COLUMNS="200"),
        )
    os.close(other)
    seen = b""
    end = time.monotonic() + 30
    # The loss is shown first after step 1: from then on the loop runs.
    while not re.search(rb"loss \d", seen) and time.monotonic() < end and process.poll() is None:
        if select.select([main], [], [], 0.1)[0]:
            with contextlib.suppress(OSError):
                seen += os.read(main, 65536)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):
        while data := os.read(main, 65536):
            seen += data
    os.close(main)
    code = process.wait(timeout=30)
    out = output.read_text()
    output.unlink()
    return code, out, seen.decode()


def test_ctrl_c_saves_what_has_been_learnt(tmp_path: Path) -> None:
    code, out, err = interrupted(tmp_path, LECTURE, *LONG)
    assert "Traceback" not in err
    assert code == 130, err
    assert "loss" in out
    assert "ab + bc" in out
    path = tmp_path / "lecture.run.json"
    assert path.exists()
    assert f"wrote {path.name}" in err
    assert f"--resume {path.name}" in err
    saved = json.loads(path.read_text())
    assert saved["stopped"] == "interrupted"
    assert saved["steps"] > 0
    assert saved["loss"] < saved["start_loss"]
    assert [p.name for p in tmp_path.iterdir()] == [path.name]

    goal = saved["epochs"] + 2
    taken_up = read_json(
        "train", LECTURE, "--epochs", goal, *LONG[2:], "--resume", path, cwd=tmp_path
    )
    assert taken_up["stopped"] == "finished"
    assert taken_up["epochs"] == goal
    assert taken_up["start"] == saved["start"]
    assert taken_up["epoch_losses"][: saved["epochs"]] == saved["epoch_losses"]


def test_ctrl_c_writes_to_the_file_of_save(tmp_path: Path) -> None:
    code, out, err = interrupted(tmp_path, LECTURE, *LONG, "--save", "mine.json", "--json")
    assert code == 130, err
    assert json.loads(out)["stopped"] == "interrupted"
    assert [p.name for p in tmp_path.iterdir()] == ["mine.json"]
    assert "--resume mine.json" in err


@pytest.mark.slow
def test_ctrl_c_without_a_terminal(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [str(COMMAND), "train", str(LECTURE), *LONG],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )
    computed(process, 2.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "lecture.run.json" in err
    assert "\x1b" not in err
    assert out.startswith("loss ")


def test_an_older_file_survives_a_run_that_fails(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("older")
    assert run("train", "-e", "xw = nosuch(k)", "--save", path).returncode == 2
    assert path.read_text() == "older"


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])  # click writes UTF-8 for ascii
def test_letters_that_an_encoding_lacks_are_written_otherwise(encoding: str) -> None:
    text = ("grad", "-e", "xw = sin(π*xa)/3", "--at", "π=1,xa=1")
    done = run(*text, env={"PYTHONIOENCODING": encoding})
    assert done.returncode == 0
    assert done.stdout.splitlines()[1].startswith("d xw / d \\u03c0 = ")
    done = run("info", "πρ", env={"PYTHONIOENCODING": encoding})
    assert done.stderr == "error: cannot read \\u03c0\\u03c1: No such file or directory\n"


def test_another_programs_plotting_backend_is_no_matter(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    run("draw", "lecture", "-o", picture, env={"MPLBACKEND": "nonsense"})
    assert picture.stat().st_size > 0
