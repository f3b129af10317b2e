"""The cache folder: contents come back unchanged, are never trusted, and never make a run fail."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import Mock

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
OTHER = compute_cache_key("another")
CONTENT = bytes(range(256)) * 50


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a cache folder that does not exist yet."""
    path = tmp_path / "some" / "cache"
    monkeypatch.setenv("CGPRIMER_CACHE", str(path))
    return path


def file_of(folder: Path, kind: str = "kind", key: str = KEY) -> Path:
    return folder / f"{kind}-{key}.cgc"


@pytest.fixture
def compute() -> Mock:
    """A computation of CONTENT that counts its calls."""
    return Mock(return_value=CONTENT)


def test_content_is_computed_once_for_each_kind_and_key(folder: Path, compute: Mock) -> None:
    assert [load_or_compute("kind", KEY, compute) for _ in range(3)] == [CONTENT] * 3
    assert compute.call_count == 1
    assert [file.name for file in folder.iterdir()] == [file_of(folder).name]
    assert load_or_compute("kind", OTHER, compute) == CONTENT
    assert load_or_compute("another", KEY, compute) == CONTENT
    assert compute.call_count == 3
    for content in (b"", b"\n", b"cgprimer cache 1\n", b"x" * 10**6):
        assert store_content("kind", KEY, content)
        assert load_content("kind", KEY) == content


def test_damaged_files_are_computed_again(folder: Path) -> None:
    load_or_compute("kind", KEY, lambda: b"content")
    whole = file_of(folder).read_bytes()
    flipped = [bytes([*whole[:k], whole[k] ^ 1, *whole[k + 1 :]]) for k in range(len(whole))]
    cut = [whole[:length] for length in range(len(whole))]
    older = whole.replace(b"cache 2", b"cache 1")
    for damaged in (*flipped, *cut, older, whole + b"\0", b"#!/bin/sh\necho hello\n"):
        file_of(folder).write_bytes(damaged)
        assert load_content("kind", KEY) is None
    assert load_or_compute("kind", KEY, lambda: b"content") == b"content"
    assert file_of(folder).read_bytes() == whole


def test_files_and_folders_in_the_way_stay_untouched(folder: Path, compute: Mock) -> None:
    file_of(folder).mkdir(parents=True)
    (file_of(folder) / "inside").write_text("foreign")
    assert [load_or_compute("kind", KEY, compute) for _ in range(2)] == [CONTENT] * 2
    assert (file_of(folder) / "inside").read_text() == "foreign"
    assert [file.name for file in folder.iterdir()] == [file_of(folder).name]
    (file_of(folder) / "inside").unlink()
    file_of(folder).rmdir()
    folder.rmdir()
    folder.write_text("a file")
    assert [load_or_compute("kind", KEY, compute) for _ in range(2)] == [CONTENT] * 2
    assert compute.call_count == 4
    assert folder.read_text() == "a file"


@pytest.mark.parametrize("fails", ["pathlib.Path.mkdir", "os.open", "pathlib.Path.replace"])
def test_a_full_disk_only_disables_the_cache(
    fails: str, folder: Path, compute: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(fails, Mock(side_effect=OSError(28, "No space left on device")))
        assert load_or_compute("kind", KEY, compute) == CONTENT
        assert not store_content("kind", KEY, CONTENT)
    assert not folder.exists() or list(folder.iterdir()) == []


def test_the_cache_can_be_disabled(
    compute: Mock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for variable in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for value in ("off", " OFF ", "0", "", "none"):
        monkeypatch.setenv("CGPRIMER_CACHE", value)
        assert find_cache_folder() is None
        assert not disk_cache.memory_caching_enabled()
        assert disk_cache.describe_cache() == "disabled"
        assert load_or_compute("kind", KEY, compute) == CONTENT
    assert compute.call_count == 5
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="other default folders")
def test_the_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, compute: Mock) -> None:
    monkeypatch.delenv("CGPRIMER_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    for value, parent in ((None, ".cache"), (str(tmp_path / "x"), "x"), ("relative", ".cache")):
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        if value is not None:
            monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert find_cache_folder() == tmp_path / parent / "cgprimer"
    for name in ("a\0b", "x" * 5000):  # impossible names of folders
        with monkeypatch.context() as patch:
            patch.setattr(disk_cache, "find_cache_folder", lambda name=name: tmp_path / name)
            assert not store_content("kind", KEY, CONTENT)
            assert load_content("kind", KEY) is None
    monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError("no home directory")))
    assert find_cache_folder() is None
    assert load_or_compute("kind", KEY, compute) == CONTENT


@pytest.mark.parametrize(
    ("limit", "value", "remaining"),
    [("_LIMIT_BYTES", 3 * (len(CONTENT) + 200), 3), ("_LIMIT_FILES", 3, 3), ("_LIMIT_BYTES", 1, 1)],
)
def test_the_least_recently_used_files_are_deleted(
    limit: str, value: int, remaining: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_cache, limit, value)
    file_of(folder, key="0").mkdir(parents=True)  # a folder does not stop the deletion
    (folder / "notes.txt").write_bytes(b"x" * 10**6)  # a foreign file is not counted
    for name, age in (("old.part", 90_000), ("new.part", 80_000)):  # of a process that was killed
        (folder / name).touch()
        os.utime(folder / name, (time.time() - age,) * 2)
    folder.parent.chmod(0o700)
    folder.chmod(0o700)
    keys = [compute_cache_key(str(number)) for number in range(6)]
    for number, key in enumerate(keys):
        assert store_content("kind", key, CONTENT)
        os.utime(file_of(folder, key=key), (1000 + number, 1000 + number))
    files = [number for number, key in enumerate(keys) if file_of(folder, key=key).exists()]
    assert files[-1] == 5
    assert files == list(range(6 - len(files), 6))
    assert max(1, remaining - 1) <= len(files) <= remaining
    assert {"notes.txt", "new.part"} == {f.name for f in folder.iterdir() if f.suffix != ".cgc"}
    assert load_content("kind", keys[5]) == CONTENT
    assert file_of(folder, key=keys[5]).stat().st_mtime > 10_000  # loading counts as use


UNIX = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="other systems have other owners")
NOBODY = 65_534


def make_unsafe(path: Path, how: str) -> None:
    """Let other users write to a file or folder."""
    if how == "owner":
        if os.geteuid():
            pytest.skip("only root can give files away")
        os.chown(path, NOBODY, NOBODY)
    else:
        path.chmod(0o775 if how == "group" else 0o757)


@UNIX
@pytest.mark.parametrize(
    "part", ["folder group", "folder world", "folder owner", "above group", "above owner"]
)
def test_a_folder_that_others_can_write_to_is_not_used(part: str, folder: Path) -> None:
    disk_cache._warn_once.cache_clear()
    store_content("kind", KEY, CONTENT)
    assert folder.stat().st_mode & 0o077 == folder.parent.stat().st_mode & 0o077 == 0
    name, how = part.split()
    make_unsafe(folder if name == "folder" else folder.parent, how)
    before = sorted(folder.iterdir())
    with warned(UserWarning):
        assert load_content("kind", KEY) is None
    assert load_or_compute("kind", OTHER, lambda: b"new") == b"new"  # no second warning
    assert sorted(folder.iterdir()) == before
    assert disk_cache.describe_cache().startswith("disabled: ")


@UNIX
@pytest.mark.parametrize("part", ["group", "world", "owner", "link", "other name"])
def test_a_file_that_others_may_have_written_is_not_used(part: str, folder: Path) -> None:
    store_content("kind", KEY, CONTENT)
    key = OTHER if part == "other name" else KEY
    if part == "link":
        file_of(folder).rename(folder / "elsewhere")
        file_of(folder).symlink_to(folder / "elsewhere")
    elif part == "other name":
        file_of(folder).rename(file_of(folder, key=key))
    else:
        make_unsafe(file_of(folder), part)
    assert load_content("kind", key) is None
    if part != "owner":
        assert store_content("kind", key, CONTENT)
        assert load_content("kind", key) == CONTENT


POOLS: dict[str, Any] = {
    "threads": ThreadPoolExecutor,
    "processes": partial(ProcessPoolExecutor, mp_context=get_context("spawn")),
}


def store(number: int) -> bytes:
    content = CONTENT + bytes([number % 20])
    return load_or_compute("kind", compute_cache_key(str(number % 20)), lambda: content)


@pytest.mark.parametrize("pool", ["threads", pytest.param("processes", marks=pytest.mark.slow)])
def test_threads_and_processes_may_store_the_same_content(pool: str, folder: Path) -> None:
    with POOLS[pool](3) as executor:
        results = list(executor.map(store, range(120)))
    assert results == [CONTENT + bytes([number % 20]) for number in range(120)]
    assert {file.suffix for file in folder.iterdir()} == {".cgc"}
    assert len([*folder.iterdir()]) == 20


def test_keys_depend_on_all_parts_and_on_the_source_of_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parts = [(), ("",), ("", ""), ("a",), ("a", ""), ("", "a"), ("ab",), ("a", "b"), ("b", "a")]
    assert len({compute_cache_key(*p) for p in parts}) == len(parts)
    assert compute_cache_key("a") == compute_cache_key(b"a")
    for name in ("one.py", "sub/two.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    monkeypatch.setattr(disk_cache, "__file__", str(tmp_path / "support" / "disk_cache.py"))
    fingerprint = disk_cache.fingerprint_package.__wrapped__
    first = fingerprint()
    assert fingerprint() == first
    (tmp_path / "sub" / "two.py").write_text("x = 22\n")
    second = fingerprint()
    (tmp_path / "three.py").write_text("")
    assert len({first, second, fingerprint()}) == 3
