"""Wrong numbers that readers of the engines found, and what must not come back."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import cgprimer
from cgprimer.core.engines import select
from cgprimer.core.tape.passes import optimize
from cgprimer.errors import EngineError, UsageError
from cgprimer.native.plans.constant_factors import constant_factors

ENGINES = ["numpy", pytest.param("cpu", marks=pytest.mark.skipif(
    bool(__import__("importlib.util").util.find_spec("llvmlite")) is False,
    reason="llvmlite is not installed",
))]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"), [("xw=k*((64*xa)^64)^3", 0.016), ("xw=k*(64*xa)^64", 1e-6)]
)
@pytest.mark.parametrize("engine", ENGINES)
def test_powers_of_constant_factors_stay_in_range(text: str, value: float, engine: str) -> None:
    graph = cgprimer.parse(text)
    data = cgprimer.Dataset.from_arrays(inputs={"xa": [value]}, targets={"xw": [1.0]})
    loss, gradient = cgprimer.loss_and_gradient(graph, data, loss="out*target", engine=engine)(
        {"k": 1.0}
    )
    power = (64 * value) ** 64
    expected = power**3 if ")^3" in text else power
    assert loss == pytest.approx(expected, rel=1e-12)
    assert gradient["k"] == pytest.approx(expected, rel=1e-12)


def test_factors_within_bounds_leave_and_others_stay() -> None:
    tape = optimize(cgprimer.tape(cgprimer.parse("xw = (32*xa)*(32*xb)*xc")))
    _, factors = constant_factors(tape)
    assert abs(factors["xw"]) <= 64


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np, cgprimer
from cgprimer.core.engines import select
cgprimer.register_primitive("bump", lambda a: np.sin(a) + 1.0, partials="cos(a)")
run = select("cpu").compile(
    cgprimer.tape(cgprimer.parse("xw=bump(bump(xa))")), reduction="none", dtype="float64"
)
xa = np.linspace(-1, 1, 1_000_000)
right = np.sin(np.sin(xa) + 1) + 1
lost = wrong = 0
for trial in range(12):
    timer = threading.Timer(0.002 + 0.001 * trial, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        found = run({"xa": xa}, {}, xa.size)["xw"]
        if not np.allclose(found, right):
            wrong += 1
        timer.join()
        time.sleep(0.05)  # the signal may come after the call
    except KeyboardInterrupt:
        pass
    timer.join()
print("wrong", wrong)
"""


def test_ctrl_c_in_a_primitive_in_python_never_leaves_wrong_numbers() -> None:
    pytest.importorskip("llvmlite")
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False
    )
    assert run.stdout.strip() == "wrong 0", run.stderr[-2000:]


LOSS = """
import sys, numpy as np, cgprimer
factor = sys.argv[1]
cgprimer.register_primitive(
    "hub", lambda a: float(factor) * a * a, partials=f"{2 * float(factor)}*a"
)
text = "; ".join(f"x{k + 1} = sin(x{k}) + k*x{k}" for k in range(400))
graph = cgprimer.parse(text)
data = cgprimer.Dataset.from_arrays(inputs={"x0": [0.1]}, targets={"x400": [0.2]})
call = cgprimer.loss_and_gradient(graph, data, loss="hub(out-target)", engine="numpy")
print(call({"k": -0.5})[1]["k"])
"""


def test_a_loss_with_a_primitive_from_outside_is_not_taken_from_the_cache(tmp_path: Path) -> None:
    import os

    found = []
    for factor in ("1", "3"):
        run = subprocess.run(
            [sys.executable, "-c", LOSS, factor],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "CGPRIMER_CACHE": str(tmp_path)},
        )
        found.append(float(run.stdout))
    assert found[0] != 0
    assert found[1] == pytest.approx(3 * found[0], rel=1e-12)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_other_exceptions_of_signal_handlers_wait_for_the_workers_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("llvmlite")
    from cgprimer.native.cpu import threads

    monkeypatch.setenv("CGPRIMER_THREADS", "2")
    monkeypatch.setattr(threads, "WORTH", 1)
    done = threading.Event()

    @ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 7)
    def slow(which: int, *_: int) -> None:
        if which:
            threading.Event().wait(0.3)
            done.set()

    def late(*_: object) -> None:
        raise TimeoutError("too late")

    before = signal.signal(signal.SIGALRM, late)
    address = ctypes.cast(slow, ctypes.c_void_p).value
    assert address is not None
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(TimeoutError):
            threads.run(address, [(0,), (1,)])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert done.is_set()
    assert not any(worker.lock.locked() for worker in threads._workers)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bad", ["3", None, np.ones(2), 1j])
def test_scalars_that_are_none_are_refused(engine: str, bad: object) -> None:
    tape = cgprimer.tape(cgprimer.parse("xw = k*xa"))
    run = select(engine).compile(tape, reduction="sum", dtype="float64")
    with pytest.raises(EngineError, match="'k'"):
        run({"xa": np.ones(3)}, {"k": bad}, 3)
    with pytest.raises(EngineError, match="'k'"):
        run({"xa": np.ones(3)}, {}, 3)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text", ["xw = log(k)", "xw = log(k); input xa"])
def test_the_sum_of_no_samples_is_zero(engine: str, text: str) -> None:
    tape = cgprimer.tape(cgprimer.parse(text))
    run = select(engine).compile(tape, reduction="sum", dtype="float64")
    assert run({"xa": np.ones(0)}, {"k": 0.0}, 0)["xw"] == 0.0


def test_numbers_too_large_for_single_precision_become_infinite_without_a_warning() -> None:
    pytest.importorskip("llvmlite")
    graph = cgprimer.parse("xw = k*xa")
    data = cgprimer.Dataset.from_arrays(inputs={"xa": [1.0]}, targets={"xw": [1.0]})
    call = cgprimer.loss_and_gradient(graph, data, engine="cpu", dtype="float32")
    assert call({"k": 1e300})[0] == np.inf


@pytest.fixture
def registered() -> Iterator[None]:
    def inplace(a: np.ndarray) -> np.ndarray:
        a *= 2
        return a

    cgprimer.register_primitive("inplace", inplace, partials="2")
    cgprimer.register_primitive("short", lambda a: np.ones(3), partials="1")
    cgprimer.register_primitive("nothing", lambda a: None, partials="1")
    yield
    for name in ("inplace", "short", "nothing"):
        cgprimer.unregister_primitive(name)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_primitive_may_change_its_operand(engine: str, registered: None) -> None:
    graph = cgprimer.parse("xw = inplace(k*xa)*(k*xa) + inplace(xa)")
    xa = np.linspace(-1, 1, 9)
    before = xa.copy()
    found = cgprimer.gradient(graph, {"k": 3.0, "xa": xa}, wrt=["k", "xa"], engine=engine)
    np.testing.assert_allclose(found["k"], 4 * 3 * before**2, rtol=1e-14)
    np.testing.assert_allclose(found["xa"], 4 * 9 * before + 2, rtol=1e-14)
    np.testing.assert_array_equal(xa, before)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["short", "nothing"])
def test_a_primitive_that_returns_nonsense_is_named(
    engine: str, name: str, registered: None
) -> None:
    graph = cgprimer.parse(f"xw = {name}(k*xa)")
    with pytest.raises(EngineError, match=f"the primitive '{name}' returned"):
        cgprimer.gradient(graph, {"k": 3.0, "xa": np.ones(50)}, engine=engine)


@pytest.mark.parametrize("bad", [None, "a", np.ones(2), 1j, 10**400])
def test_parameters_that_are_no_numbers_are_named(bad: object) -> None:
    graph = cgprimer.parse("xw = k*xa + b")
    data = cgprimer.Dataset.from_arrays(inputs={"xa": [1.0]}, targets={"xw": [1.0]})
    call = cgprimer.loss_and_gradient(graph, data)
    with pytest.raises(EngineError, match="'k'"):
        call({"k": bad, "b": 1.0})


def test_a_long_run_begins_at_once() -> None:
    """Nothing is made for all of its steps beforehand: 10^12 of them would not fit anywhere."""
    graph = cgprimer.parse("xw = k*xa")
    data = cgprimer.Dataset.from_arrays(inputs={"xa": [1.0, 2.0]}, targets={"xw": [3.0, 6.0]})

    def enough(*_: object) -> None:
        raise KeyboardInterrupt

    run = cgprimer.train(graph, data, epochs=10**12, batch_size=1, on_progress=enough)
    assert run.interrupted
    assert run.steps >= 1


def test_gpu_is_called_cuda() -> None:
    with pytest.raises(UsageError) as caught:
        select("gpu")
    assert "cuda" in caught.value.hint
