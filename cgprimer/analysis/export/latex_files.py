"""LaTeX documents with the formulas of a graph and the contributions to its derivatives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cgprimer.analysis.export.check_points import CheckPoint
from cgprimer.analysis.export.identifiers import assign_identifiers
from cgprimer.analysis.export.program_statements import Exported, Line
from cgprimer.analysis.export.target_languages import Language
from cgprimer.analysis.latex import latex, latex_name
from cgprimer.core.operations.primitive_registry import Applied
from cgprimer.core.tape.tape_printing import build_expression_trees
from cgprimer.expressions import Apply, Expression, Name, Number, fold
from cgprimer.support.templates import Markup, render_template
from cgprimer.tapes import labels, reachable


class _Latex(Language):
    """The target language LaTeX, which supports every elementwise primitive."""

    def supports(self, name: Applied) -> bool:
        """Return whether an operation is an elementwise primitive."""
        return isinstance(name, str)


LATEX = _Latex({}, lambda *_: "")


class ContributionRow(NamedTuple):
    """A row of the LaTeX table of contributions: one edge and its term of the chain rule.

    Attributes:
        tail: the tail of the edge.
        head: the head of the edge.
        derivative: the partial derivative of the head with respect to the tail, as a symbol.
        partial: the formula of this partial derivative.
        total: the adjoint or tangent to which the contribution is added.
        factor: the adjoint or tangent that is multiplied by the partial derivative.
    """

    tail: Markup
    head: Markup
    derivative: Markup
    partial: Markup
    total: Markup
    factor: Markup


def render_latex_file(exported: Exported, points: Sequence[CheckPoint], header: str) -> str:
    """Render the LaTeX document; it needs only packages that every TeX installation has.

    Args:
        exported: the graph and its derivative program.
        points: points with the expected derivatives; the document shows the first one.
        header: the comment at the top.
    """
    method = exported.program.method
    return render_template(
        "analysis/export/latex_document.tex",
        header=[Markup(f"% {line}".rstrip()) for line in header.split("\n")],
        method=Markup(exported.method),
        sweep=method,
        definitions=_list_definitions(exported),
        contributions=list(_list_contributions(exported)),
        program=_list_program_lines(exported),
        **_list_numbers(exported, points),
    )


def _list_definitions(exported: Exported) -> list[tuple[Markup, Markup]]:
    """Return the name and formula of each computed variable of the graph, in LaTeX."""
    graph = exported.graph
    names = assign_identifiers(
        (*graph.variables, *graph.parameters), ascii_only=True, is_reserved=lambda _: False
    )
    return [
        (Markup(latex_name(names[name])), _format_expression(tree, names))
        for name, tree in graph.definitions.items()
    ]


def _list_program_lines(exported: Exported) -> list[tuple[Markup, Markup]]:
    """Return the LaTeX name and formula of each instruction, values before derivatives."""
    value_lines = exported.value.lines
    names = {line.name for line in value_lines}
    lines = [*value_lines, *(line for line in exported.sweep.lines if line.name not in names)]
    return [
        (Markup(latex_name(line.name)), _format_expression(_build_tree(line), {})) for line in lines
    ]


def _list_numbers(exported: Exported, points: Sequence[CheckPoint]) -> dict[str, Any]:
    """Return the template's numbers: the first check point, the output and the derivatives."""
    if not points:
        return {"point": Markup(), "numbers": []}
    point = points[0]
    names = {name: latex_name(identifier) for name, identifier in exported.idents.items()}
    output = latex_name(exported.idents[exported.of])
    symbols = {
        name: rf"\frac{{\partial {output}}}{{\partial {names[name]}}}" for name in exported.wrt
    }
    symbols[""] = output
    inputs = ", ".join(f"{names[name]} = {_format_number(v)}" for name, v in point.at.items())
    numbers = [
        (Markup(symbols[name]), _format_number(value)) for name, value in point.right.items()
    ]
    return {"point": Markup(inputs), "numbers": numbers}


def _format_expression(tree: Expression, names: Mapping[str, str]) -> Markup:
    """Format an expression in LaTeX, with variables renamed by a mapping."""

    def rename(leaf: Name | Number) -> Expression:
        """Rename a leaf if the mapping contains a new name for it."""
        return Name(names.get(leaf.name, leaf.name)) if isinstance(leaf, Name) else leaf

    return Markup(latex(fold(tree, rename, lambda row, operands: Apply(row, tuple(operands)))))


def _format_number(value: float) -> Markup:
    """Format a scalar in LaTeX."""
    return Markup(latex(Number(value)))


def _build_tree(line: Line) -> Expression:
    """Build the expression tree of one exported instruction."""
    return Apply(
        line.primitive, tuple(Name(o) if isinstance(o, str) else Number(o) for o in line.operands)
    )


def _list_contributions(exported: Exported) -> Iterator[ContributionRow]:
    """Yield a table row for each contribution to an adjoint or tangent."""
    tape, is_reverse = exported.program.tape, exported.program.method == "reverse"
    trees, names = build_expression_trees(tape), labels(tape)
    primal = reachable(tape, [tape.outputs[exported.of]])

    def expand(index: int) -> Expression:
        """Build the expression of a tape value in terms of the graph's variables."""
        if index not in trees or primal[index]:
            return Name(names[index]) if names[index] else Number(tape.leaves[index].value)
        tree = trees[index]
        assert isinstance(tree, Apply)
        operands = tape.instructions[index - len(tape.leaves)].operands
        return Apply(tree.primitive, tuple(expand(o) for o in operands))

    accent = r"\bar" if is_reverse else r"\dot"
    for tail_index, head_index, partial, _, _ in tape.shares:
        tail, head = (latex_name(exported.shown[names[i]]) for i in (tail_index, head_index))
        total, factor = (tail, head) if is_reverse else (head, tail)
        yield ContributionRow(
            Markup(tail),
            Markup(head),
            Markup(rf"\frac{{\partial {head}}}{{\partial {tail}}}"),
            _format_expression(expand(partial), exported.shown),
            Markup(rf"{accent}{{{total}}}"),
            Markup(rf"{accent}{{{factor}}}"),
        )
