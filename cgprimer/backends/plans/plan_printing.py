"""Plans as text: the names of their values, their steps, and the passes that lead to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count, islice

from cgprimer.backends.plans.optimization import optimize
from cgprimer.backends.plans.plan import AffineGroup, OuterProduct, Plan, PlanStep
from cgprimer.backends.plans.planning import build_plan
from cgprimer.backends.plans.row_allocation import RowAllocation, allocate_rows
from cgprimer.core.language.syntax_tree import Apply, Expression, Name, Number
from cgprimer.core.operations.notation import unparse
from cgprimer.core.tape.scalarization import scalarize
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_passes import dead_code
from cgprimer.core.tape.tape_printing import labels, listing, shown_name
from cgprimer.errors import pluralize

_MULTIPLY_ADD = ("fma", "fms", "fnma")
_MAX_COLUMNS = 10  # of a shortened table

# --- text ----------------------------------------------------------------------------------------


def cut(lines: Sequence[str], most: int | None) -> list[str]:
    """Return the first lines, and the number of omitted ones.

    >>> cut(["a", "b", "c", "d"], 2)
    ['a', 'b', '... 2 more lines']
    """
    if most is None or len(lines) <= most:
        return list(lines)
    return [*lines[:most], f"... {len(lines) - most} more lines"]


def several(names: Sequence[str], most: int = 8) -> str:
    """Return names separated by commas; of many the first ones and their number.

    >>> several(["u0 a", "u1 b"]), several(["a"] * 20, 2)
    ('u0 a, u1 b', 'a, a, ... (20 in all)')
    """
    if len(names) <= most:
        return ", ".join(names) or "none"
    return f"{', '.join(names[:most])}, ... ({len(names)} in all)"


def aligned(
    rows: Sequence[Sequence[str]], justify: Callable[[str, int], str] = str.ljust
) -> list[str]:
    """Return the rows of a table as lines with aligned columns.

    >>> aligned([("row", "step"), ("0", "xw = 2*xa")])
    ['row  step', '0    xw = 2*xa']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(justify, row, widths)).rstrip() for row in rows]


def ranges(rows: Iterable[int], prefix: str = "r") -> str:
    """Return the names of rows; three or more neighbouring rows as a range.

    >>> ranges([4, 5, 6, 2])
    'r4-r6 r2'
    """
    runs: list[list[int]] = []
    for row in rows:
        if runs and row == runs[-1][-1] + 1:
            runs[-1].append(row)
        else:
            runs.append([row])
    names = [[f"{prefix}{row}" for row in run] for run in runs]
    return " ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else " ".join(run) for run in names)


def output_names(outputs: Mapping[str, int]) -> dict[int, list[str]]:
    """Return for each value, accumulator or result the printed names of its outputs."""
    names: dict[int, list[str]] = {}
    for name, number in outputs.items():
        names.setdefault(number, []).append(shown_name(name))
    return names


# --- steps ---------------------------------------------------------------------------------------


class PlanNames:
    """Printed names of a plan's values: those of its tape, and new ones for added values."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.leaves = plan, plan.tape.leaves
        self.labels = labels(plan.tape)
        used = set(self.labels)
        unused = (name for name in map("v{}".format, count(1)) if name not in used)
        self.labels += islice(unused, plan.size - plan.tape.size)

    def __getitem__(self, index: int) -> str:
        return unparse(self.tree(index))

    def tree(self, index: int) -> Expression:
        """Return the name of a value, or the number if it is a constant."""
        if index < len(self.leaves) and self.leaves[index].kind == "constant":
            return Number(self.leaves[index].value)
        return Name(self.labels[index])

    def listed(self, values: Iterable[int]) -> str:
        """Return values separated by commas."""
        return ", ".join([self[value] for value in values])

    def varying_steps(self) -> list[str]:
        """Return the steps for every sample, as one line each."""
        groups = self.plan.groups
        return [self.step(step, groups.get(k)) for k, step in enumerate(self.plan.varying)]

    def step(self, step: PlanStep, group: AffineGroup | OuterProduct | None = None) -> str:
        """Return a step as one line of readable code."""
        name, operands, results = step
        if isinstance(group, OuterProduct):
            return f"sums of ({self.listed(group.left)}) x ({self.listed(group.right)})"
        trees = tuple([self.tree(operand) for operand in operands])
        if name in ("sum", "dot"):
            return f"sum of {unparse(Apply('mul', trees) if name == 'dot' else trees[0])}"
        if isinstance(group, AffineGroup):
            text = f"matrix {len(results)}x{len(operands)} * ({self.listed(operands)})"
        elif name == "sincos":
            text = f"sin({self[operands[0]]}), cos({self[operands[0]]})"
        elif name in _MULTIPLY_ADD:
            product = Apply("mul", trees[:2])
            terms = (trees[2], product) if name == "fnma" else (product, trees[2])
            text = unparse(Apply("add" if name == "fma" else "sub", terms))
        else:
            text = unparse(Apply(name, trees))
        return f"{self.listed(results)} = {text}"


# --- passes --------------------------------------------------------------------------------------


def passes_text(tape: Tape, *, sums: bool, most: int | None = None) -> str:
    """Return the passes of an engine's plan as text.

    Args:
        tape: the tape; arrays are written out in scalars.
        sums: the outputs are sums over the samples.
        most: the largest number of lines of a section; None for all.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("xw = k^2*xa + sin(xa)"))
    >>> print(passes_text(tape, sums=False).partition("== Rows")[2])
    : a value is forgotten after its last use
    row  step
    0    v3 = sin(xa)
    0    xw = v1*xa + v3
    rows: 1
    <BLANKLINE>
    tape 4 instructions -> optimized 4 -> 2 steps for every sample, 1 step once a call; 1 row
    """
    tape = scalarize(tape)
    plan = build_plan(tape, sums=sums)
    names, allocation = PlanNames(plan), allocate_rows(plan)
    steps = list(zip(plan.varying, names.varying_steps(), strict=True))
    uniform = [(step.results[0] < plan.tape.size, names.step(step)) for step in plan.uniform]
    hoisted = [text for on_tape, text in uniform if on_tape]
    added = [f"once a call: {text}" for on_tape, text in uniform if not on_tape]
    matrices, products = _group_tables(plan, names, most)
    multiply_adds = [
        f"{text}{_omitted_product(step, names)}"
        for step, text in steps
        if step.name in _MULTIPLY_ADD
    ]
    rows = [(_row_numbers(step, allocation), text) for step, text in steps]
    sections = {
        "Dead code, sharing, whole powers": _optimization(tape, plan, most),
        "Hoisting: once a call, not once a sample": cut(hoisted, most),
        "Affine groups: sums of products over the same values are a matrix": [
            *(cut(added, most) if matrices else ()),
            *matrices,
        ],
        "Outer groups: all products of two lists, summed over the samples": products,
        "Multiply-add: a product that only one sum uses is a part of it": cut(multiply_adds, most),
        "Sine and cosine of one value": cut([t for s, t in steps if s.name == "sincos"], most),
        "Reductions: sums over the samples": cut(_reductions(steps, names), most),
        "Rows: a value is forgotten after its last use": [
            *_cut_table(aligned([("row", "step"), *rows]), most),
            f"rows: {allocation.count}",
        ],
    }
    parts = ["\n".join((f"== {title}", *(lines or ["none"]))) for title, lines in sections.items()]
    summary = (
        f"tape {pluralize(len(tape), 'instruction')} -> optimized {len(plan.tape):,}"
        f" -> {pluralize(len(plan.varying), 'step')} for every sample,"
        f" {pluralize(len(plan.uniform), 'step')} once a call; {pluralize(allocation.count, 'row')}"
    )
    return "\n\n".join([*parts, summary])


def _optimization(tape: Tape, plan: Plan, most: int | None) -> list[str]:
    """Return the numbers of instructions after each optimization, and the optimized tape."""
    lean = dead_code(tape)
    merged = optimize(lean, powers=False)
    expanded = optimize(merged)
    before, after = (sum(n == "pow" for n, _ in t.instructions) for t in (merged, expanded))
    return [
        f"dead code: {len(tape):,} -> {pluralize(len(lean), 'instruction')}",
        f"sharing:   {len(lean):,} -> {pluralize(len(merged), 'instruction')}",
        f"powers:    {len(merged):,} -> {pluralize(len(expanded), 'instruction')};"
        f" {pluralize(before - after, 'power')} multiplied out",
        *cut(listing(plan.tape).split("\n"), most),
    ]


def _group_tables(plan: Plan, names: PlanNames, most: int | None) -> tuple[list[str], list[str]]:
    """Return the affine groups and the outer products of a plan as tables."""
    sections: tuple[list[str], list[str]] = ([], [])
    sums = output_names(plan.summed)
    for group in plan.groups.values():
        if isinstance(group, AffineGroup):
            title = f"{len(group.outputs)} sums over {len(group.inputs)} values"
            table = [["", *[names[i] for i in group.inputs], "bias"]]
            for output, weights, bias in zip(*group[1:], strict=True):
                biases = [names[bias] if bias >= 0 else "-"]
                table.append([f"{names[output]} =", *[names[w] for w in weights], *biases])
        else:
            title = f"{len(group.left)} by {len(group.right)}"
            table = [["", *[names[r] for r in group.right]]]
            for left, accumulators in zip(group.left, group.accumulators, strict=True):
                cells = [sums[a][0] if a >= 0 else "-" for a in accumulators]
                table.append([f"{names[left]} *", *cells])
        if most is not None and len(table[0]) > _MAX_COLUMNS:
            table = [[*row[: _MAX_COLUMNS - 2], "...", row[-1]] for row in table]
        section = sections[isinstance(group, OuterProduct)]
        lines = [f"  {line}" for line in aligned(table, str.rjust)]
        section += [title, *_cut_table(lines, most)]
    return sections


def _cut_table(lines: list[str], most: int | None) -> list[str]:
    """Return the heading and the first rows of a table."""
    return [lines[0], *cut(lines[1:], most)]


def _row_numbers(step: PlanStep, allocation: RowAllocation) -> str:
    """Return the rows of a step's results; sums have none."""
    results = () if step.name in ("sum", "dot") else step.results
    return ranges([allocation.row_of[result] for result in results], prefix="")


def _omitted_product(step: PlanStep, names: PlanNames) -> str:
    """Return a note on the product that a multiply-add does not store, or an empty text."""
    tape, result = names.plan.tape, step.results[0]
    instruction = tape.instruction(result) if result < tape.size else None
    omitted = [o for o in instruction.operands if o not in step.operands] if instruction else []
    return f"   without {names[omitted[0]]}" if len(omitted) == 1 else ""


def _reductions(steps: Iterable[tuple[PlanStep, str]], names: PlanNames) -> list[str]:
    """Return the sums over the samples, as one line each."""
    plan = names.plan
    if not plan.summed:
        return ["none: a value for each sample is wanted"]
    sums = output_names(plan.summed)
    return [
        *[f"{', '.join(sums[s.results[0]])} = {t}" for s, t in steps if s.name in ("sum", "dot")],
        *[f"{shown_name(n)} = samples * {names[index]}" for n, index in plan.outputs.items()],
    ]
