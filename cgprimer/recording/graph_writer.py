"""Translation of recorded values to the expression language.

The resulting text is parsed, so the graph is printed, drawn, traced, trained and differentiated
like any other graph. A value that a Python variable holds becomes a vertex; other values become
part of the expressions that use them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cgprimer.core.graph import ExpressionGraph, parse
from cgprimer.core.language.syntax_tree import (
    Apply,
    Declaration,
    Definition,
    Expression,
    Index,
    Name,
    Number,
    Program,
    Shape,
)
from cgprimer.core.operations.array_shapes import broadcast_shapes, convert_index_entry
from cgprimer.core.operations.custom_operations import CustomCall
from cgprimer.core.operations.element_operations import Concatenate, Scatter, Take
from cgprimer.core.operations.notation import format_program
from cgprimer.core.operations.primitive_registry import ARRAY_FUNCTIONS
from cgprimer.core.operations.shape_operations import (
    Broadcast,
    Maximum,
    Reshape,
    Sum,
    Transpose,
)
from cgprimer.errors import Source, UsageError
from cgprimer.recording.data_conversion import to_tuples
from cgprimer.recording.eager_builder import EAGER
from cgprimer.recording.value_base import ValueBase, get_data, is_freed, list_ancestors

_MAX_OPERATIONS = 24  # in one expression; parts of longer expressions become vertices
_MAX_MATRIX_SIZE = 100_000  # elements of the matrix that represents a scatter


class GraphWriter:
    """A translator of recorded values to an expression graph with unique names.

    Args:
        every_operation: make each operation a separate vertex.

    Attributes:
        values_by_name: the value of each vertex and leaf, keyed by name; None for a plain array.
    """

    def __init__(self, *, every_operation: bool = False) -> None:
        self.values_by_name: dict[str, ValueBase | None] = {}
        self._every_operation = every_operation
        self._names_of_values: dict[ValueBase, str] = {}
        self._names_of_arrays: dict[Any, str] = {}
        self._leaf_names: dict[Any, Name] = {}  # keyed by value, or by array contents
        self._name_counts: Counter[str] = Counter()
        self._unnamed_count = 0
        self._declarations: dict[str, list[Declaration]] = {"input": [], "parameter": []}

    def reserve_name(self, text: str, value: ValueBase | None = None) -> str:
        """Reserve an unused name for a vertex and return the name: ``h``, then ``h_2``."""
        identifier = re.sub(r"\W", "_", text)
        identifier = identifier if identifier.isidentifier() else f"v{identifier}"
        name = identifier
        while name in self.values_by_name:
            self._name_counts[identifier] += 1
            name = f"{identifier}_{self._name_counts[identifier] + 1}"
        self.values_by_name[name] = value
        return name

    def suggest_name(self, name: str, data: Any) -> None:
        """Suggest a vertex name for a value or array; arrays of equal contents share a name."""
        if isinstance(data, ValueBase):
            self._names_of_values.setdefault(data, name)
        else:
            self._names_of_arrays.setdefault(_create_contents_key(data), name)

    def declare_leaf(self, role: str, name: str, leaf: Any) -> Name:
        """Declare a value or a plain array as an input or a parameter.

        Raises:
            UsageError: the array is empty or not finite.
        """
        value = leaf if isinstance(leaf, ValueBase) else None
        data = np.asarray(get_data(leaf), float)
        if not data.size:
            raise UsageError(
                f"cannot record the array {name!r} of shape {data.shape}: the expression language"
                " has no empty arrays"
            )
        if not np.isfinite(data).all():
            raise UsageError(f"cannot record {name!r}: its elements must be finite")
        tree = Name(self.reserve_name(name, value))
        numbers = to_tuples(data.tolist())
        self._declarations[role].append(Declaration(role, tree.name, numbers, 0, data.shape))
        self._leaf_names[leaf if value is not None else _create_contents_key(leaf)] = tree
        return tree

    def build_graph(self, outputs: Mapping[str, Any], source: str) -> ExpressionGraph:
        """Build the expression graph of all values that the outputs depend on.

        Args:
            outputs: values or numbers, keyed by name.
            source: name of the graph in messages.
        """
        order = self._list_ancestors([v for v in outputs.values() if isinstance(v, ValueBase)])
        definitions, trees = self._build_definitions(order, outputs)
        output_names: dict[str, None] = {}
        for name, value in outputs.items():
            tree = self.build_operand(value, trees)
            is_leaf = tree in self._leaf_names.values()
            if is_leaf or not isinstance(tree, Name) or tree.name in output_names:
                vertex = self.reserve_name(name)  # an output must be a separate vertex
                definitions.append(Definition(vertex, tree, (), 0))
                tree = Name(vertex)
            output_names[tree.name] = None
        statements: tuple[Definition | Declaration, ...] = (
            *self._declarations["input"],
            *self._declarations["parameter"],
            *definitions,
            *(Declaration("output", name, None, 0) for name in output_names),
        )
        return parse(format_program(Program(Source("", ""), statements)), name=source)

    def _build_definitions(
        self, order: list[ValueBase], outputs: Mapping[str, Any]
    ) -> tuple[list[Definition], dict[Any, Expression]]:
        """Build the definitions of all vertices, and the expression that refers to each value."""
        uses = Counter(o for v in order for o in self._get_operands(v) if isinstance(o, ValueBase))
        output_of = {v: n for n, v in reversed([*outputs.items()]) if isinstance(v, ValueBase)}
        trees: dict[Any, Expression] = dict(self._leaf_names)
        sizes: Counter[ValueBase] = Counter()
        definitions: list[Definition] = []
        for value in order:
            if value in trees:
                continue
            if not value.primitive:
                role = "parameter" if value.requires_grad else "input"
                trees[value] = self.declare_leaf(
                    role, self._get_suggested_name(value) or "const", value
                )
                continue
            operands = self._get_operands(value)
            if value.primitive == "copy" and value.requires_grad and not self._every_operation:
                trees[value] = self.build_operand(operands[0], trees)
                continue
            tree = _build_expression(
                value, [self.build_operand(o, trees) for o in operands], operands, self
            )
            if not value.requires_grad and any(getattr(o, "requires_grad", 0) for o in operands):
                tree = Apply("stop_gradient", (tree,))  # computed under no_grad
            sizes[value] = 1 + sum(sizes[o] for o in operands if isinstance(o, ValueBase))
            name = self._get_suggested_name(value) or output_of.get(value, "")
            is_vertex = name or self._every_operation or uses[value] > 1
            if is_vertex or sizes[value] > _MAX_OPERATIONS:
                if not name:  # v1, v2
                    self._unnamed_count += 1
                vertex = self.reserve_name(name or f"v{self._unnamed_count}", value)
                definitions.append(Definition(vertex, tree, (), 0))
                tree, sizes[value] = Name(vertex), 0
            trees[value] = tree
        return definitions, trees

    def _get_suggested_name(self, value: ValueBase) -> str:
        """Return the name of a value or of its Python variable; an empty string without either."""
        return value.name or self._names_of_values.get(value, "")

    def build_operand(self, operand: Any, trees: Mapping[Any, Expression]) -> Expression:
        """Build the expression of an operand; declare a plain array as an input."""
        if isinstance(operand, ValueBase):
            return trees[operand]
        if not np.ndim(operand):
            return _build_number(float(operand))
        key = _create_contents_key(operand)
        if key in self._leaf_names:
            return self._leaf_names[key]
        return self.declare_leaf("input", self._names_of_arrays.get(key, "const"), operand)

    def _list_ancestors(self, roots: list[ValueBase]) -> list[ValueBase]:
        """Return all values that the roots depend on, down to declared leaves.

        Raises:
            UsageError: a backward pass has freed the graph.
        """
        order = list_ancestors(
            roots, lambda value: () if value in self._leaf_names else self._get_operands(value)
        )
        if any(is_freed(value.primitive) for value in order):
            raise UsageError(
                "cannot access the graph of a Value: a backward pass has freed it",
                hint="pass retain_graph=True to backward()",
            )
        return order

    def _get_operands(self, value: ValueBase) -> tuple[Any, ...]:
        """Return the operands of a value, without implicit broadcasts."""
        operands = value.operands
        if not isinstance(value.primitive, str) or type(value._data) is float:
            return operands
        originals = tuple(self._remove_broadcast(o) for o in operands)
        shapes = [EAGER.shape(o) for o in originals]
        is_implied = shapes and broadcast_shapes("", *shapes) == EAGER.shape(value)
        return originals if is_implied else operands

    def _remove_broadcast(self, operand: Any) -> Any:
        """Return the operand of a broadcast; return other operands unchanged."""
        if not isinstance(operand, ValueBase):
            while isinstance(operand, np.ndarray) and operand.size > 1 and not operand.strides[0]:
                operand = operand[0]  # numpy broadcasts with a stride of 0
            return operand
        while isinstance(operand.primitive, Broadcast) and not self._get_suggested_name(operand):
            (operand,) = operand.operands
        return operand


def _build_expression(
    value: ValueBase, trees: list[Expression], operands: Any, writer: GraphWriter
) -> Expression:
    """Build the syntax tree of the operation that computed a value."""
    name, shape = value.primitive, EAGER.shape(value)
    if isinstance(name, str):
        if name == "where" and isinstance(trees[0], Number):
            chosen = 1 if trees[0].value else 2  # the condition is a constant
            if EAGER.shape(operands[chosen]) == shape:
                return trees[chosen]
        return Apply(name, tuple(trees))
    a, a_shape = trees[0], EAGER.shape(operands[0])
    match name:
        case Reshape():
            return _build_reshape(a, shape)
        case Broadcast():
            return _build_call("broadcast", a, shape)
        case Transpose():
            return _build_call("transpose", a, [axis + len(a_shape) for axis in name.axes])
        case Sum() | Maximum():
            axes = [axis + len(a_shape) for axis in name.axes]
            if len(axes) == len(a_shape):
                return Apply(name.name, (a,))
            return _build_call("sum" if isinstance(name, Sum) else "largest_along", a, axes)
        case Take():
            return _build_index(a, a_shape, name.key, shape)
        case Concatenate():
            axis = name.axis + len(a_shape)
            return Apply("concatenate", (*trees, *([Number(float(axis))] if axis else [])))
        case Scatter():
            return _build_scatter(a, name.key, shape, writer)
        case CustomCall():
            return _build_custom_call(name.function, trees, writer)
    return Apply(name.name, tuple(trees))


def _build_scatter(
    a: Expression, key: tuple[Any, ...], shape: Shape, writer: GraphWriter
) -> Expression:
    """Build a scatter operation as a product with a matrix of zeros and ones.

    The expression language cannot assign to elements of an array.
    """
    flat = np.arange(math.prod(shape)).reshape(shape)
    positions = flat[tuple(map(convert_index_entry, key))].reshape(-1)
    if positions.size * flat.size > _MAX_MATRIX_SIZE:
        raise UsageError(
            f"cannot record the assignment to {positions.size} elements of an array of shape"
            f" {shape}: the equivalent matrix would have more than {_MAX_MATRIX_SIZE:,} elements"
        )
    matrix = np.zeros((flat.size, positions.size))
    matrix[positions, np.arange(positions.size)] = 1.0
    left = writer.declare_leaf("input", "places", matrix)
    column = _build_call("reshape", a, [positions.size])
    return _build_reshape(Apply("matmul", (left, column)), shape)


def _build_custom_call(operation: Any, trees: list[Expression], writer: GraphWriter) -> Apply:
    """Build the call to a registered function with a custom backward pass."""
    name = operation.name
    if name not in ARRAY_FUNCTIONS:
        raise UsageError(
            f"cannot record {name!r}: it is not a registered primitive",
            hint=f"for a Function, call cgprimer.register_primitive({name}); for another function,"
            f" register_primitive({name!r}, f, partials=...)",
        )
    operands = iter(trees)
    arguments = [
        next(operands) if i in operation.positions else writer.build_operand(argument, {})
        for i, argument in enumerate(operation.arguments)
    ]
    return Apply(name, tuple(arguments))


def _build_call(name: str, a: Expression, numbers: Any) -> Apply:
    """Build a function call with an expression and integer constants as arguments."""
    return Apply(name, (a, *(Number(float(n)) for n in numbers)))


def _build_reshape(a: Expression, shape: Shape) -> Apply:
    """Build a reshape expression; ``sum`` converts an array with one element to a scalar."""
    return _build_call("reshape", a, shape) if shape else Apply("sum", (a,))


def _build_index(a: Expression, a_shape: Shape, key: tuple[Any, ...], shape: Shape) -> Apply:
    """Build an index expression; nested lists of indices become indices of the flat array."""
    if any(isinstance(part, tuple) and np.ndim(part) > 1 for part in key):
        size = math.prod(a_shape)
        flat = np.arange(size).reshape(a_shape)[tuple(map(convert_index_entry, key))].reshape(-1)
        positions = tuple(flat.tolist()) or slice(0, 0)
        row = Apply(Index((positions,)), (_build_call("reshape", a, [size]),))
        return _build_reshape(row, shape)
    parts = [_convert_index_part(part, size) for part, size in zip(key, a_shape, strict=True)]
    while len(parts) > 1 and parts[-1] == slice(None):
        parts.pop()
    return Apply(Index(tuple(parts)), (a,))


def _convert_index_part(part: Any, size: int) -> Any:
    """Convert the index along one axis to the syntax tree's form; ranges become slices."""
    if part == ():
        return slice(0, 0)
    if not isinstance(part, range):
        return part
    if part == range(size):
        return slice(None)
    return slice(part.start, part.stop if part.stop >= 0 else None, part.step)


def _build_number(value: float) -> Expression:
    """Build a number literal; infinities and nan become divisions by zero."""
    if math.isfinite(value):
        return Number(value)
    numerator = 0.0 if math.isnan(value) else math.copysign(1.0, value)
    return Apply("div", (Number(numerator), Number(0.0)))


def _create_contents_key(array: npt.ArrayLike) -> tuple[Shape, bytes]:
    """Return a dictionary key that is equal for arrays with equal contents."""
    data = np.ascontiguousarray(array, float)
    return data.shape, data.tobytes()
