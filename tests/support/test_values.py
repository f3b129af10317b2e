"""Numbers, names and arguments: formatting, parsing and validation by independent definitions."""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from cgprimer.errors import CgprimerError, ShapeError, UsageError
from cgprimer.support import disk_cache, files, validation
from cgprimer.support.array_elements import insert_elements
from cgprimer.support.array_values import (
    broadcast_sample_shapes,
    convert_value,
    find_nonfinite,
)
from cgprimer.support.number_format import (
    format_array,
    format_array_lines,
    format_latex_array,
    mark_rounding,
)
from cgprimer.support.plugins import Registry
from cgprimer.support.value_names import (
    Element,
    InternalName,
    element_hint,
    parse_element,
    parse_internal,
)

SMALL = st.integers(-99, 99).map(float)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)


@settings(max_examples=30)
@given(arrays(float, array_shapes(max_dims=2, max_side=3), elements=SMALL))
def test_small_arrays_are_printed_in_full(array: np.ndarray[Any, Any]) -> None:
    assert (
        json.loads(format_array(array, digits=5))
        == json.loads(mark_rounding(array, widest=99))
        == array.tolist()
    )
    lines = format_array_lines(array)
    assert lines[0].startswith("= ")
    assert len(lines) == (len(array) if array.ndim == 2 else 1)
    assert json.loads(" ".join(lines).removeprefix("= ")) == array.tolist()
    latex = format_latex_array(array)
    assert latex.endswith(r"^{\top}") == (array.ndim == 1)
    rows = latex.removeprefix(r"\begin{bmatrix}").partition(r"\end")[0].split(r"\\")
    numbers = [[float(entry) for entry in row.split("&")] for row in rows]
    assert numbers == np.atleast_2d(array).tolist()


def test_scalars_and_large_arrays_are_abbreviated() -> None:
    for value in (0.25, np.array(0.25)):
        assert format_array(value) == format_latex_array(value) == "0.25"
        assert format_array_lines(value) == ("= 0.25",)
    large = np.full((2, 100), 1 / 3)
    assert format_array(large) == "[2,100]: 0.33333, 0.33333, 0.33333, 0.33333, ..."
    assert format_latex_array(large).startswith(r"2 \times 100: 0.33333, 0.33333")
    assert mark_rounding(large) == "[2,100], norm ≈4.71"
    assert (mark_rounding(123456.7, 6), mark_rounding(123456.78, 6)) == ("123456.7", "≈123457")
    five = format_array_lines(np.arange(5.0))
    assert five == ("= [0, 1, …]", "norm ≈ 5.477")
    wide = format_array([[1 / 3] * 4, [-0.0125, 1.0, 2.0, 30.0]])
    assert len({len(line.strip("[],")) for line in wide.split("\n")}) <= 2


@settings(max_examples=30)
@given(NAMES, st.lists(st.integers(-9, 99), min_size=1, max_size=3))
def test_names_of_elements_are_parsed(array: str, indices: list[int]) -> None:
    element = Element(array, tuple(indices))
    assert parse_element(str(element)) == element
    assert parse_element(array) == Element(array, ())
    assert "one element" in element_hint(f"{array}[:]", [array])


@settings(max_examples=30)
@given(st.lists(NAMES, min_size=1, max_size=2), st.integers(1, 12))
def test_names_of_internal_values_are_parsed(variables: list[str], number: int) -> None:
    name = InternalName("bar", tuple(variables), number)
    assert parse_internal(str(name)) == name
    assert str(name) == f"bar{number if number > 1 else ''}.{'.'.join(variables)}"
    assert parse_internal(variables[0]) == InternalName("", (variables[0],))
    assert name.variable == ".".join(variables)


@pytest.mark.parametrize(
    ("check", "accepted", "rejected"),
    [
        (lambda v: validation.check_fraction("f", v), [0.5, 1e-9], [0, 1, -0.5, 1.5, math.nan]),
        (lambda v: validation.check_integer("n", v), [0, np.int64(7), 2**53],
         [-1, True, 1.0, "1", None, 2**53 + 1]),
        (lambda v: validation.check_integer("n", v, minimum=2), [2, 3], [1, False]),
        (lambda v: validation.check_integer("the seed", v), [2**60], [-1]),
        (lambda v: validation.check_real_number("x", v), [0, -1.5, np.float32(2)],
         [True, "1", b"1", None, math.inf, math.nan, 10**400, [1]]),
        (lambda v: validation.check_real_number("x", v, above=0), [1e-300], [0, -1]),
        (lambda v: validation.check_real_number("x", v, minimum=2), [2, 3], [1.999]),
        (lambda v: validation.check_choice("kind", v, ("sum", "mean")), ["sum"], ["sun", [], None]),
    ],
)  # fmt: skip
def test_arguments_are_converted_or_refused(
    check: Any, accepted: list[Any], rejected: list[Any]
) -> None:
    for value in accepted:
        assert check(value) == value
    for value in rejected:
        with pytest.raises(UsageError):
            check(value)


def test_named_values_have_the_declared_shapes() -> None:
    def check(values: Any, **options: Any) -> dict[str, Any]:
        return validation.check_named_values("start", values, "parameter", ["k", "W"],
                                             shapes={"W": (2,)}, **options)  # fmt: skip

    assert check(None) == {}
    result = check({"k": 1, "W": 3})
    assert (result["k"], result["W"].tolist()) == (1.0, [3.0, 3.0])
    assert check({"W[5]": 1}, parts=True) == {"W[5]": 1.0}
    for values in (3, {"b": 1}, {"W[0]": 1}, {"k": "a"}, {"W": [1, math.inf]}, {"W": [[1, 2]]}):
        with pytest.raises(CgprimerError):
            check(values)
    with pytest.raises(UsageError):
        check({"k": 0}, above=0)


def test_values_become_floats_and_arrays() -> None:
    assert isinstance(convert_value("x", True), float)
    assert convert_value("x", [1, 2]).dtype == float
    assert convert_value("x", 2, (2,)).tolist() == [2, 2]
    assert convert_value("x", np.ones((5, 2)), (2,)).shape == (5, 2)
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    for value in ("a", [[1], [1, 2]], 1j, None, 10**400, masked):
        with pytest.raises(UsageError, match="'x'"):
            convert_value("x", value)
    with pytest.raises(ShapeError):
        convert_value("x", [1, 2, 3], (2,))
    shapes = broadcast_sample_shapes({"x": np.ones((5, 2)), "y": 1.0, "z": np.ones(5)}, {"x": (2,)})
    assert shapes == (5,)


@settings(max_examples=30)
@given(arrays(float, (2, 3, 2), elements=SMALL), st.integers(0, 11))
def test_the_first_nonfinite_element_is_found(array: np.ndarray[Any, Any], place: int) -> None:
    assert find_nonfinite(array, 2) is None
    array.reshape(-1)[place:] = math.inf
    value, sample, indices = find_nonfinite(array, 2) or (0, 0, "")
    assert (value, sample) == (math.inf, place // 6)
    assert indices == f"[{place % 6 // 2},{place % 2}]"
    assert find_nonfinite(array.reshape(-1)) == (math.inf, place, "")


def test_elements_and_rows_are_inserted_into_arrays() -> None:
    shapes = {"W": (2, 3), "x": (2,)}
    defaults = {"W": np.arange(6.0).reshape(2, 3)}
    values = insert_elements({"W[0,1]": 9.0, "W[0]": 7.0, "W[-1,-1]": [1.0, 2.0]}, defaults, shapes)
    assert values["W"].tolist() == [
        [[7, 9, 7], [3, 4, 1]],
        [[7, 9, 7], [3, 4, 2]],
    ]
    assert insert_elements({"x[0]": 1.0, "x": 5.0}, {}, shapes)["x"].tolist() == [1, 5]
    for name in ("W[2]", "W[0,3]", "W[0,0,0]", "W[-3]", "x[0]"):
        with pytest.raises(UsageError):
            insert_elements({name: 1.0}, defaults, shapes)


def test_a_registry_refuses_names_in_use_and_unknown_names() -> None:
    registry = Registry[Any]("shape", "cgprimer.shapes", {"tree": "builtins:dict", "no": "os:no"})
    registry.register("line", list)
    assert [*registry] == ["tree", "no", "line"]
    assert (registry["tree"], registry["line"]) == (dict, list)
    assert "line" in registry
    assert 3 not in registry
    for call in (
        lambda: registry.register("line", set),
        lambda: registry.register("tree", set),
        lambda: registry.unregister("tree"),
        lambda: registry.unregister("ring"),
        lambda: registry["lime"],
        lambda: registry[[]],  # type: ignore[index]
    ):
        with pytest.raises(UsageError, match="shape"):
            call()
    with pytest.raises(AttributeError):
        registry["no"]
    registry.unregister("line")
    assert "line" not in registry


def test_files_are_replaced_as_a_whole(tmp_path: Path) -> None:
    path, link = tmp_path / "a.txt", tmp_path / "link"
    files.write_atomically(path, "one")
    assert not stat.S_IMODE(path.stat().st_mode) & 0o111
    link.symlink_to(path)
    files.write_atomically(link, b"two")
    assert (path.read_bytes(), link.is_symlink()) == (b"two", True)
    files.write_atomically(link, "three", private=True)
    assert (path.read_text(), link.is_symlink()) == ("two", False)
    assert stat.S_IMODE(link.stat().st_mode) == 0o600
    for wrong in (tmp_path, tmp_path / "none" / "a.txt", tmp_path / ("a" * 300)):
        with pytest.raises(UsageError, match="cannot write"):
            files.write_atomically(wrong, "text")
        with pytest.raises(UsageError, match="cannot write"):
            files.check_writable(wrong)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "link"]


def test_json_contains_arrays_and_numbers_that_are_not_finite() -> None:
    value = {"a": np.array([[1.0, np.nan]]), "b": np.int64(3), "c": -math.inf, "d": [math.inf]}
    text = files.format_json(value, indent=None)
    assert text == '{"a": [[1.0, "nan"]], "b": 3, "c": "-inf", "d": ["inf"]}'


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="requires root")
def test_folders_above_the_cache_may_belong_to_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    os.chown(folder, 1234, 1234)
    monkeypatch.setenv("CGPRIMER_CACHE", str(folder))
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    assert disk_cache.find_cache_folder() == folder
    os.chown(folder, 1235, 1235)
    with pytest.warns(UserWarning, match="another user"):
        assert disk_cache.find_cache_folder() is None
