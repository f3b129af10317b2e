"""Pages that follow a file: when they are made anew, and who may ask for them."""

from __future__ import annotations

import http.client
import json
import os
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
from tests.cli.cli_tools import LECTURE, environment, here

GOOD, BAD = "xw = k*xa^2\nparameter k = 3\ninput xa = 0.5\n", "xw = k*\n"


# --- what is shown, and when it is made anew -----------------------------------------------------
@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "graph.cg"
    path.write_text(GOOD)
    return path


def reading(path: Path) -> LivePage:
    def page() -> str:
        text = path.read_text() if path.exists() else ""
        if not text or text == BAD:
            raise UsageError(f"{text!r} is no graph")
        return text

    return LivePage(page, [str(path)])


def looked(live: LivePage, times: int = 12) -> int:
    """How many of so many looks found something new."""
    return sum(live.refresh() for _ in range(times))


def saved_in_place(path: Path, text: str) -> None:
    path.write_text(text)


def saved_by_rename(path: Path, text: str) -> None:
    other = path.with_name(".graph.cg.swp")
    other.write_text(text)
    other.replace(path)


def saved_beside_a_backup(path: Path, text: str) -> None:
    path.rename(path.with_name("graph.cg~"))
    path.write_text(text)


SAVED = (saved_in_place, saved_by_rename, saved_beside_a_backup)


@pytest.mark.parametrize("save", SAVED)
def test_however_an_editor_saves(path: Path, save: Callable[[Path, str], None]) -> None:
    live = reading(path)
    assert live.refresh()
    for number in (2, 3):
        text = f"{GOOD}# {number}\n"
        save(path, text)
        assert looked(live) == 1
        assert (live.page, live.error, live.version) == (text, "", number)
    assert looked(live) == 0


def test_an_error_leaves_the_last_page(path: Path) -> None:
    live = reading(path)
    live.refresh()
    path.write_text(BAD)
    assert looked(live) == 1
    assert (live.page, live.version) == (GOOD, 1)
    assert "no graph" in live.error
    path.write_text(GOOD)
    assert looked(live) == 1
    assert (live.page, live.error, live.version) == (GOOD, "", 1)  # the same page: none is swapped


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "empty"])
def test_a_file_in_mid_save_is_left_alone(path: Path, gone: bool) -> None:
    live = reading(path)
    live.refresh()
    path.unlink() if gone else path.write_text("")
    assert looked(live, 5) == 0
    path.write_text(f"{GOOD}# more\n")
    assert looked(live, 2) == 1
    assert live.error == ""
    path.unlink() if gone else path.write_text("")  # and for good
    assert looked(live) == 1
    assert live.error
    path.write_text(GOOD)
    assert looked(live) == 1
    assert (live.page, live.error) == (GOOD, "")


def test_a_file_that_never_rests_is_shown_nevertheless(path: Path) -> None:
    live = reading(path)
    live.refresh()
    found = 0
    for number in range(30):
        path.write_text("#" * number + GOOD)
        found += live.refresh()
    assert 2 <= found <= 5


def test_files_are_followed_that_are_read_on_the_way(path: Path, tmp_path: Path) -> None:
    files, run = [str(path)], tmp_path / "run.json"
    run.write_text("1")

    def page() -> str:
        files[1:] = [str(run)]
        return path.read_text() + run.read_text()

    live = LivePage(page, files)
    assert live.refresh()
    assert looked(live) == 0
    run.write_text("2 now")
    assert looked(live) == 1
    assert live.page == f"{GOOD}2 now"


def test_a_defect_does_not_end_it(path: Path) -> None:
    live = LivePage(lambda: f"{1 / (len(path.read_text()) - 2):.0f}", [str(path)])
    live.refresh()
    path.write_text("12")
    assert looked(live) == 1
    assert live.error == "this is a defect of cgprimer: ZeroDivisionError: division by zero"
    path.write_text("123")
    assert looked(live) == 1
    assert live.page == "1"


# --- who may ask ---------------------------------------------------------------------------------
@pytest.fixture
def served(path: Path) -> Iterator[int]:
    live = reading(path)
    live.refresh()
    with serve_page(live, "graph.cg") as address:
        yield int(address.rstrip("/").rpartition(":")[2])


def ask(port: int, path: str, host: str | None = None, method: str = "GET") -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.putrequest(method, path, skip_host=host is not None)
    if host is not None:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    answer.text = answer.read().decode()  # type: ignore[attr-defined]
    connection.close()
    return answer


def test_a_browser_is_given_the_page_and_the_news(served: int) -> None:
    shell, page, news = (ask(served, where) for where in ("/", "/page?a-1", "/news"))
    assert [a.status for a in (shell, page, news)] == [200] * 3
    assert shell.text.startswith("<!doctype html>")
    assert "connect-src 'self'; frame-src 'self';" in shell.text
    assert page.text == GOOD
    told = json.loads(news.text)
    assert told["version"].endswith("-1")
    assert told["error"] == ""
    for answer in (shell, page, news):
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'self'"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "Python" not in answer.headers["Server"]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1:1", "", "[::1]:{port}"]
)
def test_other_names_for_this_machine_are_turned_away(served: int, host: str) -> None:
    answer = ask(served, "/page", host.format(port=served))
    assert answer.status == 403
    assert GOOD not in answer.text


def test_its_two_own_names_are_not(served: int) -> None:
    for name in ("127.0.0.1", "localhost"):
        assert ask(served, "/page", f"{name}:{served}").status == 200


@pytest.mark.parametrize(
    "where",
    ["/graph.cg", "/../graph.cg", "//etc/passwd", "/%2e%2e/graph.cg", "/page/", "page", "/news/1"],
)
def test_there_are_no_files(served: int, where: str) -> None:
    answer = ask(served, where)
    assert answer.status == 404
    assert "k*xa" not in answer.text


def test_nothing_can_be_sent(served: int) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert ask(served, "/page", method=method).status == 501


def test_only_this_machine_is_answered(served: int) -> None:
    with socket.socket() as one:
        one.settimeout(2)
        other = one.connect_ex(("127.0.0.2", served))  # not the address that is listened at
    assert other != 0


def test_a_browser_that_says_nothing_or_hangs_up_holds_nobody_up(
    served: int, capfd: pytest.CaptureFixture[str]
) -> None:
    silent = [socket.create_connection(("127.0.0.1", served)) for _ in range(20)]
    for one in silent[:10]:
        one.sendall(b"GET /page HTTP/1.1\r\nHost: ")
        one.close()
    assert ask(served, "/page").text == GOOD
    for one in silent[10:]:
        one.close()
    assert capfd.readouterr() == ("", "")


def test_a_port_that_is_taken(path: Path, served: int) -> None:
    with pytest.raises(UsageError) as caught:
        serve_page(reading(path), "graph.cg", port=served).__enter__()
    approved(str(caught.value).replace(str(served), "<port>"), "<port>")
    done = here("step", path, "--watch", "--port", served)
    assert done.returncode == 2
    approved(done.stderr.replace(str(served), "<port>"), "<port> ... --port")


# --- the commands --------------------------------------------------------------------------------
class Watched:
    """Stands in for the time between two looks: a script of edits, then Ctrl-C."""

    def __init__(self, *edits: Callable[[], object]) -> None:
        self.edits, self.waits = list(edits), 0

    def sleep(self, seconds: float) -> None:
        self.waits += 1
        assert self.waits < 200, "nobody ends it"
        if self.waits % 15:  # looks enough for whatever was done
            return
        if not self.edits:
            raise KeyboardInterrupt
        self.edits.pop(0)()


def follow(
    monkeypatch: pytest.MonkeyPatch, *arguments: object, edits: Any = ()
) -> tuple[Any, list[str]]:
    """Run a command with ``--watch``; its pages before each edit and at last."""
    pages: list[str] = []
    made: list[LivePage] = []
    original = LivePage.__init__

    def remembered(self: LivePage, *given: Any) -> None:
        original(self, *given)
        made.append(self)

    monkeypatch.setattr(LivePage, "__init__", remembered)
    kept = [lambda e=e: (pages.append(made[0].page), e()) for e in edits]
    kept.append(lambda: pages.append(made[0].page))
    monkeypatch.setattr(file_watching, "time", Watched(*kept))
    return here(*arguments, "--watch"), pages


@pytest.mark.parametrize("command", ["step", "compare", "draw"])
def test_a_command_follows_its_file(
    command: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edits = [lambda: path.write_text(BAD), lambda: path.write_text(GOOD.replace("k", "kk"))]
    done, pages = follow(monkeypatch, command, path, edits=edits)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    said = done.stderr.splitlines()
    assert said[0].startswith(f"serving {path} at http://127.0.0.1:")
    assert f"error: {path}:1:8: " in said[1]
    assert said[2:4] == ["  xw = k*", "         ^"]
    assert said[-3:] == [f"{path} was updated", "", f"stopped watching {path}"]
    assert pages[0] == pages[1] != pages[2]
    assert all(page.startswith("<!doctype html>") for page in pages)
    assert [p.name for p in path.parent.iterdir()] == ["graph.cg"]


@pytest.mark.parametrize(
    ("command", "name"),
    [("draw", "a.svg"), ("step", "a.html"), ("compare", "a.html"), ("draw", "a.dot")],
)
def test_a_file_is_written_anew_at_every_change(
    command: str, name: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, written = tmp_path / name, list[bytes]()
    edits = [
        lambda: (written.append(output.read_bytes()), path.write_text(GOOD.replace("k", "other"))),
        lambda: written.append(output.read_bytes()),
    ]
    done, _ = follow(monkeypatch, command, path, "-o", output, edits=edits)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"wrote {output}") == 2
    assert len(set(written)) == 2


def test_the_file_of_a_run_is_followed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run.json"

    def learn(k: float) -> None:
        fit = {"format": "cgprimer-fit", "graph": GOOD, "parameters": {"k": k}}
        run.write_text(json.dumps(fit))

    learn(2.5)
    done, pages = follow(monkeypatch, "step", path, "--at", run, edits=[lambda: learn(5.25)])
    assert done.returncode == 0, done.stderr
    points = [json.loads(page.partition('"point":')[2].partition("}")[0] + "}") for page in pages]
    assert [point["k"] for point in points] == [2.5, 5.25]


def test_options_hold_at_every_change(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edits = [lambda: path.write_text(f"{GOOD}xv = xw + xa\n")]
    arguments = (
        "--of",
        "xw",
        "--wrt",
        "xa",
        "--title",
        "LivePage <b>",
        "--dark",
        "--method",
        "reverse",
    )
    done, pages = follow(monkeypatch, "step", path, *arguments, edits=edits)
    assert done.returncode == 0, done.stderr
    for page in pages:
        assert "<h1>LivePage &lt;b&gt;</h1>" in page
        assert 'data-look="dark"' in page
        assert '"wrt":["xa"]' in page
        assert '"first":"reverse"' in page


@pytest.mark.parametrize("text", [BAD, "", "# soon\n", "xw = k*xa"])
def test_a_text_that_can_be_mended_is_waited_for(
    text: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text(text)
    done, pages = follow(monkeypatch, "step", path, edits=[lambda: path.write_text(GOOD)])
    assert done.returncode == 0
    assert pages[0] == ""
    assert pages[1].startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--port", "8000"), "--port ... --watch"),
        (("--open",), "--open ... --watch"),
        (("--watch", "--port", "70000"), "70000"),
        (("--watch", "--level", "nothing"), "'nothing'"),
        (("--watch", "--format", "png"), "--format"),
        (("--watch", "-o", "nowhere/a.html"), ""),
        (("--watch", "--wrt", "zz"), "'zz'"),
    ],
)
def test_wrong_use_ends_at_once(
    path: Path, arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_watching, "time", Watched())
    done = here("step", path, *arguments)
    assert done.returncode == 2
    approved(done.stderr, said)


def test_only_files_can_be_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_watching, "time", Watched())
    for arguments in (("-e", "xw = 2*xa"), ("-",)):
        done = here("draw", *arguments, "--watch", stdin=GOOD)
        assert done.returncode == 2
        approved(done.stderr, "--watch")
    done = here("draw", "lectur", "--watch")
    assert done.returncode == 2
    approved(done.stderr, "'lecture'")
    done = here("compare", LECTURE, "--watch", "--json")
    approved(done.stderr, "--watch ... --json")


def test_ctrl_c_ends_it_at_once(path: Path) -> None:
    program = [sys.executable, "-m", "cgprimer", "step", str(path), "--watch", "--open"]
    given = environment(BROWSER="lynx", DISPLAY="")
    running = subprocess.Popen(program, stderr=subprocess.PIPE, text=True, env=given)
    assert running.stderr is not None
    try:
        assert "at http://127.0.0.1:" in running.stderr.readline()
        assert "no browser found" in running.stderr.readline()
        running.send_signal(signal.SIGINT)
        assert running.wait(5) == 0
        assert running.stderr.read().split("\n") == ["", f"stopped watching {path}", ""]
    finally:
        running.kill()
        running.wait()
        running.stderr.close()


def test_an_example_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    done, pages = follow(monkeypatch, "draw", "lecture")
    assert done.returncode == 0
    assert 'alt="graph of' in pages[0]
    assert os.path.exists(LECTURE)


def test_nothing_goes_on_when_it_is_served_no_more(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with serve_page(reading(tmp_path / "graph.cg"), "graph.cg"):
        assert len(set(threading.enumerate()) - before) == 1
    assert not [one for one in set(threading.enumerate()) - before if one.is_alive()]
