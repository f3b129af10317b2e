"""Call a submission's functions, and report as plain data what they return or raise.

This module runs in the submission's process, in the sandbox, and receives no expected values: a
submission that interferes with it can forge only its own answers. It imports nothing of cgprimer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from types import CodeType, TracebackType
from typing import Any

MAX_MESSAGE_LENGTH = 500  # characters
_MAX_INTEGER = 10**300  # below the largest float
_MAX_DEPTH = 20  # of nested lists and dictionaries


class RefusedValueError(Exception):
    """Raised if a value that a submission returned cannot be converted to JSON data."""


def to_plain_data(value: Any, depth: int = 0) -> Any:
    """Convert a value that a submission returned to JSON data.

    Arrays and tensors become nested lists.

    Args:
        value: the value that a submission returned.
        depth: the number of lists and dictionaries around the value.

    Raises:
        RefusedValueError: the value cannot be converted.

    >>> to_plain_data({"ab": (1, 2.5)})
    {'ab': [1, 2.5]}
    """
    if type(value) is int and abs(value) > _MAX_INTEGER:
        raise RefusedValueError("returned an integer that exceeds the largest float")
    if value is None or type(value) in (bool, str, int, float):
        return value
    if depth > _MAX_DEPTH:
        raise RefusedValueError(
            f"returned lists that are nested more than {_MAX_DEPTH} levels deep"
        )
    if isinstance(value, dict):
        return {str(key): to_plain_data(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain_data(entry, depth + 1) for entry in value]
    if isinstance(value, complex):
        raise RefusedValueError("returned a complex number")
    if hasattr(value, "detach"):  # torch
        value = value.detach()
    if hasattr(value, "tolist"):  # numpy
        return to_plain_data(value.tolist(), depth + 1)
    if hasattr(value, "__float__"):
        return float(value)
    raise RefusedValueError(f"returned a value of type {type(value).__name__}")


def describe_exception(
    error: BaseException, path: str, own_files: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the kind and the message of an exception, and its position in the submission.

    Args:
        error: the exception.
        path: the submission's file.
        own_files: files of the grader, whose frames are not code of the submission.
    """
    name = type(error).__name__[:MAX_MESSAGE_LENGTH]
    try:
        text = str(error)[:MAX_MESSAGE_LENGTH]
    except BaseException:
        text = "(the message cannot be printed)"
    failure: dict[str, Any] = {"kind": "exception", "message": f"{name}: {text}" if text else name}
    frames = _list_frames(error)
    in_submission = [frame for frame in frames if _get_file(frame) == path]
    only_own_frames = all(_get_file(frame) in own_files for frame in frames)
    if in_submission:
        failure |= _get_position(in_submission[-1])
    if isinstance(error, RefusedValueError):
        failure |= {"kind": "value", "message": text}
    elif isinstance(error, SystemExit):
        failure |= {"kind": "exit", "message": f"the submission calls sys.exit({text})"}
    elif isinstance(error, MemoryError):
        failure |= {"kind": "memory", "message": "the submission exceeds its memory limit"}
    elif isinstance(error, SyntaxError) and error.filename == path:
        failure |= {"kind": "syntax", "message": error.msg, "line": error.lineno}
        failure |= {"column": error.offset, "end": error.end_offset}
    elif isinstance(error, TypeError) and "argument" in text and only_own_frames:
        failure |= {"kind": "signature", "message": text}
    return failure


def _list_frames(error: BaseException) -> list[TracebackType]:
    """Return the traceback entries of an exception, from the outermost to the innermost call."""
    frames = []
    entry = error.__traceback__
    while entry is not None:
        frames.append(entry)
        entry = entry.tb_next
    return frames


def _get_file(frame: TracebackType) -> str:
    """Return the name of the source file of a traceback entry."""
    return frame.tb_frame.f_code.co_filename


def _get_position(frame: TracebackType) -> dict[str, int | None]:
    """Return the line number of a traceback entry, and the columns of code on a single line."""
    position: dict[str, int | None] = {"line": frame.tb_lineno}
    for index, instruction in enumerate(frame.tb_frame.f_code.co_positions()):
        if index == frame.tb_lasti // 2:
            first_line, last_line, first_column, last_column = instruction
            position["from"] = first_column
            position["to"] = last_column if first_line == last_line else None
            break
    return position


def describe_missing_function(target: Any, name: str) -> dict[str, Any]:
    """Return the failure for a call to an undefined function, with a hint about similar names."""
    import difflib

    defined = [
        other
        for other, value in vars(target).items()
        if callable(value)
        and not other.startswith("_")
        and getattr(value, "__module__", None) == getattr(target, "__name__", None)
    ]
    similar = difflib.get_close_matches(name, defined, 1, 0.65)
    if similar:
        hint = f"rename `{similar[0]}` to `{name}`"
    elif defined:
        hint = f"the submission defines {', '.join(defined[:8])}"
    else:
        hint = "the submission defines no functions"
    problem = "is not a function" if hasattr(target, name) else "is not defined"
    return {"kind": "missing", "message": f"{name} {problem}; {hint}"}


def call_function(target: Any, name: str, arguments: list[Any], path: str) -> dict[str, Any]:
    """Call a function of a module; return its value, or a failure if it is missing or raises.

    Args:
        target: the submission's or the driver's module.
        name: the name of the function.
        arguments: its arguments.
        path: the submission's file.
    """
    function = getattr(target, name, None)
    if not callable(function):
        return {"failure": describe_missing_function(target, name)}
    try:
        return {"value": to_plain_data(function(*arguments))}
    except BaseException as error:
        driver = getattr(target, "__file__", "") if target.__name__ == "driver" else ""
        return {"failure": describe_exception(error, path, (__file__, driver))}


class _Utf8Loader(SourceFileLoader):
    """A module loader that decodes files as UTF-8 and ignores encoding declarations."""

    def source_to_code(  # type: ignore[override]  # typeshed: a static method
        self, data: Any, path: Any, **_: Any
    ) -> CodeType:
        """Compile source code that is given as UTF-8 bytes."""
        code: CodeType = compile(bytes(data).decode("utf-8"), path, "exec", dont_inherit=True)
        return code


def load_module(path: str, name: str) -> Any:
    """Import a Python file as a module with the given name."""
    spec = spec_from_file_location(name, path, loader=_Utf8Loader(name, path))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def answer_requests(setup: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
    """Import the submission, call the requested functions in order, and send their results.

    Args:
        setup: the setup of the sandbox.
        send: writes a line to the answers pipe.
    """
    folder, own_id, get_id, leave = os.getcwd(), os.getpid(), os.getpid, os._exit
    path = os.path.join(folder, "submission.py")
    sys.path.insert(0, folder)

    def send_answer(line: dict[str, Any]) -> None:
        """Send a line to the grader; in a process forked by the submission, exit instead."""
        if get_id() != own_id:
            leave(0)
        send(line)

    try:
        target = load_module(path, "submission")
        leading = []
        if "driver.py" in setup["files"]:
            leading = [target]
            target = load_module(os.path.join(folder, "driver.py"), "driver")
        send_answer({"loaded": True})
    except BaseException as error:
        failure = describe_exception(error, path, (__file__,))
        send_answer({"loaded": False, "failure": failure})
        return
    for index, request in enumerate(setup["requests"]):
        arguments = [*leading, *request["arguments"]]
        try:
            send_answer(
                {"request": index, **call_function(target, request["call"], arguments, path)}
            )
        except BaseException:  # the submission has replaced functions of json or os
            send_answer({"request": index, "failure": {"kind": "answers", "message": "?"}})
