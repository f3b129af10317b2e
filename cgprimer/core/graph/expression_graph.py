"""The expression graph: which variable depends on which, and which leads to which.

Vertices are the variables (names beginning with ``x``, names on a left-hand side, and names
declared ``input``); every other name is a learnable parameter. An edge runs from a variable to
each variable whose expression uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cgprimer.core.graph.frozen import FrozenDict, FrozenList
from cgprimer.core.language.syntax import Definition, Expression, Program
from cgprimer.errors import Source, UsageError, name_hint, plural
from cgprimer.numbers_and_arrays import Value, as_value, common_shape

if TYPE_CHECKING:
    import networkx
    import sympy


_MOST_LINES, _FIRST_LINES = 1_000, 100  # that print shows: all, or so many of more


@dataclass(frozen=True, eq=False, repr=False)
class ExpressionGraph:
    """A directed acyclic graph of expressions. Made by :func:`cgprimer.parse`.

    Attributes:
        program: the statements that it was built from, and their source.
        variables: every vertex, in topological order, ties by first appearance in the text.
        inputs: variables that nothing defines.
        outputs: variables that lead to nothing, or those that ``output`` names.
        parameters: learnable parameters, by first appearance in the text.
        values: values given in declarations.
        definitions: the expression of every variable that has one.
        depends_on: for each variable the variables that its expression uses.
        leads_to: for each variable the variables whose expressions use it.

    Both dictionaries list vertices in the order of ``variables`` and leave out empty lists. All
    dictionaries and lists are read only: writing to one is a UsageError.

    >>> from cgprimer.core.graph import parse
    >>> graph = parse("xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3")
    >>> graph.depends_on
    {'xx': ['xa'], 'xy': ['xa', 'xx'], 'xz': ['xx', 'xy'], 'xw': ['xx', 'xz']}
    >>> graph.leads_to
    {'xa': ['xx', 'xy'], 'xx': ['xy', 'xz', 'xw'], 'xy': ['xz'], 'xz': ['xw']}
    """

    program: Program
    variables: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: tuple[str, ...]
    values: dict[str, float]
    definitions: dict[str, Expression]
    depends_on: dict[str, list[str]]
    leads_to: dict[str, list[str]]

    @property
    def source(self) -> Source:
        """The text that it was parsed from."""
        return self.program.source

    def __repr__(self) -> str:
        parts = (
            plural(len(self.inputs), "input"),
            plural(len(self.definitions), "expression"),
            plural(len(self.parameters), "parameter"),
        )
        return f"<ExpressionGraph {self.source.name}: {', '.join(parts)}>"

    @property
    def text(self) -> str:
        """Text that parses to the same graph: the statements in their order, names in theirs."""
        from cgprimer.core.graph import conversions

        return conversions.to_text(self)

    def __str__(self) -> str:
        """The text; of a graph that nobody reads to its end, the first lines."""
        lines = self.text.split("\n")
        if len(lines) <= _MOST_LINES:
            return "\n".join(lines)
        rest = f"... {len(lines) - _FIRST_LINES:,} more lines; graph.text has all of them"
        return "\n".join([*lines[:_FIRST_LINES], rest])

    def expression(self, name: str) -> str:
        """The right-hand side that defines a variable, as text.

        >>> from cgprimer.core.graph import parse
        >>> parse("xw = (cd*xx) + xz**3").expression("xw")
        'cd*xx + xz^3'
        """
        if name not in self.definitions:
            raise UsageError(f"nothing defines {name!r}", hint=name_hint(name, self.definitions))
        from cgprimer.core.primitives.notation import unparse

        return unparse(self.definitions[name])

    @cached_property
    def parameters_of(self) -> dict[str, list[str]]:
        """For each variable the parameters that stand in its expression, in parameter order."""
        rank = {name: i for i, name in enumerate(self.parameters)}
        names = {s.name: s.names for s in self.program.statements if isinstance(s, Definition)}
        used = {
            name: FrozenList(sorted(rank.keys() & names[name], key=rank.__getitem__))
            for name in self.definitions
        }
        return FrozenDict({name: parameters for name, parameters in used.items() if parameters})

    def only_output(self) -> str:
        """The output, where there is just one.

        Raises:
            UsageError: there are several (the message lists them) or none.
        """
        if len(self.outputs) != 1:
            what = f"several outputs: {', '.join(self.outputs)}" if self.outputs else "no output"
            raise UsageError(f"the graph has {what}", hint="say which one with of=... (--of NAME)")
        return self.outputs[0]

    def point(
        self, at: Mapping[str, Value] | None = None, *, needed: Iterable[str] | None = None
    ) -> dict[str, Value]:
        """Values of all inputs and parameters: those of ``at``, else the declared ones.

        Args:
            at: names to numbers or arrays; arrays must broadcast together.
            needed: names that must have a value; all inputs and parameters unless given.

        Raises:
            MissingValueError: a needed name has no value.
            UsageError: ``at`` has a name that is neither input nor parameter, or a value that is
                no real number, or arrays that do not broadcast.
        """
        if at is not None and not isinstance(at, Mapping):
            raise UsageError(
                f"a point maps names to values, as {{'xa': 0.5}} does; {type(at).__name__} does not"
            )
        free = dict.fromkeys((*self.inputs, *self.parameters))
        given: dict[str, Value] = dict(self.values)
        for name, value in (at or {}).items():
            if name not in free:
                raise complaints().not_free(self, name)
            given[name] = as_value(name, value)
        missing = [n for n in (free if needed is None else needed) if n in free and n not in given]
        if missing:
            raise complaints().missing_values(self, missing)
        try:
            common_shape(given.values())
        except ValueError:
            raise complaints().no_common_shape(given) from None
        return given

    def evaluate(self, at: Mapping[str, Value] | None = None) -> dict[str, Value]:
        """The value of every variable.

        This walks the syntax trees, with no tape and no engine between.

        Args:
            at: names of inputs and parameters to numbers or arrays (shape: the samples).

        Returns:
            Floats if every value is a number, else arrays of the common shape. Outside a
            function's domain a value is nan, at a pole it is infinite; nothing raises.

        >>> from cgprimer.core.graph import parse
        >>> graph = parse("input xa = 0.5; xx = xa^2; xw = 3*xx")
        >>> graph.evaluate()
        {'xa': 0.5, 'xx': 0.25, 'xw': 0.75}
        >>> graph.evaluate({"xa": [1.0, 2.0]})["xw"]
        array([ 3., 12.])
        """
        from cgprimer.core.graph import conversions

        return conversions.values(self, self.point(at))

    def to_networkx(self) -> networkx.DiGraph:
        """The graph as networkx sees it.

        Nodes carry ``role`` (input, inner or output), ``expression`` and ``parameters``.

        >>> from cgprimer.core.graph import parse
        >>> sorted(parse("xb = xa^2; xc = xa*xb").to_networkx().edges)
        [('xa', 'xb'), ('xa', 'xc'), ('xb', 'xc')]
        """
        from cgprimer.core.graph import conversions

        return conversions.to_networkx(self)

    def role(self, name: str) -> str:
        """``input``, ``inner``, ``output`` or ``parameter``."""
        return self._roles.get(name, "parameter")

    @cached_property
    def _roles(self) -> dict[str, str]:
        roles = ("inner", self.definitions), ("input", self.inputs), ("output", self.outputs)
        return {name: role for role, names in roles for name in names}

    def to_sympy(self) -> dict[str, sympy.Expr]:
        """Every defined variable as a sympy expression in the symbols of its own right-hand side.

        >>> from cgprimer.core.graph import parse
        >>> parse("xx = xa^2; xw = 3*xx").to_sympy()
        {'xx': xa**2, 'xw': 3*xx}
        """
        from cgprimer.core.graph import conversions

        return conversions.to_sympy(self)


def complaints() -> Any:
    """What to say when something is wrong; loaded only then."""
    from cgprimer.core.graph import complaints as found

    return found


def checked_graph(graph: Any) -> ExpressionGraph:
    """The graph itself, if it is one.

    Raises:
        UsageError: it is something else, such as a text that was not parsed.
    """
    if not isinstance(graph, ExpressionGraph):
        raise UsageError(
            f"expected an ExpressionGraph, not {type(graph).__name__}",
            hint="cgprimer.parse(text) makes one of a text, cgprimer.load(path) of a file",
        )
    return graph
