"""Driver in the process of a submission: calls a student's optimizers and reports floats.

The driver needs only the standard library, has no expected values and judges nothing. The first
argument of its functions is the module of the submission.
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
#: Forms of parameters and gradients; the first form in which parameters change is used.
_FORMS = ("dict", "list", "dict of arrays", "list of arrays", "array", "number")
_AHEAD = ("gradient function, dict", "gradient function, list", "gradient function, array")


def list_definitions(module: Any) -> list[tuple[str, str]]:
    """List the classes and functions in a submission that may be optimizers, with their kinds."""
    definitions = ((n, v) for n, v in vars(module).items() if _is_candidate(module, n, v))
    return [(n, "class" if inspect.isclass(v) else "function") for n, v in definitions]


def _is_candidate(module: Any, name: str, definition: Any) -> bool:
    """Return whether a class or function of the submission may be an optimizer."""
    homes = (getattr(module, "__name__", "__main__"), "builtins")  # of code in a notebook
    is_local = getattr(definition, "__module__", None) in homes
    is_local = is_local and definition is not getattr(builtins, name, None)
    has_update = not inspect.isclass(definition) or any(
        method in dir(definition) for method in _METHODS[:-1]
    )
    return is_local and not name.startswith("_") and callable(definition) and has_update


def try_optimizer(module: Any, name: str, question: dict[str, Any]) -> dict[str, Any]:
    """Run an optimizer on all gradient sequences, with the first argument format that works.

    Args:
        module: the submission.
        name: name of the class or function.
        question: ``hyper``, the hyperparameters; ``usual``, the usual argument names of each;
            ``runs``, each with ``start`` and ``gradients``; ``ahead``, whether the gradient can be
            a function; ``slope``, the derivative of that function by the parameters.
    """
    target = getattr(module, name)
    matched, keywords, defaults = _match_arguments(target, question)
    if question["hyper"]["weight_decay"] and "weight_decay" not in matched:
        return {"taken": matched}
    best: dict[str, Any] = {}
    tries: dict[str, str] = {}
    for form in (*_FORMS, *(_AHEAD if question["ahead"] else ())):
        runs = [
            _run_gradients(target, form, run, keywords, question, module)
            for run in question["runs"]
        ]
        report = {"form": form, "taken": matched, "defaults": defaults, "runs": runs}
        if _has_moved(question["runs"][0], runs[0]):
            return report | {"moved": True}
        if not best or _rank_run(runs[0]) > _rank_run(best["runs"][0]):
            best = report | {"moved": False, "tries": tries}
        tries[form] = runs[0]["error"].get("message", "no parameter changed")
    return best


def _has_moved(run: dict[str, Any], report: dict[str, Any]) -> bool:
    """Return whether an optimizer changed its parameters in a run."""
    return any(row != run["start"] for row in report["steps"])


def _rank_run(run: dict[str, Any]) -> tuple[int, bool]:
    """Return a sort key for optimizer runs: the number of updates, then arithmetic errors."""
    return len(run["steps"]), bool(run["error"].get("arithmetic"))


def _read_arguments(target: Any) -> dict[str, inspect.Parameter]:
    """Return the arguments of a class or function; empty if its signature is unavailable."""
    try:
        return dict(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        return {}


def _normalize_name(name: str) -> str:
    """Return a name in lowercase and without underscores."""
    return name.casefold().replace("_", "")


def _match_arguments(
    target: Any, question: dict[str, Any]
) -> tuple[list[str], dict[str, Any], dict[str, float]]:
    """Match the arguments of a class or function to the hyperparameters of an optimizer.

    Returns:
        The hyperparameters that are arguments, the values of these arguments, and their defaults.
    """
    parameters_of, hyper = _read_arguments(target), question["hyper"]
    by_name = {_normalize_name(name): name for name in parameters_of}
    if not inspect.isclass(target):  # the first two arguments are parameters and gradients
        for name in list(parameters_of)[:2]:
            by_name.pop(_normalize_name(name), None)
    places: dict[str, str] = {}
    for meaning, usual in question["usual"].items():
        report = next((one for one in usual if one in by_name), None)
        if report:
            places[meaning] = by_name.pop(report)
    keywords = {name: hyper[meaning] for meaning, name in places.items()}
    if "betas" in by_name and "beta1" in hyper:
        keywords[by_name["betas"]] = (hyper["beta1"], hyper["beta2"])
        places |= {"beta1": "", "beta2": ""}
    defaults = {m: parameters_of[name].default for m, name in places.items() if name}
    return list(places), keywords, {m: float(v) for m, v in defaults.items() if type(v) is float}


def _run_gradients(
    target: Any,
    form: str,
    run: dict[str, Any],
    keywords: dict[str, Any],
    question: dict[str, Any],
    module: Any,
) -> dict[str, Any]:
    """Run a student's optimizer on a gradient sequence, and report its updates and its error.

    Returns:
        The parameters after each update (``steps``), the state that the last update changed
        (``changed``, as strings), and the error that ended the run (``error``).
    """
    steps: list[list[float]] = []
    record: dict[str, Any] = {"steps": steps, "error": {}, "changed": {}}
    start, gradients = run["start"], run["gradients"]
    columns = [(start, gradients)]
    if form == "number":  # one optimizer per parameter
        columns = [([p], [[row[k]] for row in gradients]) for k, p in enumerate(start)]
    try:
        walks = [
            _iterate_updates(target, form, *column, keywords, question["slope"])
            for column in columns
        ]
        for rows in zip(*walks, strict=True):
            steps.append([value for row, _ in rows for value in row])
            record["changed"] = rows[0][1]
    except Exception as error:  # errors of the submission are reported
        name, text = type(error).__name__, str(error)[:200]
        line, trace = None, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == getattr(module, "__file__", ""):
                line = trace.tb_lineno
            trace = trace.tb_next
        arithmetic = isinstance(error, ArithmeticError) or "math domain" in text
        arithmetic = arithmetic or "complex" in text or "negative number" in text
        record["error"] = {"message": f"{name}: {text}", "line": line}
        record["error"]["arithmetic"] = arithmetic
    return record


def _iterate_updates(
    target: Any,
    form: str,
    start: list[float],
    gradients: list[list[float]],
    keywords: dict[str, Any],
    slope: float,
) -> Iterator[tuple[list[float], dict[str, str]]]:
    """Yield the parameters after each update, and the changed state variables as strings."""
    parameters = _pack_values(form, start)
    step, seen = _create_update_function(target, parameters, keywords)
    for row in gradients:
        before = _describe_state(seen)
        gradient = (
            _create_gradient_function(form, row, slope)
            if form in _AHEAD
            else _pack_values(form, row)
        )
        result = step(parameters, gradient)
        if isinstance(result, tuple) and not _matches_form(form, result, len(start)):
            result = result[0]
        if result is not None and _matches_form(form, result, len(start)):
            parameters = result
        elif result is not None or form == "number":
            raise TypeError(f"step must return parameters, got {type(result).__name__}")
        moved, after = _read_values(parameters), _describe_state(seen)
        if len(moved) != len(start):
            raise TypeError(f"step must return {len(start)} parameters, got {len(moved)}")
        yield moved, {k: v for k, v in after.items() if v != before.get(k)}


def _create_update_function(
    target: Any, parameters: Any, keywords: dict[str, Any]
) -> tuple[Callable[[Any, Any], Any], Any]:
    """Return a function that runs one update, and the object that stores the optimizer state."""
    if inspect.isclass(target):
        parameters_of, kind = _read_arguments(target), cast(Any, target)
        needed = [n for n, p in parameters_of.items() if p.default is p.empty and n not in keywords]
        owns = bool(needed) and _normalize_name(needed[0]) in _PARAMETERS
        instance = kind(parameters, **keywords) if owns else kind(**keywords)
        method = next(getattr(instance, name) for name in _METHODS if hasattr(instance, name))
        names = list(_read_arguments(method))
        if owns and len(names) == 1:
            return lambda _, gradient: method(gradient), instance
        return _order_arguments(method, names), instance
    state: dict[str, Any] = {}
    names = list(_read_arguments(target))
    holds = next((name for name in names if _normalize_name(name) in _STATE), None)
    extra = {**keywords, holds: state} if holds else keywords
    return _order_arguments(lambda p, g: target(p, g, **extra), names), state


def _order_arguments(call: Callable[..., Any], names: list[str]) -> Callable[[Any, Any], Any]:
    """Wrap a function so that it accepts the parameters first and the gradient second."""
    first = names[0] if names else ""
    swapped = "grad" in first or first in ("g", "dw", "dp")
    return (lambda parameters, gradient: call(gradient, parameters)) if swapped else call


def _describe_state(seen: Any) -> dict[str, str]:
    """Return the state variables of an optimizer as strings, without integer counters."""
    attributes = seen if isinstance(seen, dict) else getattr(seen, "__dict__", {})
    texts = {str(name): repr(value)[:2000] for name, value in attributes.items()}
    floats = {name: text for name, text in texts.items() if "." in text and " at 0x" not in text}
    return {name: text for name, text in floats.items() if _normalize_name(name) not in _PARAMETERS}


def _pack_values(form: str, row: list[float]) -> Any:
    """Pack values in an argument format, such as a dictionary of arrays."""
    if form == "number":
        return row[0]
    values: list[Any] = list(row)
    if "array" in form:
        import numpy as np

        if form.endswith("array"):
            return np.array(row)
        values = [np.array([value]) for value in row]
    return {f"w{k}": value for k, value in enumerate(values)} if "dict" in form else values


def _create_gradient_function(form: str, row: list[float], slope: float) -> Callable[[Any], Any]:
    """Return a gradient function that depends linearly on the parameters."""

    def gradient(at: Any) -> Any:
        """Return the gradient at the given parameters."""
        return _pack_values(
            form, [g + slope * p for g, p in zip(row, _read_values(at), strict=True)]
        )

    return gradient


def _matches_form(form: str, result: Any, size: int) -> bool:
    """Return whether a result has the format and the number of the parameters."""
    try:
        return len(_read_values(result)) == size and isinstance(result, dict) == ("dict" in form)
    except (TypeError, ValueError):
        return False


def _read_values(parameters: Any) -> list[float]:
    """Convert parameters in any format to a list of floats; complex values become nan."""
    several = isinstance(parameters, dict | list | tuple) or getattr(parameters, "ndim", 0) > 0
    values = parameters.values() if isinstance(parameters, dict) else parameters
    return [_convert_to_float(value) for value in (values if several else [parameters])]


def _convert_to_float(value: Any) -> float:
    """Convert a number or an array with one element to a float."""
    value = value.item() if hasattr(value, "item") else value
    return math.nan if isinstance(value, complex) else float(value)
