"""What a user adds by a call: functions with their own derivatives, methods and engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cgprimer.core.engines import ENGINES, Engine, names
from cgprimer.core.methods import METHODS
from cgprimer.core.methods.contract import Differentiator
from cgprimer.core.primitives import OPERANDS, RESULT, Primitive, primitive, primitives
from cgprimer.core.primitives.array_functions import add_function, remove_function
from cgprimer.core.primitives.registry import FUNCTIONS, ArrayFunction, remove_row
from cgprimer.core.primitives.table import function
from cgprimer.errors import UsageError

# Steps into which engines put several instructions; see cgprimer.native.plans.plan.
RESERVED = ("fma", "fms", "fnma", "sincos", "affine", "sum", "dot", "outer")


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
    """Add a row of one's own: a function with its own derivative, usable in expressions at once.

    Args:
        name: the function's name in expressions; an identifier that is not taken yet.
        numpy: the function on floats and arrays (element by element, any shape); or a
            :class:`cgprimer.Function`, which has its own backward pass, and needs nothing else.
            It may also stand alone: its name is then the function's.
        partials: the derivative with respect to each operand, as text in which the operands
            are ``a``, ``b``, ``c`` and the result is ``out``. It need not be the true
            derivative: a straight-through estimator says ``"1"``.
        sympy, domain, edges, source, analytic: as in :class:`Primitive`.

    Raises:
        UsageError: the name is taken or no identifier, or a partial does not parse.

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
    own = isinstance(numpy, type) and hasattr(numpy, "backward") and hasattr(numpy, "forward")
    texts = (partials,) if isinstance(partials, str) else partials
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise UsageError(
            f"the partials of {name!r} are texts, one per operand, not {partials!r}",
            hint="partials='cos(a)' for a function of one operand, ('b', 'a') for one of two",
        )
    if not callable(numpy):
        raise UsageError(f"{name!r} needs a function of floats and arrays, not {numpy!r}")
    if not name.isidentifier() or name in OPERANDS or name == RESULT:
        raise UsageError(f"{name!r} cannot be the name of a function")
    if name in {row.name for row in primitives()} or name in FUNCTIONS:
        raise UsageError(f"there is a primitive {name!r} already")
    if name in RESERVED:
        raise UsageError(f"{name!r} is what engines call a step of their own: take another name")
    if own:
        from cgprimer.recording.functions import language_function  # loads numpy

        return add_function(name, *language_function(numpy, name))  # type: ignore[arg-type]
    if not 1 <= len(texts) <= len(OPERANDS):
        raise UsageError(f"a primitive has one to three operands, {name!r} has {len(texts)}")
    return function(
        name, *texts, function=numpy, sympy=sympy,
        domain=domain, edges=edges, source=source, analytic=analytic,
    )  # fmt: skip


def unregister_primitive(name: str) -> None:
    """Take a row that :func:`register_primitive` added out again.

    Raises:
        UsageError: the row belongs to the package, or there is none.
    """
    if remove_function(name):
        return
    row = primitive(name)
    if row.built_in:
        raise UsageError(f"{name!r} belongs to the package and stays")
    remove_row(row)


def register_method(name: str, differentiate: Differentiator) -> None:
    """Add a method of one's own; a package may have it as an entry point instead.

    Args:
        name: what ``method=...`` calls it.
        differentiate: a function ``(tape, of, wrt, **options)`` to a program.

    Raises:
        UsageError: there is a method of this name.

    >>> import cgprimer
    >>> from cgprimer.core.methods import reverse
    >>> register_method("backprop", reverse.differentiate)
    >>> cgprimer.gradient(cgprimer.parse("xw = k*xa"), {"k": 2, "xa": 3}, method="backprop")
    {'k': 3.0}
    >>> unregister_method("backprop")
    """
    METHODS.register(name, differentiate)


unregister_method = METHODS.unregister


def register_engine(engine: Engine) -> None:
    """Add an engine of one's own; a package of one's own may have it as an entry point instead.

    Args:
        engine: anything with the attributes of :class:`Engine`.

    Raises:
        UsageError: there is an engine of this name.

    >>> from cgprimer import gradient, parse
    >>> from cgprimer.core.engines import select
    >>> class Counting:
    ...     name, compiled = "counting", 0
    ...     def unavailable(self):
    ...         return ""
    ...     def compile(self, tape, *, reduction, dtype):
    ...         self.compiled += 1
    ...         return select("numpy").compile(tape, reduction=reduction, dtype=dtype)
    >>> register_engine(Counting())
    >>> gradient(parse("xw = a*xa"), {"a": 2, "xa": 3}, engine="counting")
    {'a': 3.0}
    >>> select("counting").compiled
    1
    >>> ENGINES.unregister("counting")
    """
    ENGINES.register(engine.name, engine)


unregister_engine = ENGINES.unregister


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """An engine, and whether it can be used here.

    Attributes:
        name: as in ``engine=...``.
        available: whether it can be used on this machine.
        reason: why it cannot.
        detail: what it uses, a line ``what: which`` each.
    """

    name: str
    available: bool
    reason: str
    detail: str = ""


def engines() -> tuple[EngineInfo, ...]:
    """All engines, whether each can be used on this machine, and if not, why.

    >>> [engine.name for engine in engines()][:4]
    ['plain', 'numpy', 'cpu', 'cuda']
    """
    found = []
    for name in names():
        detail = ""
        try:
            reason = ENGINES[name].unavailable()
            if not reason:  # an engine need not describe itself
                detail = getattr(ENGINES[name], "describe", str)()
        except UsageError as error:  # an installed package's engine that cannot be imported
            reason = error.message
        found.append(EngineInfo(name, not reason, reason, detail))
    return tuple(found)
