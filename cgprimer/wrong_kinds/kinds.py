"""Arguments of another kind than a public function takes, found when it has failed."""

from __future__ import annotations

import inspect
import re
import reprlib
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from cgprimer.errors import CgprimerError, UsageError, did_you_mean

# Numbers of numpy are taken for Python's, and what knows its path for one.
_ALIKE = {int: "__index__", float: "__float__", bool: "__bool__", Path: "__fspath__"}
_MADE = {
    "ExpressionGraph": "; cgprimer.parse(text) makes one of a text, cgprimer.load(path) of a file",
    "Tape": "; cgprimer.tape(graph) makes one",
}


def check_kinds(
    error: Exception, function: Callable[..., Any], args: tuple[Any, ...], given: Mapping[str, Any]
) -> None:
    """After an error of Python's: look for the argument that the annotations do not allow.

    Raises:
        UsageError: there is one. Else the error was about something else.

    >>> check_kinds(ValueError(), fits, ("a", int), {})
    >>> from cgprimer.errors import plural
    >>> check_kinds(ValueError(), plural, ("one", "pass"), {})
    Traceback (most recent call last):
        ...
    cgprimer.errors.UsageError: plural: count cannot be 'one'
      hint: it takes int
    """
    if isinstance(error, CgprimerError) or _is_of_a_user(error):
        return
    name, signature = function.__qualname__.removesuffix(".__init__"), inspect.signature(function)
    name = "draw" if name == "graph_diagram" else name  # which is what was called
    try:
        bound = signature.bind(*args, **given)
    except TypeError as wrong:
        unknown = re.search(r"keyword argument '(.*)'", str(wrong))
        hint = did_you_mean(unknown[1], signature.parameters) if unknown else ""
        hint = hint or "cgprimer.draw(graph).savefig('graph.png') writes it" * (name == "draw")
        raise UsageError(f"{name}: {wrong}", hint=hint) from error
    # What is returned may be known to type checkers alone.
    written = {n: kind for n, kind in function.__annotations__.items() if n in bound.arguments}
    known = inspect.unwrap(function).__globals__
    kinds = get_type_hints(SimpleNamespace(__annotations__=written), known)
    for parameter, kind in kinds.items():
        if not fits(value := bound.arguments[parameter], kind):
            takes = re.sub(r"<class '(.*)'>", r"\1", str(kind)).replace("NoneType", "None")
            takes = re.sub(r"\b[a-z_]\w*\.", "", takes)  # modules
            more = next((how for kind, how in _MADE.items() if kind in takes), "")
            more = "; a recording has one: recording.graph" if hasattr(value, "graph") else more
            said = f"{name}: {parameter} cannot be {reprlib.repr(value)}"
            raise UsageError(said, hint=f"it takes {takes}{more}") from error


def _is_of_a_user(error: Exception) -> bool:
    """Whether code that a user wrote was running: neither ours, nor Python's, nor installed."""
    ours, trace = {"cgprimer", *sys.stdlib_module_names}, error.__traceback__
    while trace:
        frame, trace = trace.tb_frame, trace.tb_next
        module = frame.f_globals.get("__name__", "").partition(".")[0]
        if module not in ours and "-packages" not in frame.f_code.co_filename:
            return True
    return False


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is what an annotation asks for, its elements too.

    >>> fits(3, str | None), fits(["a"], Collection[str]), fits([1], Collection[str])
    (False, True, False)
    """
    origin, of = get_origin(kind), get_args(kind)
    if origin in (UnionType, Union):
        return any(fits(value, one) for one in of)
    wanted: Any = origin or kind
    if wanted is Any or not isinstance(wanted, type):
        return True
    if getattr(wanted, "_is_protocol", False):
        return all(hasattr(value, name) for name in wanted.__annotations__)
    if getattr(value, "shape", ()):
        return False  # arrays are for those who take anything
    if wanted in _ALIKE:
        return isinstance(value, wanted) or hasattr(value, _ALIKE[wanted])
    if wanted is Callable or not isinstance(value, wanted):
        return wanted is Callable and callable(value)
    if not of or not isinstance(value, Collection):
        return True
    if isinstance(value, str):  # a sequence of texts, too
        return str in of
    more = value.values() if isinstance(value, Mapping) else ()
    return all(fits(one, of[0]) for one in value) and all(fits(one, of[1]) for one in more)
