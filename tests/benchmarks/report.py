"""Write figures as JSON and as the tables of docs/internals/performance.md."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from .harness import Cell, Figure

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "internals" / "performance.md"
RESULTS = Path(__file__).with_name("results.json")  # the figures of the page
PROGRAMS = Path(__file__).with_name("programs")
COMMAND = str(Path(sys.executable).with_name("cgprimer"))
PACKAGES = (
    "numpy", "scipy", "pandas", "llvmlite", "numba", "jax", "torch", "casadi", "autograd",
    "micrograd", "ComputationalGraphPrimer",
)  # fmt: skip
Format = Callable[[Figure], str]


def milliseconds(figure: Figure) -> str:
    """Return a time with three digits; a star marks a time that was scaled."""
    if figure.value is None:
        return "-"
    ms = figure.value * 1e3
    digits = 0 if ms >= 100 else 1 if ms >= 10 else 2 if ms >= 1 else 3
    return f"{ms:,.{digits}f}{'*' if figure.scaled else ''}"


def fixed(digits: int) -> Format:
    """Return a format with a fixed number of decimals."""
    return lambda figure: "-" if figure.value is None else f"{figure.value:,.{digits}f}"


@dataclass(frozen=True)
class Table:
    """A table of a section."""

    labels: tuple[str, ...]  # the headings of the columns that label the rows
    columns: Mapping[str, Format]  # the headings of the columns of figures, with their formats
    left_aligned: int | None = None  # the number of left-aligned columns, None for all labels

    def to_markdown(self, cells: Sequence[Cell]) -> str:
        """Return the table; a row without any figure is left out."""
        figures = {(cell.row, cell.column): cell.figure for cell in cells}
        head = [*self.labels, *self.columns]
        left = len(self.labels) if self.left_aligned is None else self.left_aligned
        lines = [head, ["---"] * left + ["---:"] * (len(head) - left)]
        for row in dict.fromkeys(cell.row for cell in cells):
            own = {name: figures.get((row, name), Figure()) for name in self.columns}
            if any(figure.value is not None for figure in own.values()):
                lines.append([*row, *(self.columns[name](own[name]) for name in own)])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def describe_machine() -> str:
    """Return the machine, the versions and the date of a measurement."""
    processor, flags = platform.processor() or platform.machine(), ""
    with contextlib.suppress(OSError):
        about = Path("/proc/cpuinfo").read_text()
        lines = dict(re.findall(r"^(model name|flags)\s*: (.*)", about, re.MULTILINE))
        processor, flags = lines.get("model name", processor), lines.get("flags", "")
    vectors = next((flag for flag in ("avx512f", "avx2", "avx") if flag in flags.split()), "")
    versions = []
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions.append(f"{name} {metadata.version(name)}")
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    git = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return "; ".join([
        processor + (f" ({vectors})" if vectors else "") + f", {os.cpu_count()} cores"
        + (", a virtual machine" if "hypervisor" in flags else ""),
        platform.platform().partition("-with")[0],
        f"Python {platform.python_version()}",
        ", ".join(versions),
        f"cgprimer {metadata.version('cgprimer')} at commit {git.stdout.strip()}",
        datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d."),
    ])  # fmt: skip


def heading_name(heading: str) -> str:
    """Return the name of the section, and of its file, from a heading of the page."""
    return "_".join(re.findall(r"\w+", heading.lower()))


def replace_tables(page: str, name: str, tables: Sequence[str]) -> str:
    """Return the page with other tables in one section."""
    parts = re.split(r"(?m)^(?=## )", page)
    (index,) = (i for i, part in enumerate(parts) if heading_name(part.split("\n")[0]) == name)
    remaining = iter(tables)
    parts[index], n = re.subn(r"(?m)(^\|.*\n)+", lambda _: f"{next(remaining)}\n", parts[index])
    if n != len(tables):
        raise ValueError(f"the section {name} of the page has {n} tables, not {len(tables)}")
    return "".join(parts)


def replace_machines(page: str, machines: Mapping[str, str]) -> str:
    """Return the page with the machines of its sections; other sentences about them stay."""
    sentences = []
    for machine in dict.fromkeys(machines.values()):
        names = [name.replace("_", " ") for name, other in machines.items() if other == machine]
        some = len(names) < len(machines)
        sentences.append((f"Sections {', '.join(names)}: " if some else "") + machine)
    text = f"**Machine.** {' '.join(sentences)}"
    return re.sub(r"\*\*Machine\.\*\* .*; \d{4}-\d\d-\d\d\.", lambda _: text, page)


def load_results() -> dict[str, Any]:
    return json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}


def save_results(name: str, cells: Sequence[Cell], machine: str) -> None:
    """Replace the recorded figures of one section; each cell is a line of the file."""
    results = load_results() | {name: {"machine": machine, "cells": list(map(asdict, cells))}}
    sections = []
    for section, result in results.items():
        lines = ",\n".join(json.dumps(cell, ensure_ascii=False) for cell in result["cells"])
        about = json.dumps(result["machine"])
        sections.append(f'"{section}": {{"machine": {about}, "cells": [\n{lines}\n]}}')
    RESULTS.write_text("{\n" + ",\n".join(sections) + "\n}\n", "utf-8", newline="\n")


def recorded_cells(result: Mapping[str, Any]) -> list[Cell]:
    return [
        Cell(tuple(cell["row"]), cell["column"], Figure(**cell["figure"]), cell["table"])
        for cell in result["cells"]
    ]


def section_tables(tables: Sequence[Table], cells: Sequence[Cell]) -> list[str]:
    return [
        table.to_markdown([cell for cell in cells if cell.table == index])
        for index, table in enumerate(tables)
    ]


def write_page(sections: Mapping[str, Sequence[Table]]) -> None:
    """Write the recorded figures of sections into the page."""
    page, results = PAGE.read_text("utf-8"), load_results()
    for name, tables in sections.items():
        if name in results:
            cells = recorded_cells(results[name])
            page = replace_tables(page, name, section_tables(tables, cells))
    page = replace_machines(page, {name: result["machine"] for name, result in results.items()})
    PAGE.write_text(page, "utf-8", newline="\n")
