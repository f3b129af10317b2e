r"""Derivations: the steps of symbolic differentiation, as data, strings and LaTeX.

A step stores only the part that a rule rewrites and its replacement. Complete lines are built when
they are shown, because storing them would take quadratic memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from cgprimer.analysis.latex import latex, latex_name
from cgprimer.core.language.syntax_tree import Symbol, operator_name
from cgprimer.errors import pluralize
from cgprimer.expressions import Apply, Expression, unparse

PENDING = "d/d"  #: prefix of the nodes whose argument is still to be differentiated
_MAX_WIDTH = 100  # characters of a complete line
_MARK = "\x01"  # precedes the part that is rewritten next; no formula contains it
Replacements = Mapping[Expression, Expression]


@dataclass(frozen=True, eq=False, repr=False)
class Step:
    """The application of one differentiation rule to one part of a formula.

    Attributes:
        rule: the name of the rule: ``product``, ``chain``, ``power``, ..., the name of a function,
            or ``simplify``.
        function: the outer function of the chain rule.
        law: the rule as an equation.
        before: the part as a syntax tree.
        after: the replacement of the part.
    """

    rule: str
    function: str
    law: str
    before: Expression
    after: Expression

    @property
    def part(self) -> str:
        """The part of the formula that the step rewrites, as a string."""
        return unparse(self.before)

    @property
    def becomes(self) -> str:
        """The expression that replaces the rewritten part, as a string."""
        return unparse(self.after)

    @property
    def label(self) -> str:
        """The name of the applied rule, such as ``chain rule, cos``."""
        label = self.rule if self.rule == "simplify" else f"{self.rule} rule"
        return f"{label}, {self.function}" if self.function else label

    def __repr__(self) -> str:
        return f"<Step {self.label}: {self.part:.60} = {self.becomes:.60}>"


class Line(NamedTuple):
    """One line of a derivation, with the rule that produced it.

    Attributes:
        text: the formula.
        part: start and end of the characters that the next rule rewrites.
        label: the label of the rule that produced the line.
    """

    text: str
    part: tuple[int, int]
    label: str


@dataclass(frozen=True, eq=False, repr=False)
class Section:
    """The step-by-step derivative of one expression.

    Attributes:
        name: the variable that the expression defines; empty for a formula.
        expression: the syntax tree of the expression.
        start: the derivative before the first step.
        steps: the steps in their order.
        derivative: the simplified result.
        notes: remarks on functions that are not differentiable everywhere.
    """

    name: str
    expression: Expression
    start: Apply
    steps: tuple[Step, ...]
    derivative: Expression
    notes: tuple[str, ...]

    def lines(self) -> Iterator[Line]:
        """Yield each line with the position of the part that is rewritten next."""
        for tree, label, next_step in self._iterate_formulas():
            text = unparse(tree)
            first = max(text.find(_MARK), 0)
            length = len(next_step.part) if next_step else 0
            yield Line(text.replace(_MARK, ""), (first, first + length), label)

    def _iterate_formulas(self) -> Iterator[tuple[Expression, str, Step | None]]:
        """Yield each formula, the label of the rule that produced it, and the next step, if any."""
        replacements: dict[Expression, Expression] = {}
        label = ""
        for step in self.steps:
            marked_replacements = dict(replacements)
            if step.rule != "simplify" and step.before is not self.start:
                assert isinstance(step.before, Apply)
                marked = Symbol(_MARK + operator_name(step.before.primitive))
                marked_replacements[step.before] = Apply(marked, step.before.arguments)
            yield replace_nodes(self.start, marked_replacements), label, step
            replacements[step.before], label = step.after, step.label
        yield self.derivative, label, None

    @property
    def is_short(self) -> bool:
        """True if every line is short enough to be shown in full."""
        return all(len(line.text) <= _MAX_WIDTH for line in self.lines())

    def __str__(self) -> str:
        lead = f"{self.name}' = " if self.name else ""
        rows: list[tuple[str, str]]
        if self.is_short:
            first, *rest = self.lines()
            rows = [(lead + first.text, "")]
            for text, (begin, end), label in rest:
                rows += [(f"  = {text}", label)]
                part = "-" * (end - begin)
                rows += [(" " * (begin + 4) + part, "")] if begin < end < len(text) + begin else []
        else:
            rows = [(lead + _shorten(unparse(self.start)), "")]
            rows += [(f"  {_shorten(s.part)} = {_shorten(s.becomes)}", s.label) for s in self.steps]
            count = [count_nodes(tree, leaves=False) for tree in (self.expression, self.derivative)]
            rows += [(f"operations: {count[0]:,} before, {count[1]:,} after", "")]
        width = max(len(text) for text, label in rows if label) + 4
        return "\n".join(f"{text.ljust(width)}{label}" if label else text for text, label in rows)

    def latex_rows(self) -> Iterator[str]:
        """Yield the rows of a LaTeX ``align*`` environment, each labeled with the applied rule."""
        lead = latex_name(self.name + "'") + " = " if self.name else ""
        if not self.is_short:
            for step in self.steps:
                row = f"{_format_latex(step.before)} &= {_format_latex(step.after)}"
                yield f"{row} {_format_label(step.label)}"
            return
        formulas = self._iterate_formulas()
        left_side = lead + _format_latex(next(formulas)[0])
        for tree, label, _ in formulas:
            yield rf"{left_side} &= {_format_latex(tree)} {_format_label(label)}"
            left_side = ""


@dataclass(frozen=True, eq=False, repr=False)
class Derivation:
    """A derivative with all steps; ``print`` shows text, a notebook shows LaTeX.

    Attributes:
        wrt: the variable of differentiation.
        sections: the derivatives of the expressions, the outermost first, or of each order.
        functions: names of functions of the variable without a definition.
        derivative: the result as a syntax tree, with inner derivatives substituted unless they are
            long.
    """

    wrt: str
    sections: tuple[Section, ...]
    functions: tuple[str, ...]
    derivative: Expression

    @property
    def result(self) -> str:
        """The derivative after all steps, as a string."""
        return unparse(self.derivative)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all sections, from the first section to the last."""
        return tuple(step for section in self.sections for step in section.steps)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on functions in the formula that are not differentiable everywhere."""
        return tuple(dict.fromkeys(note for section in self.sections for note in section.notes))

    @property
    def laws(self) -> dict[str, str]:
        """The applied rules as equations, keyed by the label of the rule."""
        return {step.label: step.law for step in self.steps if step.law}

    def __str__(self) -> str:
        parts = [str(section) for section in self.sections]
        if len(self.sections) > 1 and self.derivative is not self.sections[-1].derivative:
            parts.append(f"together: {self.sections[0].name}' = {self.result}")
        legend = [f"{label}: {law}" for label, law in self.laws.items()]
        if self.functions:
            names = ", ".join(self.functions)
            noun = "a function" if len(self.functions) == 1 else "functions"
            legend.append(f"{names}: {noun} of {self.wrt}; ' is d/d{self.wrt}")
        return "\n\n".join([*parts, "\n".join([*legend, *self.notes])])

    def __repr__(self) -> str:
        return (
            f"<Derivation by {self.wrt}, {pluralize(len(self.steps), 'step')}: {self.result:.80}>"
        )

    def latex(self) -> str:
        r"""Return the derivation as a LaTeX ``align*`` environment that underlines rewritten parts.

        >>> import cgprimer
        >>> print(cgprimer.rules("x^3").latex())
        \begin{align*}
        \frac{d}{dx}\left[{x}^{3}\right] &= 3 \, {x}^{2} && \text{power rule}
        \end{align*}
        """
        rows = [row for section in self.sections for row in section.latex_rows()]
        if len(self.sections) > 1 and self.derivative is not self.sections[-1].derivative:
            name = latex_name(self.sections[0].name + "'")
            rows.append(rf"{name} &= {_format_latex(self.derivative)} && \text{{together}}")
        body = " \\\\\n".join(rows)
        return f"\\begin{{align*}}\n{body}\n\\end{{align*}}"

    def _repr_latex_(self) -> str:
        """Return the LaTeX code that notebooks display."""
        return self.latex()

    def to_dict(self) -> dict[str, Any]:
        """Return the derivation as a dictionary for JSON, with lines only if all are short."""
        return {
            "wrt": self.wrt,
            "functions": list(self.functions),
            "sections": [_convert_section(section) for section in self.sections],
            "derivative": self.result,
            "laws": self.laws,
            "notes": list(self.notes),
        }


def replace_nodes(tree: Expression, replacements: Replacements) -> Expression:
    """Replace nodes in an expression tree, including nodes inside replacements."""
    nodes, stack = [], [tree]
    while stack:
        node = stack.pop()
        while (replacement := replacements.get(node)) is not None:
            node = replacement
        nodes.append(node)
        if isinstance(node, Apply):
            stack.extend(node.arguments)
    built: list[Expression] = []
    for node in reversed(nodes):
        if isinstance(node, Apply):
            count = len(node.arguments)
            built[-count:] = [Apply(node.primitive, tuple(built[-count:]))]
        else:
            built.append(node)
    return built[0]


def count_nodes(
    tree: Expression, replacements: Replacements | None = None, *, leaves: bool = True
) -> int:
    """Count the nodes that an expression tree has after replacements, in linear time.

    Args:
        tree: the tree.
        replacements: nodes to replace, as for :func:`replace_nodes`.
        leaves: count names and numbers as well.
    """
    replacements = replacements or {}
    sizes: dict[Expression, int] = {}
    stack = [tree]
    while stack:
        node = stack[-1]
        if node in replacements:
            children: tuple[Expression, ...] = (replacements[node],)
        else:
            children = node.arguments if isinstance(node, Apply) else ()
        pending = [child for child in children if child not in sizes]
        if not pending:
            is_counted = node not in replacements and (leaves or isinstance(node, Apply))
            sizes[stack.pop()] = int(is_counted) + sum(sizes[child] for child in children)
        stack += pending
    return sizes[tree]


def _format_latex(tree: Expression) -> str:
    """Format an expression in LaTeX, with each pending derivative as ``d/dx[...]``."""
    return latex(tree, forms=_build_latex_template)


def _build_latex_template(kind: str) -> str:
    """Return the LaTeX template of a pending derivative or of an undefined function."""
    begin, pending, variable = kind.partition(PENDING)
    if not pending:
        return rf"{kind}\left({{a}}\right)"
    form = rf"\frac{{d}}{{d{latex_name(variable)}}}\left[A\right]"
    form = rf"\underline{{{form}}}" if begin else form
    return form.replace("{", "{{").replace("}", "}}").replace("A", "{a}")


def _format_label(label: str) -> str:
    """Format the name of a rule for the right column of an ``align*`` environment."""
    return rf"&& \text{{{label}}}".replace("_", r"\_")


def _shorten(text: str) -> str:
    """Replace the middle of a string that is too long for one line by an ellipsis."""
    half = _MAX_WIDTH // 2
    return text if len(text) <= _MAX_WIDTH else f"{text[:half]} ... {text[-half:]}"


def _convert_section(section: Section) -> dict[str, Any]:
    """Convert a section of a derivation to a dictionary for JSON."""
    steps: list[dict[str, Any]] = [
        {"rule": s.rule, "function": s.function, "law": s.law, "part": s.part, "becomes": s.becomes}
        for s in section.steps
    ]
    for data, line in zip(steps, section.lines() if section.is_short else (), strict=False):
        data |= {"line": line.text, "at": list(line.part)}
    trees = {"before": section.expression, "after": section.derivative}
    return {
        "of": section.name,
        "expression": unparse(section.expression),
        "steps": steps,
        "derivative": unparse(section.derivative),
        "operations": {when: count_nodes(tree, leaves=False) for when, tree in trees.items()},
    }
