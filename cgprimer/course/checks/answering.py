"""Call a submission's functions, and report what they return or raise as plain data.

It runs in the submission's process, in the sandbox, and is given no expected values: a submission
that interferes with it can forge nothing but its own numbers. It imports nothing of cgprimer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from types import CodeType
from typing import Any

LONGEST_MESSAGE = 500  # characters
_LARGEST_INTEGER = 10**300  # below the largest float


class Refused(Exception):
    """A value that is no answer."""


def plain(value: Any, depth: int = 0) -> Any:
    """Return numbers, texts, lists and dictionaries, as JSON has them; arrays are nested lists.

    Raises:
        Refused: the value is none of these.

    >>> plain({"ab": (1, 2.5)})
    {'ab': [1, 2.5]}
    """
    if type(value) is int and abs(value) > _LARGEST_INTEGER:
        raise Refused("returned an integer that is larger than the largest float")
    if value is None or type(value) in (bool, str, int, float):
        return value
    if depth > 20:
        raise Refused("returned lists in lists in lists")
    if isinstance(value, dict):
        return {str(key): plain(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, depth + 1) for entry in value]
    if isinstance(value, complex):
        raise Refused("returned a complex number")
    if hasattr(value, "detach"):  # torch
        value = value.detach()
    if hasattr(value, "tolist"):  # numpy
        return plain(value.tolist(), depth + 1)
    if hasattr(value, "__float__"):
        return float(value)
    raise Refused(f"returned {type(value).__name__}, not numbers")


def failure_of(error: BaseException, path: str, ours: tuple[str, ...] = ()) -> dict[str, Any]:
    """An exception as data: its kind, a message, and the deepest line of the submission in it."""
    name = type(error).__name__[:LONGEST_MESSAGE]
    try:
        text = str(error)[:LONGEST_MESSAGE]
    except BaseException:
        text = "(it cannot be printed)"
    found: dict[str, Any] = {"kind": "exception", "message": f"{name}: {text}" if text else name}
    deepest, others = None, 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            deepest = trace
        others += trace.tb_frame.f_code.co_filename not in ours
        trace = trace.tb_next
    if deepest is not None:
        found["line"] = deepest.tb_lineno
        for at, spot in enumerate(deepest.tb_frame.f_code.co_positions()):
            if at == deepest.tb_lasti // 2:
                found |= {"from": spot[2], "to": spot[3] if spot[0] == spot[1] else None}
                break
    if isinstance(error, Refused):
        found |= {"kind": "value", "message": text}
    elif isinstance(error, SystemExit):
        found |= {"kind": "exit", "message": f"it calls sys.exit({text})"}
    elif isinstance(error, MemoryError):
        found |= {"kind": "memory", "message": "it asks for more memory than it may have"}
    elif isinstance(error, SyntaxError) and error.filename == path:
        found |= {"kind": "syntax", "message": error.msg, "line": error.lineno}
        found |= {"column": error.offset, "end": error.end_offset}
    elif isinstance(error, TypeError) and not others and "argument" in text:
        found |= {"kind": "signature", "message": text}
    return found


def missing(target: Any, name: str) -> dict[str, Any]:
    """The failure of a name that a submission lacks."""
    import difflib

    there = [
        known
        for known, value in vars(target).items()
        if callable(value)
        and not known.startswith("_")
        and getattr(value, "__module__", None) == getattr(target, "__name__", None)
    ]
    close = difflib.get_close_matches(name, there, 1)
    hint = f"; it defines {', '.join(there[:8])}" if there else "; it defines none"
    hint = f"; rename `{close[0]}` to `{name}`" if close else hint
    what = "is no function" if hasattr(target, name) else "is not defined"
    return {"kind": "missing", "message": f"{name} {what}{hint}"}


def answer(target: Any, name: str, arguments: list[Any], path: str) -> dict[str, Any]:
    """One line of answer: the value of a call, or why there is none."""
    function = getattr(target, name, None)
    if not callable(function):
        return {"failure": missing(target, name)}
    try:
        return {"value": plain(function(*arguments))}
    except BaseException as error:
        ours = (__file__, getattr(target, "__file__", "") if target.__name__ == "driver" else "")
        return {"failure": failure_of(error, path, ours)}


class _Utf8Loader(SourceFileLoader):
    """Reads a file as UTF-8, whatever encoding it declares."""

    def source_to_code(  # type: ignore[override]  # typeshed: a static method
        self, data: Any, path: Any, **_: Any
    ) -> CodeType:
        """Compile the text of a file."""
        code: CodeType = compile(bytes(data).decode("utf-8"), path, "exec", dont_inherit=True)
        return code


def load(path: str, name: str) -> Any:
    """Run a file as a module of this process."""
    spec = spec_from_file_location(name, path, loader=_Utf8Loader(name, path))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def work(setup: dict[str, Any], say: Callable[[dict[str, Any]], None]) -> None:
    """Import the submission, and answer the requests one by one."""
    folder, here, process, leave = os.getcwd(), os.getpid(), os.getpid, os._exit
    path = os.path.join(folder, "submission.py")
    sys.path.insert(0, folder)

    def tell(line: dict[str, Any]) -> None:
        if process() != here:
            leave(0)  # a process that the submission has forked, and forgotten
        say(line)

    try:
        target = load(path, "submission")
        leading = []
        if "driver.py" in setup["files"]:
            leading = [target]
            target = load(os.path.join(folder, "driver.py"), "driver")
        tell({"loaded": True})
    except BaseException as error:
        tell({"loaded": False, "failure": failure_of(error, path, (__file__,))})
        return
    for number, request in enumerate(setup["requests"]):
        arguments = [*leading, *request["arguments"]]
        try:
            tell({"request": number, **answer(target, request["call"], arguments, path)})
        except BaseException:  # json or os are not what they were
            tell({"request": number, "failure": {"kind": "answers", "message": "?"}})
