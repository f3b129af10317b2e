"""Validate the structure of the answers that a driver returns, before they are read.

Answers are well-formed JSON with any structure, because the submission runs in the process of the
driver. A form is a predicate on an answer; :data:`Forms` builds the form of each driver function
from the arguments of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from cgprimer.course.checks.check_results import Failure

Form = Callable[[Any], bool]
Forms = Mapping[str, Callable[[Sequence[Any]], Form]]
WRONG_STRUCTURE = Failure("answers", "the answer does not have the expected structure")


def validate_answer(value: Any, form: Form) -> Any:
    """Return `value` if its structure matches the expected form, otherwise a failure.

    >>> numbers = list_of(is_number)
    >>> validate_answer([1.0, 2.0], numbers), validate_answer([[]], numbers).kind
    ([1.0, 2.0], 'answers')
    """
    return value if isinstance(value, Failure) or form(value) else WRONG_STRUCTURE


# --- general forms -------------------------------------------------------------------------------


def is_anything(value: Any) -> bool:
    """Return True for any value."""
    return True


def is_number(value: Any) -> bool:
    """Return whether a value is an int or a float, including infinities and nan, but not a bool."""
    return type(value) in (int, float)


def is_integer(value: Any) -> bool:
    """Return whether a value is an int, but not a bool."""
    return type(value) is int


def is_string(value: Any) -> bool:
    """Return whether a value is a string."""
    return type(value) is str


def is_boolean(value: Any) -> bool:
    """Return whether a value is True or False."""
    return type(value) is bool


def is_scalar(value: Any) -> bool:
    """Return whether a value is a number, or a string that describes a non-numeric object."""
    return is_number(value) or is_string(value)


def equal_to(*constants: Any) -> Form:
    """Return a predicate that accepts a value equal to a given constant and of the same type."""
    return lambda value: any(type(value) is type(one) and value == one for one in constants)


def either(*forms: Form) -> Form:
    """Return a predicate that accepts a value if at least one of the predicates accepts it."""
    return lambda value: any(form(value) for form in forms)


def list_of(form: Form, length: int | None = None, max_length: int | None = None) -> Form:
    """Return a predicate for lists of permitted length whose entries all satisfy `form`."""

    def accepts(value: Any) -> bool:
        """Return whether a value is a list of permitted length with valid entries."""
        if type(value) is not list or (length is not None and len(value) != length):
            return False
        return (max_length is None or len(value) <= max_length) and all(map(form, value))

    return accepts


def row_of(*forms: Form) -> Form:
    """Return a predicate for lists whose k-th entry satisfies the k-th given predicate."""
    return lambda value: (
        type(value) is list
        and len(value) == len(forms)
        and all(form(entry) for form, entry in zip(forms, value, strict=True))
    )


def mapping_of(form: Form) -> Form:
    """Return a predicate for dictionaries whose values all satisfy `form`."""
    return lambda value: type(value) is dict and all(map(form, value.values()))


def record(**fields: Form) -> Form:
    """Return a predicate for dictionaries with exactly the given keys and with valid values."""
    return lambda value: (
        type(value) is dict
        and value.keys() == fields.keys()
        and all(form(value[name]) for name, form in fields.items())
    )


_SCALARS = list_of(is_scalar)
_STRINGS = list_of(is_string)


# --- gradients -----------------------------------------------------------------------------------


def _is_gradient_answer(value: Any) -> bool:
    """Return whether a value is a gradient, or a valid report that a call was impossible."""
    if not isinstance(value, dict) or "no call" not in value:
        return True
    details = {"missing": _STRINGS, "signature": is_string}
    return any(
        record(**{"no call": equal_to(kind), "said": form})(value) for kind, form in details.items()
    )


GRADIENT: Forms = {"call": lambda arguments: _is_gradient_answer}


# --- optimizers ----------------------------------------------------------------------------------


def _build_optimizer_run_form(question: Mapping[str, Any]) -> Form:
    """Return a predicate for the report on one optimizer run: updates, error and changed state."""
    start, gradients = question["start"], question["gradients"]
    error = record(
        message=is_string, line=either(equal_to(None), is_integer), arithmetic=is_boolean
    )
    return record(
        steps=list_of(list_of(is_number, len(start)), max_length=len(gradients)),
        error=either(equal_to({}), error),
        changed=mapping_of(is_string),
    )


def _build_optimizer_form(arguments: Sequence[Any]) -> Form:
    """Return a predicate for the report of `try_optimizer` on all runs of an optimizer."""
    question = arguments[1]
    meanings = list_of(equal_to(*question["hyper"]))
    fields: dict[str, Form] = {
        "form": is_string,
        "taken": meanings,
        "defaults": mapping_of(is_number),
        "runs": row_of(*map(_build_optimizer_run_form, question["runs"])),
    }
    complete = either(
        record(**fields, moved=equal_to(True)),
        record(**fields, moved=equal_to(False), tries=mapping_of(is_string)),
    )
    if not question["hyper"]["weight_decay"]:
        return complete
    without_decay = record(taken=meanings)
    return lambda value: (
        complete(value) or (without_decay(value) and "weight_decay" not in value["taken"])
    )


OPTIMIZER: Forms = {
    "list_definitions": lambda arguments: list_of(row_of(is_string, equal_to("class", "function"))),
    "try_optimizer": _build_optimizer_form,
}


# --- engines -------------------------------------------------------------------------------------


def _count_inputs(program: Mapping[str, Any]) -> int:
    """Return the number of inputs among the leaves of a test program."""
    return sum(kind == "input" for kind, _ in program["leaves"])


def _build_graph_form(program: Mapping[str, Any], order: bool = False) -> Form:
    """Return a predicate for the graph that a student's engine builds for a test program."""
    inputs, size = _count_inputs(program), len(program["leaves"]) + len(program["steps"])
    indices = list_of(is_integer)
    node = record(data=is_scalar, grad=is_scalar, op=is_string, parents=indices, set=is_boolean)
    fields: dict[str, Form] = {
        "nodes": list_of(node),
        "at": list_of(is_integer, size),
        "inputs": list_of(is_scalar, inputs),
        "grads": list_of(is_scalar, inputs),
    }
    with_order = record(**fields, order=indices)
    form = with_order if order else either(record(**fields), with_order)

    def accepts(value: Any) -> bool:
        """Return whether a value is a non-empty graph with valid node indices."""
        if not form(value) or not value["nodes"]:
            return False
        nodes = value["nodes"]
        parents = all(0 <= p < k for k, node in enumerate(nodes) for p in node["parents"])
        positions = chain(value["at"], value.get("order", ()))
        return parents and all(-1 <= index < len(nodes) for index in positions)

    return accepts


def _build_values_form(arguments: Sequence[Any]) -> Form:
    """Return a predicate for the graph that `build_values` returns, with its order if requested."""
    return _build_graph_form(arguments[0], order="order" in arguments[1:])


def _build_zeroing_form(arguments: Sequence[Any]) -> Form:
    """Return a predicate for the gradients before and after the reset in `zero_gradients`."""
    program = arguments[0]
    scalars = list_of(is_scalar, _count_inputs(program))
    names = ("zeroed", "data", "second", "unzeroed", "again")
    return record(**dict.fromkeys(names, scalars), first=_build_graph_form(program))


def _build_descent_form(arguments: Sequence[Any]) -> Form:
    """Return a predicate for the parameters and gradients per update in `run_optimizer`."""
    program, _, steps, *_ = arguments
    rows = list_of(list_of(is_scalar, _count_inputs(program)), steps)
    return record(rows=rows, grads=rows)


def _build_tape_form(arguments: Sequence[Any]) -> Form:
    """Return a predicate for the tape and adjoints that `record_tape` returns."""
    operands = either(equal_to(None), list_of(is_integer))
    return record(
        tape=list_of(row_of(is_string, operands, is_scalar)),
        adjoints=_SCALARS if arguments[1] else equal_to(None),
    )


_ENDING = equal_to("", "RecursionError")
ENGINE: Forms = {
    "list_names": lambda arguments: _STRINGS,
    "compute_quotient": lambda arguments: record(value=is_scalar),
    "compute_gradient": lambda arguments: record(value=_SCALARS, point=list_of(is_anything)),
    "build_values": _build_values_form,
    "run_chain": lambda arguments: record(error=_ENDING),
    "zero_gradients": _build_zeroing_form,
    "run_optimizer": _build_descent_form,
    "record_tape": _build_tape_form,
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
