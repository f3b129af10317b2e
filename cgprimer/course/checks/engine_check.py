"""The ladder: how far an engine has come that students write themselves, stage by stage."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from cgprimer.course.checks.answer_validation import ENGINE
from cgprimer.course.checks.check_results import Failure, Part, Result, create_failed_result
from cgprimer.course.checks.sandbox import Limits, Request, Submission, run_submission
from cgprimer.course.checks.stages import (
    backward_stages,
    difference_stages,
    network_stage,
    optimizer_stage,
    tape_stage,
    value_stages,
)
from cgprimer.course.checks.stages.stage import Case, Stage
from cgprimer.course.checks.stages.stage_diagnosis import Finding, attribute_to_causes
from cgprimer.course.checks.stages.student_graphs import build_student_graph
from cgprimer.course.checks.verdicts import rename_hint
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph, parse

STAGES: tuple[Stage, ...] = (
    difference_stages.QUOTIENTS,
    value_stages.VALUE,
    value_stages.ORDER,
    backward_stages.REVERSE,
    backward_stages.ACCUMULATION,
    backward_stages.ZEROING,
    optimizer_stage.OPTIMIZER,
    tape_stage.TAPE,
    difference_stages.SECOND,
    network_stage.NETWORK,
)
_MOST_STARTS = 4  # of a submission whose stages end the process
_PAGES = Path(__file__).parent / "stages"
DRIVER = _PAGES / "stage_driver.py"
SHOWN = "e = (a + b)*(b + 1)"  # that is drawn unless another expression is asked for


def check_engine(
    submission: Submission, stage: int | None = None, *, limits: Limits | None = None
) -> Result:
    """Check an engine that a student wrote: a stage of the ladder, or how far it has come.

    Args:
        submission: a file, or the ``globals()`` of a notebook.
        stage: from 1 to 10 (:func:`page` tells what to write); all of them unless given.
        limits: what the submission may use.

    Returns:
        The parts of a stage; of all stages a part each.

    Raises:
        UsageError: there is no such stage, or no such file.

    >>> def difference_quotient(f, x, h=1e-5):
    ...     return (f(x + h) - f(x - h))/h
    >>> def numerical_gradient(f, xs, h=1e-5):
    ...     return [(f([*xs[:k], x + h, *xs[k + 1:]]) - f(xs))/h for k, x in enumerate(xs)]
    >>> for part in check_engine(globals() | locals(), 1).parts:
    ...     print(part.name, part.verdict, part.mistake, sep=", ")
    difference quotient, wrong, divided by h instead of 2h
    gradient by differences, right,
    the point stays as it is, right,
    """
    name = "notebook" if isinstance(submission, Mapping) else Path(submission).name
    stages = STAGES if stage is None else (_stage(stage),)
    asked = _answers(submission, stages, limits)
    if isinstance(asked.defined, Failure):
        result = create_failed_result("engine", name, possible(stage), asked.defined)
        return replace(result, output=asked.output, seconds=asked.seconds)
    findings = [_findings(one, asked) for one in stages]
    if stage is not None and any(one.verdict == "wrong" for one in findings[0]):
        # What a later stage shows may be a mistake of an earlier one, which is named then.
        below = [_stage(number) for number in stages[0].builds_on if number != stage]
        earlier = _answers(submission, below, limits)
        if not isinstance(earlier.defined, Failure):
            findings[:0] = [_findings(one, earlier, reported=False) for one in below]
    parts = attribute_to_causes([one for every in findings for one in every])
    if stage is None:
        own = iter(parts)
        parts = [_whole(one, list(islice(own, len(one.tasks)))) for one in stages]
    return Result("engine", name, tuple(parts), asked.output, asked.seconds)


@dataclass
class _Answers:
    """The names that a submission defines, and its answers by stage."""

    defined: Sequence[str] | Failure = ()
    by_stage: dict[int, Sequence[Any]] = field(default_factory=dict)
    output: str = ""
    seconds: float = 0.0


def _answers(submission: Submission, stages: Sequence[Stage], limits: Limits | None) -> _Answers:
    """Ask a submission everything that stages ask; a stage that ends the process ends no other.

    A submission that ends its process again and again is not started more than a few times: the
    stages behind have its last failure.
    """
    result = _Answers()
    waiting = list(stages)
    starts = 0
    while waiting:
        starts += 1
        asks = [ask for one in waiting for ask in one.calls]
        requests: list[Request] = [{"call": "list_names", "arguments": []}]
        requests += [{"call": a.function, "arguments": list(a.arguments)} for a in asks]
        answers = run_submission(submission, requests, limits, driver=DRIVER, forms=ENGINE)
        result.output = result.output or answers.output
        result.seconds += answers.seconds
        result.defined, *rest = answers.values
        if isinstance(result.defined, Failure):
            break
        ended = False
        while waiting and not ended:
            one = waiting.pop(0)
            own, rest = rest[: len(one.calls)], rest[len(one.calls) :]
            ended = bool(answers.failure) and any(value is answers.failure for value in own)
            result.by_stage[one.number] = own
        if starts == _MOST_STARTS and answers.failure:
            result.by_stage |= {one.number: [answers.failure] * len(one.calls) for one in waiting}
            break
    return result


def possible(stage: int | None = None) -> dict[str, float]:
    """The points that each part of a stage, or each stage, can bring."""
    if stage is not None:
        return _stage(stage).possible
    return {_title(one): sum(one.possible.values()) for one in STAGES}


def _stage(number: int) -> Stage:
    if number not in range(1, len(STAGES) + 1):
        raise UsageError(f"there is no stage {number!r}", hint=f"stages 1 to {len(STAGES)}")
    return STAGES[number - 1]


def _title(stage: Stage) -> str:
    return f"stage {stage.number}: {stage.name}"


def _findings(stage: Stage, asked: _Answers, *, reported: bool = True) -> list[Finding]:
    defined = [str(name) for name in asked.defined] if isinstance(asked.defined, list) else []
    missing = [name for name in stage.required_names if name not in defined]
    if not missing:
        return stage.assess(asked.by_stage[stage.number], reported=reported)
    known = {name for one in STAGES for name in one.required_names}
    others = [name for name in defined if name not in known]
    hints = list(filter(None, (rename_hint(name, others) for name in missing)))
    message = "; ".join([f"there is no {' and no '.join(missing)}", *hints])
    parts = [Part(n, p, 0, "not run", "", message) for n, p in stage.possible.items()]
    return [Finding(part, {}, stage.number, stage.builds_on, reported=reported) for part in parts]


def _whole(stage: Stage, parts: Sequence[Part]) -> Part:
    """A stage as one part: its points, and the first thing that is not right."""
    points, most = sum(part.points for part in parts), sum(part.possible for part in parts)
    bad = [part for part in parts if part.verdict != "right"]
    if not bad:
        noted = next((part for part in parts if part.note), Part("", 0, 0, "right"))
        return replace(noted, name=_title(stage), possible=most, points=points)
    order = ("wrong", "not run", "suspicious")
    first = min(bad, key=lambda part: (order.index(part.verdict), not part.mistake))
    alone = all(part.message == first.message for part in parts)
    message = first.message if alone else f"{first.name}: {first.message}"
    return replace(first, name=_title(stage), possible=most, points=points, message=message)


# --- pages and skeletons --------------------------------------------------------------------------


def page(stage: int) -> str:
    """The page of a stage, in Markdown: the idea, the formula, what to write, how it is checked.

    >>> page(1).splitlines()[0]
    '# 1. The difference quotient'
    """
    (file,) = _PAGES.glob(f"{_stage(stage).number:02}-*.md")
    return file.read_text(encoding="utf-8")


@dataclass
class _Definition:
    """A function or a class of the skeleton, as text, and the stages that define it."""

    text: str
    first: int
    last: int
    methods: Mapping[str, str] = field(default_factory=dict)

    def extended(self, later: _Definition) -> _Definition:
        """Return a class with the methods of a later stage, which replace earlier ones."""
        text = self.text
        for name, method in later.methods.items():
            text = text.replace(self.methods.get(name, ""), "") if name in self.methods else text
            text = f"{text.rstrip()}\n\n{method}"
        return _Definition(text, self.first, later.last, {**self.methods, **later.methods})


def _definitions(number: int) -> Iterator[tuple[str, _Definition]]:
    """Yield the functions and classes on the page of a stage; imports go with the first one."""
    block = re.search(r"```python\n(.*?)```", page(number), re.DOTALL)
    assert block is not None
    lines = block[1].splitlines(keepends=True)
    imports = ""
    for node in ast.parse(block[1]).body:
        text = "".join(lines[node.lineno - 1 : node.end_lineno])
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            inner = [one for one in node.body if isinstance(one, ast.FunctionDef)]
            methods = {m.name: "".join(lines[m.lineno - 1 : m.end_lineno]) for m in inner}
            yield node.name, _Definition(imports + text, number, number, methods)
            imports = ""
        else:
            imports += f"{text}\n\n"


def skeleton(stage: int | None = None) -> str:
    """Return what students start from: every name that a stage checks, or that all stages check.

    A class that grows over several stages has all of its methods up to the stage.

    >>> print(skeleton(9).splitlines()[0])
    def derivatives(f, x, order):
    """
    needs = None if stage is None else _stage(stage).required_names
    definitions: dict[str, _Definition] = {}
    for number in range(1, (stage or len(STAGES)) + 1):
        for name, one in _definitions(number):
            definitions[name] = definitions[name].extended(one) if name in definitions else one
    parts = []
    headed: set[int] = set()
    for name, one in definitions.items():
        heading = ""
        if needs is None:
            title = f"# --- stage {one.first}: {STAGES[one.first - 1].name} ---\n\n"
            heading = "" if one.first in headed else title
            headed.add(one.first)
        elif name not in needs:
            continue
        elif one.last != stage:
            heading = f"# From stage {one.last}: put your own here.\n"
        parts.append(heading + one.text)
    return "\n\n".join(parts)


# --- what they wrote, drawn and traced ------------------------------------------------------------


def engine_graph(
    submission: Submission, text: str = SHOWN, at: Mapping[str, float] | None = None,
    *, limits: Limits | None = None,
) -> tuple[ExpressionGraph, dict[str, float]]:  # fmt: skip
    """The graph that a student's values make of an expression, and the gradients that they hold.

    Args:
        submission: a file, or the ``globals()`` of a notebook.
        text: an expression, or several with one output.
        at: numbers for its inputs and parameters; declared values, else 2, 3, 4 and so on.
        limits: what the submission may use.

    Returns:
        A graph that cgprimer draws and traces like any other, with the student's numbers as
        declared values, and by vertex the student's gradient after a backward pass; empty where
        the engine has none yet.

    Raises:
        UsageError: the engine fails on it; the message has the line.
    """
    graph = parse(text)
    names = [*graph.inputs, *graph.parameters]
    point = {name: float(k) for k, name in enumerate(names, 2)}
    case = Case(text, point | {n: float(v) for n, v in graph.values.items()} | dict(at or {}))
    requests: list[Request] = [
        {"call": "build_values", "arguments": [case.program, do]} for do in ("backward", "")
    ]
    answers = run_submission(submission, requests, limits, driver=DRIVER, forms=ENGINE, restarts=1)
    swept, plain = answers.values
    found = plain if isinstance(swept, Failure) else swept
    if isinstance(found, Failure):
        raise UsageError(f"the engine fails on {text}: {found}")
    labels = {found["at"][k]: name for k, name in enumerate(case.names)}
    for index, name in case.tape.labels.items():
        labels.setdefault(found["at"][index], name)
    labels.pop(-1, None)
    drawn = build_student_graph(found["nodes"], labels)
    grads = {
        labels.get(k, f"v{k}"): node["grad"]
        for k, node in enumerate(found["nodes"])
        if found is swept and isinstance(node["grad"], float)
    }
    return drawn, grads
