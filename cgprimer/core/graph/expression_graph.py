"""The expression graph: its variables, parameters and edges.

Vertices are the variables (names beginning with ``x``, names on a left-hand side, and names
declared ``input``); every other name is a learnable parameter. An edge leads from a variable to
each variable whose expression uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from cgprimer.core.language.syntax_tree import (
    Apply,
    Definition,
    Expression,
    Program,
    names_in,
    postorder,
)
from cgprimer.core.operations import float_arithmetic
from cgprimer.errors import (
    MissingValueError,
    ShapeError,
    Source,
    TextShapeError,
    UsageError,
    name_hint,
    pluralize,
)
from cgprimer.support.array_values import Value, broadcast_sample_shapes, convert_value
from cgprimer.support.type_checks import check_type
from cgprimer.support.value_names import element_hint, is_internal

if TYPE_CHECKING:
    import networkx
    import sympy

    from cgprimer.core.language.initializers import Initializer
    from cgprimer.core.language.input_domains import Domain

_CONSTANTS = {"e": "exp(1)", "pi": "3.141592653589793", "π": "3.141592653589793"}
_LAYERS = frozenset({"dropout", "batchnorm"})
_MAX_LINES, _FIRST_LINES = 1_000, 100  # print shows all lines, or the first of a longer text
V = TypeVar("V")


def _raise_read_only_error(self: Any, *args: Any, **options: Any) -> NoReturn:
    """Raise the error for an attempt to modify a dictionary or list of a graph."""
    raise UsageError(
        "the dictionaries and lists of a graph are read-only",
        hint="parse the changed text, or change a copy made by copy.deepcopy",
    )


def _convert_to_tuples(values: Any) -> Any:
    """Convert nested lists to nested tuples."""
    return tuple(map(_convert_to_tuples, values)) if isinstance(values, list) else values


class FrozenList(list[V]):
    """A read-only list; its copies and pickles are ordinary lists."""

    __slots__ = ()
    append = extend = insert = remove = pop = clear = sort = reverse = _raise_read_only_error
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _raise_read_only_error

    def __reduce__(self) -> Any:
        return list, (list(self),)


class FrozenDict(dict[str, V]):
    """A read-only dictionary; its copies and pickles are ordinary dictionaries."""

    __slots__ = ()
    pop = popitem = clear = update = setdefault = _raise_read_only_error
    __setitem__ = __delitem__ = __ior__ = _raise_read_only_error

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


@dataclass(frozen=True, eq=False, repr=False)
class ExpressionGraph:
    """A directed acyclic graph of expressions, created by :func:`cgprimer.parse`.

    Attributes:
        program: the statements that the graph was built from, and their source.
        variables: the vertices in topological order, ties by first appearance in the text.
        inputs: variables without a definition.
        outputs: variables that no other variable uses, or those declared ``output``.
        parameters: learnable parameters, by first appearance in the text.
        declared_values: declared values of inputs and parameters: numbers, nested tuples or
            initializers.
        definitions: the expression of each defined variable.
        depends_on: for each variable the variables that its expression uses.
        leads_to: for each variable the variables whose expressions use it.
        shapes: the declared shapes of inputs and parameters that are arrays.
        domains: the declared domains of inputs: a tuple of numbers, or ``"one-hot"``.

    ``depends_on`` and ``leads_to`` list vertices in the order of ``variables`` and omit empty
    lists. All dictionaries and lists are read-only: writing to one raises UsageError.

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
    declared_values: dict[str, Any]
    definitions: dict[str, Expression]
    depends_on: dict[str, list[str]]
    leads_to: dict[str, list[str]]
    shapes: dict[str, tuple[int, ...]]
    domains: dict[str, Domain] = field(default_factory=dict)

    @cached_property
    def initializers(self) -> dict[str, Initializer]:
        """The initializers in declarations of inputs and parameters, keyed by name.

        >>> from cgprimer.core.graph import parse
        >>> parse("parameter w = normal(0.1), b = 2; xw = w*xa + b").initializers
        {'w': Initializer(name='normal', arguments=(0.1,))}
        """
        declared = self.declared_values.items()
        if not declared:
            return FrozenDict()
        from cgprimer.core.language.initializers import Initializer

        return FrozenDict({n: value for n, value in declared if isinstance(value, Initializer)})

    @cached_property
    def values(self) -> dict[str, Any]:
        """The declared values of inputs and parameters, as numbers or nested tuples of numbers.

        Initializers are sampled on the first access, always with seed 0, so that every command
        evaluates the graph at the same point.
        """
        if not self.initializers:
            return self.declared_values
        from cgprimer.core.language.initializers import VALUES_STREAM

        values = dict(self.declared_values)
        for name, initializer in self.initializers.items():
            shape = self.shapes.get(name, ())
            sample = initializer.sample(name, shape, seed=0, stream=VALUES_STREAM)
            values[name] = _convert_to_tuples(sample.tolist()) if shape else sample
        return FrozenDict(values)

    def sampled_start(self, seed: int) -> dict[str, Any]:
        """Sample the start values of the parameters that have an initializer.

        Args:
            seed: random seed of the training run.

        Returns:
            Floats or arrays, keyed by name. They differ from ``values``, which are the ground truth
            of generated data.
        """
        from cgprimer.core.language.initializers import START_STREAM

        start = {}
        for name in self.parameters:
            if initializer := self.initializers.get(name):
                shape = self.shapes.get(name, ())
                start[name] = initializer.sample(name, shape, seed=seed, stream=START_STREAM)
        return start

    @property
    def source(self) -> Source:
        """The source text from which the graph was parsed."""
        return self.program.source

    def __repr__(self) -> str:
        parts = {"input": self.inputs, "expression": self.definitions, "parameter": self.parameters}
        counts = ", ".join(pluralize(len(names), what) for what, names in parts.items())
        return f"<ExpressionGraph {self.source.name}: {counts}>"

    @property
    def text(self) -> str:
        """Text that parses to the same graph, with the statements in their original order."""
        from cgprimer.core.operations.notation import format_program

        return format_program(self.program)

    def __str__(self) -> str:
        """Return the graph as text, limited to the first lines if it is very long."""
        lines = self.text.split("\n")
        if len(lines) > _MAX_LINES:
            more = f"{len(lines) - _FIRST_LINES:,} more lines"
            lines[_FIRST_LINES:] = [f"... {more}; see graph.text"]
        return "\n".join(lines)

    def expression(self, name: str) -> str:
        """Return the right-hand side of a variable's definition as a string.

        >>> from cgprimer.core.graph import parse
        >>> parse("xw = (cd*xx) + xz**3").expression("xw")
        'cd*xx + xz^3'
        """
        if str(name) not in self.definitions:
            hint = element_hint(name, self.definitions)
            raise UsageError(f"{name!r} is not defined by an expression", hint=hint)
        from cgprimer.core.operations.notation import unparse

        return unparse(self.definitions[name])

    @cached_property
    def parameters_of(self) -> dict[str, list[str]]:
        """The parameters in the expression of each variable, in the order of ``parameters``."""
        rank = {name: i for i, name in enumerate(self.parameters)}
        names = {s.name: s.names for s in self.program.statements if isinstance(s, Definition)}
        used = {
            name: FrozenList(sorted(rank.keys() & names[name], key=rank.__getitem__))
            for name in self.definitions
        }
        return FrozenDict({name: parameters for name, parameters in used.items() if parameters})

    def only_output(self) -> str:
        """Return the name of the output of a graph with a single output.

        Raises:
            UsageError: the graph has several outputs or none.
        """
        if not self.outputs:
            raise UsageError("the graph has no output")
        if len(self.outputs) > 1:
            names = ", ".join(self.outputs)
            message = f"the graph must have a single output, got {len(self.outputs)}: {names}"
            raise UsageError(message, hint="choose one with `of=NAME`")
        return self.outputs[0]

    def point(
        self, at: Mapping[str, Value] | None = None, *, needed: Iterable[str] | None = None
    ) -> dict[str, Value]:
        """Return the value of each input and parameter: from ``at``, or the declared value.

        Args:
            at: numbers or arrays, keyed by name; the arrays must broadcast together.
            needed: names that must have a value; by default all inputs and parameters.

        Raises:
            MissingValueError: a needed name has no value.
            UsageError: an unknown name, a value that is not real, or arrays that do not broadcast.
        """
        if at is not None and not isinstance(at, Mapping):
            raise UsageError(f"`at` must be a dict such as {{'xa': 0.5}}, got {type(at).__name__}")
        free, shapes = dict.fromkeys((*self.inputs, *self.parameters)), self.shapes
        values = {
            name: convert_value(name, value, shapes[name]) if name in shapes else value
            for name, value in self.values.items()
        }
        if any(name not in free for name in at or ()):  # elements such as W[0,1]
            from cgprimer.support.array_elements import insert_elements

            at = insert_elements(at or {}, values, shapes)
        for name, value in (at or {}).items():
            if name not in free:
                if self.layered and is_internal(str(name)):  # a running statistic
                    values[name] = convert_value(name, value)
                    continue
                if name in self.definitions:
                    raise UsageError(f"cannot set {name!r}: the graph computes it")
                message = f"unknown input or parameter {name!r}"
                raise UsageError(message, hint=element_hint(name, free))
            values[name] = convert_value(name, value, shapes.get(name, ()))
        wanted = free if needed is None else needed
        missing = [name for name in wanted if name in free and name not in values]
        if missing:
            hint = self._missing_value_hint(missing[0])
            plural = "s" if len(missing) > 1 else ""
            raise MissingValueError(f"missing value{plural} for {', '.join(missing)}", hint=hint)
        try:
            self.samples(values)
        except ValueError:
            texts = [f"{n} {v.shape}" for n, v in values.items() if not isinstance(v, float)]
            raise UsageError(f"cannot broadcast the arrays together: {', '.join(texts)}") from None
        return values

    @cached_property
    def layers(self) -> frozenset[str]:
        """The layer functions (``dropout``, ``batchnorm``) that the expressions call."""
        # Large graphs rarely have layers: this search avoids a traversal of every tree.
        if not any(name in self.program.source.text for name in _LAYERS):
            return frozenset()
        nodes = (node for tree in self.definitions.values() for node in postorder(tree))
        return _LAYERS & {node.primitive for node in nodes if isinstance(node, Apply)}

    @cached_property
    def layered(self) -> bool:
        """True if the graph has layers with different computations in training and evaluation."""
        return bool(self.layers)

    def samples(self, point: Mapping[str, Value]) -> tuple[int, ...]:
        """Return the shape of the sample axes at a point; ``()`` for a single sample."""
        if self.layered:
            point = {name: value for name, value in point.items() if not is_internal(name)}
        return broadcast_sample_shapes(point, self.shapes)

    def mode(self, point: Mapping[str, Value]) -> str:
        """Return the mode in which layers such as dropout are expanded at a point.

        See :mod:`cgprimer.core.operations.layer_expansions`.
        """
        from cgprimer.core.operations.layer_expansions import choose_layer_mode

        return choose_layer_mode(self.layers, point, self.samples(point)) if self.layered else ""

    def _missing_value_hint(self, name: str) -> str:
        """Return a hint for an input or parameter without a value."""
        used = {n for s in self.program.statements if isinstance(s, Definition) for n in s.names}
        unused = [n for n in self.declared_values if n not in used]
        if unused:
            return "; ".join(f"{n!r} has a value but no expression uses it" for n in unused)
        other = next((n for n in self.definitions if n.casefold() == name.casefold()), None)
        if other is not None:
            return f"did you mean {other!r}? Names are case-sensitive"
        if name in _CONSTANTS:
            return f"constants have no names: write {_CONSTANTS[name]}"
        sizes = f"[{','.join(map(str, self.shapes[name]))}]" if name in self.shapes else ""
        declared = f"or declare it: {self.role(name)} {name}{sizes} = 0.5"
        declared += f"; or call the function: {name}(...)" * (name in float_arithmetic.FUNCTIONS)
        return f"pass `at={{{name!r}: 0.5}}`, {declared}"

    def evaluate(self, at: Mapping[str, Value] | None = None) -> dict[str, Value]:
        """Compute the value of every variable at a point.

        Args:
            at: scalars or arrays of samples, keyed by the names of inputs and parameters.

        Returns:
            Floats if every value is a scalar, else arrays of the common shape. Functions return
            nan outside their domain and infinity at poles; no error is raised.

        >>> from cgprimer.core.graph import parse
        >>> graph = parse("input xa = 0.5; xx = xa^2; xw = 3*xx")
        >>> graph.evaluate()
        {'xa': 0.5, 'xx': 0.25, 'xw': 0.75}
        >>> graph.evaluate({"xa": [1.0, 2.0]})["xw"]
        array([ 3., 12.])
        """
        from cgprimer.core.evaluation.graph_values import evaluate_graph

        point = self.point(at)
        return evaluate_graph(self, point, self.samples(point), self.mode(point))

    def misfit(self, name: str, operation: int, error: ShapeError) -> ShapeError:
        """Return a shape error with the source position of the operation that caused it.

        Args:
            name: the variable whose definition contains the operation.
            operation: the index of the operation in execution order.
            error: the error without a position.
        """
        from cgprimer.core.operations.notation import unparse

        operations = [n for n in postorder(self.definitions[name]) if isinstance(n, Apply)]
        statements = self.program.statements
        definition = next(s for s in statements if isinstance(s, Definition) and s.name == name)
        span = self.program.expression_span(definition, unparse(operations[operation]))
        names = names_in(operations[operation])
        near = next((n for n in names if n.swapcase() in self.shapes and n not in self.shapes), "")
        hint = f"{near!r} is a scalar, {near.swapcase()!r} is an array" if near else error.hint
        return TextShapeError(error.message, span, hint=hint)

    def to_networkx(self) -> networkx.DiGraph:
        """Convert the graph to a ``networkx.DiGraph``.

        Nodes have the attributes ``role`` (input, inner or output), ``expression`` and
        ``parameters``.

        >>> from cgprimer.core.graph import parse
        >>> sorted(parse("xb = xa^2; xc = xa*xb").to_networkx().edges)
        [('xa', 'xb'), ('xa', 'xc'), ('xb', 'xc')]
        """
        import networkx

        graph = networkx.DiGraph()
        for name in self.variables:
            text = self.expression(name) if name in self.definitions else None
            parameters = tuple(self.parameters_of.get(name, ()))
            graph.add_node(name, role=self.role(name), expression=text, parameters=parameters)
        graph.add_edges_from((u, v) for u, heads in self.leads_to.items() for v in heads)
        return graph

    def role(self, name: str) -> str:
        """Return the role of a name: ``input``, ``inner``, ``output`` or ``parameter``."""
        if str(name) not in self.roles:
            raise UsageError(
                f"unknown variable or parameter {name!r}", hint=name_hint(name, self.roles)
            )
        return self.roles[name]

    @cached_property
    def roles(self) -> dict[str, str]:
        """The role of each name: ``input``, ``inner``, ``output`` or ``parameter``."""
        roles = {"parameter": self.parameters, "inner": self.definitions, "input": self.inputs}
        roles["output"] = self.outputs
        return {name: role for role, names in roles.items() for name in names}

    def to_sympy(self) -> dict[str, sympy.Expr]:
        """Convert each definition to a sympy expression of the names on its right-hand side.

        An array is written as its elements: ``xh[0]`` in terms of ``W[0,0]`` and so on.

        >>> from cgprimer.core.graph import parse
        >>> parse("xx = xa^2; xw = 3*xx").to_sympy()
        {'xx': xa**2, 'xw': 3*xx}
        >>> parse("input x[2]; xw = k*sum(x^2)").to_sympy()
        {'xw': k*(x[0]**2 + x[1]**2)}
        """
        from cgprimer.core.evaluation.graph_values import build_formulas

        return build_formulas(self)


def check_graph(graph: object) -> None:
    """Raise UsageError if an argument is not an ExpressionGraph."""
    hint = "build a graph with cgprimer.parse(text) or cgprimer.load(path)"
    if hasattr(graph, "graph"):
        hint = "pass the graph of the recording: recording.graph"
    check_type("graph", graph, ExpressionGraph, "an ExpressionGraph", hint=hint)
