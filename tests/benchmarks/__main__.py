"""``python -m tests.benchmarks``: measure the tables of docs/internals/performance.md."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from importlib import import_module
from typing import Any

# In the order of the page. Each section is measured by the file of its name in ``sections``.
SECTIONS = (
    "single_calls", "whole_commands", "loss_and_gradient", "time_before_the_first_gradient",
    "cost_of_reverse_mode", "stochastic_gradient_descent", "methods", "reading_expressions",
    "arrays_and_recorded_python", "training_and_fitting", "homework", "pages_for_large_graphs",
    "the_playground",
)  # fmt: skip
PEERS = (
    "numba", "jax", "torch", "casadi", "autograd", "micrograd", "ComputationalGraphPrimer",
)  # fmt: skip


def load_section(name: str) -> Any:
    """Return the module of a section, which has ``TABLES`` and ``measure_cells``."""
    return import_module(f"{__package__}.sections.{name}")


def hold_to_threads(threads: int) -> None:
    """Restrict this process and its children to a number of processors.

    JAX has no option for it. Call this function before numpy is imported.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ.setdefault(f"{library}_NUM_THREADS", str(threads))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description="Measure the tables of docs/internals/performance.md.",
        epilog=f"Sections: {', '.join(SECTIONS)}.",
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="All sections by default.")
    parser.add_argument("--quick", action="store_true", help="Measure the smallest sizes.")
    parser.add_argument(
        "--budget", type=float, metavar="SECONDS", help="Time per contestant, default 2."
    )
    parser.add_argument(
        "--record", action="store_true", help="Write the figures to results.json and the page."
    )
    parser.add_argument(
        "--write-page", action="store_true", help="Write the page again, without measuring."
    )
    options = parser.parse_args(arguments)
    for name in options.sections:
        if name not in SECTIONS:
            parser.error(f"unknown section {name!r}; one of: {', '.join(SECTIONS)}")
    if options.record and options.quick:
        parser.error("--record needs a full run")
    if arguments is None:
        hold_to_threads(2)
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    from .harness import Settings, report_progress
    from .report import describe_machine, save_results, section_tables, write_page

    if options.write_page:
        write_page({name: load_section(name).TABLES for name in SECTIONS})
        return 0
    budget = options.budget if options.budget is not None else 0.05 if options.quick else 2.0
    settings = Settings(quick=options.quick, budget=budget)
    failed = False
    for name in options.sections or SECTIONS:
        report_progress(f"section {name}")
        try:
            section = load_section(name)
            cells = list(section.measure_cells(settings))
        except Exception:  # the figures of other sections are not lost
            traceback.print_exc()
            failed = True
            continue
        heading = f"## {name.replace('_', ' ').capitalize()}"
        print("\n\n".join([heading, *section_tables(section.TABLES, cells)]), end="\n\n")
        for cell in cells:
            if cell.figure.note:
                print(f"- {', '.join((*cell.row, cell.column))}: {cell.figure.note}")
                failed |= cell.figure.note.startswith("WRONG")
        if options.record:
            save_results(name, cells, describe_machine())
            write_page({name: section.TABLES})
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
