"""The Python side of the playground: JSON requests of the page, and JSON answers.

`answer_request` accepts the text of a JSON object with the name of a view and its arguments, and
returns the text of a JSON object. It never raises. An answer has one of these forms:

- the fields of the view, as described in the docstring of its function in `playground_views.py`;
- ``{"error": {...}}``, if the request or its text is invalid, see `encode_error`;
- ``{"error": {...}, "needs": "numpy"}`` (or ``"sympy"``, ``"mpmath"``), if the view requires a
  library that is not loaded. The page can load the library and send the request again.

Numbers are JSON numbers; infinity and nan are the strings ``"inf"``, ``"-inf"`` and ``"nan"``.
Arrays are encoded by `encode_value`, as on the step page.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from cgprimer.errors import CgprimerError, SourceError, Span, UsageError
from cgprimer.support.files import format_json
from cgprimer.support.validation import check_choice
from cgprimer.visualization.playground.playground_views import VIEWS

_LOGGER = logging.getLogger(__name__)
_LIBRARIES = ("numpy", "sympy", "mpmath")  # that the page can load later


def answer_request(text: str) -> str:
    """Answer a request of the playground's page; errors are part of the answer.

    Args:
        text: a JSON object with the name of a view and the arguments of the view.

    >>> print(answer_request('{"view": "summary", "text": "xw = ab*xa"}'))
    {"inputs": [{"name": "xa", "value": null, "shape": []}], "parameters": [{"name": "ab", ...
    >>> answer = answer_request('{"view": "summary", "text": "xw = (ab*xa"}')
    >>> json.loads(answer)["error"]["message"]
    'the parenthesis is never closed'
    """
    try:
        answer = _compute_answer(text)
        return format_json(answer, indent=None)
    except CgprimerError as error:
        return format_json({"error": encode_error(error)}, indent=None)
    except ImportError as error:
        library = (error.name or "").partition(".")[0]
        if library in _LIBRARIES:
            return encode_missing_library(library)
        return _report_internal_error(error)
    except Exception as error:  # the page stays usable
        return _report_internal_error(error)


def _compute_answer(text: str) -> Any:
    """Decode a request, and compute the answer of its view.

    Raises:
        UsageError: the request is not a JSON object, or its view is unknown.
    """
    try:
        request = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the request is not valid JSON: {error}") from None
    if not isinstance(request, dict):
        raise UsageError("the request must be a JSON object")
    view = request.pop("view", None)
    if not isinstance(view, str):
        raise UsageError("the request must name a `view`", hint=f"choose one of {', '.join(VIEWS)}")
    return VIEWS[check_choice("view", view, VIEWS)](request)


def encode_error(error: CgprimerError) -> dict[str, Any]:
    """Encode an error as built-in types.

    Returns:
        ``message`` and ``hint`` (which can be empty). An error at a position of the text also
        has ``line`` and ``column`` (counted from 1, in characters), ``end_column`` (exclusive, on
        the same line), ``source_line``, and ``start`` and ``end``, which count UTF-16 code units
        from the start of the text, as strings in JavaScript do. ``related`` lists other positions
        with the same fields.

    >>> import cgprimer
    >>> try:
    ...     cgprimer.parse("xw = sni(xa)")
    ... except cgprimer.CgprimerError as error:
    ...     print(encode_error(error))
    {'message': "unknown function 'sni'", 'hint': "did you mean 'sin'?", 'line': 1, 'column': 6, ...
    """
    data: dict[str, Any] = {"message": error.message, "hint": error.hint}
    if isinstance(error, SourceError):
        data |= _encode_span(error.span)
        data["related"] = [
            {"message": message, **_encode_span(span)} for message, span in error.related
        ]
    return data


def _encode_span(span: Span) -> dict[str, Any]:
    """Encode a range of the text by its line and columns, and by offsets for JavaScript."""
    line, column = span.source.position(span.start)
    source_line = span.source.line(line)
    length = max(1, min(span.end - span.start, len(source_line) - column + 1))
    start, end = (
        len(span.source.text[:offset].encode("utf-16-le", "surrogatepass")) // 2
        for offset in (span.start, span.end)
    )
    return {
        "line": line,
        "column": column,
        "end_column": column + length,
        "source_line": source_line,
        "start": start,
        "end": max(start, end),
    }


def encode_missing_library(library: str) -> str:
    """Encode the answer to a request that requires a library that is not loaded."""
    message = f"this view requires {library}, which is not loaded"
    return format_json({"error": {"message": message, "hint": ""}, "needs": library}, indent=None)


def _report_internal_error(error: Exception) -> str:
    """Log an unexpected exception, and encode it as an error."""
    _LOGGER.error("internal error of the playground", exc_info=error)
    message = f"internal error: {type(error).__name__}: {error}"
    hint = "please report the text of the graph as a bug of cgprimer"
    return format_json({"error": {"message": message, "hint": hint}}, indent=None)
