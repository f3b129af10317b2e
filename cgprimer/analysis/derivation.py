r"""A derivation: the steps of a derivative, as data, as text and as LaTeX.

A step holds the part that a rule rewrites and what it becomes. Whole lines are made when they are
shown: with every step they would be as many times longer as there are steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from cgprimer.analysis.latex import latex, latex_name
from cgprimer.core.language.syntax_tree import Symbol, operator_name
from cgprimer.errors import pluralize
from cgprimer.expressions import Apply, Expression, unparse

PENDING = "d/d"  #: how the node begins whose argument is still to be differentiated
_WIDEST = 100  # characters of a line that is shown as a whole
_MARK = "\x01"  # before the part that is rewritten next; no text of a user has it
Filled = Mapping[Expression, Expression]


@dataclass(frozen=True, eq=False, repr=False)
class Step:
    """One rule, applied to one part.

    Attributes:
        rule: its name: ``product``, ``chain``, ``power``, ..., a function's name, ``simplify``.
        function: of a chain rule, the function that is outside.
        law: what the rule says.
        before, after: the part as a syntax tree, and what it becomes.
    """

    rule: str
    function: str
    law: str
    before: Expression
    after: Expression

    @property
    def part(self) -> str:
        """What is rewritten, as text."""
        return unparse(self.before)

    @property
    def becomes(self) -> str:
        """What it becomes, as text."""
        return unparse(self.after)

    @property
    def label(self) -> str:
        """The rule's name as it is shown beside a line."""
        named = self.rule if self.rule in ("simplify",) else f"{self.rule} rule"
        return f"{named}, {self.function}" if self.function else named

    def __repr__(self) -> str:
        return f"<Step {self.label}: {self.part:.60} = {self.becomes:.60}>"


class Line(NamedTuple):
    """A line of a derivation; ``part`` are the characters that the next rule rewrites."""

    text: str
    part: tuple[int, int]
    label: str


@dataclass(frozen=True, eq=False, repr=False)
class Section:
    """The derivative of one expression.

    Attributes:
        name: the variable that the expression defines; empty for a formula.
        expression: its tree.
        start: the derivative as it stands before the first step.
        steps: in their order.
        derivative: the last line.
        notes: where functions have no derivative: kinks, jumps.
    """

    name: str
    expression: Expression
    start: Apply
    steps: tuple[Step, ...]
    derivative: Expression
    notes: tuple[str, ...]

    def lines(self) -> Iterator[Line]:
        """Whole lines, the part that is rewritten next marked in each, made one by one."""
        for tree, label, following in self._trees():
            text = unparse(tree)
            first = max(text.find(_MARK), 0)
            length = len(following.part) if following else 0
            yield Line(text.replace(_MARK, ""), (first, first + length), label)

    def _trees(self) -> Iterator[tuple[Expression, str, Step | None]]:
        """The formula before each step and after the last, and the rule that made it."""
        new: dict[Expression, Expression] = {}
        label = ""
        for step in self.steps:
            shown = dict(new)
            if step.rule != "simplify" and step.before is not self.start:
                assert isinstance(step.before, Apply)
                marked = Symbol(_MARK + operator_name(step.before.primitive))
                shown[step.before] = Apply(marked, step.before.arguments)
            yield filled(self.start, shown), label, step
            new[step.before], label = step.after, step.label
        yield self.derivative, label, None

    @property
    def whole(self) -> bool:
        """Whether its lines are short enough to be shown whole."""
        return all(len(line.text) <= _WIDEST for line in self.lines())

    def __str__(self) -> str:
        lead = f"{self.name}' = " if self.name else ""
        rows: list[tuple[str, str]]
        if self.whole:
            first, *rest = self.lines()
            rows = [(lead + first.text, "")]
            for text, (begin, end), label in rest:
                rows += [(f"  = {text}", label)]
                part = "-" * (end - begin)
                rows += [(" " * (begin + 4) + part, "")] if begin < end < len(text) + begin else []
        else:
            rows = [(lead + _cut(unparse(self.start)), "")]
            rows += [(f"  {_cut(s.part)} = {_cut(s.becomes)}", s.label) for s in self.steps]
            count = [size(tree, leaves=False) for tree in (self.expression, self.derivative)]
            rows += [(f"operations: {count[0]:,} before, {count[1]:,} after", "")]
        wide = max(len(text) for text, label in rows if label) + 4
        return "\n".join(f"{text.ljust(wide)}{label}" if label else text for text, label in rows)

    def latex_rows(self) -> Iterator[str]:
        """Rows of an ``align*``: the derivative, a line for each step, the rule beside it."""
        lead = latex_name(self.name + "'") + " = " if self.name else ""
        if not self.whole:
            for step in self.steps:
                yield rf"{_latex(step.before)} &= {_latex(step.after)} {_beside(step.label)}"
            return
        trees = self._trees()
        head = lead + _latex(next(trees)[0])
        for tree, label, _ in trees:
            yield rf"{head} &= {_latex(tree)} {_beside(label)}"
            head = ""


@dataclass(frozen=True, eq=False, repr=False)
class Derivation:
    """What :func:`cgprimer.rules` returns: ``print`` shows it, a notebook sets it in LaTeX.

    Attributes:
        wrt: the variable.
        sections: the derivative of each expression that is in the way, the outermost first; or of
            each order.
        functions: names that stand for functions of the variable.
        derivative: the result as a syntax tree, with the inner derivatives in their places unless
            they are long.
    """

    wrt: str
    sections: tuple[Section, ...]
    functions: tuple[str, ...]
    derivative: Expression

    @property
    def result(self) -> str:
        """The derivative, as text."""
        return unparse(self.derivative)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all sections."""
        return tuple(step for section in self.sections for step in section.steps)

    @property
    def notes(self) -> tuple[str, ...]:
        """Where functions in it have no derivative."""
        return tuple(dict.fromkeys(note for section in self.sections for note in section.notes))

    @property
    def laws(self) -> dict[str, str]:
        """The rules that were used, in their order, and what they say."""
        return {step.label: step.law for step in self.steps if step.law}

    def __str__(self) -> str:
        parts = [str(section) for section in self.sections]
        if len(self.sections) > 1 and self.derivative is not self.sections[-1].derivative:
            parts.append(f"together: {self.sections[0].name}' = {self.result}")
        said = [f"{label}: {law}" for label, law in self.laws.items()]
        if self.functions:
            names = ", ".join(self.functions)
            what = "a function" if len(self.functions) == 1 else "functions"
            said.append(f"{names}: {what} of {self.wrt}; ' is d/d{self.wrt}")
        return "\n\n".join([*parts, "\n".join([*said, *self.notes])])

    def __repr__(self) -> str:
        return (
            f"<Derivation by {self.wrt}, {pluralize(len(self.steps), 'step')}: {self.result:.80}>"
        )

    def latex(self) -> str:
        r"""An ``align*`` with a line for each step; the part that is next is underlined.

        >>> import cgprimer
        >>> print(cgprimer.rules("x^3").latex())
        \begin{align*}
        \frac{d}{dx}\left[{x}^{3}\right] &= 3 \, {x}^{2} && \text{power rule}
        \end{align*}
        """
        rows = [row for section in self.sections for row in section.latex_rows()]
        if len(self.sections) > 1 and self.derivative is not self.sections[-1].derivative:
            name = latex_name(self.sections[0].name + "'")
            rows.append(rf"{name} &= {_latex(self.derivative)} && \text{{together}}")
        body = " \\\\\n".join(rows)
        return f"\\begin{{align*}}\n{body}\n\\end{{align*}}"

    def _repr_latex_(self) -> str:
        return self.latex()

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data; with whole lines where these are short."""
        return {
            "wrt": self.wrt,
            "functions": list(self.functions),
            "sections": [_section_data(section) for section in self.sections],
            "derivative": self.result,
            "laws": self.laws,
            "notes": list(self.notes),
        }


def filled(tree: Expression, new: Filled) -> Expression:
    """A tree with others in the place of some of its nodes, and of nodes of theirs."""
    nodes, stack = [], [tree]
    while stack:
        node = stack.pop()
        while (found := new.get(node)) is not None:
            node = found
        nodes.append(node)
        if isinstance(node, Apply):
            stack.extend(node.arguments)
    made: list[Expression] = []
    for node in reversed(nodes):
        if isinstance(node, Apply):
            count = len(node.arguments)
            made[-count:] = [Apply(node.primitive, tuple(made[-count:]))]
        else:
            made.append(node)
    return made[0]


def size(tree: Expression, new: Filled | None = None, *, leaves: bool = True) -> int:
    """How many nodes a tree has when it is written out; parts that it shares are counted once."""
    new = new or {}
    sizes: dict[Expression, int] = {}
    stack = [tree]
    while stack:
        node = stack[-1]
        if node in new:
            under: tuple[Expression, ...] = (new[node],)
        else:
            under = node.arguments if isinstance(node, Apply) else ()
        waiting = [n for n in under if n not in sizes]
        if not waiting:
            own = 0 if node in new else int(leaves or isinstance(node, Apply))
            sizes[stack.pop()] = own + sum(sizes[n] for n in under)
        stack += waiting
    return sizes[tree]


def _latex(tree: Expression) -> str:
    return latex(tree, forms=_form)


def _form(kind: str) -> str:
    """LaTeX of what the table does not have: a derivative still to be made, a function f."""
    begin, pending, variable = kind.partition(PENDING)
    if not pending:
        return rf"{kind}\left({{a}}\right)"
    form = rf"\frac{{d}}{{d{latex_name(variable)}}}\left[A\right]"
    form = rf"\underline{{{form}}}" if begin else form
    return form.replace("{", "{{").replace("}", "}}").replace("A", "{a}")


def _beside(label: str) -> str:
    return rf"&& \text{{{label}}}".replace("_", r"\_")


def _cut(text: str) -> str:
    """A long text, its middle left out."""
    half = _WIDEST // 2
    return text if len(text) <= _WIDEST else f"{text[:half]} ... {text[-half:]}"


def _section_data(section: Section) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [
        {"rule": s.rule, "function": s.function, "law": s.law, "part": s.part, "becomes": s.becomes}
        for s in section.steps
    ]
    for data, line in zip(steps, section.lines() if section.whole else (), strict=False):
        data |= {"line": line.text, "at": list(line.part)}
    trees = {"before": section.expression, "after": section.derivative}
    return {
        "of": section.name,
        "expression": unparse(section.expression),
        "steps": steps,
        "derivative": unparse(section.derivative),
        "operations": {when: size(tree, leaves=False) for when, tree in trees.items()},
    }
