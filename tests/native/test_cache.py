"""The folder of compiled code: used, never trusted, never a reason to fail."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cgprimer.support import disk_cache
from cgprimer.support.disk_cache import (
    compute_cache_key,
    find_cache_folder,
    load_content,
    load_or_compute,
    store_content,
)
from tests.approval import warned

KEY = compute_cache_key("a test")
CONTENT = bytes(range(256)) * 50


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that is not there yet."""
    monkeypatch.setenv("CGPRIMER_CACHE", str(tmp_path / "some" / "cache"))
    return tmp_path / "some" / "cache"


def file_of(place: Path, kind: str = "kind", key: str = KEY) -> Path:
    return place / f"{kind}-{key}.cgc"


def counted(content: bytes = CONTENT) -> tuple[Callable[[], bytes], list[int]]:
    calls: list[int] = []

    def make() -> bytes:
        calls.append(1)
        return content

    return make, calls


def test_what_is_kept_is_made_once(place: Path) -> None:
    make, calls = counted()
    assert [load_or_compute("kind", KEY, make) for _ in range(3)] == [CONTENT] * 3
    assert len(calls) == 1
    assert [file.name for file in place.iterdir()] == [file_of(place).name]
    assert load_or_compute("kind", compute_cache_key("another"), make) == CONTENT
    assert load_or_compute("another", KEY, make) == CONTENT
    assert len(calls) == 3


@pytest.mark.parametrize("content", [b"", b"\n", b"cgprimer cache 1\n", b"x" * 10**6])
def test_any_bytes_come_back(content: bytes) -> None:
    assert store_content("kind", KEY, content)
    assert load_content("kind", KEY) == content


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "first byte": lambda d: flipped(d, 0),
    "checksum": lambda d: flipped(d, 20),
    "middle": lambda d: flipped(d, len(d) // 2),
    "last byte": lambda d: flipped(d, len(d) - 1),
    "half": lambda d: d[: len(d) // 2],
    "one byte less": lambda d: d[:-1],
    "one byte more": lambda d: d + b"\0",
    "empty": lambda d: b"",
    "only the beginning": lambda d: d[:17],
    "another file": lambda d: b"#!/bin/sh\necho hello\n",
    "an older version": lambda d: d.replace(b"cache 2", b"cache 1"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_file_that_is_damaged_is_made_again(what: str, place: Path) -> None:
    make, calls = counted()
    load_or_compute("kind", KEY, make)
    whole = file_of(place).read_bytes()
    file_of(place).write_bytes(DAMAGE[what](whole))
    assert load_content("kind", KEY) is None
    assert load_or_compute("kind", KEY, make) == CONTENT
    assert len(calls) == 2
    assert file_of(place).read_bytes() == whole
    load_or_compute("kind", KEY, make)
    assert len(calls) == 2


def test_a_folder_in_place_of_a_file(place: Path) -> None:
    file_of(place).mkdir(parents=True)
    (file_of(place) / "inside").write_text("not ours")
    make, calls = counted()
    assert [load_or_compute("kind", KEY, make) for _ in range(2)] == [CONTENT] * 2
    assert len(calls) == 2
    assert (file_of(place) / "inside").read_text() == "not ours"
    assert [file.name for file in place.iterdir()] == [file_of(place).name]  # no leftovers
    assert store_content("kind", compute_cache_key("another"), CONTENT)


def test_a_file_in_place_of_the_folder(place: Path) -> None:
    place.parent.mkdir()
    place.write_text("a file")
    make, calls = counted()
    assert load_or_compute("kind", KEY, make) == CONTENT
    assert load_or_compute("kind", KEY, make) == CONTENT
    assert len(calls) == 2
    assert place.read_text() == "a file"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_or_read(place: Path) -> None:
    make, calls = counted()
    place.mkdir(parents=True)
    load_or_compute("kind", KEY, make)
    place.chmod(0o500)
    try:
        assert load_or_compute("kind", KEY, make) == CONTENT
        assert len(calls) == 1  # what is there is read
        assert load_or_compute("kind", compute_cache_key("new"), make) == CONTENT
        place.chmod(0o000)
        assert load_or_compute("kind", KEY, make) == CONTENT
        assert len(calls) == 3
    finally:
        place.chmod(0o700)


@pytest.mark.parametrize("fails", ["pathlib.Path.mkdir", "os.open", "pathlib.Path.replace"])
def test_a_disk_that_takes_nothing(
    fails: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    make, calls = counted()
    with monkeypatch.context() as patch:
        patch.setattr(fails, refused)
        assert [load_or_compute("kind", KEY, make) for _ in range(2)] == [CONTENT] * 2
        assert not store_content("kind", KEY, CONTENT)
    assert len(calls) == 2
    assert not place.exists() or list(place.iterdir()) == []


@pytest.mark.parametrize("off", ["off", "OFF", " off ", "0", "", "none"])
def test_nothing_is_kept_if_so_wished(
    off: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CGPRIMER_CACHE", off)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    make, calls = counted()
    assert find_cache_folder() is None
    assert [load_or_compute("kind", KEY, make) for _ in range(2)] == [CONTENT] * 2
    assert len(calls) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="other folders there")
def test_where_it_is_without_a_word(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CGPRIMER_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert find_cache_folder() == tmp_path / ".cache" / "cgprimer"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert find_cache_folder() == tmp_path / "x" / "cgprimer"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert find_cache_folder() == tmp_path / ".cache" / "cgprimer"


def test_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("CGPRIMER_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert find_cache_folder() is None
    assert load_or_compute("kind", KEY, lambda: CONTENT) == CONTENT


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_names_that_no_folder_can_have(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(disk_cache, "find_cache_folder", lambda: tmp_path / name)
    assert not store_content("kind", KEY, CONTENT)
    assert load_content("kind", KEY) is None
    assert load_or_compute("kind", KEY, lambda: CONTENT) == CONTENT


# --- room ----------------------------------------------------------------------------------------


def test_the_oldest_go_when_there_is_no_room(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(CONTENT) + 200
    monkeypatch.setattr(disk_cache, "_LIMIT_BYTES", 3 * size)
    (place.parent).mkdir(exist_ok=True)
    place.mkdir()
    (place / "notes.txt").write_bytes(b"x" * 10 * size)  # not ours: neither counted nor touched
    for number in range(6):
        key = compute_cache_key(str(number))
        assert store_content("kind", key, CONTENT)
        os.utime(file_of(place, key=key), (1000 + number, 1000 + number))
    left = {
        number
        for number in range(6)
        if load_content("kind", compute_cache_key(str(number))) is not None
    }
    assert 5 in left
    assert left == set(range(6 - len(left), 6))
    assert 2 <= len(left) <= 3
    assert (place / "notes.txt").exists()


def test_the_oldest_go_when_there_are_too_many_to_look_at(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_cache, "_LIMIT_FILES", 3)
    for number in range(6):
        assert store_content("kind", compute_cache_key(str(number)), CONTENT)
        os.utime(file_of(place, key=compute_cache_key(str(number))), (1000 + number, 1000 + number))
    assert [n for n in range(6) if load_content("kind", compute_cache_key(str(n))) is not None] == [
        3,
        4,
        5,
    ]


def test_what_is_larger_than_all_room_is_kept_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_content("kind", compute_cache_key("before"), CONTENT)
    monkeypatch.setattr(disk_cache, "_LIMIT_BYTES", 100)
    assert store_content("kind", KEY, CONTENT)
    assert load_content("kind", KEY) == CONTENT
    assert load_content("kind", compute_cache_key("before")) is None


def test_a_folder_among_the_files_does_not_stop_the_clearing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_of(place, key="0").mkdir(parents=True)
    os.utime(file_of(place, key="0"), (1, 1))
    monkeypatch.setattr(disk_cache, "_LIMIT_BYTES", 100)
    for number in range(3):
        assert store_content("kind", compute_cache_key(str(number)), CONTENT)
    assert sum(file.is_file() for file in place.iterdir()) == 1


def test_the_folder_is_the_users_own(place: Path) -> None:
    store_content("kind", KEY, CONTENT)
    assert os.name == "nt" or place.stat().st_mode & 0o077 == 0


# --- others who can write ------------------------------------------------------------------------

UNIX = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="other systems have other owners")
NOBODY = 65_534


@pytest.fixture
def said() -> Iterator[None]:
    """Each test hears the warning that is given once."""
    disk_cache._warn_once.cache_clear()
    yield
    disk_cache._warn_once.cache_clear()


def untrusted(part: str, place: Path) -> Callable[[], None]:
    """Something done to a folder, a file, or what is above it."""
    paths = {"folder": place, "above": place.parent, "file": file_of(place)}
    what, _, how = part.partition(" ")
    if how == "owner":
        return lambda: os.chown(paths[what], NOBODY, NOBODY)
    return lambda: paths[what].chmod(0o775 if how == "group" else 0o757)


@UNIX
@pytest.mark.parametrize("part", ["folder group", "folder world", "folder owner", "above group",
                                  "above owner"])  # fmt: skip
def test_a_folder_that_others_can_write_to_is_not_used(part: str, place: Path, said: None) -> None:
    if part.endswith("owner") and os.geteuid():
        pytest.skip("only root can give files away")
    store_content("kind", KEY, CONTENT)
    assert load_content("kind", KEY) == CONTENT
    untrusted(part, place)()
    before = sorted(place.iterdir())
    with warned(UserWarning):
        assert load_content("kind", KEY) is None
    another = compute_cache_key("another")
    assert load_or_compute("kind", another, lambda: b"made") == b"made"  # no second warning
    assert sorted(place.iterdir()) == before
    assert disk_cache.describe_cache().startswith("disabled: ")


@UNIX
@pytest.mark.parametrize("part", ["file group", "file world", "file owner"])
def test_a_file_that_others_can_write_to_is_not_used(part: str, place: Path) -> None:
    if part.endswith("owner") and os.geteuid():
        pytest.skip("only root can give files away")
    store_content("kind", KEY, CONTENT)
    untrusted(part, place)()
    assert load_content("kind", KEY) is None


@UNIX
def test_a_link_in_place_of_a_file_is_not_followed(place: Path, tmp_path: Path) -> None:
    store_content("kind", KEY, CONTENT)
    file_of(place).rename(tmp_path / "elsewhere")
    file_of(place).symlink_to(tmp_path / "elsewhere")
    assert load_content("kind", KEY) is None
    assert store_content("kind", KEY, CONTENT)
    assert load_content("kind", KEY) == CONTENT


def test_a_valid_file_under_another_name_is_refused(place: Path) -> None:
    store_content("kind", KEY, CONTENT)
    file_of(place).rename(file_of(place, key=compute_cache_key("another")))
    assert load_content("kind", compute_cache_key("another")) is None


def test_missing_folders_are_the_users_own(place: Path) -> None:
    old = os.umask(0)
    try:
        store_content("kind", KEY, CONTENT)
    finally:
        os.umask(old)
    assert load_content("kind", KEY) == CONTENT


_RUN = """
import numpy as np, cgprimer
from cgprimer.core.evaluation.engines import select_engine
for number in {numbers}:
    tape = cgprimer.tape(cgprimer.parse(f"xw = xa + {{number}}"))
    run = select_engine("cpu").compile(tape, reduction="sum", dtype="float64")
    print(run({{"xa": np.zeros(64)}}, {{}}, 64)["xw"])
"""


@UNIX
@pytest.mark.parametrize("part", ["folder world", "folder owner", ""])
def test_planted_code_is_not_run(part: str, place: Path) -> None:
    """Object code of another tape in the place of the right one computes another sum."""
    pytest.importorskip("llvmlite")
    if part.endswith("owner") and os.geteuid():
        pytest.skip("only root can give files away")

    def computed(*numbers: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", _RUN.format(numbers=numbers)]
        return subprocess.run(command, capture_output=True, text=True, check=True)

    assert computed(1, 2).stdout == "64.0\n128.0\n"
    one, two = sorted(place.glob("straight-line-*"), key=lambda file: file.stat().st_mtime)
    if part:  # a planted file may well have a right checksum
        data = one.read_bytes()[len(disk_cache._MAGIC) + 32 :]
        two.write_bytes(disk_cache._create_header(two.name, data) + data)
        untrusted(part, place)()
    else:  # two valid files changed about
        two.write_bytes(one.read_bytes())
    run = computed(2)
    assert run.stdout == "128.0\n"
    assert ("the cache of compiled code is disabled" in run.stderr) == bool(part)


# --- others at the same time ---------------------------------------------------------------------


def test_threads_that_keep_the_same_thing(place: Path) -> None:
    found: list[bytes] = []
    barrier = threading.Barrier(6)

    def work() -> None:
        barrier.wait()
        for number in range(20):
            found.append(
                load_or_compute(
                    "kind", compute_cache_key(str(number)), lambda n=number: CONTENT + bytes([n])
                )
            )

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(found) == sorted(CONTENT + bytes([n]) for n in range(20) for _ in range(6))
    for number in range(20):
        assert load_content("kind", compute_cache_key(str(number))) in (
            None,
            CONTENT + bytes([number]),
        )
    assert not list(place.glob("*.part"))
    assert not list(place.glob(".*.part"))


_MANY = """
import sys
from cgprimer.support.disk_cache import compute_cache_key, load_or_compute
for number in range(150):
    content = bytes([number]) * 20_000
    key = compute_cache_key(str(number))
    assert load_or_compute("kind", key, lambda: content) == content
"""


def test_processes_that_keep_the_same_things(place: Path) -> None:
    runs = [subprocess.Popen([sys.executable, "-c", _MANY]) for _ in range(2)]
    assert [run.wait(timeout=100) for run in runs] == [0, 0]
    for number in range(150):
        assert load_content("kind", compute_cache_key(str(number))) == bytes([number]) * 20_000
    assert len(list(place.iterdir())) == 150


# --- keys ----------------------------------------------------------------------------------------


def test_keys_tell_everything_apart() -> None:
    parts = [(), ("",), ("", ""), ("a",), ("a", ""), ("", "a"), ("ab",), ("a", "b"), ("b", "a")]
    assert len({compute_cache_key(*p) for p in parts}) == len(parts)
    assert compute_cache_key("a") == compute_cache_key(b"a")


def test_the_state_of_the_package_follows_its_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("one.py", "sub/two.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    monkeypatch.setattr(disk_cache, "__file__", str(tmp_path / "support" / "disk_cache.py"))
    state = disk_cache.fingerprint_package.__wrapped__
    first = state()
    assert state() == first
    (tmp_path / "sub" / "two.py").write_text("x = 22\n")
    second = state()
    (tmp_path / "three.py").write_text("")
    assert len({first, second, state()}) == 3


LOSS = """
import sys, numpy as np, cgprimer
factor = sys.argv[1]
cgprimer.register_primitive(
    "hub", lambda a: float(factor) * a * a, partials=f"{2 * float(factor)}*a"
)
text = "; ".join(f"x{k + 1} = sin(x{k}) + k*x{k}" for k in range(400))
graph = cgprimer.parse(text)
data = cgprimer.Dataset.from_arrays(inputs={"x0": [0.1]}, targets={"x400": [0.2]})
call = cgprimer.loss_and_gradient(graph, data, loss="hub(out-target)", engine="numpy")
print(call({"k": -0.5})[1]["k"])
"""


def test_a_loss_with_a_primitive_from_outside_is_not_taken_from_the_cache(tmp_path: Path) -> None:
    found = []
    for factor in ("1", "3"):
        run = subprocess.run(
            [sys.executable, "-c", LOSS, factor],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "CGPRIMER_CACHE": str(tmp_path)},
        )
        found.append(float(run.stdout))
    assert found[0] != 0
    assert found[1] == pytest.approx(3 * found[0], rel=1e-12)
