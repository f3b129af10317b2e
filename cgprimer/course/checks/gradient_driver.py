"""Call a student's gradient function, in the sandbox next to the submission.

The module imports nothing of cgprimer and contains no answers.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any


def call(submission: Any, name: str, arguments: dict[str, Any]) -> Any:
    """Call a function of the submission with keyword arguments or with one dictionary.

    Returns:
        The value of the function. If it cannot be called, a report
        ``{"no call": kind, "said": details}``; no parameter can be named ``no call``.
    """
    function = getattr(submission, name, None)
    if not callable(function):
        names = [n for n, v in vars(submission).items() if callable(v) and not n.startswith("_")]
        return {"no call": "missing", "said": names[:20]}
    numpy = sys.modules.get("numpy")
    values = {
        n: numpy.array(v) if numpy is not None and isinstance(v, list) else v
        for n, v in arguments.items()
    }
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return function(**values)
    takes_all = any(p.kind == p.VAR_KEYWORD for p in parameters)
    by_name = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    required = [p for p in parameters if p.default is p.empty and p.kind not in variadic]
    matching = [p.name for p in by_name if p.name in values]
    accepts_names = all(p in by_name and p.name in values for p in required)
    if accepts_names and (takes_all or matching):
        return function(**values if takes_all else {n: values[n] for n in matching})
    if len(required) == 1 and required[0].kind != required[0].KEYWORD_ONLY:
        return function(values)
    return {"no call": "signature", "said": f"{name}{inspect.signature(function)}"}
