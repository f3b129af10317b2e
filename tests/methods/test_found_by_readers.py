"""Mistakes that readers of the code found; each would come back as a wrong number."""

import gc
import weakref

import numpy as np
import pytest

import cgprimer

LECTURE = cgprimer.parse(
    "xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3;"
    "input xa = 0.5; parameter ab = 1, bc = 2, cd = 3, ac = 4"
)
SECOND = [
    "forward-over-reverse", "reverse-over-forward", "reverse", "forward", "path-sum-over-reverse",
    "symbolic-over-reverse", "reverse-over-path-sum",
]  # fmt: skip


@pytest.mark.parametrize("method", SECOND)
def test_hessian_by_inner_variables(method):
    """By hand: xw = cd*xx + xz^3, so d2xw/dxz2 = 6 xz, and xx moves xz by ab + bc = 3."""
    found = cgprimer.hessian(LECTURE, wrt=["xz", "xx"], method=method)
    assert found == {"xz": {"xz": 16.5, "xx": 49.5}, "xx": {"xz": 49.5, "xx": 148.5}}


@pytest.mark.parametrize("method", SECOND)
def test_hessian_of_a_power_at_exponent_zero(method):
    graph = cgprimer.parse("xw = b^n")
    found = cgprimer.hessian(graph, {"b": 2.0, "n": 0.0}, wrt=["b", "n"], method=method)
    assert found["b"] == pytest.approx({"b": 0.0, "n": 0.5})
    assert found["n"] == pytest.approx({"b": 0.5, "n": np.log(2.0) ** 2})


@pytest.mark.parametrize("method", ["forward", "reverse", "path-sum", "symbolic"])
def test_a_pole_does_not_spoil_its_neighbours(method):
    graph = cgprimer.parse("xw = sqrt(b) + a*xa")
    found = cgprimer.gradient(graph, {"a": 2.0, "b": 0.0, "xa": 3.0}, method=method)
    assert found == {"b": np.inf, "a": 3.0}
    many = cgprimer.jacobian(cgprimer.parse("xb = 2*a; xc = sqrt(a)"), {"a": 0.0}, method=method)
    assert many == {"xb": {"a": 2.0}, "xc": {"a": np.inf}}


def test_a_primitive_may_return_its_argument():
    """The buffer row of sin(xa) must not be given away while its value lives on as xb."""
    cgprimer.register_primitive("ste", lambda a: a, partials="1")
    try:
        graph = cgprimer.parse("xb=ste(sin(xa)); xc=exp(xa*k)*cos(k*xa); xw=xb*xc*k")
        xa, k = np.array([0.1, 0.2]), 1.5
        e, c, s = np.exp(xa * k), np.cos(k * xa), np.sin(k * xa)
        expected = np.sin(xa) * (e * c + k * xa * e * (c - s))
        for method in ("forward", "reverse", "path-sum", "symbolic"):
            found = cgprimer.gradient(graph, {"xa": xa, "k": k}, of="xw", method=method)["k"]
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=method)
    finally:
        cgprimer.unregister_primitive("ste")


def test_a_primitive_may_return_another_type_but_never_write_to_the_data():
    def truncated(a):
        return np.asarray(a).astype(np.uint8)

    def clipped(a):
        a[a < 0] = 0
        return a

    cgprimer.register_primitive("byte", truncated, partials="1")
    cgprimer.register_primitive("clipped", clipped, partials="1")
    try:
        graph = cgprimer.parse("xw = byte(xa) - byte(k)")
        assert graph.evaluate({"xa": 3.0, "k": 4.0})["xw"] == -1.0
        data = cgprimer.Dataset.from_arrays({"xa": [3.0]}, {"xw": [-1.0]})
        assert cgprimer.loss_and_gradient(graph, data)({"k": 4.0})[0] == 0.0
        data = cgprimer.Dataset.from_arrays({"xa": [-1.0, 2.0]}, {"xw": [0.0, 2.0]})
        graph = cgprimer.parse("xw = clipped(xa)*k")  # it gets a copy
        assert cgprimer.loss_and_gradient(graph, data)({"k": 1.0})[0] == 0.0
        assert data.inputs["xa"].tolist() == [-1.0, 2.0]
    finally:
        cgprimer.unregister_primitive("byte")
        cgprimer.unregister_primitive("clipped")


def test_a_primitive_registered_anew_is_compiled_anew():
    graph = None
    for factor in (2.0, 3.0):
        cgprimer.register_primitive("times", lambda a, f=factor: a * f, partials=str(factor))
        try:
            graph = graph or cgprimer.parse("xw = times(k*xa)")
            assert cgprimer.gradient(graph, {"k": 1.0, "xa": 1.0}) == {"k": factor}
        finally:
            cgprimer.unregister_primitive("times")


def test_nothing_keeps_a_graph_alive():
    graph = cgprimer.parse("xw = k*xa^3")
    cgprimer.gradient(graph, {"k": 1.0, "xa": 2.0})
    cgprimer.hessian(graph, {"k": 1.0, "xa": 2.0})
    cgprimer.hessian_vector_product(graph, {"k": 1.0, "xa": 2.0}, {"k": 1.0})
    gone = weakref.ref(graph)
    del graph
    gc.collect()
    assert gone() is None


def test_every_edge_has_its_partial_even_where_it_is_zero():
    edges = cgprimer.partials(cgprimer.parse("xw = step(xa)*k"), {"xa": 1.0, "k": 2.0})
    assert edges.variable_to_variable == {("xw", "xa"): 0.0}
    assert edges.variable_to_parameter == {("xw", "k"): 1.0}


@pytest.mark.parametrize("text", ["q + sqrt(-0.3)", "q + 1/0", "q*xa + log(0)"])
def test_a_constant_outside_its_domain_hides_no_derivative(text):
    graph = cgprimer.parse(f"xw = {text}")
    at = {"q": 1.0, "xa": 2.0} if "xa" in text else {"q": 1.0}
    expected = cgprimer.gradient(graph, at, method="reverse")
    assert cgprimer.gradient(graph, at, method="symbolic") == expected


@pytest.mark.parametrize("name", ["sigmoid", "softplus"])
@pytest.mark.parametrize("value", [-1000.0, 1000.0])
def test_symbolic_is_stable_where_the_table_is(name, value):
    graph = cgprimer.parse(f"xw = {name}(k)")
    found = {
        m: cgprimer.gradient(graph, {"k": value}, method=m)["k"] for m in ("reverse", "symbolic")
    }
    assert found["symbolic"] == found["reverse"]


@pytest.mark.parametrize("value", [-12.0, -3.0, 0.5])
def test_symbolic_gelu_keeps_its_digits(value):
    graph = cgprimer.parse("xw = gelu(k)")
    found = cgprimer.gradient(graph, {"k": value}, method="symbolic")
    assert found == pytest.approx(cgprimer.gradient(graph, {"k": value}), rel=1e-12)


@pytest.mark.parametrize("wrong", [{"epochs": 1.5}, {"seed": 0.5}, {"batch_size": 2.5}])
def test_counts_are_whole_numbers(wrong):
    graph = cgprimer.parse("xw = k*xa; parameter k = 2")
    with pytest.raises(cgprimer.CgprimerError, match="whole number"):
        cgprimer.train(graph, cgprimer.make_dataset(graph, samples=10), **wrong)


def test_a_complex_step_says_nan_rather_than_nonsense():
    options = {"method": "finite-difference", "scheme": "complex-step", "wrt": "xa"}
    graph = cgprimer.parse("xw = xa^100")
    assert np.isnan(cgprimer.gradient(graph, {"xa": -1.1}, **options)["xa"])
    small = cgprimer.gradient(cgprimer.parse("xw = log(xa)"), {"xa": 1e-200}, **options)["xa"]
    assert small == pytest.approx(1e200)


@pytest.mark.parametrize("wrong", ["xw = k*xa", None, ["xw = k*xa"]])
def test_a_text_is_no_graph(wrong):
    for call in (cgprimer.gradient, cgprimer.tape, cgprimer.compare, cgprimer.trace, cgprimer.draw):
        with pytest.raises(cgprimer.CgprimerError, match="expected an ExpressionGraph"):
            call(wrong)
