"""Runs beside a submission, in its process: calls a student's optimizers, reports plain numbers.

It needs Python alone, holds no expected value and judges nothing. Its functions are given the
submission's module before their arguments.
"""

from __future__ import annotations

import builtins
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any, cast

_METHODS = ("step", "update", "apply", "__call__")
_PARAMETERS = ("parameters", "params", "param", "p", "w", "weights", "theta", "x", "values")
_STATE = ("state", "config", "cache", "memory", "history")
# How parameters and gradients are handed over: the first form in which something moves counts.
_FORMS = ("dict", "list", "dict of arrays", "list of arrays", "array", "number")
_AHEAD = ("gradient function, dict", "gradient function, list", "gradient function, array")


def listed(module: Any) -> list[tuple[str, str]]:
    """The names of what the submission defines itself, each with ``class`` or ``function``."""
    own = ((n, one) for n, one in vars(module).items() if _own(module, n, one))
    return [(n, "class" if inspect.isclass(one) else "function") for n, one in own]


def _own(module: Any, name: str, one: Any) -> bool:
    homes = (getattr(module, "__name__", "__main__"), "builtins")  # of names that were executed
    here = getattr(one, "__module__", None) in homes and one is not getattr(builtins, name, None)
    steps = not inspect.isclass(one) or any(method in dir(one) for method in _METHODS[:-1])
    return here and not name.startswith("_") and callable(one) and steps


def tried(module: Any, name: str, question: dict[str, Any]) -> dict[str, Any]:
    """What an optimizer did in all runs: in the first form in which parameters move, if any.

    Args:
        module: the submission.
        name: of the class or function.
        question: ``hyper``, numbers by meaning; ``usual``, the names that mean them; ``runs``, each
            with ``start`` and ``gradients``; ``ahead``, whether the gradient may be a function, and
            ``slope``, how it then depends on the parameters.
    """
    target = getattr(module, name)
    taken, given, defaults = _settings(target, question)
    if question["hyper"]["weight_decay"] and "weight_decay" not in taken:
        return {"taken": taken}
    best: dict[str, Any] = {}
    tries: dict[str, str] = {}
    for form in (*_FORMS, *(_AHEAD if question["ahead"] else ())):
        runs = [_run(target, form, run, given, question, module) for run in question["runs"]]
        found = {"form": form, "taken": taken, "defaults": defaults, "runs": runs}
        if _moved(question["runs"][0], runs[0]):
            return found | {"moved": True}
        if not best or _worth(runs[0]) > _worth(best["runs"][0]):
            best = found | {"moved": False, "tries": tries}
        tries[form] = runs[0]["error"].get("message", "nothing moves")
    return best


def _moved(run: dict[str, Any], found: dict[str, Any]) -> bool:
    return any(row != run["start"] for row in found["steps"])


def _worth(run: dict[str, Any]) -> tuple[int, bool]:
    """Steps are worth most; an error of arithmetic is the rule's, others may be the form's."""
    return len(run["steps"]), bool(run["error"].get("arithmetic"))


def _arguments(target: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        return {}


def _plain(name: str) -> str:
    return name.casefold().replace("_", "")


def _settings(
    target: Any, question: dict[str, Any]
) -> tuple[list[str], dict[str, Any], dict[str, float]]:
    """The meanings that its arguments have, these arguments, and defaults by meaning."""
    known, hyper = _arguments(target), question["hyper"]
    named = {_plain(name): name for name in known}
    if not inspect.isclass(target):  # the first two are parameters and gradients
        for name in list(known)[:2]:
            named.pop(_plain(name), None)
    places: dict[str, str] = {}
    for meaning, usual in question["usual"].items():
        found = next((one for one in usual if one in named), None)
        if found:
            places[meaning] = named.pop(found)
    given = {name: hyper[meaning] for meaning, name in places.items()}
    if "betas" in named and "beta1" in hyper:
        given[named["betas"]] = (hyper["beta1"], hyper["beta2"])
        places |= {"beta1": "", "beta2": ""}
    defaults = {m: known[name].default for m, name in places.items() if name}
    return list(places), given, {m: float(v) for m, v in defaults.items() if type(v) is float}


def _run(
    target: Any,
    form: str,
    run: dict[str, Any],
    given: dict[str, Any],
    question: dict[str, Any],
    module: Any,
) -> dict[str, Any]:
    """The parameters after each step as far as it goes, the state that the last one changed, as
    text, and the error that ended it.
    """
    steps: list[list[float]] = []
    done: dict[str, Any] = {"steps": steps, "error": {}, "changed": {}}
    start, gradients = run["start"], run["gradients"]
    columns = [(start, gradients)]
    if form == "number":  # an optimizer for each parameter
        columns = [([p], [[row[k]] for row in gradients]) for k, p in enumerate(start)]
    try:
        walks = [_walk(target, form, *column, given, question["slope"]) for column in columns]
        for rows in zip(*walks, strict=True):
            steps.append([value for row, _ in rows for value in row])
            done["changed"] = rows[0][1]
    except Exception as error:  # of the submission: told, not raised
        name, text = type(error).__name__, str(error)[:200]
        line, trace = None, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == getattr(module, "__file__", ""):
                line = trace.tb_lineno
            trace = trace.tb_next
        arithmetic = isinstance(error, ArithmeticError) or "math domain" in text
        arithmetic = arithmetic or "complex" in text or "negative number" in text
        done["error"] = {"message": f"{name}: {text}", "line": line}
        done["error"]["arithmetic"] = arithmetic
    return done


def _walk(
    target: Any,
    form: str,
    start: list[float],
    gradients: list[list[float]],
    given: dict[str, Any],
    slope: float,
) -> Iterator[tuple[list[float], dict[str, str]]]:
    """The parameters after each step, and the attributes that it changed, as text."""
    parameters = _packed(form, start)
    step, seen = _stepper(target, parameters, given)
    for row in gradients:
        before = _snapshot(seen)
        gradient = _sloped(form, row, slope) if form in _AHEAD else _packed(form, row)
        result = step(parameters, gradient)
        if isinstance(result, tuple) and not _fits(form, result, len(start)):
            result = result[0]
        if result is not None and _fits(form, result, len(start)):
            parameters = result
        elif result is not None or form == "number":
            raise TypeError(f"step returned {type(result).__name__}, not parameters")
        moved, after = _read(parameters), _snapshot(seen)
        if len(moved) != len(start):
            raise TypeError(f"step left {len(moved)} parameters, expected {len(start)}")
        yield moved, {k: v for k, v in after.items() if v != before.get(k)}


def _stepper(
    target: Any, parameters: Any, given: dict[str, Any]
) -> tuple[Callable[[Any, Any], Any], Any]:
    """What does a step, and where its state can be seen."""
    if inspect.isclass(target):
        known, kind = _arguments(target), cast(Any, target)
        needed = [n for n, p in known.items() if p.default is p.empty and n not in given]
        owns = bool(needed) and _plain(needed[0]) in _PARAMETERS
        made = kind(parameters, **given) if owns else kind(**given)
        method = next(getattr(made, name) for name in _METHODS if hasattr(made, name))
        names = list(_arguments(method))
        if owns and len(names) == 1:
            return lambda _, gradient: method(gradient), made
        return _ordered(method, names), made
    state: dict[str, Any] = {}
    names = list(_arguments(target))
    holds = next((name for name in names if _plain(name) in _STATE), None)
    extra = {**given, holds: state} if holds else given
    return _ordered(lambda p, g: target(p, g, **extra), names), state


def _ordered(call: Callable[..., Any], names: list[str]) -> Callable[[Any, Any], Any]:
    """Parameters first, unless the names say that the gradients come first."""
    first = names[0] if names else ""
    swapped = "grad" in first or first in ("g", "dw", "dp")
    return (lambda parameters, gradient: call(gradient, parameters)) if swapped else call


def _snapshot(seen: Any) -> dict[str, str]:
    """What an optimizer keeps, as text; without whole numbers, which count steps."""
    held = seen if isinstance(seen, dict) else getattr(seen, "__dict__", {})
    texts = {str(name): repr(value)[:2000] for name, value in held.items()}
    kept = {name: text for name, text in texts.items() if "." in text and " at 0x" not in text}
    return {name: text for name, text in kept.items() if _plain(name) not in _PARAMETERS}


def _packed(form: str, row: list[float]) -> Any:
    if form == "number":
        return row[0]
    values: list[Any] = list(row)
    if "array" in form:
        import numpy as np

        if form.endswith("array"):
            return np.array(row)
        values = [np.array([value]) for value in row]
    return {f"w{k}": value for k, value in enumerate(values)} if "dict" in form else values


def _sloped(form: str, row: list[float], slope: float) -> Callable[[Any], Any]:
    def gradient(at: Any) -> Any:
        return _packed(form, [g + slope * p for g, p in zip(row, _read(at), strict=True)])

    return gradient


def _fits(form: str, result: Any, size: int) -> bool:
    try:
        return len(_read(result)) == size and isinstance(result, dict) == ("dict" in form)
    except (TypeError, ValueError):
        return False


def _read(parameters: Any) -> list[float]:
    """Plain numbers; what is complex is nan."""
    several = isinstance(parameters, dict | list | tuple) or getattr(parameters, "ndim", 0) > 0
    values = parameters.values() if isinstance(parameters, dict) else parameters
    return [_number(value) for value in (values if several else [parameters])]


def _number(value: Any) -> float:
    value = value.item() if hasattr(value, "item") else value
    return math.nan if isinstance(value, complex) else float(value)
