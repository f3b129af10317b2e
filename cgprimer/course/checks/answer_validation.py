"""The structure of answers: what each function of a driver returns, checked before it is read.

Answers are well-formed JSON, and still may have any structure: code of the submission runs in the
process that answers. A form is a predicate on an answer; :data:`Forms` has one for each function of
a driver, built from the arguments of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from cgprimer.course.checks.check_results import Failure

Form = Callable[[Any], bool]
Forms = Mapping[str, Callable[[Sequence[Any]], Form]]
WRONG_STRUCTURE = Failure("answers", "the answer does not have the structure that was asked for")


def checked(value: Any, form: Form) -> Any:
    """Return an answer, or a failure if it does not have the expected structure.

    >>> checked([1.0, 2.0], list_of(is_number)), checked([[]], list_of(is_number)).kind
    ([1.0, 2.0], 'answers')
    """
    return value if isinstance(value, Failure) or form(value) else WRONG_STRUCTURE


# --- general forms -------------------------------------------------------------------------------


def is_anything(value: Any) -> bool:
    """Accept every value."""
    return True


def is_number(value: Any) -> bool:
    """Accept numbers, infinities and nan among them."""
    return type(value) in (int, float)


def is_integer(value: Any) -> bool:
    """Accept integers."""
    return type(value) is int


def is_text(value: Any) -> bool:
    """Accept texts."""
    return type(value) is str


def is_boolean(value: Any) -> bool:
    """Accept True and False."""
    return type(value) is bool


def is_scalar(value: Any) -> bool:
    """Accept a number, or a text that describes what stands in its place."""
    return is_number(value) or is_text(value)


def equal_to(*constants: Any) -> Form:
    """Return a form that accepts constants."""
    return lambda value: any(type(value) is type(one) and value == one for one in constants)


def either(*forms: Form) -> Form:
    """Return a form that accepts what one of several forms accepts."""
    return lambda value: any(form(value) for form in forms)


def list_of(form: Form, length: int | None = None, most: int | None = None) -> Form:
    """Return a form that accepts lists, of a given length or of at most `most` entries."""

    def accepts(value: Any) -> bool:
        if type(value) is not list or (length is not None and len(value) != length):
            return False
        return (most is None or len(value) <= most) and all(map(form, value))

    return accepts


def row_of(*forms: Form) -> Form:
    """Return a form that accepts lists with one entry for each form."""
    return lambda value: (
        type(value) is list
        and len(value) == len(forms)
        and all(form(entry) for form, entry in zip(forms, value, strict=True))
    )


def mapping_of(form: Form) -> Form:
    """Return a form that accepts dictionaries whose values have a form."""
    return lambda value: type(value) is dict and all(map(form, value.values()))


def record(**fields: Form) -> Form:
    """Return a form that accepts dictionaries with exactly these keys."""
    return lambda value: (
        type(value) is dict
        and value.keys() == fields.keys()
        and all(form(value[name]) for name, form in fields.items())
    )


_SCALARS = list_of(is_scalar)
_TEXTS = list_of(is_text)


# --- gradients -----------------------------------------------------------------------------------


def _is_problem_or_value(value: Any) -> bool:
    """Accept every value, but a report that a function cannot be called only in its two forms."""
    if not isinstance(value, dict) or "no call" not in value:
        return True
    said = {"missing": _TEXTS, "signature": is_text}
    return any(
        record(**{"no call": equal_to(kind), "said": form})(value) for kind, form in said.items()
    )


GRADIENT: Forms = {"call": lambda arguments: _is_problem_or_value}


# --- optimizers ----------------------------------------------------------------------------------


def _run(question: Mapping[str, Any]) -> Form:
    """Return the form of what an optimizer did along the gradients of a run."""
    start, gradients = question["start"], question["gradients"]
    error = record(message=is_text, line=either(equal_to(None), is_integer), arithmetic=is_boolean)
    return record(
        steps=list_of(list_of(is_number, len(start)), most=len(gradients)),
        error=either(equal_to({}), error),
        changed=mapping_of(is_text),
    )


def _tried(arguments: Sequence[Any]) -> Form:
    question = arguments[1]
    meanings = list_of(equal_to(*question["hyper"]))
    fields: dict[str, Form] = {
        "form": is_text,
        "taken": meanings,
        "defaults": mapping_of(is_number),
        "runs": row_of(*map(_run, question["runs"])),
    }
    full = either(
        record(**fields, moved=equal_to(True)),
        record(**fields, moved=equal_to(False), tries=mapping_of(is_text)),
    )
    if not question["hyper"]["weight_decay"]:
        return full
    without = record(taken=meanings)
    return lambda value: full(value) or (without(value) and "weight_decay" not in value["taken"])


OPTIMIZER: Forms = {
    "listed": lambda arguments: list_of(row_of(is_text, equal_to("class", "function"))),
    "tried": _tried,
}


# --- engines -------------------------------------------------------------------------------------


def _inputs(program: Mapping[str, Any]) -> int:
    return sum(kind == "input" for kind, _ in program["leaves"])


def _graph(program: Mapping[str, Any], order: bool = False) -> Form:
    """Return the form of a graph: the operands of every node stand before it."""
    inputs, size = _inputs(program), len(program["leaves"]) + len(program["steps"])
    indices = list_of(is_integer)
    node = record(data=is_scalar, grad=is_scalar, op=is_text, parents=indices, set=is_boolean)
    fields: dict[str, Form] = {
        "nodes": list_of(node),
        "at": list_of(is_integer, size),
        "inputs": list_of(is_scalar, inputs),
        "grads": list_of(is_scalar, inputs),
    }
    with_order = record(**fields, order=indices)
    form = with_order if order else either(record(**fields), with_order)

    def accepts(value: Any) -> bool:
        if not form(value) or not value["nodes"]:
            return False
        nodes = value["nodes"]
        parents = all(0 <= p < k for k, one in enumerate(nodes) for p in one["parents"])
        positions = chain(value["at"], value.get("order", ()))
        return parents and all(-1 <= index < len(nodes) for index in positions)

    return accepts


def _built(arguments: Sequence[Any]) -> Form:
    return _graph(arguments[0], order="order" in arguments[1:])


def _zeroed(arguments: Sequence[Any]) -> Form:
    program = arguments[0]
    scalars = list_of(is_scalar, _inputs(program))
    names = ("zeroed", "data", "second", "unzeroed", "again")
    return record(**dict.fromkeys(names, scalars), first=_graph(program))


def _descended(arguments: Sequence[Any]) -> Form:
    program, _, steps, *_ = arguments
    rows = list_of(list_of(is_scalar, _inputs(program)), steps)
    return record(rows=rows, grads=rows)


def _taped(arguments: Sequence[Any]) -> Form:
    operands = either(equal_to(None), list_of(is_integer))
    return record(
        tape=list_of(row_of(is_text, operands, is_scalar)),
        adjoints=_SCALARS if arguments[1] else equal_to(None),
    )


_ENDING = equal_to("", "RecursionError")
ENGINE: Forms = {
    "list_names": lambda arguments: _TEXTS,
    "compute_quotient": lambda arguments: record(value=is_scalar),
    "compute_gradient": lambda arguments: record(value=_SCALARS, point=list_of(is_anything)),
    "build_values": _built,
    "run_chain": lambda arguments: record(error=_ENDING),
    "zero_gradients": _zeroed,
    "run_optimizer": _descended,
    "record_tape": _taped,
    "sweep_long_tape": lambda arguments: either(
        record(first=is_scalar, error=equal_to("")), record(error=equal_to("RecursionError"))
    ),
    "compute_derivatives": lambda arguments: record(value=_SCALARS),
    "compute_hessian": lambda arguments: record(value=list_of(_SCALARS)),
    "run_network": lambda arguments: record(
        outputs=list_of(_SCALARS), parameters=_SCALARS, grads=_SCALARS
    ),
    "train_network": lambda arguments: record(
        losses=_SCALARS, output=is_scalar, parameters=_SCALARS
    ),
}
