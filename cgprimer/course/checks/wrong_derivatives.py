"""Local derivatives and forward passes that are wrong, as slips of a sweep.

The wrong rules of functions are the rows of :mod:`cgprimer.course.checks.wrong_rules`. What a row
cannot state is here: the product rule with two factors that depend on the same name, a forward pass
without its biases, an activation's derivative applied twice, matrices that are transposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from cgprimer.core.loss_expressions import SOFTMAX, parse_loss_name
from cgprimer.course.checks.sweep_outputs import Sweeps
from cgprimer.course.checks.tape_places import Place, grouped
from cgprimer.course.checks.wrong_rules import (
    DEGREES,
    EXPONENT,
    PRODUCT,
    QUOTIENT,
    WRONG_RULES,
    WrongRule,
    emit_text,
)
from cgprimer.course.checks.wrong_sweeps import Slip
from cgprimer.errors import join_names
from cgprimer.expressions import parse_element
from cgprimer.support.value_names import Element

NOT_DIFFERENTIATED = "function not differentiated"
TWICE = "activation derivative twice"
BIAS = "bias forgotten"
CONSTANT = "constant not differentiated"
FACTOR = "wrong factor"
TRANSPOSED = "transposed weights"
_LINEAR = {"add", "sub", "mul", "div", "neg", "copy", "exp", "relu", "max", "min", "where",
           "clamp", "stop_gradient", "sign", "heaviside", "step", "less", "equal"}  # fmt: skip
_ACTIVATIONS = {"sigmoid", "tanh", "sin", "cos", "softplus", "erf"}
_MOST_PRODUCTS = 40
_MOST_FACTORS = 30  # parameters, and values that may stand for their factors


def wrong_derivatives(sweeps: Sweeps) -> Iterator[Slip]:
    """Yield a slip for each wrong rule and the instructions that it applies to."""
    heads: dict[str, list[int]] = {}
    for head in sweeps.region:
        name = sweeps.step(head).primitive
        if isinstance(name, str):
            heads.setdefault(name, []).append(head)
    yield from _cross_entropy(sweeps)
    yield from _biases(sweeps)
    yield from _backward_transposed(sweeps)
    yield from _degrees_everywhere(sweeps, heads)
    for name, own in heads.items():
        yield from _table(sweeps, name, own)
        if name not in _LINEAR:
            yield from _undifferentiated(sweeps, name, own)
        if name in _ACTIVATIONS:
            yield from _twice(sweeps, name, own)


def _groups(sweeps: Sweeps, heads: Iterable[int]) -> dict[frozenset[int], str]:
    """Return sets of instructions with a text each: all of them, those of a line, single ones."""
    heads = [*heads]
    names = [sweeps.step(head).primitive for head in heads[:1]]
    groups = {frozenset(heads): f"each {names[0]}"} if len(heads) > 1 else {}
    for line, own in grouped(heads, lambda head: parse_element(sweeps.line(head))[0]):
        if len(own) > 1:
            groups.setdefault(own, f"each {names[0]} in {line}")
    for head in heads:
        groups.setdefault(frozenset({head}), sweeps.expression(head))
    return groups


def _table(sweeps: Sweeps, name: str, heads: Iterable[int]) -> Iterator[Slip]:
    """Yield the wrong rules of the table for one primitive."""
    for rule in WRONG_RULES:
        if rule.primitive != name:
            continue
        changed = [which for which, text in enumerate(rule.partials) if text]
        fitting = [h for h in heads if _applies(sweeps, h, changed)]
        for own, where in _groups(sweeps, fitting).items():
            forward = None
            if rule.value:
                forward = sweeps.recomputed(
                    {head: partial(_emit_value, sweeps, rule.value) for head in own}
                )
            partials = _wrong_partials(sweeps, rule, own, changed, forward)
            said = f"{where} is differentiated as {rule.message}"
            yield Slip(rule.mistake, said, partials=partials, forward=forward)


def _wrong_partials(
    sweeps: Sweeps,
    rule: WrongRule,
    heads: Iterable[int],
    changed: Iterable[int],
    forward: Mapping[int, int] | None,
) -> dict[Place, int]:
    """Return the partials that a rule gives for some operands of instructions."""
    values = sweeps.value if forward is None else forward
    partials = {}
    for head in heads:
        operands = tuple([values[o] for o in sweeps.step(head).operands])
        for which in changed:
            text = rule.partials[which]
            partials[head, which] = emit_text(sweeps.builder, text, operands, values[head])
    return partials


def _degrees_everywhere(sweeps: Sweeps, heads: Mapping[str, list[int]]) -> Iterator[Slip]:
    """Yield slips in which functions of several kinds convert their angles in the same way."""
    rules = {
        name: [rule for rule in WRONG_RULES if (rule.primitive, rule.mistake) == (name, DEGREES)]
        for name in heads
    }
    rules = {name: own for name, own in rules.items() if own}
    for way in zip(*rules.values(), strict=True) if len(rules) > 1 else ():
        forward = None
        if way[0].value:
            forward = sweeps.recomputed(
                {
                    head: partial(_emit_value, sweeps, rule.value)
                    for rule in way
                    for head in heads[rule.primitive]
                }
            )
        partials: dict[Place, int] = {}
        for rule in way:
            partials |= _wrong_partials(sweeps, rule, heads[rule.primitive], [0], forward)
        said = f"{join_names(rules)} are differentiated as {way[0].message}"
        yield Slip(DEGREES, said, partials=partials, forward=forward)


def _emit_value(sweeps: Sweeps, text: str, operands: tuple[int, ...]) -> int:
    return emit_text(sweeps.builder, text, operands, 0)


def _applies(sweeps: Sweeps, head: int, changed: Iterable[int]) -> bool:
    """Return whether a rule for some operands concerns an instruction.

    A rule for one operand of a power is about a constant as the other one.
    """
    name, operands = sweeps.step(head)
    depends = [which for which, o in enumerate(operands) if sweeps.active[o]]
    if name == "pow":
        return depends == [*changed] or (1 in changed and 1 in depends)
    if name == "div" and len([*changed]) == 2:
        return len(depends) == 2  # a constant needs no quotient rule
    return any(which in depends for which in changed)


def _undifferentiated(sweeps: Sweeps, name: str, heads: Iterable[int]) -> Iterator[Slip]:
    """Yield slips with the function itself for its derivative."""
    for own, where in _groups(sweeps, heads).items():
        partials = {
            (head, which): sweeps.value[head]
            for head in own
            for which, operand in enumerate(sweeps.step(head).operands)
            if sweeps.active[operand]
        }
        said = f"{where} is differentiated as the function itself"
        yield Slip(NOT_DIFFERENTIATED, said, partials=partials)


def _twice(sweeps: Sweeps, name: str, heads: Iterable[int]) -> Iterator[Slip]:
    """Yield slips in which the derivative of an activation is a factor twice."""
    for own, where in _groups(sweeps, heads).items():
        said = f"the derivative of {where} is multiplied twice"
        if name == "sigmoid" and any(_in_logarithm(sweeps, head) for head in own):
            said += "; behind cross-entropy p - y is already the derivative by its argument"
        yield Slip(TWICE, said, twice=frozenset((head, 0) for head in own))


def _in_logarithm(sweeps: Sweeps, value: int) -> bool:
    """Return whether a value, or 1 minus it, is the operand of a logarithm."""
    users = [head for head, _, tail in sweeps.shares if tail == value]
    users += [head for head, _, tail in sweeps.shares if tail in users]
    return any(sweeps.step(head).primitive in ("log", "xlogy") for head in users)


def _cross_entropy(sweeps: Sweeps) -> Iterator[Slip]:
    """Yield ``(p - y)*p*(1 - p)`` behind a loss that takes logits."""
    said = (
        "p - y is already the derivative of the loss by the logits: the factor p*(1 - p) is"
        " too much"
    )
    builder, value = sweeps.builder, sweeps.value
    one = builder.constant(1.0)
    probabilities: dict[int, int] = {}
    if parse_loss_name(sweeps.question.loss) == SOFTMAX:
        outputs = sweeps.question.output.split(",")
        logits = [
            v for v in sweeps.region if parse_element(sweeps.tape.labels.get(v, ""))[0] in outputs
        ]
        powers = [builder.emit("exp", value[v]) for v in logits]
        total = powers[0] if powers else one
        for power in powers[1:]:
            total = builder.emit("add", total, power)
        quotients = [builder.emit("div", power, total) for power in powers]
        probabilities = dict(zip(logits, quotients, strict=True))
    else:
        for head in sweeps.region:
            name, operands = sweeps.step(head)
            if name == "softplus" and operands[0] in sweeps.tape.labels:
                argument = operands[0]
                probabilities[argument] = builder.emit("sigmoid", value[argument])
    factors = {
        tail: builder.emit("mul", p, builder.emit("sub", one, p))
        for tail, p in probabilities.items()
    }
    times = {(h, w): factors[tail] for h, w, tail in sweeps.shares if tail in factors}
    if times:
        yield Slip(TWICE, said, times=times)


# --- constants and factors -----------------------------------------------------------------------


def note_constants(sweeps: Sweeps) -> None:
    """Add sums whose constant term, or constant multiple, stays as it is."""
    first, tape = len(sweeps.tape.leaves), sweeps.tape
    for head in sweeps.region:
        name, operands = sweeps.step(head)
        bar = sweeps.right.get(head)
        constants = [o for o in operands if o < first and tape.leaves[o].kind == "constant"]
        if bar is None or name not in ("add", "sub", "mul") or len(constants) != 1:
            continue
        which = operands.index(constants[0])
        said = f"the constant term of {sweeps.expression(head)} is kept"
        if name == "mul":
            said = f"{sweeps.expression(head)} is kept as it is"
            wrong = Slip(NOT_DIFFERENTIATED, said, partials={(head, 1 - which): sweeps.value[head]})
            if operands[1 - which] < first:
                sweeps.note(NOT_DIFFERENTIATED, said, sweeps.sweep(wrong))
            continue
        term = sweeps.builder.emit("mul", bar, sweeps.value[constants[0]])
        operation = "sub" if name == "sub" and which == 1 else "add"
        names = sweeps.common_sources([head])
        gradient = sweeps.sweep(Slip("", ""))
        kept = {e: sweeps.builder.emit(operation, gradient[e], term) for e in names}
        sweeps.note(CONSTANT, said, kept)


def note_factors(sweeps: Sweeps) -> None:
    """Add products with a parameter whose derivative is another value than the other factor."""
    uses: dict[int, list[Place]] = {}
    for head, which, tail in sweeps.shares:
        uses.setdefault(tail, []).append((head, which))
    inputs = {n for name in sweeps.question.graph.inputs for n in sweeps.question.elements(name)}
    values = [i for i in sweeps.value if sweeps.tape.labels.get(i) in inputs]
    values += [v for v in sweeps.vertices() if v != sweeps.root]
    if max(len(sweeps.sources), len(values)) > _MOST_FACTORS:
        return
    for element, source in sweeps.sources.items():
        places = uses.get(source, [])
        head, which = places[0] if len(places) == 1 else (0, 0)
        bar = sweeps.right.get(head)
        if not head or bar is None or sweeps.step(head).primitive != "mul":
            continue
        factor = sweeps.step(head).operands[1 - which]
        for other in values:
            if other != factor:
                said = (
                    f"the derivative of {sweeps.expression(head)} by {element} is taken as"
                    f" {sweeps.text(other)}"
                )
                made = sweeps.builder.emit("mul", bar, sweeps.value[other])
                sweeps.note(FACTOR, said, {element: made})


# --- forward passes ------------------------------------------------------------------------------


def _biases(sweeps: Sweeps) -> Iterator[Slip]:
    """Yield forward passes without a bias, without those of a name, without any."""
    parameters = {*sweeps.question.graph.parameters}
    where: dict[str, dict[int, str]] = {}
    for head in sweeps.region:
        name, operands = sweeps.step(head)
        if name not in ("add", "sub"):
            continue
        for which, leaf in enumerate(operands):
            label = parse_element(sweeps.tape.labels.get(leaf, ""))[0]
            other = operands[1 - which]
            is_bias = leaf < len(sweeps.tape.leaves) and label in parameters
            if is_bias and other >= len(sweeps.tape.leaves):
                rest = "ab"[1 - which]
                text = f"-{rest}" if name == "sub" and which == 0 else rest
                where.setdefault(label, {})[head] = text
    groups: dict[tuple[str, ...], dict[int, str]] = {(n,): texts for n, texts in where.items()}
    if len(groups) > 1:
        groups[tuple(where)] = {h: text for texts in where.values() for h, text in texts.items()}
    for names, texts in groups.items():
        changed = {head: partial(_emit_value, sweeps, text) for head, text in texts.items()}
        said = f"the forward pass is computed without {', '.join(names)}"
        yield Slip(BIAS, said, forward=sweeps.recomputed(changed))


def _square_matrices(sweeps: Sweeps) -> dict[str, dict[int, int]]:
    """Return for each square matrix of parameters its entries with those of its transpose."""
    found = {}
    for name in sweeps.question.graph.parameters:
        shape = sweeps.question.shapes[name]
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
            continue
        size = range(shape[0])
        index = {(i, j): sweeps.tape.index(str(Element(name, (i, j)))) for i in size for j in size}
        found[name] = {index[i, j]: index[j, i] for i, j in index if i != j}
    return found


def _backward_transposed(sweeps: Sweeps) -> Iterator[Slip]:
    """Yield sweeps in which an adjoint is multiplied with the transpose of the right matrix."""
    matrices = _square_matrices(sweeps)
    groups = [(name,) for name in matrices] + ([tuple(matrices)] if len(matrices) > 1 else [])
    for names in groups:
        turned = {k: v for name in names for k, v in matrices[name].items()}
        partials: dict[Place, int] = {}
        for head, which, _ in sweeps.shares:
            primitive, operands = sweeps.step(head)
            other = operands[1 - which] if primitive == "mul" else -1
            if other in turned:
                partials[head, which] = sweeps.value[turned[other]]
        if partials:
            said = f"the backward pass takes {', '.join(names)} for its transpose"
            yield Slip(TRANSPOSED, said, partials=partials)


def note_transposed(sweeps: Sweeps) -> None:
    """Add forward passes with a transposed matrix; its gradient may be transposed or not."""
    sources = sweeps.sources
    for name, turned in _square_matrices(sweeps).items():
        if any(index not in sweeps.value for index in turned):
            continue
        changed = {k: partial(_leaf, sweeps, v) for k, v in turned.items()}
        forward = sweeps.recomputed(changed)
        said = f"{name} is transposed in the forward pass"
        gradient = sweeps.sweep(Slip(TRANSPOSED, said, forward=forward))
        sweeps.note(TRANSPOSED, said, gradient)
        names = {index: element for element, index in sources.items()}
        other = dict(gradient)
        for element, index in sources.items():
            if index in turned:
                other[element] = gradient[names[turned[index]]]
        sweeps.note(TRANSPOSED, said, other)


def _leaf(sweeps: Sweeps, index: int, operands: tuple[int, ...]) -> int:
    return sweeps.value[index]


# --- products, quotients and powers of two active operands ---------------------------------------


def note_products(sweeps: Sweeps) -> None:
    """Add the wrong rules for products, quotients and powers of what depends on one name."""
    heads = [
        head
        for head in sweeps.region
        for name, operands in [sweeps.step(head)]
        if name in ("mul", "div", "pow") and sweeps.common_sources(operands)
    ]
    products = [head for head in heads if sweeps.step(head).primitive == "mul"]
    for which in (0, 1) if len(products) > 1 else ():
        said = "in the derivative of each product one of two terms is missing"
        lost = frozenset((head, which) for head in products)
        sweeps.note(PRODUCT, said, sweeps.sweep(Slip(PRODUCT, said, lost=lost)))
    for head in heads[:_MOST_PRODUCTS]:
        name, operands = sweeps.step(head)
        names = sweeps.common_sources(operands)
        for slip in _one_term(sweeps, head):
            gradient = sweeps.sweep(slip)
            sweeps.note(slip.mistake, slip.said, {e: gradient[e] for e in names})
        if name in ("mul", "div"):
            _note_product_of_derivatives(sweeps, head, names)


def _one_term(sweeps: Sweeps, head: int) -> Iterator[Slip]:
    """Yield the slips in which one of two terms is missing."""
    name, operands = sweeps.step(head)
    said, (left, right) = sweeps.expression(head), operands
    if name == "pow":
        yield Slip(EXPONENT, f"{said} is differentiated as if its exponent were constant",
                   lost=frozenset({(head, 1)}))  # fmt: skip
        yield Slip(EXPONENT, f"{said} is differentiated as if its base were constant",
                   lost=frozenset({(head, 0)}))  # fmt: skip
        return
    mistake = PRODUCT if name == "mul" else QUOTIENT
    for which, tail in ((1, right), (0, left)):
        text = f"in the derivative of {said} the term with the derivative of {{}} is missing"
        yield Slip(mistake, text.format(sweeps.text(tail)), lost=frozenset({(head, which)}))


def _note_product_of_derivatives(sweeps: Sweeps, head: int, names: Iterable[str]) -> None:
    """Add ``f'*g'`` for the derivative of ``f*g``, ``f'/g'`` for that of ``f/g``."""
    name, (left, right) = sweeps.step(head)
    bar = sweeps.right.get(head)
    if bar is None:
        return
    builder, both = sweeps.builder, frozenset({(head, 0), (head, 1)})
    rest = sweeps.sweep(Slip("", "", lost=both))
    one, other = (_derivatives(sweeps, operand) for operand in (left, right))
    gradient = {}
    for element in names:
        made = builder.emit(name, one[element], other[element])
        gradient[element] = builder.emit("add", rest[element], builder.emit("mul", bar, made))
    what = "product" if name == "mul" else "quotient"
    mistake = PRODUCT if name == "mul" else QUOTIENT
    said = f"{sweeps.expression(head)} is differentiated as the {what} of the derivatives"
    sweeps.note(mistake, said, gradient)


def _derivatives(sweeps: Sweeps, value: int) -> Mapping[str, int]:
    """Return the derivatives of an inner value by all sources."""
    return sweeps.sweep(Slip("", "", roots=(value,)))
