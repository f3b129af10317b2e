"""What runs in the sandbox, in a process of its own: limits first, then the submission.

It imports nothing of cgprimer and is given no answers, so a submission that meddles with it can
forge nothing but its own numbers. The setup comes as JSON on standard input, the answers leave as
lines of JSON on what was standard output:

    {"protections": [...]}               before a line of the submission has run
    {"loaded": true}                     it was imported
    {"value": ...} or {"failure": ...}   for each request, in order
    {"end": {...}}                       what it took

What the submission prints goes elsewhere. :mod:`cgprimer.checking.sandbox` has the other side.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import util
from typing import Any

LONGEST_MESSAGE = 500  # characters


class Refused(Exception):
    """A value that is no answer."""


def plain(value: Any, depth: int = 0) -> Any:
    """Numbers, texts, lists and dictionaries, as JSON has them; arrays are nested lists.

    >>> plain({"ab": (1, 2.5)})
    {'ab': [1, 2.5]}
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float) and type(value).__module__ == "builtins":
        return value
    if depth > 20:
        raise Refused("lists in lists in lists")
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
    name = type(error).__name__
    try:
        text = str(error)[:LONGEST_MESSAGE]
    except BaseException:
        text = "(it cannot be printed)"
    found: dict[str, Any] = {"kind": "exception", "message": f"{name}: {text}" if text else name}
    deepest, count = None, 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            deepest = trace
        count += trace.tb_frame.f_code.co_filename not in ours
        trace = trace.tb_next
    if deepest is not None:
        spots = list(deepest.tb_frame.f_code.co_positions())
        spot = spots[deepest.tb_lasti // 2] if deepest.tb_lasti >= 0 else (None,) * 4
        one_line = spot[0] == spot[1]
        found |= {"line": deepest.tb_lineno, "from": spot[2], "to": spot[3] if one_line else None}
    if isinstance(error, Refused):
        found |= {"kind": "value", "message": text}
    elif isinstance(error, SystemExit):
        found |= {"kind": "exit", "message": f"sys.exit({text}) is called"}
    elif isinstance(error, MemoryError):
        found |= {"kind": "memory", "message": "it asks for more memory than it may have"}
    elif isinstance(error, SyntaxError) and error.filename == path:
        found |= {"kind": "syntax", "message": error.msg, "line": error.lineno}
        found |= {"column": error.offset, "end": error.end_offset}
    elif isinstance(error, TypeError) and count == 0 and "argument" in text:
        found |= {"kind": "signature", "message": text}
    return found


def missing(module: Any, name: str) -> dict[str, Any]:
    """The failure of a name that a submission lacks."""
    import difflib

    there = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
    close = difflib.get_close_matches(name, there, 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    defined = f"; it defines {', '.join(there[:8])}" if there and not close else ""
    return {"kind": "missing", "message": f"there is no function {name}{hint}{defined}"}


def answer(target: Any, name: str, arguments: list[Any], path: str) -> dict[str, Any]:
    """One line of answer: the value of a call, or why there is none."""
    function = getattr(target, name, None)
    if not callable(function):
        return {"failure": missing(target, name)}
    try:
        return {"value": plain(function(*arguments))}
    except BaseException as error:
        driver = getattr(target, "__file__", path)
        return {"failure": failure_of(error, path, (__file__, driver))}


def load(path: str, name: str) -> Any:
    """A file as a module of this process."""
    spec = util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def work(setup: dict[str, Any], say: Any) -> None:
    """Import the submission, and answer the requests one by one."""
    path = setup["submission"]
    try:
        target = load(path, "submission")
        say({"loaded": True})
        leading: list[Any] = []
        if setup["driver"]:
            leading = [target]
            target = load(setup["driver"], "driver")
    except BaseException as error:
        say({"failure": failure_of(error, path, (__file__,))})
        return
    for request in setup["requests"]:
        try:
            say(answer(target, request["call"], [*leading, *request["arguments"]], path))
        except BaseException:  # json or os are not what they were
            os._exit(3)


def main() -> None:
    """The sandboxed process."""
    data = b""
    while chunk := os.read(0, 1 << 20):
        data += chunk
    setup = json.loads(data)
    answers = os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    encode, write, leave = json.dumps, os.write, os._exit

    def say(line: dict[str, Any]) -> None:
        text = (encode(line) + "\n").encode()
        while text:
            text = text[write(answers, text) :]

    sys.path[0:0] = [os.getcwd()]
    work(setup, say)
    say({"end": {"modules": sorted({name.partition(".")[0] for name in sys.modules})}})
    leave(0)  # threads that live on do not matter


if __name__ == "__main__":
    main()
