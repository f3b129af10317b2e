"""A LaTeX document: the formulas of a graph, and the derivative step by step as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cgprimer.analysis.export.check_points import Checked
from cgprimer.analysis.export.identifiers import identifiers
from cgprimer.analysis.export.program_statements import Exported, Line
from cgprimer.analysis.export.target_languages import Language
from cgprimer.analysis.latex import latex, latex_name
from cgprimer.core.operations.primitive_registry import Applied
from cgprimer.core.tape.tape_printing import build_expression_trees
from cgprimer.expressions import Apply, Expression, Name, Number, fold
from cgprimer.tapes import labels, reachable


class _Latex(Language):
    """Every row of the table has its LaTeX."""

    def has(self, name: Applied) -> bool:
        return isinstance(name, str)


LATEX = _Latex({}, lambda *_: "")
_HEAD = r"""\documentclass{article}
\usepackage[margin=2cm]{geometry}
\usepackage{amsmath}
\usepackage{longtable}
\setlength{\parindent}{0pt}
\setlength{\LTleft}{0pt}
\allowdisplaybreaks
\begin{document}"""
_TABLE = r"""\begin{longtable}{@{}p{0.16\textwidth}p{0.4\textwidth}p{0.38\textwidth}@{}}
edge & its slope & what it adds \\ \hline \endhead
ROWS
\end{longtable}"""
_SAID = {
    "reverse": r"From the output back: along each edge the adjoint of its head, "
    r"$\bar{h}$, times the slope of the edge is added to the adjoint of its tail, $\bar{t}$.",
    "forward": r"From the inputs on: along each edge the tangent of its tail, $\dot{t}$, times the "
    r"slope of the edge is added to the tangent of its head, $\dot{h}$.",
}


def latex_file(made: Exported, points: Sequence[Checked], header: str) -> str:
    """The whole document; it compiles with pdflatex and packages of every installation."""
    graph, of = made.graph, latex_name(made.idents[made.of])
    comment = "\n".join(f"% {line}".rstrip() for line in header.split("\n"))
    own = identifiers((*graph.variables, *graph.parameters), ascii_only=True, taken=lambda _: False)
    formulas = [(latex_name(own[n]), _latex(tree, own)) for n, tree in graph.definitions.items()]
    method = made.program.method
    parts = [comment, _HEAD, r"\section*{The graph}", _aligned(formulas)]
    parts += [rf"\section*{{The derivative: {method.replace('-', ' ')}}}", _SAID.get(method, "")]
    if made.program.shares:
        parts += [_TABLE.replace("ROWS", "\n".join(_steps(made))), r"\subsection*{As a program}"]
    known = {line.name for line in made.value.lines}
    lines = [*made.value.lines, *(line for line in made.sweep.lines if line.name not in known)]
    parts.append(_aligned([(latex_name(x.name), _latex(_tree(x), {})) for x in lines]))
    for point in points[:1]:
        names = {name: latex_name(ident) for name, ident in made.idents.items()}
        given = ", ".join(f"{names[n]} = {_number(v)}" for n, v in point.at.items())
        labels = {n: rf"\frac{{\partial {of}}}{{\partial {names[n]}}}" for n in made.wrt} | {"": of}
        rows = [(labels[name], _number(value)) for name, value in point.right.items()]
        parts += [r"\section*{Numbers}", f"At ${given}$:", _aligned(rows)]
    return "\n\n".join(filter(None, [*parts, r"\end{document}"])) + "\n"


def _aligned(rows: Sequence[tuple[str, str]]) -> str:
    """Equations below each other."""
    lines = " \\\\\n".join(f"  {left} &= {right}" for left, right in rows)
    return f"\\begin{{align*}}\n{lines}\n\\end{{align*}}" if rows else ""


def _latex(tree: Expression, names: Mapping[str, str]) -> str:
    """An expression in which names are called so."""

    def leaf(node: Name | Number) -> Expression:
        return Name(names.get(node.name, node.name)) if isinstance(node, Name) else node

    return latex(fold(tree, leaf, lambda row, operands: Apply(row, tuple(operands))))


def _number(value: float) -> str:
    return latex(Number(value))


def _tree(line: Line) -> Expression:
    return Apply(
        line.primitive, tuple(Name(o) if isinstance(o, str) else Number(o) for o in line.operands)
    )


def _steps(made: Exported) -> Iterator[str]:
    """A row for each share: the edge, its slope, and what it adds."""
    tape, reverse = made.program.tape, made.program.method == "reverse"
    trees, names = build_expression_trees(tape), labels(tape)
    primal = reachable(tape, [tape.outputs[made.of]])

    def inner(index: int) -> Expression:
        """A value in names of the graph: what the derivative computes on the way is put in."""
        if index not in trees or primal[index]:
            return Name(names[index]) if names[index] else Number(tape.leaves[index].value)
        made_of = trees[index]
        assert isinstance(made_of, Apply)
        operands = tape.instructions[index - len(tape.leaves)].operands
        return Apply(made_of.primitive, tuple(inner(o) for o in operands))

    for tail, head, partial, _, _ in tape.shares:
        ends = [latex_name(made.shown[names[end]]) for end in (tail, head)]
        slope = _latex(inner(partial), made.shown)
        mark = r"\bar" if reverse else r"\dot"
        whose, other = (0, 1) if reverse else (1, 0)
        factor = rf"\frac{{\partial {ends[1]}}}{{\partial {ends[0]}}}"
        added = rf"{mark}{{{ends[whose]}}} \mathrel{{+}}= {mark}{{{ends[other]}}} \cdot {factor}"
        yield rf"${ends[0]} \to {ends[1]}$ & ${factor} = {slope}$ & ${added}$ \\[6pt]"
