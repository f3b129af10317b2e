"""The expression graph: which variable depends on which, and which leads to which.

Vertices are the variables (names beginning with ``x``, names on a left-hand side, and names
declared ``input``); every other name is a learnable parameter. An edge runs from a variable to
each variable whose expression uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from cgprimer.core.language.domains import Domain
from cgprimer.core.language.initializers import START_STREAM, VALUES_STREAM, Initializer
from cgprimer.core.language.syntax import (
    Apply,
    Definition,
    Expression,
    Name,
    Program,
    element_place,
    fold,
    postorder,
)
from cgprimer.core.primitives import floats
from cgprimer.errors import (
    MissingValueError,
    ShapeError,
    Source,
    TextShapeError,
    UsageError,
    name_hint,
    plural,
)
from cgprimer.numbers_and_arrays import Value, as_value, common_shape

if TYPE_CHECKING:
    import networkx
    import sympy

_CONSTANTS = {"e": "exp(1)", "pi": "3.141592653589793", "π": "3.141592653589793"}
_LAYERS = frozenset({"dropout", "batchnorm"})
_MOST_LINES, _FIRST_LINES = 1_000, 100  # that print shows: all, or so many of more
V = TypeVar("V")


def _refuse(self: Any, *args: Any, **more: Any) -> NoReturn:
    raise UsageError(
        "a graph does not change: its dictionaries and lists are read only",
        hint="change the text and parse it again; copy.deepcopy makes a copy that may be changed",
    )


def _nested_tuples(rows: Any) -> Any:
    """Return nested lists as nested tuples; there are as many levels as a shape has axes."""
    return tuple(map(_nested_tuples, rows)) if isinstance(rows, list) else rows


class FrozenList(list[V]):
    """A list that stays as it is. Copies and pickles of it are plain lists."""

    __slots__ = ()
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __reduce__(self) -> Any:
        return list, (list(self),)


class FrozenDict(dict[str, V]):
    """A dictionary that stays as it is. Copies and pickles of it are plain dictionaries."""

    __slots__ = ()
    pop = popitem = clear = update = setdefault = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


@dataclass(frozen=True, eq=False, repr=False)
class ExpressionGraph:
    """A directed acyclic graph of expressions. Made by :func:`cgprimer.parse`.

    Attributes:
        program: the statements that it was built from, and their source.
        variables: every vertex, in topological order, ties by first appearance in the text.
        inputs: variables that nothing defines.
        outputs: variables that lead to nothing, or those that ``output`` names.
        parameters: learnable parameters, by first appearance in the text.
        declared_values: what declarations give: a number, nested tuples or an initializer.
        definitions: the expression of every variable that has one.
        depends_on: for each variable the variables that its expression uses.
        leads_to: for each variable the variables whose expressions use it.
        shapes: of inputs and parameters that are arrays, as declared.
        domains: the declared domains of inputs: a tuple of numbers, or ``"one-hot"``.

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
    declared_values: dict[str, Any]
    definitions: dict[str, Expression]
    depends_on: dict[str, list[str]]
    leads_to: dict[str, list[str]]
    shapes: dict[str, tuple[int, ...]]
    domains: dict[str, Domain] = field(default_factory=dict)

    @cached_property
    def initializers(self) -> dict[str, Initializer]:
        """The initializers of inputs and parameters that are declared with one.

        >>> from cgprimer.core.graph import parse
        >>> parse("parameter w = normal(0.1), b = 2; xw = w*xa + b").initializers
        {'w': Initializer(name='normal', arguments=(0.1,))}
        """
        given = self.declared_values.items()
        return FrozenDict({n: value for n, value in given if isinstance(value, Initializer)})

    @cached_property
    def values(self) -> dict[str, Any]:
        """The declared values as numbers, or nested tuples of numbers.

        Those of initializers are sampled when this is first read, always with seed 0: every
        command evaluates the graph at the same point.
        """
        found = dict(self.declared_values)
        for name, law in self.initializers.items():
            shape = self.shapes.get(name, ())
            sample = law.sample(name, shape, seed=0, stream=VALUES_STREAM)
            found[name] = _nested_tuples(sample.tolist()) if shape else sample
        return FrozenDict(found)

    def sampled_start(self, seed: int) -> dict[str, Any]:
        """Return start values of the parameters that have an initializer.

        Args:
            seed: random seed of a training run.

        Returns:
            Names to floats or arrays. They differ from ``values``, which are the ground truth of
            made data.
        """
        found = {}
        for name in self.parameters:
            if law := self.initializers.get(name):
                shape = self.shapes.get(name, ())
                found[name] = law.sample(name, shape, seed=seed, stream=START_STREAM)
        return found

    @property
    def source(self) -> Source:
        """The text that it was parsed from."""
        return self.program.source

    def __repr__(self) -> str:
        parts = {"input": self.inputs, "expression": self.definitions, "parameter": self.parameters}
        counts = ", ".join(plural(len(names), what) for what, names in parts.items())
        return f"<ExpressionGraph {self.source.name}: {counts}>"

    @property
    def text(self) -> str:
        """Text that parses to the same graph: the statements in their order, names in theirs."""
        from cgprimer.core.primitives.notation import program_text

        return program_text(self.program)

    def __str__(self) -> str:
        """The text; of a graph that nobody reads to its end, the first lines."""
        lines = self.text.split("\n")
        if len(lines) > _MOST_LINES:
            more = f"{len(lines) - _FIRST_LINES:,} more lines"
            lines[_FIRST_LINES:] = [f"... {more}; graph.text has all of them"]
        return "\n".join(lines)

    def expression(self, name: str) -> str:
        """The right-hand side that defines a variable, as text.

        >>> from cgprimer.core.graph import parse
        >>> parse("xw = (cd*xx) + xz**3").expression("xw")
        'cd*xx + xz^3'
        """
        if str(name) not in self.definitions:
            raise UsageError(f"nothing defines {name!r}", hint=name_hint(name, self.definitions))
        from cgprimer.core.primitives.notation import unparse

        return unparse(self.definitions[name])

    @cached_property
    def parameters_of(self) -> dict[str, list[str]]:
        """For each variable the parameters that stand in its expression, in parameter order."""
        rank = {name: i for i, name in enumerate(self.parameters)}
        names = {s.name: s.names for s in self.program.statements if isinstance(s, Definition)}
        own = {n: rank.keys() & names[n] for n in self.definitions}
        used = {n: FrozenList(sorted(o, key=rank.__getitem__)) for n, o in own.items()}
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
            UsageError: another name, no real number, or arrays that do not broadcast.
        """
        if at is not None and not isinstance(at, Mapping):
            raise UsageError(f"a point is written {{'xa': 0.5}}, not as a {type(at).__name__}")
        free, shapes = dict.fromkeys((*self.inputs, *self.parameters)), self.shapes
        given = {n: as_value(n, v, shapes[n]) if n in shapes else v for n, v in self.values.items()}
        if any("[" in str(name) for name in at or ()):
            from cgprimer.array_elements import put_in_place

            at = put_in_place(at or {}, given, shapes, element_place)
        for name, value in (at or {}).items():
            if name not in free:
                if self.layered and "." in str(name):  # a running statistic
                    given[name] = as_value(name, value)
                    continue
                if name in self.definitions:
                    raise UsageError(f"{name!r} is computed by the graph: it is not given")
                said = f"no input or parameter is called {name!r}"
                raise UsageError(said, hint=name_hint(name, free))
            given[name] = as_value(name, value, shapes.get(name, ()))
        missing = [n for n in (free if needed is None else needed) if n in free and n not in given]
        if missing:
            hint = self._missing_hint(missing[0])
            raise MissingValueError(f"no value for {', '.join(missing)}", hint=hint)
        try:
            self.samples(given)
        except ValueError:
            texts = [f"{n} {v.shape}" for n, v in given.items() if not isinstance(v, float)]
            raise UsageError(f"the arrays do not broadcast together: {', '.join(texts)}") from None
        return given

    @cached_property
    def layers(self) -> frozenset[str]:
        """Names of the layer functions that the expressions apply."""
        # Large graphs seldom have layers: without this search every tree would be walked.
        if not any(name in self.source.text for name in _LAYERS):
            return frozenset()
        nodes = (node for tree in self.definitions.values() for node in postorder(tree))
        return _LAYERS & {node.primitive for node in nodes if isinstance(node, Apply)}

    @property
    def layered(self) -> bool:
        """Whether it has a layer whose computation differs between training and use."""
        return bool(self.layers)

    def samples(self, point: Mapping[str, Value]) -> tuple[int, ...]:
        """The shape of the samples at a point; ``()`` where there is one."""
        if self.layered:
            point = {name: value for name, value in point.items() if "." not in name}
        return common_shape(point, self.shapes)

    def mode(self, point: Mapping[str, Value]) -> str:
        """How layers are written out at a point: see :mod:`cgprimer.core.primitives.layers`."""
        from cgprimer.core.primitives.layers import mode_of

        return mode_of(self.layers, point, self.samples(point)) if self.layered else ""

    def _missing_hint(self, name: str) -> str:
        used = {n for s in self.program.statements if isinstance(s, Definition) for n in s.names}
        unused = [n for n in self.declared_values if n not in used]
        if unused:
            return "; ".join(f"{n!r} has a value but stands in no expression" for n in unused)
        other = next((n for n in self.definitions if n.casefold() == name.casefold()), None)
        if other is not None:
            return f"did you mean {other!r}? Capital and small letters differ"
        if name in _CONSTANTS:
            return f"there are no named constants: write {_CONSTANTS[name]}"
        sizes = f"[{','.join(map(str, self.shapes[name]))}]" if name in self.shapes else ""
        declared = f"or in the text: {self.role(name)} {name}{sizes} = 0.5"
        declared += f"; or call it, as a function: {name}(...)" * (name in floats.FUNCTIONS)
        return f"give one: at={{{name!r}: 0.5}}, --at {name}=0.5, {declared}"

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
        known = self.point(at)
        shape = self.samples(known)
        if self.shapes:
            return self._values_of_arrays(known, shape)
        try:
            if not shape:
                return self._values(known, floats.function)
            import numpy as np

            from cgprimer.core.primitives import arrays

            with np.errstate(all="ignore"):
                found = self._values(known, arrays.function)
        except UsageError:  # a function of arrays, applied to numbers
            return self._values_of_arrays(known, shape)
        return {name: np.array(np.broadcast_to(value, shape)) for name, value in found.items()}

    def _values_of_arrays(
        self, known: dict[str, Value], shape: tuple[int, ...]
    ) -> dict[str, Value]:
        """The same where values have shapes: each is kept with its own, apart from the samples'."""
        from cgprimer.core.primitives.array_functions import apply
        from cgprimer.core.primitives.numbers import Numbers, Shaped

        numbers = Numbers(known, self.mode(known))
        found = {n: Shaped(value, self.shapes.get(n, ())) for n, value in known.items()}
        applied = 0

        def value_of(leaf: Any) -> Any:
            return found[leaf.name] if isinstance(leaf, Name) else leaf.value

        def emit(row: str, arguments: list[Any]) -> Any:
            nonlocal applied
            applied += 1
            return apply(numbers, row, arguments)

        for name, expression in self.definitions.items():
            applied, numbers.vertex = 0, name
            try:
                found[name] = numbers.shaped(fold(expression, value_of, emit))
            except ShapeError as error:
                raise self.misfit(name, applied - 1, error) from None
        numbers.check_given()
        return {name: found[name].over(shape) for name in self.variables}

    def misfit(self, name: str, operation: int, error: ShapeError) -> ShapeError:
        """The error of an operation of a definition, with its place; they count as applied."""
        from cgprimer.core.primitives.notation import unparse

        operations = [n for n in postorder(self.definitions[name]) if isinstance(n, Apply)]
        statements = self.program.statements
        here = next(s for s in statements if isinstance(s, Definition) and s.name == name)
        place = self.program.span_of(here, unparse(operations[operation]))
        named = [n.name for n in postorder(operations[operation]) if isinstance(n, Name)]
        near = next((n for n in named if n.swapcase() in self.shapes and n not in self.shapes), "")
        hint = f"{near!r} is a number, {near.swapcase()!r} has sizes" if near else error.hint
        return TextShapeError(error.message, place, hint=hint)

    def _values(
        self, known: dict[str, Value], function: Callable[[str], Callable[..., Any]]
    ) -> dict[str, Value]:
        for name, expression in self.definitions.items():
            known[name] = fold(
                expression,
                lambda leaf: known[leaf.name] if isinstance(leaf, Name) else leaf.value,
                lambda row, arguments: function(row)(*arguments),
            )
        return {name: known[name] for name in self.variables}

    def to_networkx(self) -> networkx.DiGraph:
        """The graph as networkx sees it.

        Nodes carry ``role`` (input, inner or output), ``expression`` and ``parameters``.

        >>> from cgprimer.core.graph import parse
        >>> sorted(parse("xb = xa^2; xc = xa*xb").to_networkx().edges)
        [('xa', 'xb'), ('xa', 'xc'), ('xb', 'xc')]
        """
        import networkx

        found = networkx.DiGraph()
        for name in self.variables:
            text = self.expression(name) if name in self.definitions else None
            parameters = tuple(self.parameters_of.get(name, ()))
            found.add_node(name, role=self.role(name), expression=text, parameters=parameters)
        found.add_edges_from((u, v) for u, heads in self.leads_to.items() for v in heads)
        return found

    def role(self, name: str) -> str:
        """``input``, ``inner``, ``output`` or ``parameter``."""
        if str(name) not in self._roles:
            raise UsageError(f"there is no {name!r}", hint=name_hint(name, self._roles))
        return self._roles[name]

    @cached_property
    def _roles(self) -> dict[str, str]:
        roles = {"parameter": self.parameters, "inner": self.definitions, "input": self.inputs}
        roles["output"] = self.outputs
        return {name: role for role, names in roles.items() for name in names}

    def to_sympy(self) -> dict[str, sympy.Expr]:
        """Every defined variable as a sympy expression in the symbols of its own right-hand side.

        Of an array every element, in elements: ``xh[0]`` in ``W[0,0]`` and so on.

        >>> from cgprimer.core.graph import parse
        >>> parse("xx = xa^2; xw = 3*xx").to_sympy()
        {'xx': xa**2, 'xw': 3*xx}
        >>> parse("input x[2]; xw = k*sum(x^2)").to_sympy()
        {'xw': k*(x[0]**2 + x[1]**2)}
        """
        from cgprimer.core.primitives.numbers import formulas_of_elements

        return formulas_of_elements(self.definitions, self.shapes)
