"""Run the trial and print its tables.

Run it with ``python -m tests.trial.grading.report [--seed N] [--fast] [--verbose]``.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

import cgprimer
from cgprimer.errors import CgprimerError
from tests.trial.grading.evaluation import namespace, supported
from tests.trial.grading.records import ACCEPTABLE_NAMES, ANY, WrongSubmission
from tests.trial.grading.traces import trace_check


class Outcome(NamedTuple):
    """What became of a wrong submission.

    Attributes:
        full: it got all points.
        named: the mistake was named acceptably, and no other.
        names: the names that the grader gave.
        detail: verdicts, or the error that ended the check.
    """

    full: bool
    named: bool
    names: tuple[str, ...]
    detail: str


def gradient_outcome(record: WrongSubmission, seed: int = 0) -> Outcome:
    """Check a wrong gradient."""
    if not supported(cgprimer.check_gradient, record.options):
        return Outcome(False, False, (), f"options not supported: {sorted(record.options)}")
    names = namespace(record.code)
    with np.errstate(all="ignore"):
        return _outcome(
            record,
            lambda: cgprimer.check_gradient(
                cgprimer.parse(record.graph), names, seed=seed, **record.options
            ),
        )


def optimizer_outcome(record: WrongSubmission, seed: int = 0) -> Outcome:
    """Check a wrong optimizer."""
    names = namespace(record.code)
    return _outcome(
        record,
        lambda: cgprimer.check_optimizer(names, record.options["optimizer"], seed=seed),
    )


def formula_outcome(record: WrongSubmission, seed: int = 0) -> Outcome:
    """Check a wrong formula, of a graph or of a rule."""
    if record.code:
        graph = cgprimer.parse(record.graph)
        return _outcome(
            record, lambda: cgprimer.check_formula(graph, record.code, **record.options)
        )
    return _outcome(record, lambda: cgprimer.check_formula(record.graph, **record.options))


def engine_outcome(record: WrongSubmission, seed: int = 0) -> Outcome:
    """Check a wrong engine."""
    return _outcome(record, lambda: cgprimer.check_engine(namespace(record.code), **record.options))


def trace_outcome(record: WrongSubmission, seed: int = 0) -> Outcome:
    """Check wrong answers to a sheet."""
    return _outcome(record, lambda: trace_check(record))


def _outcome(record: WrongSubmission, check: Any) -> Outcome:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = check()
    except CgprimerError as error:
        return Outcome(False, False, (), f"{type(error).__name__}: {error}".splitlines()[0])
    numbers = record.kind == "wrong number"  # worth nothing, not even half a point
    full = result.points > 0 if numbers else result.points >= result.possible
    names = tuple(dict.fromkeys(p.mistake for p in result.parts if p.mistake))
    named = bool(names) and all(record.accepts(name) for name in names)
    named = named or ACCEPTABLE_NAMES[record.kind] == ANY
    detail = ", ".join(f"{p.name} {p.verdict} ({p.mistake or '-'})" for p in result.parts)
    return Outcome(full, named, names, f"{result.points:g}/{result.possible:g}: {detail}")


def print_wrong(
    title: str, records: Iterable[WrongSubmission], outcome: Any, seed: int, verbose: bool
) -> Counter[str]:
    """Print the table of wrong submissions and return its sums."""
    rows: dict[str, list[tuple[WrongSubmission, Outcome]]] = defaultdict(list)
    for record in records:
        rows[record.kind].append((record, outcome(record, seed)))
    print(f"\n{title:42} {'n':>4} {'full':>5} {'named':>6}  other names")
    sums: Counter[str] = Counter()
    for kind, group in rows.items():
        full = sum(o.full for _, o in group)
        named = sum(o.named for _, o in group)
        others = Counter(
            ", ".join(n for n in o.names if not r.accepts(n))
            or ("full marks" if o.full else "unnamed")
            for r, o in group
            if not o.named
        )
        text = "; ".join(f"{n} x {name}" for name, n in others.most_common())
        print(f"{kind:42} {len(group):4} {full:5} {named:6}  {text}")
        sums.update(n=len(group), full=full, named=named)
    print(f"{'total':42} {sums['n']:4} {sums['full']:5} {sums['named']:6}")
    if verbose:
        for kind, group in rows.items():
            for record, result in group:
                if result.full or not result.named:
                    graph = " ".join(record.graph.split())
                    print(f"  [{kind}] {graph[:110]} {record.options or ''}")
                    print(f"      {result.detail[:300]}")
    return sums


def main(arguments: list[str] | None = None) -> int:
    """Print all tables; the exit status is 1 if a wrong one got full marks or a correct one not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fast", action="store_true", help="a sample of the correct submissions")
    parser.add_argument("--only", default="", help="wrong, correct, or part of a table's name")
    parser.add_argument("--verbose", action="store_true", help="list every failure")
    options = parser.parse_args(arguments)
    start, failed = time.perf_counter(), 0
    from tests.trial.grading.correct import correct_tables
    from tests.trial.grading.tables import WRONG_TABLES

    print(f"seed {options.seed}, cgprimer {cgprimer.__file__}")
    for title, records, outcome in WRONG_TABLES:
        if options.only in ("", "wrong") or options.only in title:
            sums = print_wrong(title, records, outcome, options.seed, options.verbose)
            failed += sums["full"]
            sys.stdout.flush()
    if options.only in ("", "correct"):
        failed += correct_tables(options.seed, fast=options.fast, verbose=options.verbose)
    print(f"\n{time.perf_counter() - start:.0f} s")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
