"""Install the package of docs/internals/extending.md: every command knows what it adds."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.cli.cli_tools import COMMAND, environment
from tests.docs.test_docs import FENCE, ROOT


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH with the module, and what pip writes beside it."""
    text = (ROOT / "docs" / "internals" / "extending.md").read_text(encoding="utf-8")
    blocks = {kind: body for _, kind, body in FENCE.findall(text)}
    project = tomllib.loads(blocks["toml"])["project"]
    folder = tmp_path_factory.mktemp("site")
    (folder / "my_lecture.py").write_text(blocks["py"])
    about = folder / "my_lecture-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {place}" for name, place in points.items())]
    (about / "entry_points.txt").write_text("\n".join(lines))
    return folder


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('grad -e "xw = swish(k*xa)" --at k=1,xa=2 --method backprop', "2.1815"),
        ('grad -e "xw = swish(k*xa)" --at k=1,xa=2 --engine loop', "2.1815"),
        (
            "train lecture --optimizer signs --loss log-cosh --method backprop --engine loop"
            " --samples 60 --epochs 2",
            "method backprop, engine loop, optimizer signs",
        ),
        ("draw olah -o olah.edges", ""),
        ("info", "loop: available"),
    ],
)
def test_every_command_knows_what_an_installed_package_brings(
    line: str, said: str, installed: Path, tmp_path: Path
) -> None:
    path = f"{installed}:{ROOT}"
    done = subprocess.run(
        f"{COMMAND} {line}", shell=True, capture_output=True, text=True, check=False,
        cwd=tmp_path, env=environment(PYTHONPATH=path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    if " -o " in line:
        written = (tmp_path / "olah.edges").read_text().splitlines()
        assert sorted(written) == ["a -> c", "b -> c", "b -> d", "c -> e", "d -> e"]
