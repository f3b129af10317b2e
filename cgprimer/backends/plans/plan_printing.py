"""Printed execution plans: names of values, plan steps and optimization passes."""

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
from cgprimer.core.tape.tape_passes import remove_dead_code
from cgprimer.core.tape.tape_printing import format_tape, labels
from cgprimer.errors import pluralize
from cgprimer.support.value_names import format_name

_MULTIPLY_ADD = ("fma", "fms", "fnma")
_MAX_COLUMNS = 10  # columns of an abbreviated table

# --- text ----------------------------------------------------------------------------------------


def truncate_lines(lines: Sequence[str], max_lines: int | None) -> list[str]:
    """Return the first lines, followed by a line with the number of omitted lines.

    >>> truncate_lines(["a", "b", "c", "d"], 2)
    ['a', 'b', '... 2 more lines']
    """
    if max_lines is None or len(lines) <= max_lines:
        return list(lines)
    return [*lines[:max_lines], f"... {len(lines) - max_lines} more lines"]


def join_abbreviated(names: Sequence[str], max_names: int = 8) -> str:
    """Join names with commas, showing only the first names and the total of a long list.

    >>> join_abbreviated(["u0 a", "u1 b"]), join_abbreviated(["a"] * 20, 2)
    ('u0 a, u1 b', 'a, a, ... (20 in total)')
    """
    if len(names) <= max_names:
        return ", ".join(names) or "none"
    return f"{', '.join(names[:max_names])}, ... ({len(names)} in total)"


def align_columns(
    rows: Sequence[Sequence[str]], justify: Callable[[str, int], str] = str.ljust
) -> list[str]:
    """Format the rows of a table as lines with aligned columns.

    >>> align_columns([("row", "step"), ("0", "xw = 2*xa")])
    ['row  step', '0    xw = 2*xa']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(justify, row, widths)).rstrip() for row in rows]


def format_row_ranges(rows: Iterable[int], prefix: str = "r") -> str:
    """Format the indices of buffer rows; abbreviate consecutive rows as a range.

    >>> format_row_ranges([4, 5, 6, 2])
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


def group_output_names(outputs: Mapping[str, int]) -> dict[int, list[str]]:
    """Group the printed names of outputs by the index of their value."""
    names: dict[int, list[str]] = {}
    for name, index in outputs.items():
        names.setdefault(index, []).append(format_name(name))
    return names


# --- steps ---------------------------------------------------------------------------------------


class PlanNames:
    """Printed names of the values of an execution plan.

    Values of the tape have its names; values that the passes added are named v1, v2, ...
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.leaves = plan, plan.tape.leaves
        self.labels = labels(plan.tape)
        used = set(self.labels)
        unused = (name for name in map("v{}".format, count(1)) if name not in used)
        self.labels += islice(unused, plan.size - plan.tape.size)

    def __getitem__(self, index: int) -> str:
        return unparse(self.build_expression(index))

    def build_expression(self, index: int) -> Expression:
        """Build the expression that stands for a value: a constant or the name of the value."""
        if index < len(self.leaves) and self.leaves[index].kind == "constant":
            return Number(self.leaves[index].value)
        return Name(self.labels[index])

    def format_values(self, values: Iterable[int]) -> str:
        """Format values as names separated by commas."""
        return ", ".join([self[value] for value in values])

    def format_varying_steps(self) -> list[str]:
        """Format the steps that run for every sample, one line per step."""
        groups = self.plan.groups
        return [self.format_step(step, groups.get(k)) for k, step in enumerate(self.plan.varying)]

    def format_step(self, step: PlanStep, group: AffineGroup | OuterProduct | None = None) -> str:
        """Format a plan step as one line of readable code."""
        name, operands, results = step
        if isinstance(group, OuterProduct):
            return (
                f"sums of ({self.format_values(group.left)}) x ({self.format_values(group.right)})"
            )
        trees = tuple([self.build_expression(operand) for operand in operands])
        if name in ("sum", "dot"):
            return f"sum of {unparse(Apply('mul', trees) if name == 'dot' else trees[0])}"
        if isinstance(group, AffineGroup):
            text = f"matrix {len(results)}x{len(operands)} * ({self.format_values(operands)})"
        elif name == "sincos":
            text = f"sin({self[operands[0]]}), cos({self[operands[0]]})"
        elif name in _MULTIPLY_ADD:
            product = Apply("mul", trees[:2])
            terms = (trees[2], product) if name == "fnma" else (product, trees[2])
            text = unparse(Apply("add" if name == "fma" else "sub", terms))
        else:
            text = unparse(Apply(name, trees))
        return f"{self.format_values(results)} = {text}"


# --- passes --------------------------------------------------------------------------------------


def format_passes(tape: Tape, *, sums: bool, max_lines: int | None = None) -> str:
    """Format the optimization passes that lead to the execution plan of a tape.

    Args:
        tape: the tape; arrays are expanded into scalars.
        sums: sum the outputs over the samples.
        max_lines: maximum number of lines per section; None for all lines.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("xw = k^2*xa + sin(xa)"))
    >>> print(format_passes(tape, sums=False).partition("== Buffer rows")[2])
    : reused after the last use of a value
    row  step
    0    v3 = sin(xa)
    0    xw = v1*xa + v3
    rows: 1
    <BLANKLINE>
    tape 4 instructions -> optimized 4 -> 2 steps per sample, 1 step per call; 1 row
    """
    tape = scalarize(tape)
    plan = build_plan(tape, sums=sums)
    names, allocation = PlanNames(plan), allocate_rows(plan)
    steps = list(zip(plan.varying, names.format_varying_steps(), strict=True))
    uniform = [(step.results[0] < plan.tape.size, names.format_step(step)) for step in plan.uniform]
    hoisted = [text for on_tape, text in uniform if on_tape]
    added = [f"once per call: {text}" for on_tape, text in uniform if not on_tape]
    matrices, products = _format_group_tables(plan, names, max_lines)
    sines = [text for step, text in steps if step.name == "sincos"]
    multiply_adds = [
        f"{text}{_describe_fused_product(step, names)}"
        for step, text in steps
        if step.name in _MULTIPLY_ADD
    ]
    reductions = _format_reductions(steps, names)
    rows = [(_format_result_rows(step, allocation), text) for step, text in steps]
    sections = {
        "Dead code, common subexpressions, integer powers": _list_optimizations(
            tape, plan, max_lines
        ),
        "Hoisting: once per call, not once per sample": truncate_lines(hoisted, max_lines),
        "Affine groups: sums of products of the same values become a matrix product": [
            *(truncate_lines(added, max_lines) if matrices else ()),
            *matrices,
        ],
        "Outer products: all products of two lists of values, summed over the samples": products,
        "Multiply-add: products that are used by a single sum": truncate_lines(
            multiply_adds, max_lines
        ),
        "Sine and cosine of the same value": truncate_lines(sines, max_lines),
        "Reductions: sums over the samples": truncate_lines(reductions, max_lines),
        "Buffer rows: reused after the last use of a value": [
            *_truncate_table(align_columns([("row", "step"), *rows]), max_lines),
            f"rows: {allocation.count}",
        ],
    }
    parts = ["\n".join((f"== {title}", *(lines or ["none"]))) for title, lines in sections.items()]
    return "\n\n".join([*parts, _summarize_plan(tape, plan, allocation)])


def _summarize_plan(tape: Tape, plan: Plan, allocation: RowAllocation) -> str:
    """Summarize the number of instructions, plan steps and buffer rows in one line."""
    return (
        f"tape {pluralize(len(tape), 'instruction')} -> optimized {len(plan.tape):,}"
        f" -> {pluralize(len(plan.varying), 'step')} per sample,"
        f" {pluralize(len(plan.uniform), 'step')} per call; {pluralize(allocation.count, 'row')}"
    )


def _list_optimizations(tape: Tape, plan: Plan, max_lines: int | None) -> list[str]:
    """List the instruction count after each optimization, followed by the optimized tape."""
    lean = remove_dead_code(tape)
    merged = optimize(lean, powers=False)
    expanded = optimize(merged)
    before, after = (sum(n == "pow" for n, _ in t.instructions) for t in (merged, expanded))
    return [
        f"dead code: {len(tape):,} -> {pluralize(len(lean), 'instruction')}",
        f"sharing:   {len(lean):,} -> {pluralize(len(merged), 'instruction')}",
        f"powers:    {len(merged):,} -> {pluralize(len(expanded), 'instruction')};"
        f" {pluralize(before - after, 'power')} expanded",
        *truncate_lines(format_tape(plan.tape).split("\n"), max_lines),
    ]


def _format_group_tables(
    plan: Plan, names: PlanNames, max_lines: int | None
) -> tuple[list[str], list[str]]:
    """Format the affine groups and the outer products of a plan as tables."""
    sections: tuple[list[str], list[str]] = ([], [])
    sums = group_output_names(plan.summed)
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
        if max_lines is not None and len(table[0]) > _MAX_COLUMNS:
            table = [[*row[: _MAX_COLUMNS - 2], "...", row[-1]] for row in table]
        section = sections[isinstance(group, OuterProduct)]
        lines = [f"  {line}" for line in align_columns(table, str.rjust)]
        section += [title, *_truncate_table(lines, max_lines)]
    return sections


def _truncate_table(lines: list[str], max_lines: int | None) -> list[str]:
    """Return the heading and the first rows of a formatted table."""
    return [lines[0], *truncate_lines(lines[1:], max_lines)]


def _format_result_rows(step: PlanStep, allocation: RowAllocation) -> str:
    """Format the buffer rows of the results of a plan step; reductions have none."""
    results = () if step.name in ("sum", "dot") else step.results
    return format_row_ranges([allocation.row_of[result] for result in results], prefix="")


def _describe_fused_product(step: PlanStep, names: PlanNames) -> str:
    """Describe the product that a multiply-add computes without storing it."""
    tape, result = names.plan.tape, step.results[0]
    instruction = tape.instruction(result) if result < tape.size else None
    omitted = [o for o in instruction.operands if o not in step.operands] if instruction else []
    return f"   without {names[omitted[0]]}" if len(omitted) == 1 else ""


def _format_reductions(steps: Iterable[tuple[PlanStep, str]], names: PlanNames) -> list[str]:
    """Format the sums over the samples, one line per sum."""
    plan = names.plan
    if not plan.summed:
        return ["none: the outputs are values per sample"]
    sums = group_output_names(plan.summed)
    return [
        *[f"{', '.join(sums[s.results[0]])} = {t}" for s, t in steps if s.name in ("sum", "dot")],
        *[f"{format_name(n)} = samples * {names[index]}" for n, index in plan.outputs.items()],
    ]
