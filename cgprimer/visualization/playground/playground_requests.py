"""The requests of the playground: their arguments, and the sizes of graphs that are accepted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cgprimer.core.derivatives import resolve_output
from cgprimer.core.graph import ExpressionGraph, parse
from cgprimer.core.language.tokens import tokenize
from cgprimer.core.second_derivatives import add_element_output
from cgprimer.errors import UsageError
from cgprimer.support.type_checks import check_type
from cgprimer.support.validation import check_choice
from cgprimer.support.value_names import Element
from cgprimer.tapes import tape as tape_of

Request = dict[str, Any]
MAX_CHARACTERS = 100_000  #: of a text; parsing more takes seconds in a browser
MAX_DEPTH = 500  #: operations of a definition; Pyodide cannot delete a tree of thousands of levels
MAX_OPERATIONS = 2_000  #: of a graph whose values are shown
MAX_ELEMENTS = 20_000  #: of all arrays of a graph
CACHED_TEXTS = 32  #: whose graphs and pictures are kept
_INSTALLED = "use the installed package for large graphs, for example cgprimer grad"
_GRAPH_ARGUMENTS = ("text", "at", "of", "wrt")
_OPERATORS = frozenset(("+", "-", "*", "/", "@", "^", "**", "["))
_LONGEST_NAME = 60  # characters of a name in a message


@dataclass(frozen=True)
class GraphRequest:
    """The arguments that most requests have: a graph, a point, and the derivatives to compute.

    Attributes:
        graph: the graph.
        at: the requested values, keyed by name; other names keep their declared values.
        target: the variable to differentiate.
        wrt: the names with respect to which it is differentiated; None for the default.
    """

    graph: ExpressionGraph
    at: Mapping[str, Any]
    target: str
    wrt: tuple[str, ...] | None

    @property
    def missing(self) -> list[str]:
        """The inputs and parameters without a value."""
        graph = self.graph
        names = (*graph.inputs, *graph.parameters)
        return [name for name in names if name not in self.at and name not in graph.declared_values]


def read_graph_request(request: Request, *others: str) -> GraphRequest:
    """Parse the text of a request, and check its point and its names.

    Args:
        request: the arguments of the view.
        others: the names of arguments that only this view has.

    Raises:
        UsageError: an argument is unknown or has the wrong type.
        SourceError: the text does not define a graph.

    >>> read_graph_request({"text": "xb = p*xa; xc = p^2"}).target
    'xb'
    """
    check_argument_names(request, *_GRAPH_ARGUMENTS, *others)
    graph = read_graph(request)
    check_size(graph)
    at, of, wrt = request.get("at"), request.get("of"), request.get("wrt")
    check_type("at", at, (Mapping, type(None)), "an object with a number for each name")
    check_type("of", of, (str, type(None)), "a name")
    check_type("wrt", wrt, (list, str, type(None)), "a list of names")
    graph.point(at, needed=())  # checks the names and values
    if not graph.outputs:
        raise UsageError("the graph is empty", hint="write a definition such as xw = ab*xa")
    names = [wrt] if isinstance(wrt, str) else wrt
    graph, of = add_element_output(graph, resolve_output(graph, of or _choose_target(graph)))
    return GraphRequest(graph, at or {}, of or graph.outputs[0], tuple(names) if names else None)


def _choose_target(graph: ExpressionGraph) -> str:
    """Return the first output, or its first element if it is an array."""
    primal, name = tape_of(graph), graph.outputs[0]
    shape = primal.shapes[primal.index(name)]
    return str(Element(name, (0,) * len(shape))) if shape else name


def check_argument_names(request: Request, *names: str) -> None:
    """Raise UsageError if a request has an argument that its view does not know."""
    for name in request:
        check_choice("argument", name, names)


def read_graph(request: Request) -> ExpressionGraph:
    """Parse the text of a request.

    Raises:
        UsageError: the text is missing, or it is too large for the playground.
        SourceError: the text does not define a graph.
    """
    text = request.get("text")
    check_type("text", text, str, "a string")
    text = str(text)
    if len(text) > MAX_CHARACTERS:
        raise UsageError(
            f"the text has {len(text):,} characters, but the playground accepts at most"
            f" {MAX_CHARACTERS:,}",
            hint=_INSTALLED,
        )
    return _parse_once(text)


def check_size(graph: ExpressionGraph) -> None:
    """Raise UsageError if a graph is so large that a view would take seconds."""
    primal = tape_of(graph)
    elements = sum(math.prod(shape) for shape in primal.shapes if shape)
    for count, limit, noun in (
        (len(primal), MAX_OPERATIONS, "operations"),
        (elements, MAX_ELEMENTS, "elements of arrays"),
    ):
        if count > limit:
            raise UsageError(
                f"the graph has {count:,} {noun}, but the playground shows at most {limit:,}",
                hint=_INSTALLED,
            )


@lru_cache(CACHED_TEXTS)
def _parse_once(text: str) -> ExpressionGraph:
    """Parse a text, or return the graph of an earlier request, with its tapes and programs.

    Raises:
        UsageError: a definition has too many operations.
        SourceError: the text does not define a graph.
    """
    count, previous, defined = 0, "", ""
    for token in tokenize(text):
        if token == "=":  # the tree of a definition is at most as deep as it has operations
            count, defined = 0, previous
        elif token in _OPERATORS or token.endswith("("):
            count += 1
        if count > MAX_DEPTH:
            raise UsageError(
                f"the definition of {defined[:_LONGEST_NAME]} has more than {MAX_DEPTH} operations,"
                " which is too much for the playground",
                hint="split it into several definitions, or use the installed package",
            )
        previous = token
    return parse(text, name="text")
