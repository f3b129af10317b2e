"""The likely mistake behind wrong gradients, by name.

Every mistake that is known here foretells numbers: those of a slip of the sweep, of another point,
of another parameter. A mistake is named when it foretells a student's numbers at all points. Where
several do, that which explains most parameters is named, and of those the simplest; what explains
as much is said beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from cgprimer.course.checks.error_patterns import rounded, step_of_differences
from cgprimer.course.checks.gradient_questions import RIGHT, Points, Question
from cgprimer.course.checks.sweep_slips import candidates
from cgprimer.course.checks.update_mistakes import (
    DECAY,
    RETURNED,
    UPDATED,
    decays,
    early_updates,
    returned_updates,
)
from cgprimer.course.checks.wrong_derivatives import (
    BIAS,
    CONSTANT,
    FACTOR,
    NOT_DIFFERENTIATED,
    TRANSPOSED,
    TWICE,
)
from cgprimer.course.checks.wrong_rules import (
    DEGREES,
    DERIVATIVE,
    EXPONENT,
    LOGARITHM,
    POWER,
    PRODUCT,
    QUOTIENT,
)
from cgprimer.errors import join_names
from cgprimer.expressions import parse_element
from cgprimer.support.value_names import Element
from cgprimer.tapes import Tape, differentiate

Array = Any
Gradient = Mapping[str, Array]  # for each number that is asked for its values at the points

SAMPLES = "samples left out"
VARIABLE = "wrong variable"
#: The names of the mistakes with their meanings, from the simplest to the least likely.
MISTAKES = {
    "sign": "all values, or those of one term, have the wrong sign",
    "factor 2 missing": "half of what is right",
    "factor 2 too much": "twice what is right",
    "sum instead of mean": "the samples of a batch are added up, not averaged",
    "mean instead of sum": "the samples of a batch are averaged, not added up",
    "constant zero": "0 at every point",
    "parameters swapped": "the derivatives by two parameters are exchanged",
    "order of the values": "right values in another order, or a transposed matrix",
    "loss factor missing": "the derivative of the loss, the error, is left out",
    "activation derivative missing": "a function's derivative is left out of the chain",
    TWICE: "a function's derivative is a factor twice, as in (p - y)*p*(1 - p)",
    BIAS: "the forward pass is computed without a bias",
    SAMPLES: "the last or the first sample of a batch is left out",
    "product of averages": "factors are averaged over the batch before they are multiplied",
    EXPONENT: "the exponent, or the base, of a power is differentiated as a constant",
    PRODUCT: "f'*g' for (f*g)', or one of its two terms",
    QUOTIENT: "f'/g' for (f/g)', one of its two terms, or the divisor is not squared",
    LOGARITHM: "a^u without ln(a), log10(u) without 1/ln(10)",
    NOT_DIFFERENTIATED: "sin stays sin: the function stands for its derivative",
    TRANSPOSED: "a matrix is multiplied with in the place of its transpose",
    "one path of several": "a path from the parameter to the output is left out, or kept alone",
    "= instead of +=": "contributions overwrite each other instead of adding up",
    "not zeroed": "contributions of earlier calls stay",
    "inner function not evaluated": "an outer derivative is taken at x instead of at g(x)",
    "outer derivative missing": "the chain stops too early",
    "inner derivative missing": "the chain begins too late: what is inside is not differentiated",
    VARIABLE: "the derivative with respect to another variable",
    FACTOR: "the derivative of a product by a parameter is a value from elsewhere",
    "derivative at the wrong point": "right numbers of another point",
    CONSTANT: "a constant term, or a constant multiple, is kept",
    POWER: "the exponent stays, or does not come down; the divisor is not squared",
    DERIVATIVE: "a function has a wrong derivative, as 1 - tanh(u) or 1 + tanh(u)^2",
    DEGREES: "angles are converted between degrees and radians",
    "absolute value": "the sign is lost",
    "reciprocal": "one over what is right",
    "rounded": "right, but for digits that were cut off",
    "difference step too large": "difference quotients with an error of h or h^2",
    "difference step too small": "difference quotients in which rounding has the say",
    DECAY: "the gradient of weight decay is added to that of the loss",
    RETURNED: "the parameter after a step in the place of its gradient",
    UPDATED: "other parameters are updated before this derivative is computed",
    "constant factor": "a constant number times what is right",
}
_ORDER = {name: place for place, name in enumerate(MISTAKES)}
_CLOSE = 1e-9  # relative: a mistake foretells numbers as exactly as that
_FEWEST = 4  # points at which numbers are foretold
_MOST_VARIABLES = 50  # by which the output may be differentiated by mistake
_LARGE = 300  # operations of a graph whose sweeps are not tried if there is a simple explanation
_MOST_TIES = 0.2  # of the points
_PAIRS = 45  # of arguments that may be mixed up
_TOO = {-1.0: "the sign is wrong, too", 2.0: "there is a factor of 2 too much, too",
        0.5: "a factor of 2 is missing, too"}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Foretold:
    """The numbers that a mistake leads to, for the names that it is about."""

    mistake: str
    said: str
    values: Gradient
    each: bool = False  # a student may have made it for some names and not for others
    noise: Gradient | None = None  # of honest arithmetic, if not that of the points
    later: float = 0.0  # than others of its name
    ties: Gradient | None = None  # whether a point is at a kink of the wrong computation

    @property
    def rank(self) -> float:
        """Its place among all: the simplest come first."""
        return _ORDER[self.mistake] + self.later


Explained = tuple[Foretold, set[str], bool]  # for which names, and whether for all it is about


@dataclass(frozen=True)
class Named:
    """A mistake that explains what a student returned.

    Attributes:
        mistake: a key of :data:`MISTAKES`.
        said: where, in a sentence.
        names: the numbers that it explains.
        others: mistakes that explain them as well.
    """

    mistake: str
    said: str
    names: frozenset[str]
    others: tuple[str, ...] = ()


def name_mistakes(
    question: Question, points: Points, theirs: Gradient, wrong: Iterable[str]
) -> dict[str, Named]:
    """The mistake behind each of the wrong numbers that one explains.

    Args:
        question: what was asked.
        points: where, in the order in which it was asked.
        theirs: a student's numbers.
        wrong: the names whose numbers are wrong.
    """
    if not (remaining := {*wrong}):
        return {}
    known: list[Explained] = []

    def learn(foretold: Iterable[Foretold]) -> None:
        for one in foretold:
            noise = one.noise or points.noise
            with np.errstate(all="ignore"):
                explained = {
                    e
                    for e, values in one.values.items()
                    if _explains(points, theirs[e], values, noise[e], (one.ties or {}).get(e))
                }
            if explained & remaining:
                known.append((one, explained, one.each or len(explained) == len(one.values)))

    learn(_simple(question, points, theirs, remaining))
    if not any(remaining <= explained for _, explained, _ in known):
        known += _measured(question, points, theirs, remaining)
    simple = any(remaining <= explained for _, explained, _ in known)
    swept = () if simple and len(question.primal) > _LARGE else _swept(question, points)
    learn(swept)
    found = _chosen(known, remaining)
    if remaining:
        known.clear()
        learn(_fitted(question, points, theirs, remaining))
        found += _chosen(known, remaining)
    if remaining:
        known.clear()
        learn(_multiples(question, swept))
        found += _chosen(known, remaining)
    return {element: one for one in found for element in one.names}


def _chosen(known: list[Explained], remaining: set[str]) -> list[Named]:
    """The fewest and simplest that explain what remains; it is taken out of there."""
    found = []
    while remaining:
        score = {
            number: (len(explained & remaining), whole, -one.rank)
            for number, (one, explained, whole) in enumerate(known)
            if explained & remaining
        }
        if not score:
            break
        best = max(score, key=score.__getitem__)
        one, explained, whole = known[best]
        covered = explained & remaining
        by_kind: dict[str, set[str]] = {}  # a path each may be left out for several parameters
        for other, names, exact in sorted(known, key=lambda k: k[0].rank):
            if exact >= whole:
                by_kind.setdefault(other.mistake, set()).update(names)
        told = {one.mistake, "constant factor"}
        others = [m for m, names in by_kind.items() if names >= covered and m not in told]
        found.append(Named(one.mistake, one.said, frozenset(covered), tuple(others)))
        remaining -= covered
    return found


def _explains(
    points: Points, theirs: Array, foretold: Array, noise: Array, ties: Array | None = None
) -> bool:
    """Whether numbers are foretold at every smooth point where there is an answer."""
    here = points.smooth & ~np.isnan(theirs)
    if ties is not None:
        here &= ~ties
    at = int(here.argmax())  # one point refutes most
    if not abs(theirs[at] - foretold[at]) <= 2 * _CLOSE * abs(theirs[at]) + noise[at] < np.inf:
        return False
    near = _CLOSE * np.maximum(np.abs(foretold), np.abs(theirs)) + noise
    close = (np.abs(theirs - foretold) <= near) & np.isfinite(theirs) & np.isfinite(near)
    return bool(np.all(close[here]) and np.sum(here) >= min(_FEWEST, len(here)))


# --- what mistakes foretell ----------------------------------------------------------------------


def _simple(
    question: Question, points: Points, theirs: Gradient, wrong: set[str]
) -> Iterator[Foretold]:
    """Numbers that are made of the right ones."""
    right = points.right
    fixed = [
        ("sign", "the sign is wrong", -1.0),
        ("factor 2 missing", "a factor of 2 is missing", 0.5),
        ("factor 2 too much", "there is a factor of 2 too much", 2.0),
        ("constant zero", "it is 0 at every point", 0.0),
        *(("sign", f"the sign is wrong; {_TOO[-f]}", f) for f in (-0.5, -2.0)),
    ]
    for scale, name in _reduced_otherwise(question).items():
        fixed.append((name, f"over the samples of a batch: {name}", scale))
    for mistake, said, factor in fixed:
        values = {e: factor * v for e, v in right.items() if np.any(v)}
        yield Foretold(mistake, said, values, each=True)
    with np.errstate(all="ignore"):
        sizes = {e: np.abs(v) for e, v in right.items()}
        yield Foretold("absolute value", "the sign is lost", sizes, each=True)
        over = {e: 1.0 / v for e, v in right.items()}
        yield Foretold("reciprocal", "it is one over what is right", over, each=True)
        for element in wrong:
            ratio = theirs[element] / right[element]
            steady = ratio[points.smooth & (right[element] != 0)]
            if len(steady) > 3 and np.ptp(steady) <= _CLOSE * abs(np.median(steady)):
                scaled = {element: right[element] * np.median(steady)}
                said = "the same factor is wrong at every point"
                yield Foretold("constant factor", said, scaled, each=True)
    yield from _exchanged(question, points, theirs, wrong)


def _exchanged(
    question: Question, points: Points, theirs: Gradient, wrong: set[str]
) -> Iterator[Foretold]:
    """The right numbers of other parameters."""
    for name in question.wrt:
        shape = question.shapes[name]
        if len(shape) == 2 and shape[0] == shape[1]:
            turned = {str(Element(name, (i, j))): points.right[str(Element(name, (j, i)))]
                      for i in range(shape[0]) for j in range(shape[0])}  # fmt: skip
            yield Foretold("order of the values", f"{name} is transposed", turned, later=-1.5)
    if len(question.sources) > 200:
        return
    at = int(np.argmax(points.smooth))
    pairs: dict[str, str] = {}
    free = dict.fromkeys(e for e in question.sources if e in wrong)
    options = {
        e: [o for o in question.sources
            if o != e and np.isclose(theirs[e][at], points.right[o][at], 1e-6, 0.0)
            and _explains(points, theirs[e], points.right[o], points.noise[o])]
        for e in free
    }  # fmt: skip
    for element in sorted(free, key=lambda e: len(options[e])):
        other = next((o for o in options[element] if o not in pairs.values()), "")
        if other or options[element]:
            pairs[element] = other or options[element][0]
    cycle = len(pairs) > 2 and {*pairs} == {*pairs.values()}
    if cycle and any(pairs[pairs[e]] != e for e in pairs):
        yield Foretold("order of the values", "these are the right values in another order",
                        {e: points.right[o] for e, o in pairs.items()})  # fmt: skip
        return
    if pairs.keys() == free.keys() and all(pairs.get(pairs[e]) == e for e in pairs):
        names = dict.fromkeys(parse_element(e)[0] for e in pairs)
        crossed = all(parse_element(e)[0] != parse_element(o)[0] for e, o in pairs.items())
        if len(pairs) > 2 and len(names) == 2 and crossed:
            said = f"{join_names(names)} are swapped"
            whole = {e: points.right[o] for e, o in pairs.items()}
            yield Foretold("parameters swapped", said, whole)
            return
    for element, other in pairs.items():
        both = pairs.get(other) == element
        if not both and np.ptp(points.right[other]) == 0:
            continue  # a number such as 1 is not copied
        said = (
            f"{element} and {other} are swapped"
            if both
            else f"this is the derivative with respect to {other}"
        )
        values = {
            e: points.right[o] for e, o in pairs.items() if e == element or (both and e == other)
        }
        yield Foretold("parameters swapped" if both else VARIABLE, said, values)


@lru_cache(maxsize=4)  # it is the same for all submissions
def _swept(question: Question, points: Points) -> tuple[Foretold, ...]:
    """Numbers of sweeps that go wrong, and right numbers of other points."""
    ways = (_slips, _samples, _places, _other_variables)
    return tuple(one for way in ways for one in way(question, points))


def _slips(question: Question, points: Points) -> Iterator[Foretold]:
    tape, known = candidates(question)
    values = question.run(tape, points.given)
    ties = _ties(question, points, tape, values) if question.has_kinks else {}
    for number, (mistake, said, outputs) in enumerate(known):
        own = {element: values[output] for element, output in outputs.items()}
        at_kinks = {e: ties[output] for e, output in outputs.items() if output in ties}
        later = 50 * (mistake == "sign") + number / len(known) / 2
        each = mistake in (PRODUCT, QUOTIENT)  # done by hand for some names
        yield Foretold(mistake, said, own, each=each, later=later, ties=at_kinks)


def _ties(question: Question, points: Points, tape: Tape, values: Gradient) -> dict[str, Array]:
    """Return by output at which points a wrong computation is at a kink of its own.

    Without its bias a unit may be at 0, where programs choose different derivatives. A computation
    that is at kinks at many points is another one, and not excused.
    """
    draw = np.random.default_rng(0)
    moved = {
        name: v
        if name in question.restricted
        else v + draw.choice((-1e-9, 1e-9), v.shape) * np.maximum(1.0, np.abs(v))
        for name, v in points.given.items()
    }
    result = {}
    with np.errstate(all="ignore"):
        for name, other in question.run(tape, moved).items():
            jump = np.abs(other - values[name])
            tie = jump > 1e-3 * np.maximum(np.abs(other), np.abs(values[name]))
            if tie.any() and np.mean(tie) <= _MOST_TIES:
                result[name] = tie
    return result


def _samples(question: Question, points: Points) -> Iterator[Foretold]:
    """The gradient of one sample in the place of that of a batch."""
    if question.batch > 1:
        each = _gradient(question, points.given, reduce=False)
        for place, which in ((-1, "last"), (0, "first")):
            for scale in (1.0, 1.0 / question.batch):
                values = {e: v[place] * scale for e, v in each.items()}
                said = f"only the {which} sample of a batch is counted"
                yield Foretold("= instead of +=", said, values)
        size = question.batch
        usual = size if question.reduction == "mean" else 1
        for part, which in ((slice(None, -1), "last"), (slice(1, None), "first")):
            for divisor in dict.fromkeys((usual, size - 1, 1)):
                values = {e: v[part].sum(axis=0) / divisor for e, v in each.items()}
                yield Foretold(SAMPLES, f"the {which} sample of a batch is left out", values)
        centre = {n: np.broadcast_to(v.mean(axis=0), v.shape) if v.ndim > 1 else v
                  for n, v in points.given.items()}  # fmt: skip
        yield Foretold("product of averages", "the gradient is taken at the averages of the batch",
                        _gradient(question, centre))  # fmt: skip


def _places(question: Question, points: Points) -> Iterator[Foretold]:
    """The gradient at other points."""
    mistake, given = "derivative at the wrong point", points.given
    calls: list[tuple[str, str, Callable[[Array], Array]]] = [
        (
            mistake,
            "it is that of the point of the call before",
            lambda v: v[[0, *range(len(v) - 1)]],
        ),
        (mistake, "it is that of the first point at every point", lambda v: v[[0] * len(v)]),
        ("not zeroed", "the contributions of all calls before are added", np.cumsum),
    ]
    for name, said, seen in calls if points.called else ():
        moved, noise = ({e: seen(v) for e, v in of.items()} for of in (points.right, points.noise))
        yield Foretold(name, said, moved, noise=noise)
    numbers = {n: question.elements(n) for n in question.arguments}
    own = {n: numbers[n] for n in question.arguments if n in question.graph.values}
    filed: dict[str, Array] = {}
    for name, parts in own.items():
        whole = np.array(question.graph.values[name], float)
        flat = np.broadcast_to(whole, question.shapes[name]).ravel()
        filed |= {e: np.broadcast_to(v, given[e].shape) for e, v in zip(parts, flat, strict=True)}
    inputs = {e for n in question.graph.inputs for e in numbers[n]}
    moves: list[tuple[str, dict[str, Array]]] = []
    for what, part in (
        ("the values in the file", filed),
        ("the parameters' values in the file", {e: v for e, v in filed.items() if e not in inputs}),
        ("the inputs' values in the file", {e: v for e, v in filed.items() if e in inputs}),
        *((f"the value of {n} in the file", {e: filed[e] for e in own[n]}) for n in own),
        ("all parameters 1", {e: np.ones_like(v) for e, v in given.items() if e not in inputs}),
        ("all parameters 0", {e: np.zeros_like(v) for e, v in given.items() if e not in inputs}),
        ("the values rounded down", {e: np.trunc(v) for e, v in given.items()}),
    ):  # fmt: skip
        moves.append((f"it is taken at {what}, not at those of the call", part))
    names, pairs = [*question.arguments], 0
    for k, one in enumerate(names):
        for other in names[k + 1 :]:
            mine, yours = numbers[one], numbers[other]
            if len(mine) == len(yours) and given[mine[0]].shape == given[yours[0]].shape:
                pairs += 1
                part = {e: given[o] for e, o in zip(mine + yours, yours + mine, strict=True)}
                if pairs <= _PAIRS:
                    moves.append((f"{one} and {other} are mixed up in it", part))
    for said, part in moves:
        if part and any(not np.array_equal(given[e], v) for e, v in part.items()):
            found = question.run(question.answering, {**given, **part})
            moved, noise = question.read(found)
            yield Foretold(mistake, said, moved, noise=noise)


def _other_variables(question: Question, points: Points) -> Iterator[Foretold]:
    """Predict derivatives with respect to inputs and parameters that are not asked for."""
    others = [
        e
        for name in question.arguments
        if name not in question.wrt
        for e in question.elements(name)
    ][:_MOST_VARIABLES]
    if not others:
        return
    program = differentiate(question.primal, question.of, others, method="reverse")
    reads = {read.wrt: read.output for read in program.passes[0].reads}
    result = question.run(program.executed, points.given)
    for name in question.arguments:
        own = question.elements(name)
        if len(own) < 2 or not {*own} <= {*others}:
            continue
        for asked in question.wrt:
            if question.shapes[asked] == question.shapes[name]:
                pairs = zip(question.elements(asked), own, strict=True)
                values = {e: result[reads[other]] for e, other in pairs}
                yield Foretold(VARIABLE, f"this is the derivative with respect to {name}", values)
    for other in others:
        values = dict.fromkeys(question.sources, result[reads[other]])
        said = f"this is the derivative with respect to {other}"
        yield Foretold(VARIABLE, said, values, each=True)


def _fitted(
    question: Question, points: Points, theirs: Gradient, wrong: set[str]
) -> Iterator[Foretold]:
    """Predict gradients with a number that is fitted to the student's."""
    if np.sum(points.smooth) < _FEWEST:
        return
    for fitted in (decays, returned_updates):
        for mistake, said, values in fitted(question, points, theirs, wrong):
            yield Foretold(mistake, said, values, each=True)
    for mistake, said, values in early_updates(question, points, theirs, wrong):
        yield Foretold(mistake, said, values)


def _measured(
    question: Question, points: Points, theirs: Gradient, wrong: set[str]
) -> Iterator[Explained]:
    """Mistakes that show in the pattern of small errors."""
    for digits, names in rounded(points, theirs, wrong).items():
        said = f"the numbers are rounded to {digits} digits after the point"
        yield Foretold("rounded", said, {}), names, True
    for mistake, said, names in step_of_differences(question, points, theirs, wrong):
        yield Foretold(mistake, said, {}), names, True


def _multiples(question: Question, known: Iterable[Foretold]) -> Iterator[Foretold]:
    """A slip of a sweep, and a wrong sign or factor besides."""
    others = {f: f"and the {name}, too" for f, name in _reduced_otherwise(question).items()}
    for one, (factor, said) in product(known, (_TOO | others).items()):
        values = {e: factor * v for e, v in one.values.items()}
        yield Foretold(one.mistake, f"{one.said}; {said}", values, later=one.later + 100)


def _reduced_otherwise(question: Question) -> dict[float, str]:
    """The factor that the other reduction of a batch is off by, and its name."""
    if question.batch < 2:
        return {}
    if question.reduction == "mean":
        return {float(question.batch): "sum instead of mean"}
    return {1.0 / question.batch: "mean instead of sum"}


def _gradient(question: Question, given: Mapping[str, Array], *, reduce: bool = True) -> Gradient:
    """The right numbers at other points."""
    found = question.run(question.answering, given, reduce=reduce)
    return {e: found[RIGHT + e] for e in question.sources}
