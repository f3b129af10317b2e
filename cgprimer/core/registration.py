"""Registration of user-defined primitives, methods and engines, and the list of engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from cgprimer.core.evaluation.engines import ENGINES, Engine, list_engine_names
from cgprimer.core.methods import METHODS
from cgprimer.core.methods.derivative_program import Differentiator
from cgprimer.core.operations import OPERANDS, RESULT, Primitive, find_primitive, primitives
from cgprimer.core.operations.function_expansions import (
    add_custom_function,
    remove_custom_function,
)
from cgprimer.core.operations.primitive_registry import FUNCTIONS, ArrayFunction, remove_primitive
from cgprimer.core.operations.primitive_table import add_primitive
from cgprimer.errors import UsageError

# Operations in which backends combine several instructions; see cgprimer.backends.plans.plan.
RESERVED = ("fma", "fms", "fnma", "sincos", "affine", "sum", "dot", "outer")


@runtime_checkable
class CustomFunction(Protocol):
    """A class that defines a backward pass, such as a subclass of :class:`cgprimer.Function`."""

    def create_language_operation(self, name: str) -> tuple[Any, int]:
        """Return the operation that represents the function, and its number of arguments."""


def register_primitive(
    name: Any,
    numpy: Callable[..., Any] | None = None,
    *,
    partials: Sequence[str] | str = (),
    sympy: Callable[..., Any] | None = None,
    domain: str = "all real numbers",
    edges: str = "",
    source: str = "",
    analytic: bool = False,
) -> Primitive | ArrayFunction:
    """Register a function and its partial derivatives as a primitive for use in expressions.

    Args:
        name: name of the function in expressions: an identifier that is not in use.
        numpy: an elementwise function of floats and arrays; or a subclass of
            :class:`cgprimer.Function`, which defines a backward pass and needs no other argument.
            If the subclass is the only argument, its name becomes the name of the function.
        partials: partial derivative with respect to each operand, as an expression in the operands
            ``a``, ``b``, ``c`` and the result ``out``. It may differ from the derivative: the
            partial of a straight-through estimator is ``"1"``.
        sympy, domain, edges, source, analytic: as for :class:`Primitive`.

    Raises:
        UsageError: the name is in use or not an identifier, or a partial is not an expression.

    >>> import numpy as np
    >>> row = register_primitive("swish", lambda a: a / (1 + np.exp(-a)),
    ...                          partials="sigmoid(a) + a*sigmoid(a)*(1 - sigmoid(a))")
    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = swish(k*xa)")
    >>> cgprimer.gradient(graph, {"k": 0.0, "xa": 2.0})
    {'k': 1.0}
    >>> unregister_primitive("swish")
    """
    if isinstance(name, type):
        name, numpy = name.__name__, name
    texts = (partials,) if isinstance(partials, str) else partials
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise UsageError(
            f"`partials` of {name!r} must be strings, one per operand, got {partials!r}",
            hint="write partials='cos(a)' for one operand, partials=('b', 'a') for two",
        )
    if not callable(numpy):
        raise UsageError(
            f"primitive {name!r}: `numpy` must be a function of floats or arrays, got {numpy!r}"
        )
    _check_name(name)
    if isinstance(numpy, type) and isinstance(numpy, CustomFunction):
        return add_custom_function(name, *numpy.create_language_operation(name))
    if not 1 <= len(texts) <= len(OPERANDS):
        raise UsageError(
            f"primitive {name!r} must have one to three partials, one per operand, got {len(texts)}"
        )
    return add_primitive(
        name, *texts, function=numpy, sympy=sympy,
        domain=domain, edges=edges, source=source, analytic=analytic,
    )  # fmt: skip


def _check_name(name: str) -> None:
    """Raise UsageError if a name cannot be the name of a new primitive."""
    if not name.isidentifier() or name in OPERANDS or name == RESULT:
        raise UsageError(f"{name!r} is not a valid function name")
    if name in {row.name for row in primitives()} or name in FUNCTIONS:
        raise UsageError(f"primitive {name!r} is already registered")
    if name in RESERVED:
        raise UsageError(f"{name!r} is a reserved name", hint="choose another name")


def unregister_primitive(name: str) -> None:
    """Remove a primitive that was registered with :func:`register_primitive`.

    Raises:
        UsageError: the primitive is built-in or unknown.
    """
    if remove_custom_function(name):
        return
    row = find_primitive(name)
    if row.built_in:
        raise UsageError(f"cannot remove {name!r}: it is a built-in primitive")
    remove_primitive(row)


def register_method(name: str, differentiate: Differentiator) -> None:
    """Register a differentiation method.

    An installed package can declare a method as an entry point instead.

    Args:
        name: name of the method for ``method=...``.
        differentiate: a function ``(tape, of, wrt, **options)`` that returns a derivative program.

    Raises:
        UsageError: a method with this name already exists.

    >>> import cgprimer
    >>> from cgprimer.core.methods import reverse
    >>> register_method("backprop", reverse.differentiate)
    >>> cgprimer.gradient(cgprimer.parse("xw = k*xa"), {"k": 2, "xa": 3}, method="backprop")
    {'k': 3.0}
    >>> unregister_method("backprop")
    """
    METHODS.register(name, differentiate)


def unregister_method(name: str) -> None:
    """Remove a method that was registered with :func:`register_method`.

    Raises:
        UsageError: no method with this name was registered.
    """
    METHODS.unregister(name)


def register_engine(engine: Engine) -> None:
    """Register an engine, which compiles and runs tapes.

    An installed package can declare an engine as an entry point instead.

    Args:
        engine: an object with the attributes of :class:`Engine`.

    Raises:
        UsageError: an engine with this name already exists.

    >>> from cgprimer import gradient, parse
    >>> from cgprimer.core.evaluation.engines import select_engine
    >>> class Counting:
    ...     name, compiled = "counting", 0
    ...     def unavailable(self):
    ...         return ""
    ...     def compile(self, tape, *, reduction, dtype):
    ...         self.compiled += 1
    ...         return select_engine("numpy").compile(tape, reduction=reduction, dtype=dtype)
    >>> register_engine(Counting())
    >>> gradient(parse("xw = a*xa"), {"a": 2, "xa": 3}, engine="counting")
    {'a': 3.0}
    >>> select_engine("counting").compiled
    1
    >>> ENGINES.unregister("counting")
    """
    if not all(hasattr(engine, name) for name in ("name", "unavailable", "compile")):
        raise UsageError(
            "`engine` must have the attribute `name` and the methods `unavailable` and `compile`,"
            f" got {engine!r}"
        )
    ENGINES.register(engine.name, engine)


def unregister_engine(name: str) -> None:
    """Remove an engine that was registered with :func:`register_engine`.

    Raises:
        UsageError: no engine with this name was registered.
    """
    ENGINES.unregister(name)


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """An engine and its availability on this machine.

    Attributes:
        name: name of the engine for ``engine=...``.
        available: whether the engine can be used on this machine.
        reason: the reason why the engine is not available.
        detail: libraries and devices that the engine uses, one line ``name: detail`` each.
    """

    name: str
    available: bool
    reason: str
    detail: str = ""


def engines() -> tuple[EngineInfo, ...]:
    """List all engines and their availability on this machine.

    >>> [engine.name for engine in engines()][:4]
    ['plain', 'numpy', 'cpu', 'cuda']
    """
    infos = []
    for name in list_engine_names():
        detail = ""
        try:
            reason = ENGINES[name].unavailable()
            if not reason:  # ``describe`` is optional
                detail = getattr(ENGINES[name], "describe", str)()
        except UsageError as error:  # the engine of an installed package cannot be imported
            reason = error.message
        infos.append(EngineInfo(name, not reason, reason, detail))
    return tuple(infos)
