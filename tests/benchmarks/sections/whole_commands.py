"""Commands as whole processes: starting Python, importing packages, and the work itself."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ..harness import Cell, Contestant, Settings, measure, one_row_each
from ..report import ROOT, Table, milliseconds

TABLES = (Table(("command",), {"time": milliseconds}),)
LECTURE, SINE = (str(ROOT / "examples" / name) for name in ("lecture.cg", "sine.cg"))
# The text of the row, and the arguments that it leaves out.
COMMANDS = {
    "cgprimer --help": [],
    "cgprimer grad": [LECTURE],
    "cgprimer draw": [LECTURE, "-o", "lecture.png"],
    "cgprimer draw --adjoints": [LECTURE, "-o", "lecture.png"],
    "cgprimer compare": [LECTURE],
    "cgprimer step": [LECTURE, "--force", "-o", "lecture.html"],
    "cgprimer plot error": [SINE, "-o", "sine.png"],
    "cgprimer plot surface": [LECTURE, "-o", "lecture.png"],
    "cgprimer train --epochs 0": [LECTURE],
    "cgprimer train --engine auto": [LECTURE],
    "cgprimer train --engine numpy": [LECTURE],
}


def measure_cells(settings: Settings) -> Iterator[Cell]:
    program = str(Path(sys.executable).with_name("cgprimer"))
    commands = {
        f'python -c "import {name}"': [sys.executable, "-c", f"import {name}"]
        for name in ("click", "numpy")
    }
    for text, arguments in COMMANDS.items():
        commands[text] = [program, *text.split()[1:], *arguments]
    if settings.quick:
        commands = {name: commands[name] for name in ("cgprimer --help", "cgprimer grad")}
    with tempfile.TemporaryDirectory() as folder:
        run = partial(subprocess.run, check=True, capture_output=True, cwd=folder)
        makers = {
            f"`{text}`": partial(Contestant, partial(run, command))
            for text, command in commands.items()
        }
        yield from one_row_each(measure(makers, 2 * settings.budget))
