"""From a question to its table, blanks and values: for the sheet, the solution and the grader."""

from __future__ import annotations

import json
from functools import lru_cache

from cgprimer.checking.sheets import questions, tables
from cgprimer.checking.sheets.problems import Problem, Worksheet
from cgprimer.core.graph import parse
from cgprimer.errors import CgprimerError, DataError

_MAKERS = {**tables.MAKERS, **questions.MAKERS}


@lru_cache(maxsize=64)  # a sheet, its form, its solution and its grader ask for the same
def _worked(kind: str, graph: str, asked: str) -> Worksheet:
    return _MAKERS[kind](parse(graph, name="<sheet>"), json.loads(asked))


def worked(problem: Problem) -> Worksheet:
    """A problem's table, its blanks and their values.

    Raises:
        DataError: the problem's data are not those of a sheet.

    >>> made = worked(Problem("trace", "input xa = 2; xb = xa^2; xw = 3*xb", {"digits": 0}))
    >>> [(blank.name, blank.value) for blank in made.blanks]
    [('xb', 4.0), ('xw', 12.0)]
    """
    try:
        return _worked(problem.kind, problem.graph, json.dumps(dict(problem.asked)))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DataError(f"a problem of the sheet is damaged: {error!r}"[:200]) from None
    except CgprimerError as error:
        what = f"a problem of the sheet cannot be worked out: {error.message}"
        raise DataError(what, hint=error.hint) from None
