"""``cgprimer rules``: formulas, files, and what looks like either."""

from __future__ import annotations

import pytest

from tests.approval import approved
from tests.cli.cli_tools import bad, good, read_json


def test_a_formula_a_file_and_an_example(tmp_path):
    (tmp_path / "mine.cg").write_text("y = w*x^2 + b\n")
    for what, result in (
        (["x^3"], "3*x^2"),
        (["-e", "-x^3"], "-3*x^2"),
        (["x/y", "--wrt", "y"], "-x/y^2"),
        (["mine.cg"], "2*w*x"),
        (["lecture", "--wrt", "cd"], "xx"),
        (["y = f*g; f = u*v"], "(u'*v + u*v')*g + f*g'"),
    ):
        assert read_json("rules", *what, cwd=tmp_path)["derivative"] == result
    assert good("rules", "-", stdin="y = sin(x)", cwd=tmp_path).startswith("y' = d/dx(sin(x))")


def test_latex_and_long_derivations():
    assert good("rules", "x^2", "--latex").startswith(r"\begin{align*}")
    terms = " + ".join(f"{k}*x^{k}" for k in range(1, 200))
    shown = good("rules", terms)
    assert "more lines (--all shows all)" in shown
    assert len(good("rules", terms, "--all").split("\n")) > len(shown.split("\n"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lectrue"], "'lecture'"),
        (["x²"], "write '^2'"),
        (["2x"], "2*x"),
        (["homework/x.cg"], "homework/x.cg"),
        (["x*"], "<formula>:1:3"),
        (["x*foo(x)"], "'foo'"),
        (["xa*y", "--wrt", "xb"], "xa ... y"),
        ([], "FILE ... -e FORMULA"),
        (["x", "-e", "x"], "FILE ... -e FORMULA"),
        (["W @ x"], "arrays"),
        (["x^2", "--functions", "q"], "'q'"),
    ],
)
def test_errors_say_what_and_where(arguments, said):
    approved(bad("rules", *arguments), said)
