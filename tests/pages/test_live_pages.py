"""Pages that follow a file: when they are rendered again, and who can load them."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cgprimer.cli import file_watching
from cgprimer.errors import UsageError
from cgprimer.visualization.pages.watching.live_pages import LivePage
from cgprimer.visualization.pages.watching.page_server import serve_page
from tests.approval import approved
from tests.cli.cli_tools import Done, environment, here
from tests.pages.conftest import TABLES, read_data

GOOD, BAD = "xw = k*xa^2\nparameter k = 3\ninput xa = 0.5\n", "xw = k*\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "graph.cg"
    path.write_text(GOOD)
    return path


def follow_text(path: Path) -> LivePage:
    """Return a page whose content is the text of a file, which was checked once."""

    def page() -> str:
        text = path.read_text() if path.exists() else ""
        if not text or text == BAD:
            raise UsageError(f"{text!r} is no graph")
        return text

    live = LivePage(page, [str(path)])
    assert live.refresh()
    return live


def count_changes(live: LivePage, times: int = 12) -> int:
    """Return how many of several checks of the files found a change."""
    return sum(live.refresh() for _ in range(times))


# --- changes of files -----------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["in place", "with a backup", "by renaming"])
def test_a_change_is_found_however_an_editor_saves(path: Path, way: str) -> None:
    live, other = follow_text(path), path.with_name(".graph.cg.swp")
    for number in (2, 3):
        text = f"{GOOD}# {number}\n"
        if way == "with a backup":
            path.rename(path.with_name("graph.cg~"))
        (other if way == "by renaming" else path).write_text(text)
        if way == "by renaming":
            other.replace(path)
        assert count_changes(live) == 1
        assert (live.page, live.error, live.version) == (text, "", number)
    assert count_changes(live) == 0


def test_an_error_leaves_the_last_page_and_a_defect_does_not_stop_the_page(path: Path) -> None:
    live = follow_text(path)
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
    path.unlink() if gone else path.write_text("")
    assert count_changes(live, 5) == 0
    path.write_text(f"{GOOD}# more\n")
    assert count_changes(live, 2) == 1
    assert live.error == ""
    path.unlink() if gone else path.write_text("")  # for good
    assert count_changes(live) == 1
    assert live.error


def test_a_file_that_changes_all_the_time_and_further_files_are_followed(path: Path) -> None:
    live, changes = follow_text(path), 0
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
    with serve_page(follow_text(path), "graph.cg") as address:
        yield int(address.rstrip("/").rpartition(":")[2])


def ask(port: int, path: str, host: str | None = None, method: str = "GET") -> Any:
    """Return the answer to a request, with its text."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    answer.text = answer.read().decode()  # type: ignore[attr-defined]
    connection.close()
    return answer


def test_a_browser_gets_the_page_and_its_version_with_strict_headers(port: int) -> None:
    shell, page, news = answers = [ask(port, path) for path in ("/", "/page?a-1", "/news")]
    assert shell.text.startswith("<!doctype html>")
    assert "connect-src 'self'; frame-src 'self';" in shell.text
    assert page.text == GOOD
    state = json.loads(news.text)
    assert state["version"].endswith("-1")
    assert state["error"] == ""
    for answer in answers:
        assert answer.status == 200
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'self'"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "Python" not in answer.headers["Server"]


def test_only_this_machine_gets_only_the_page(port: int) -> None:
    foreign = ("evil.example", f"evil.example:{port}", "127.0.0.1:1", "", f"[::1]:{port}")
    addresses = ("/graph.cg", "/../graph.cg", "//etc/passwd", "/%2e%2e/graph.cg", "page", "/news/1")
    for method, address, host, status in (
        *(("GET", "/page", host, 200) for host in (f"127.0.0.1:{port}", f"localhost:{port}")),
        *(("GET", "/page", host, 403) for host in foreign),
        *(("GET", address, None, 404) for address in addresses),
        *((method, "/page", None, 501) for method in ("POST", "PUT", "DELETE", "OPTIONS")),
    ):
        answer = ask(port, address, host, method)
        assert answer.status == status, (method, address, host)
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


class Watcher:
    """Runs commands with ``--watch``, where the time between two checks is a script of edits."""

    def __init__(self) -> None:
        self.edits: list[Callable[[], object]] = []
        self.waits = 0
        self.live: LivePage | None = None
        self.pages: list[str] = []  # before each edit and at the end

    def sleep(self, seconds: float) -> None:
        """Run the next edit after enough checks to find the edit before, and Ctrl-C at the end."""
        self.waits += 1
        assert self.waits < 200, "the command does not end"
        if self.waits % 15:
            return
        assert self.live is not None
        self.pages.append(self.live.page)
        if not self.edits:
            raise KeyboardInterrupt
        self.edits.pop(0)()

    def run(self, *arguments: object, edits: Sequence[Callable[[], object]]) -> Done:
        self.edits = [*edits]
        done = here(*arguments, "--watch")
        assert done.returncode == 0, done.stderr
        return done


@pytest.fixture
def watcher(monkeypatch: pytest.MonkeyPatch) -> Watcher:
    result, original = Watcher(), LivePage.__init__

    def remember(self: LivePage, *arguments: Any) -> None:
        original(self, *arguments)
        result.live = self

    monkeypatch.setattr(LivePage, "__init__", remember)
    monkeypatch.setattr(file_watching, "time", result)
    return result


@pytest.mark.parametrize(
    "command", ["step", "draw", pytest.param("compare", marks=pytest.mark.slow)]
)
def test_a_command_follows_its_file(command: str, path: Path, watcher: Watcher) -> None:
    path.write_text(BAD)
    texts = (GOOD, BAD, "", "xw = k*xa", GOOD.replace("k", "kk"))
    edits = [lambda text=text: path.write_text(text) for text in texts]
    done = watcher.run(command, path, edits=edits)
    approved(done.stderr, f"error: {path}:1:8: ... {path} was updated")
    assert done.stdout == ""
    first, *good, unfinished, last = watcher.pages
    assert (first, len({*good}), good[0] != last) == ("", 1, True)
    assert (unfinished == good[0]) == (command != "draw")  # which needs no values
    assert all(page.startswith("<!doctype html>") for page in (*good, last))
    assert [p.name for p in path.parent.iterdir()] == ["graph.cg"]


def test_options_and_the_file_of_a_run_hold_at_every_change(path: Path, watcher: Watcher) -> None:
    run, output, pages = path.with_name("run.json"), path.with_name("a.html"), list[str]()

    def learn(k: float) -> None:
        fit = {"format": "cgprimer-fit", "graph": GOOD, "parameters": {"k": k}}
        run.write_text(json.dumps(fit))

    def keep() -> None:
        pages.append(output.read_text(encoding="utf-8"))

    learn(2.5)
    more = f"{GOOD}xv = xw + xa\n"
    edits = [keep, lambda: learn(5.25), keep, lambda: path.write_text(more), keep]
    options = ("--of", "xw", "--wrt", "xa", "--title", "A <b>", "--dark", "--method", "forward")
    done = watcher.run("step", path, "--at", run, "-o", output, *options, edits=edits)
    assert done.stderr.count(f"wrote {output}") == 3
    data = [read_data(page) for page in pages]
    assert [page["point"]["k"] for page in data] == [2.5, 5.25, 5.25]
    assert all((p["title"], p["wrt"], p["first"]) == ("A <b>", ["xa"], "forward") for p in data)
    assert all('data-look="dark"' in page and ">A &lt;b&gt;</h1>" in page for page in pages)


@pytest.mark.parametrize(("command", "words"), TABLES["wrong use of --watch"])
def test_wrong_use_ends_at_once(path: Path, command: str, words: str, watcher: Watcher) -> None:
    done = here(*command.format(path=path).split(" "))
    assert (done.returncode, watcher.waits) == (2, 0)
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
