"""How a student's gradient function is called: beside the submission, in the sandbox.

It imports nothing of cgprimer and holds no answers.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any


def call(submission: Any, name: str, arguments: dict[str, Any]) -> Any:
    """What a function returns for arguments by name: as keywords, or as one dictionary.

    A problem with the function itself is told as ``{"no call": kind, "said": text}``,
    as no parameter can be called.
    """
    function = getattr(submission, name, None)
    if not callable(function):
        there = [n for n, v in vars(submission).items() if callable(v) and not n.startswith("_")]
        return {"no call": "missing", "said": there[:20]}
    numpy = sys.modules.get("numpy")
    given = {
        n: numpy.array(v) if numpy is not None and isinstance(v, list) else v
        for n, v in arguments.items()
    }
    try:
        takes = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return function(**given)
    every = any(p.kind == p.VAR_KEYWORD for p in takes)
    named = [p for p in takes if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    rest = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    needed = [p for p in takes if p.default is p.empty and p.kind not in rest]
    known = [p.name for p in named if p.name in given]
    if all(p in named and p.name in given for p in needed) and (every or known):
        return function(**given if every else {n: given[n] for n in known})
    if len(needed) == 1 and needed[0].kind != needed[0].KEYWORD_ONLY:
        return function(given)
    return {"no call": "signature", "said": f"{name}{inspect.signature(function)}"}
