"""Pages that follow a file: when they are rendered again, and who can load them."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cgprimer.cli import file_watching
from cgprimer.errors import UsageError
from cgprimer.visualization.pages.watching.live_pages import LivePage
from cgprimer.visualization.pages.watching.page_server import serve_page
from tests.approval import approved
from tests.cli.cli_tools import environment, here
from tests.pages.conftest import read_data

GOOD, BAD = "xw = k*xa^2\nparameter k = 3\ninput xa = 0.5\n", "xw = k*\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "graph.cg"
    path.write_text(GOOD)
    return path


def follow_text(path: Path) -> LivePage:
    """Return a page whose content is the text of a file."""

    def page() -> str:
        text = path.read_text() if path.exists() else ""
        if not text or text == BAD:
            raise UsageError(f"{text!r} is no graph")
        return text

    return LivePage(page, [str(path)])


def count_changes(live: LivePage, times: int = 12) -> int:
    """Return how many of several checks of the files found a change."""
    return sum(live.refresh() for _ in range(times))


# --- changes of files -----------------------------------------------------------------------------


def save_in_place(path: Path, text: str) -> None:
    """Overwrite a file."""
    path.write_text(text)


def save_by_renaming(path: Path, text: str) -> None:
    """Write another file and give it the name of the first."""
    other = path.with_name(".graph.cg.swp")
    other.write_text(text)
    other.replace(path)


def save_with_backup(path: Path, text: str) -> None:
    """Rename a file before writing it again."""
    path.rename(path.with_name("graph.cg~"))
    path.write_text(text)


@pytest.mark.parametrize("save", [save_in_place, save_by_renaming, save_with_backup])
def test_a_change_is_found_however_an_editor_saves(
    path: Path, save: Callable[[Path, str], None]
) -> None:
    live = follow_text(path)
    assert live.refresh()
    for number in (2, 3):
        text = f"{GOOD}# {number}\n"
        save(path, text)
        assert count_changes(live) == 1
        assert (live.page, live.error, live.version) == (text, "", number)
    assert count_changes(live) == 0


def test_an_error_leaves_the_last_page_and_a_defect_does_not_stop_the_page(path: Path) -> None:
    live = follow_text(path)
    live.refresh()
    path.write_text(BAD)
    assert count_changes(live) == 1
    assert (live.page, live.version) == (GOOD, 1)
    assert "no graph" in live.error
    path.write_text(GOOD)
    assert count_changes(live) == 1
    assert (live.page, live.error, live.version) == (GOOD, "", 1)  # the same page has no new number
    live = LivePage(lambda: f"{1 / (len(path.read_text()) - 2):.0f}", [str(path)])
    live.refresh()
    path.write_text("12")
    assert count_changes(live) == 1
    assert live.error == "this is a defect of cgprimer: ZeroDivisionError: division by zero"
    path.write_text("123")
    assert count_changes(live) == 1
    assert live.page == "1"


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "empty"])
def test_a_file_that_is_being_saved_is_left_alone(path: Path, gone: bool) -> None:
    live = follow_text(path)
    live.refresh()
    path.unlink() if gone else path.write_text("")
    assert count_changes(live, 5) == 0
    path.write_text(f"{GOOD}# more\n")
    assert count_changes(live, 2) == 1
    assert live.error == ""
    path.unlink() if gone else path.write_text("")  # for good
    assert count_changes(live) == 1
    assert live.error


def test_a_file_that_changes_all_the_time_and_further_files_are_followed(path: Path) -> None:
    live = follow_text(path)
    live.refresh()
    changes = 0
    for number in range(30):
        path.write_text("#" * number + GOOD)
        changes += live.refresh()
    assert 2 <= changes <= 5
    files, run = [str(path)], path.with_name("run.json")
    run.write_text("1")

    def page() -> str:
        files[1:] = [str(run)]
        return run.read_text()

    live = LivePage(page, files)
    assert live.refresh()
    assert count_changes(live) == 0
    run.write_text("2 now")
    assert count_changes(live) == 1
    assert live.page == "2 now"


# --- requests -------------------------------------------------------------------------------------


@pytest.fixture
def port(path: Path) -> Iterator[int]:
    live = follow_text(path)
    live.refresh()
    with serve_page(live, "graph.cg") as address:
        yield int(address.rstrip("/").rpartition(":")[2])


def ask(port: int, path: str, host: str | None = None, method: str = "GET") -> Any:
    """Return the answer to a request, with its text."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.putrequest(method, path, skip_host=host is not None)
    if host is not None:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    answer.text = answer.read().decode()  # type: ignore[attr-defined]
    connection.close()
    return answer


def test_a_browser_gets_the_page_and_its_version_with_strict_headers(port: int) -> None:
    answers = [ask(port, address) for address in ("/", "/page?a-1", "/news")]
    shell, page, news = answers
    assert [a.status for a in answers] == [200] * 3
    assert shell.text.startswith("<!doctype html>")
    assert "connect-src 'self'; frame-src 'self';" in shell.text
    assert page.text == GOOD
    state = json.loads(news.text)
    assert state["version"].endswith("-1")
    assert state["error"] == ""
    for answer in answers:
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'self'"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "Python" not in answer.headers["Server"]


@pytest.mark.parametrize(
    ("method", "address", "host", "status"),
    [
        *(("GET", "/page", host, 200) for host in ("127.0.0.1:{port}", "localhost:{port}")),
        *(("GET", "/page", host, 403) for host in
          ("evil.example", "evil.example:{port}", "127.0.0.1:1", "", "[::1]:{port}")),
        *(("GET", address, None, 404) for address in
          ("/graph.cg", "/../graph.cg", "//etc/passwd", "/%2e%2e/graph.cg", "page", "/news/1")),
        *((method, "/page", None, 501) for method in ("POST", "PUT", "DELETE", "OPTIONS")),
    ],
)  # fmt: skip
def test_only_this_machine_gets_only_the_page(
    port: int, method: str, address: str, host: str | None, status: int
) -> None:
    answer = ask(port, address, host and host.format(port=port), method)
    assert answer.status == status
    assert ("k*xa" in answer.text) == (status == 200)
    with socket.socket() as other:
        other.settimeout(2)
        assert other.connect_ex(("127.0.0.2", port)) != 0  # only one address is listened at


def test_silent_and_aborted_connections_do_not_block_others(
    port: int, capfd: pytest.CaptureFixture[str]
) -> None:
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    for one in silent[:10]:
        one.sendall(b"GET /page HTTP/1.1\r\nHost: ")
        one.close()
    assert ask(port, "/page").text == GOOD
    for one in silent[10:]:
        one.close()
    assert capfd.readouterr() == ("", "")


def test_a_port_in_use_is_refused_and_the_server_ends_with_its_block(path: Path, port: int) -> None:
    with pytest.raises(UsageError) as caught:
        serve_page(follow_text(path), "graph.cg", port=port).__enter__()
    approved(str(caught.value).replace(str(port), "<port>"), "<port>")
    before = set(threading.enumerate())
    with serve_page(follow_text(path), "graph.cg"):
        assert len(set(threading.enumerate()) - before) == 1
    assert not [one for one in set(threading.enumerate()) - before if one.is_alive()]


# --- commands -------------------------------------------------------------------------------------


class ScriptedTime:
    """Replaces the time between two checks by a script of edits, followed by Ctrl-C."""

    def __init__(self, *edits: Callable[[], object]) -> None:
        self.edits, self.waits = list(edits), 0

    def sleep(self, seconds: float) -> None:
        """Run the next edit after enough checks to find the edit before."""
        self.waits += 1
        assert self.waits < 200, "the command does not end"
        if self.waits % 15:
            return
        if not self.edits:
            raise KeyboardInterrupt
        self.edits.pop(0)()


def watch(
    monkeypatch: pytest.MonkeyPatch, *arguments: object, edits: Any = ()
) -> tuple[Any, list[str]]:
    """Run a command with ``--watch``; return also its pages before each edit and at the end."""
    pages: list[str] = []
    made: list[LivePage] = []
    original = LivePage.__init__

    def remember(self: LivePage, *args: Any) -> None:
        original(self, *args)
        made.append(self)

    monkeypatch.setattr(LivePage, "__init__", remember)
    script = [lambda e=e: (pages.append(made[0].page), e()) for e in edits]
    script.append(lambda: pages.append(made[0].page))
    monkeypatch.setattr(file_watching, "time", ScriptedTime(*script))
    return here(*arguments, "--watch"), pages


@pytest.mark.parametrize(
    "command", ["step", "draw", pytest.param("compare", marks=pytest.mark.slow)]
)
def test_a_command_follows_its_file(
    command: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edits = [lambda: path.write_text(BAD), lambda: path.write_text(GOOD.replace("k", "kk"))]
    done, pages = watch(monkeypatch, command, path, edits=edits)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"serving {path} at http://127.0.0.1:")
    assert f"error: {path}:1:8: " in lines[1]
    assert lines[2:4] == ["  xw = k*", "         ^"]
    assert lines[-3:] == [f"{path} was updated", "", f"stopped watching {path}"]
    assert pages[0] == pages[1] != pages[2]
    assert all(page.startswith("<!doctype html>") for page in pages)
    assert [p.name for p in path.parent.iterdir()] == ["graph.cg"]


@pytest.mark.parametrize(("command", "name"), [("step", "a.html"), ("draw", "a.dot")])
def test_a_file_is_written_again_after_every_change(
    command: str, name: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, written = tmp_path / name, list[bytes]()
    edits = [
        lambda: (written.append(output.read_bytes()), path.write_text(GOOD.replace("k", "other"))),
        lambda: written.append(output.read_bytes()),
    ]
    done, _ = watch(monkeypatch, command, path, "-o", output, edits=edits)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"wrote {output}") == 2
    assert len(set(written)) == 2


def test_options_and_the_file_of_a_run_hold_at_every_change(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run.json"

    def learn(k: float) -> None:
        fit = {"format": "cgprimer-fit", "graph": GOOD, "parameters": {"k": k}}
        run.write_text(json.dumps(fit))

    learn(2.5)
    options = ("--of", "xw", "--wrt", "xa", "--title", "A <b>", "--dark", "--method", "forward")
    edits = [lambda: learn(5.25), lambda: path.write_text(f"{GOOD}xv = xw + xa\n")]
    done, pages = watch(monkeypatch, "step", path, "--at", run, *options, edits=edits)
    assert done.returncode == 0, done.stderr
    data = [read_data(page) for page in pages]
    assert [page["point"]["k"] for page in data] == [2.5, 5.25, 5.25]
    assert all((p["title"], p["wrt"], p["first"]) == ("A <b>", ["xa"], "forward") for p in data)
    assert all('data-look="dark"' in page and "<h1>A &lt;b&gt;</h1>" in page for page in pages)


@pytest.mark.parametrize("text", [BAD, "", "xw = k*xa"])
def test_a_text_that_can_be_corrected_is_waited_for(
    text: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text(text)
    done, pages = watch(monkeypatch, "step", path, edits=[lambda: path.write_text(GOOD)])
    assert done.returncode == 0
    assert pages[0] == ""
    assert pages[1].startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("step", "{path}", "--port", "8000"), "--port ... --watch"),
        (("step", "{path}", "--open"), "--open ... --watch"),
        (("step", "{path}", "--watch", "--port", "70000"), "70000"),
        (("step", "{path}", "--watch", "--level", "nothing"), "'nothing'"),
        (("step", "{path}", "--watch", "--format", "png"), "--format"),
        (("step", "{path}", "--watch", "-o", "nowhere/a.html"), ""),
        (("step", "{path}", "--watch", "--wrt", "zz"), "'zz'"),
        (("draw", "-e", "xw = 2*xa", "--watch"), "--watch"),
        (("draw", "lectur", "--watch"), "'lecture'"),
        (("compare", "lecture", "--watch", "--json"), "--watch ... --json"),
    ],
)
def test_wrong_use_ends_at_once(
    path: Path, arguments: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_watching, "time", ScriptedTime())
    done = here(*(argument.format(path=path) for argument in arguments))
    assert done.returncode == 2
    approved(done.stderr, words)


def test_ctrl_c_ends_a_command(path: Path) -> None:
    program = [sys.executable, "-m", "cgprimer", "step", str(path), "--watch", "--open"]
    running = subprocess.Popen(
        program, stderr=subprocess.PIPE, text=True, env=environment(BROWSER="lynx", DISPLAY="")
    )
    assert running.stderr is not None
    try:
        assert "at http://127.0.0.1:" in running.stderr.readline()
        assert "no browser found" in running.stderr.readline()
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 0
        assert running.stderr.read().split("\n") == ["", f"stopped watching {path}", ""]
    finally:
        running.kill()
        running.wait()
        running.stderr.close()
