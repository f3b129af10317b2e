"""Check an engine that students write themselves, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from cgprimer.course.checks.answer_validation import ENGINE
from cgprimer.course.checks.check_results import Failure, Part, Result, create_failed_result
from cgprimer.course.checks.engine_ladder import (
    STAGE_FOLDER,
    STAGES,
    find_stage,
    format_title,
    list_possible_points,
)
from cgprimer.course.checks.sandbox import (
    Limits,
    Request,
    Submission,
    convert_submission,
    run_submission,
)
from cgprimer.course.checks.stages.stage import Case, Stage
from cgprimer.course.checks.stages.stage_diagnosis import Finding, attribute_to_causes
from cgprimer.course.checks.stages.student_graphs import build_student_graph
from cgprimer.course.checks.verdicts import rename_hint
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph, parse

_MAX_STARTS = 4  # of a submission whose stages end the process
DRIVER = STAGE_FOLDER / "stage_driver.py"
DEFAULT_EXPRESSION = "e = (a + b)*(b + 1)"  #: whose graph is drawn


def check_engine(
    submission: Submission | Callable[..., Any],
    stage: int | None = None,
    *,
    limits: Limits | None = None,
) -> Result:
    """Check a student's autodiff engine at one stage of the exercise, or at all stages.

    Args:
        submission: a file, the ``globals()`` of a notebook, or a class or function.
        stage: the number of the stage, from 1 to 10; all stages unless given.
        limits: the resource limits of the submission.

    Returns:
        The parts of the stage; for all stages one part per stage.

    Raises:
        UsageError: an argument is invalid, or the file does not exist.

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
    submission = convert_submission(submission)
    name = "notebook" if isinstance(submission, Mapping) else Path(submission).name
    stages = STAGES if stage is None else (find_stage(stage),)
    answers = _run_stages(submission, stages, limits)
    if isinstance(answers.defined, Failure):
        possible = list_possible_points(stage)
        result = create_failed_result("engine", name, possible, answers.defined)
        return replace(result, output=answers.output, seconds=answers.seconds)
    findings = [_assess_stage(stage, answers) for stage in stages]
    if stage is not None and any(finding.verdict == "wrong" for finding in findings[0]):
        # A wrong answer in a later stage may be caused by a mistake in an earlier one.
        earlier = [find_stage(number) for number in stages[0].builds_on if number != stage]
        answers_below = _run_stages(submission, earlier, limits)
        if not isinstance(answers_below.defined, Failure):
            findings[:0] = [_assess_stage(s, answers_below, reported=False) for s in earlier]
    parts = attribute_to_causes([*chain.from_iterable(findings)])
    if stage is None:
        remaining = iter(parts)
        parts = [_summarize_stage(s, list(islice(remaining, len(s.tasks)))) for s in stages]
    return Result("engine", name, tuple(parts), answers.output, answers.seconds)


# --- answers -------------------------------------------------------------------------------------


@dataclass
class _Answers:
    """The values that a student's engine returned to the calls of several exercise stages.

    Attributes:
        defined: the names that the submission defines, or the reason why it cannot be run.
        by_stage: the answers to the calls of each stage, keyed by the number of the stage.
        output: the output of the submission.
        seconds: the run time of the submission.
    """

    defined: Sequence[str] | Failure = ()
    by_stage: dict[int, Sequence[Any]] = field(default_factory=dict)
    output: str = ""
    seconds: float = 0.0


def _run_stages(submission: Submission, stages: Sequence[Stage], limits: Limits | None) -> _Answers:
    """Run the test calls of several exercise stages in as few processes as possible.

    If a stage ends the process, the stages after it run in a new one. A submission that ends its
    process several times is not started again: the remaining stages get its last failure.
    """
    result = _Answers()
    waiting = list(stages)
    starts = 0
    while waiting:
        starts += 1
        calls = [call for stage in waiting for call in stage.calls]
        requests: list[Request] = [{"call": "list_names", "arguments": []}]
        requests += [{"call": c.function, "arguments": list(c.arguments)} for c in calls]
        answers = run_submission(submission, requests, limits, driver=DRIVER, forms=ENGINE)
        result.output = result.output or answers.output
        result.seconds += answers.seconds
        result.defined, *values = answers.values
        if isinstance(result.defined, Failure):
            break
        has_ended = False
        while waiting and not has_ended:
            stage = waiting.pop(0)
            count = len(stage.calls)
            stage_values, values = values[:count], values[count:]
            has_ended = bool(answers.failure) and any(v is answers.failure for v in stage_values)
            result.by_stage[stage.number] = stage_values
        if starts == _MAX_STARTS and answers.failure:
            result.by_stage |= {s.number: [answers.failure] * len(s.calls) for s in waiting}
            break
    return result


# --- verdicts ------------------------------------------------------------------------------------


def _assess_stage(stage: Stage, answers: _Answers, *, reported: bool = True) -> list[Finding]:
    """Return the verdicts on the parts of a stage; "not run" if required names are missing."""
    defined = [str(n) for n in answers.defined] if isinstance(answers.defined, list) else []
    missing = [name for name in stage.required_names if name not in defined]
    if not missing:
        return stage.assess(answers.by_stage[stage.number], reported=reported)
    required = {name for stage in STAGES for name in stage.required_names}
    others = [name for name in defined if name not in required]
    hints = list(filter(None, (rename_hint(name, others) for name in missing)))
    message = "; ".join([f"the submission does not define {' or '.join(missing)}", *hints])
    parts = [Part(n, p, 0, "not run", "", message) for n, p in stage.possible.items()]
    return [Finding(part, {}, stage.number, stage.builds_on, reported=reported) for part in parts]


def _summarize_stage(stage: Stage, parts: Sequence[Part]) -> Part:
    """Summarize a stage in one part: all points, and the message of the first wrong part."""
    points, possible = sum(part.points for part in parts), sum(part.possible for part in parts)
    bad = [part for part in parts if part.verdict != "right"]
    if not bad:
        with_note = next((part for part in parts if part.note), Part("", 0, 0, "right"))
        return replace(with_note, name=format_title(stage), possible=possible, points=points)
    order = ("wrong", "not run", "suspicious")
    first = min(bad, key=lambda part: (order.index(part.verdict), not part.mistake))
    is_shared = all(part.message == first.message for part in parts)
    message = first.message if is_shared else f"{first.name}: {first.message}"
    return replace(
        first, name=format_title(stage), possible=possible, points=points, message=message
    )


# --- graphs --------------------------------------------------------------------------------------


def build_engine_graph(
    submission: Submission,
    text: str = DEFAULT_EXPRESSION,
    at: Mapping[str, float] | None = None,
    *,
    limits: Limits | None = None,
) -> tuple[ExpressionGraph, dict[str, float]]:
    """Return the graph that a student's engine builds for an expression, and the gradients.

    Args:
        submission: a file, or the ``globals()`` of a notebook.
        text: an expression, or several with one output.
        at: the values of inputs and parameters; declared values, or 2, 3, 4 and so on, unless
            given.
        limits: the resource limits of the submission.

    Returns:
        A graph that cgprimer can draw and trace, with the student's values as declared values; and
        for each vertex the student's gradient after a backward pass, empty without one.

    Raises:
        UsageError: the engine fails; the message shows the line.
    """
    graph = parse(text)
    names = [*graph.inputs, *graph.parameters]
    point = {name: float(k) for k, name in enumerate(names, 2)}
    case = Case(text, point | {n: float(v) for n, v in graph.values.items()} | dict(at or {}))
    requests: list[Request] = [
        {"call": "build_values", "arguments": [case.program, task]} for task in ("backward", "")
    ]
    answers = run_submission(submission, requests, limits, driver=DRIVER, forms=ENGINE, restarts=1)
    with_gradients, without_gradients = answers.values
    has_gradients = not isinstance(with_gradients, Failure)
    values = with_gradients if has_gradients else without_gradients
    if isinstance(values, Failure):
        raise UsageError(f"the engine cannot evaluate {text}: {values}")
    labels = {values["at"][k]: name for k, name in enumerate(case.names)}
    for index, name in case.tape.labels.items():
        labels.setdefault(values["at"][index], name)
    labels.pop(-1, None)
    gradients = {
        labels.get(k, f"v{k}"): node["grad"]
        for k, node in enumerate(values["nodes"])
        if has_gradients and isinstance(node["grad"], float)
    }
    return build_student_graph(values["nodes"], labels), gradients
