"""Tables: one per section in Markdown, everything in JSON."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from .measuring import Row

PACKAGES = (
    "cgprimer", "numpy", "llvmlite", "numba", "numba-cuda", "jax", "jaxlib", "torch", "casadi",
    "autograd", "micrograd", "ComputationalGraphPrimer", "cupy-cuda13x", "cupy-cuda12x", "triton",
)  # fmt: skip


def machine(threads: int) -> dict[str, Any]:
    """What the figures were measured on, and with."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(
            (x.partition(":")[2].strip() for x in lines if x.startswith("model name")), model
        )
        flags = next((x for x in lines if x.startswith("flags")), "").split()
        wide = next((f for f in ("avx512f", "avx2", "avx") if f in flags), "")
        model += f" ({wide})" if wide else ""
    import cgprimer

    versions = {"cgprimer": cgprimer.__version__}
    for name in PACKAGES[1:]:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "threads used": threads,
        "system": platform.platform(),
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "versions": versions,
    }


def milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    ms = seconds * 1e3
    return f"{ms:,.0f}" if ms >= 1000 else f"{ms:.3g}"


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    if ratio >= 100:
        return f"{ratio:,.0f}"
    return f"{ratio:.3g}" if ratio < 0.1 else f"{ratio:.2f}"


def markdown(rows: Iterable[Row], about: dict[str, Any], ratio_to: dict[str, str]) -> str:
    """All sections as Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    rest = "; ".join(f"{k} {v}" for k, v in about.items() if k != "versions")
    lines = [f"Measured with {versions}; {rest}."]
    rows = list(rows)
    for section in dict.fromkeys(row.section for row in rows):
        mine = [row for row in rows if row.section == section]
        columns = list(dict.fromkeys(key for row in mine for key in row.extra))
        columns = [c for c in columns if c != "difference"]
        timed = any(row.first is not None for row in mine)
        head = ["workload", "who", "min, ms", "median, ms", ratio_to.get(section, "ratio")]
        head += ["before the first, ms"] if timed else []
        head += [*columns, "note"]
        lines += ["", f"## {section}", "", f"| {' | '.join(head)} |"]
        lines.append("| --- | --- |" + " ---: |" * (len(head) - 3) + " --- |")
        for row in mine:
            cells = [row.workload, row.who, milliseconds(row.seconds), milliseconds(row.median)]
            cells.append(_ratio(row.ratio))
            cells += [milliseconds(row.first)] if timed else []
            cells += [_shown(row.extra.get(column, "")) for column in columns]
            cells.append(row.note.replace("|", "/"))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def as_json(rows: Iterable[Row], about: dict[str, Any]) -> str:
    return json.dumps({"machine": about, "rows": [asdict(row) for row in rows]}, indent=1) + "\n"
