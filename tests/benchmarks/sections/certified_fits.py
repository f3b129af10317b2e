"""Certified regression problems of NIST: digits and processor time of fits, next to SciPy.

The problems are read as in ``tests/fitting/nist.py``. Digits are the smallest number of decimal
digits that agree with the certified parameters, of which eleven are given.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping

import numpy as np
import pytest
from scipy.optimize import OptimizeWarning, curve_fit

import cgprimer

from ...fitting import nist
from ..measuring import Row
from ..settings import Settings, quietly
from .learning import measure_least

_CERTIFIED_DIGITS = 11


def certified_fits(settings: Settings) -> list[Row]:
    """Fit each problem from both certified starting points."""
    try:
        nist.folder()
    except pytest.skip.Exception as error:
        return [Row("fits", "all", "cgprimer.fit", note=str(error))]
    rows = []
    for name in nist.NAMES[: 2 if settings.quick else None]:
        for start in ("start1", "start2"):
            quietly(f"fits: {name}, {start}")
            rows += _compare(name, start, 1 if settings.quick else 5)
    return rows


def count_digits(parameters: Mapping[str, float], certified: Mapping[str, float]) -> float:
    """Return the smallest number of digits in which parameters agree with the certified values."""
    errors = [abs(parameters[name] - value) / abs(value) for name, value in certified.items()]
    worst = max(errors)
    return min(_CERTIFIED_DIGITS, -math.log10(worst)) if worst > 0 else _CERTIFIED_DIGITS


def _compare(name: str, start: str, repetitions: int) -> list[Row]:
    """Return a row for cgprimer and a row for SciPy."""
    certified, graph, data = nist.problem(name)
    initial, names = certified[start], list(certified["certified"])
    (output,) = graph.outputs
    (variable,) = graph.inputs
    x, y = (np.asarray(data.columns[column]) for column in (variable, output))

    def run_cgprimer() -> cgprimer.Fit:
        return cgprimer.fit(graph, data, start=initial)

    def model(points: np.ndarray, *values: float) -> np.ndarray:
        return graph.evaluate({variable: points, **dict(zip(names, values, strict=True))})[output]

    def run_scipy() -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OptimizeWarning)
            values = [initial[parameter] for parameter in names]
            return curve_fit(model, x, y, p0=values, maxfev=100_000)[0]

    fit = run_cgprimer()
    found = dict(zip(names, run_scipy().tolist(), strict=True))
    workload = f"{name}, {len(names)} parameters, {start}"
    return [
        Row("fits", workload, "cgprimer.fit", measure_least(run_cgprimer, repetitions),
            extra={"digits": round(count_digits(fit.parameters, certified["certified"]), 1),
                   "steps": len(fit.history) - 1}),
        Row("fits", workload, "scipy.optimize.curve_fit", measure_least(run_scipy, repetitions),
            extra={"digits": round(count_digits(found, certified["certified"]), 1)}),
    ]  # fmt: skip
