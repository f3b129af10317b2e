"""What every engine does with what it is given, at the edges of what it can be given."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import cgprimer
from cgprimer.core.evaluation.engines import select_engine
from cgprimer.errors import EngineError, UsageError
from tests.approval import refused

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


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bad", ["3", None, np.ones(2), 1j])
def test_scalars_that_are_none_are_refused(engine: str, bad: object) -> None:
    tape = cgprimer.tape(cgprimer.parse("xw = k*xa"))
    run = select_engine(engine).compile(tape, reduction="sum", dtype="float64")
    with pytest.raises(EngineError, match="'k'"):
        run({"xa": np.ones(3)}, {"k": bad}, 3)
    with pytest.raises(EngineError, match="'k'"):
        run({"xa": np.ones(3)}, {}, 3)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text", ["xw = log(k)", "xw = log(k); input xa"])
def test_the_sum_of_no_samples_is_zero(engine: str, text: str) -> None:
    tape = cgprimer.tape(cgprimer.parse(text))
    run = select_engine(engine).compile(tape, reduction="sum", dtype="float64")
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
    with refused(EngineError, f"'{name}'"):
        # 64 samples are full vectors of any processor: the message states one length everywhere.
        cgprimer.gradient(graph, {"k": 3.0, "xa": np.ones(64)}, engine=engine)


@pytest.mark.parametrize("bad", [None, "a", np.ones(2), 1j, 10**400])
def test_parameters_that_are_no_numbers_are_named(bad: object) -> None:
    graph = cgprimer.parse("xw = k*xa + b")
    data = cgprimer.Dataset.from_arrays(inputs={"xa": [1.0]}, targets={"xw": [1.0]})
    call = cgprimer.loss_and_gradient(graph, data)
    with pytest.raises(EngineError, match="'k'"):
        call({"k": bad, "b": 1.0})


def test_gpu_is_called_cuda() -> None:
    with pytest.raises(UsageError) as caught:
        select_engine("gpu")
    assert "cuda" in caught.value.hint
