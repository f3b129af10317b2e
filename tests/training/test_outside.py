"""Optimizers and losses from outside: found by name, recorded where that can be, checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import CgprimerError, TapeError, UsageError
from cgprimer.training.optimizers import register_optimizer
from cgprimer.training.update_rules import Optimizer, record_update
from tests.approval import refused, warned
from tests.training.training_graphs import lecture, lecture_data, line, line_data

Array = Any


def zeros(parameters: Array) -> tuple[Array, ...]:
    return (np.zeros_like(parameters),)


def lion(p: Array, g: Array, state: tuple[Array, ...], rate: float) -> tuple[Array, Any]:
    return p - rate * np.sign(0.9 * state[0] + 0.1 * g), (0.99 * state[0] + 0.01 * g,)


def adamax(p: Array, g: Array, state: tuple[Array, ...], rate: float) -> tuple[Array, Any]:
    first, largest, steps = 0.9 * state[0] + 0.1 * g, np.maximum(0.999 * state[1], abs(g)), state[2]
    return p - rate * first / (1 - 0.9 ** (steps + 1)) / (largest + 1e-8), (
        first, largest, steps + 1,
    )  # fmt: skip


def rmsprop(p: Array, g: Array, state: tuple[Array, ...], rate: float) -> tuple[Array, Any]:
    square = 0.9 * state[0] + 0.1 * np.square(g)
    return p - rate * g / (np.sqrt(square) + 1e-8), (square,)


def by_sign(p: Array, g: Array, state: Any, rate: float) -> tuple[Array, Any]:
    return p - rate * (1 - 2 * (g < 0)) * abs(-g) ** 0.5, state


def where(p: Array, g: Array, state: Any, rate: float) -> tuple[Array, Any]:
    return p - 0.001 * rate * np.where(g > 0, g, 2 * g), state


RECORDED = {
    "where": (where, lambda _: ()),
    "by-sign": (by_sign, lambda _: ()),
    "lion": (lion, zeros),
    "own-rmsprop": (rmsprop, zeros),
    "adamax": (adamax, lambda p: (np.zeros_like(p), np.zeros_like(p), np.array(0.0))),
}


def clipped(p: Array, g: Array, state: Any, rate: float) -> tuple[Array, Any]:
    size = np.linalg.norm(g)
    return p - rate * (g / size if size > 1 else g), state


def by_mean(p: Array, g: Array, state: Any, rate: float) -> tuple[Array, Any]:
    return p - rate * (g - np.mean(g)), state


def by_sum_in_disguise(p: Array, g: Array, state: Any, rate: float) -> tuple[Array, Any]:
    return p - rate * sum(np.atleast_1d(g)), state


def first_or_not(p: Array, g: Array, state: Any, rate: float) -> tuple[Array, Any]:
    factor = 2.0 if state[0] == 0 else 1.0
    return p - rate * factor * g, (state[0] + 1,)


NOT_RECORDED = {
    "clipped": (clipped, lambda _: ()),
    "by-mean": (by_mean, lambda _: ()),
    "by-sum": (by_sum_in_disguise, lambda _: ()),
    "first": (first_or_not, lambda _: (np.array(0.0),)),
}


@contextmanager
def registered(name: str, update: Any, start: Any) -> Iterator[Optimizer]:
    rule = cgprimer.register_optimizer(name, update, start=start, rate=0.01)
    try:
        yield rule
    finally:
        cgprimer.unregister_optimizer(name)


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("batch", [1, 7])
def test_an_update_that_can_be_recorded_runs_in_the_engine(name: str, batch: int) -> None:
    """The steps in machine code are those of the function itself."""
    pytest.importorskip("llvmlite")
    with registered(name, *RECORDED[name]) as rule:
        assert len(record_update(rule).tape) > 2
        runs = [
            cgprimer.train(
                lecture(), lecture_data(50), optimizer=name, engine=engine, batch_size=batch,
                epochs=3,
            )
            for engine in ("numpy", "cpu")
        ]  # fmt: skip
    assert runs[0].parameters == pytest.approx(runs[1].parameters, rel=1e-9)
    assert runs[0].step_losses == pytest.approx(runs[1].step_losses, rel=1e-9)
    assert runs[0].loss < runs[0].start_loss


@pytest.mark.parametrize("name", NOT_RECORDED)
def test_one_that_cannot_runs_in_python_and_says_so(name: str) -> None:
    pytest.importorskip("llvmlite")
    with registered(name, *NOT_RECORDED[name]) as rule:
        with refused(TapeError):
            record_update(rule)
        with warned(UserWarning, f"{name}'"):
            found = cgprimer.train(line(), line_data(), optimizer=name, engine="cpu", epochs=9)
        known = cgprimer.train(line(), line_data(), optimizer=name, engine="numpy", epochs=9)
    assert found.parameters == pytest.approx(known.parameters, rel=1e-12)


@pytest.mark.parametrize(
    ("update", "start", "said"),
    [
        (lambda p, g, state, rate: p, lambda _: (), ""),
        (lambda p, g, state, rate: (p[:1], state), lambda _: (), ""),
        (lambda p, g, state, rate: (p, ()), zeros, ""),
        (lambda p, g, state, rate: (p, state), lambda _: (np.zeros(7),), ""),
        (lambda p, g, state, rate: (p - unknown, state), lambda _: (), "NameError"),  # noqa: F821
        (lambda p, g: (p, ()), lambda _: (), ""),
        (5, lambda _: (), ""),
    ],
)
def test_an_update_that_does_not_work_is_refused_at_once(
    update: Any, start: Any, said: str
) -> None:
    with refused(UsageError, said):
        register_optimizer("mine", update, start=start)
    with refused(UsageError, "'mine'"):
        cgprimer.train(line(), line_data(), optimizer="mine")


def test_names_that_are_taken() -> None:
    with pytest.raises(UsageError, match="registered"):
        cgprimer.register_optimizer("adam", lion, start=zeros)
    with pytest.raises(UsageError, match="registered"):
        cgprimer.register_loss("squared-error", "out")
    for take_out in (cgprimer.unregister_optimizer, cgprimer.unregister_loss):
        with pytest.raises(UsageError, match="registered"):
            take_out("adam")


@pytest.mark.parametrize("text", ["goal - out", "target", "(out", "", 5])
def test_a_loss_that_is_none_is_refused_at_once(text: Any) -> None:
    with pytest.raises(CgprimerError):
        cgprimer.register_loss("mine", text)
    with refused(UsageError, "'mine'"):
        cgprimer.train(line(), line_data(), loss="mine")


def test_a_loss_keeps_its_meaning_under_a_name_that_means_another_one_later() -> None:
    """The cache of programs goes by the text, not by the name."""
    at, found = dict.fromkeys(lecture().parameters, 0.5), []
    for text in ("(out - target)^2", "(out - target)^4"):
        cgprimer.register_loss("mine", text)
        try:
            found.append(cgprimer.loss_and_gradient(lecture(), lecture_data(), loss="mine")(at))
        finally:
            cgprimer.unregister_loss("mine")
    known = cgprimer.loss_and_gradient(lecture(), lecture_data(), loss="(out - target)^4")(at)
    assert found[1] == known
    assert found[0] != known
