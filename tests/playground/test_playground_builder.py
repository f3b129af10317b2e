"""The folder of the playground: its content, its policy, and the folders that it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from cgprimer.cli import cli
from cgprimer.errors import UsageError
from cgprimer.visualization.playground import playground_builder
from cgprimer.visualization.playground.playground_builder import (
    PYODIDE,
    read_pyodide,
    write_playground,
)


@pytest.fixture(scope="module")
def online(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_playground(tmp_path_factory.mktemp("online") / "new")


def test_the_page_has_a_strict_policy_and_no_inline_code(online: Path) -> None:
    page = (online / "index.html").read_text("utf-8")
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)[0]
    assert policy.startswith("default-src 'none'; script-src 'self' 'wasm-unsafe-eval' https://cdn")
    assert policy.count("https://") == policy.count(f"/pyodide/v{PYODIDE}/full/") == 2  # no other
    assert "unsafe-inline" not in policy
    assert "'unsafe-eval'" not in policy
    scripts = re.findall(r"<script([^>]*)>([^<]*)</script>", page)
    assert [bool(text) for attributes, text in scripts if "application/json" not in attributes] == [
        False
    ]
    assert not re.search(r"<style|\son\w+=|\sstyle=", page)
    example = json.loads(page.split('type="application/json">')[1].split("<")[0])["precomputed"]
    assert example["graph"]["gradient"]["cd"] == 0.25


def test_the_manifest_lists_all_files_and_the_licenses_are_complete(online: Path) -> None:
    names = {path.relative_to(online).as_posix() for path in online.rglob("*") if path.is_file()}
    assert set(json.loads((online / "playground.json").read_text("utf-8"))["files"]) == names
    text = (online / "licenses.html").read_text("utf-8")
    for package in ("cgprimer", "jinja2", "markupsafe", "sympy", "mpmath", "dagre", "Pyodide"):
        assert f"<h2>{package} " in text
    version = json.loads((online / "playground.json").read_text("utf-8"))["version"]
    worker = (online / "service_worker.js").read_text("utf-8")
    assert f"cgprimer-playground-{version}" in worker
    assert f"cgprimer.zip?v={version}" in worker
    assert "sympy.zip" not in worker  # loaded only when asked for


def test_the_offline_folder_is_small_enough_and_needs_no_other_server(playground: Path) -> None:
    sizes = {path.name: path.stat().st_size for path in playground.rglob("*") if path.is_file()}
    assert sum(sizes.values()) - sizes["sympy.zip"] < 16e6
    assert "cdn.jsdelivr.net" not in (playground / "index.html").read_text("utf-8")


def test_versions_depend_on_contents(monkeypatch: pytest.MonkeyPatch) -> None:
    def render(content: bytes) -> str:
        monkeypatch.setattr(playground_builder, "build_sympy_archive", lambda: content)
        return json.loads(playground_builder.render_playground({})["playground.json"])["version"]

    assert render(b"one") == render(b"one") != render(b"two")


def test_only_an_older_playground_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playground_builder, "build_sympy_archive", bytes)  # which takes a second
    runner, output = CliRunner(), tmp_path / "page"
    first = runner.invoke(cli, ["playground", "-o", str(output)], catch_exceptions=False)
    assert first.exit_code == 0
    assert f"python -m http.server -d {output}" in first.output
    with pytest.raises(UsageError, match="already contains a playground"):
        write_playground(output)
    before = {p.name: p.read_bytes() for p in output.iterdir() if p.is_file()}
    write_playground(output, force=True)
    assert {p.name: p.read_bytes() for p in output.iterdir() if p.is_file()} == before
    (output / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"other files, such as thesis\.txt"):
        write_playground(output, force=True)
    assert (output / "thesis.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["page"]  # nothing incomplete is left


def test_links_and_interrupts_lose_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playground_builder, "build_sympy_archive", bytes)
    folder, link, others = tmp_path / "real", tmp_path / "link", tmp_path / "others"
    for path in (folder, others):
        path.mkdir()
    link.symlink_to(folder)
    write_playground(link)
    assert link.is_symlink()
    assert (folder / "index.html").is_file()

    rename = Path.rename

    def interrupt(path: Path, target: Path) -> Path:
        if path.name == "new":
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_playground(link, force=True)
    assert (folder / "index.html").is_file()
    (folder / "photos").symlink_to(others)
    with pytest.raises(UsageError, match="other files, such as photos"):
        write_playground(link, force=True)
    (folder / "photos").unlink()
    (folder / "playground.json").write_text("[" * 100_000)
    with pytest.raises(UsageError, match="other files"):
        write_playground(link, force=True)
    assert {path.name for path in tmp_path.iterdir()} == {"real", "link", "others"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("link.whl", "a link to a file outside"),
        ("folder.whl", "not a file of Pyodide"),
        ("a b.whl", "not a file of Pyodide"),
    ],
)
def test_pyodide_publishes_no_other_files(tmp_path: Path, name: str, message: str) -> None:
    folder = tmp_path / "pyodide"
    folder.mkdir()
    for required in (*playground_builder._PYODIDE_FILES, "secret.whl"):
        (folder / required).write_text("")
    (folder / "package.json").write_text(json.dumps({"version": PYODIDE}))
    (tmp_path / "secret").write_text("secret")
    if name == "link.whl":
        (folder / name).symlink_to(tmp_path / "secret")
    elif name == "folder.whl":
        (folder / name).mkdir()
    else:
        (folder / "secret.whl").rename(folder / name)
    with pytest.raises(UsageError, match=message):
        read_pyodide(folder)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "pyodide.mjs is missing"),
        ({"package.json": '{"version": "0.26.1"}'}, "contains Pyodide 0.26.1, not 314.0.7"),
        ({"package.json": "nonsense"}, "package.json is damaged"),
        ({"package.json": "[" * 100_000}, "package.json is damaged"),
    ],
    ids=["empty", "old", "damaged", "deep"],
)
def test_a_folder_without_pyodide_is_refused(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    names = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
    for name in (*names, "pyodide-lock.json") if files else ():
        (tmp_path / name).write_text("")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=message) as refused:
        read_pyodide(tmp_path)
    assert "npm pack pyodide@314.0.7" in refused.value.hint
