"""``python -m tests.benchmarks``: what things cost, measured side by side in one run."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from pathlib import Path

from .settings import Settings, hold_to_threads, quietly

# Repeated here so that --help and --threads need not import numpy.
NAMES = (
    "gradients", "batch", "epoch", "minibatch", "methods", "reverse", "first", "parse", "chain",
    "calls", "process", "recorded", "matrices", "learning", "fits", "homework", "million",
    "bandwidth",
)  # fmt: skip


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description="What things cost, measured side by side in one run. Results are checked"
        " against cgprimer's numpy engine before any time is printed.",
    )
    made.add_argument(
        "sections", nargs="*", metavar="SECTION",
        help=f"of: {', '.join(NAMES)} ('million' only when asked for, 'bandwidth' only with"
        " --engine cuda; all others unless given)",
    )  # fmt: skip
    made.add_argument("--engine", choices=("cpu", "cuda"), default="cpu", help="CPU peers, or GPU")
    made.add_argument("--workload", action="append", default=[], metavar="NAME",
                      help="W1, M1, M2, r100, r1k, r10k, r100k, N64; may be repeated")  # fmt: skip
    made.add_argument("--peer", action="append", default=[], metavar="PART",
                      help="only peers with this in their name (cgprimer always)")  # fmt: skip
    made.add_argument("--samples", action="append", default=[], type=float, metavar="N",
                      help="other sizes than usual (1e8 will do); may be repeated")  # fmt: skip
    made.add_argument("--dtype", action="append", choices=("float64", "float32"),
                      help="float64 unless given; give both for both")  # fmt: skip
    made.add_argument("--quick", action="store_true", help="small sizes, to see that all works")
    made.add_argument("--budget", type=float, metavar="S", help="seconds per contestant (2)")
    made.add_argument("--compile-budget", type=float, default=60.0, metavar="S",
                      help="who would compile for longer is left out (60)")  # fmt: skip
    made.add_argument("--torch-compile", action="store_true", help="whatever it costs")
    made.add_argument("--threads", type=int, default=2, metavar="N", help="(2)")
    made.add_argument("--markdown", type=Path, metavar="FILE")
    made.add_argument("--json", type=Path, metavar="FILE")
    return made


def main(arguments: list[str] | None = None) -> int:
    made = parser()
    given = made.parse_args(arguments)
    if given.engine == "cpu" and arguments is None:
        hold_to_threads(given.threads)
    # JAX would take three quarters of the GPU's memory for itself.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    from .measuring import Row
    from .sections import GPU_SECTIONS, OPTIONAL, RATIO_TO, SECTIONS
    from .sections.gpu import no_gpu
    from .workloads import WORKLOADS

    sections = GPU_SECTIONS if given.engine == "cuda" else SECTIONS
    for kind, names, known in (
        ("section", given.sections, sections),
        ("workload", given.workload, WORKLOADS),
    ):
        unknown = [name for name in names if name not in known]
        if unknown:
            made.error(f"no {kind} {unknown[0]!r} here; one of: {', '.join(known)}")
    if given.engine == "cuda" and (reason := no_gpu()):
        print(f"Nothing was measured on a GPU: {reason}")
        return 0
    from .reporting import as_json, machine, markdown

    rows = []
    for dtype in given.dtype or ["float64"]:
        settings = Settings(
            dtype=dtype,
            device=given.engine,
            budget=given.budget if given.budget is not None else (0.05 if given.quick else 2.0),
            compile_budget=min(given.compile_budget, 2.0 if given.quick else 1e9),
            threads=given.threads,
            quick=given.quick,
            torch_compile=given.torch_compile,
            samples=tuple(int(n) for n in given.samples),
            workloads=tuple(given.workload),
            peers=tuple(given.peer),
        )
        for name in given.sections or [n for n in sections if n not in OPTIONAL]:
            quietly(f"section {name}, {dtype}")
            try:
                found = sections[name](settings)
            except Exception as error:  # the other sections' figures are not lost for it
                traceback.print_exc()
                found = [Row(name, "", "", note=f"FAILED: {type(error).__name__}: {error}")]
            for row in found:
                row.section = name if dtype == "float64" else f"{name}, {dtype}"
            rows += found
    about = machine(given.threads)
    ratio_to = {f"{n}{end}": r for n, r in RATIO_TO.items() for end in ("", ", float32")}
    text = markdown(rows, about, ratio_to)
    print(text)
    if given.markdown:
        given.markdown.write_text(text, encoding="utf-8")
    if given.json:
        given.json.write_text(as_json(rows, about), encoding="utf-8")
    return 1 if any(row.note.startswith(("WRONG", "FAILED")) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
