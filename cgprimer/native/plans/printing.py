"""What each pass makes of a tape, as text for a projector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cgprimer.core.language.syntax import Apply, Expression, Name, Number
from cgprimer.core.primitives.notation import unparse
from cgprimer.core.tape.optimization import share, strength_reduced
from cgprimer.core.tape.passes import dead_code
from cgprimer.core.tape.printing import labels, listing, shown_name
from cgprimer.core.tape.tape import Tape
from cgprimer.native.plans.making import plan
from cgprimer.native.plans.plan import Affine, Outer, Plan, Step
from cgprimer.native.plans.storage import Storage, storage_of

_FUSED = ("fma", "fms", "fnma")


def cut(lines: Sequence[str], most: int | None) -> list[str]:
    """The first lines, and how many are left out.

    >>> cut(["a", "b", "c", "d"], 2)
    ['a', 'b', '... 2 more lines']
    """
    if most is None or len(lines) <= most:
        return list(lines)
    return [*lines[:most], f"... {len(lines) - most} more lines"]


def passes_text(tape: Tape, *, sums: bool, most: int | None = None) -> str:
    """Pass by pass what an engine's plan makes of a tape.

    Args:
        tape: any tape.
        sums: the outputs are wanted as sums over the samples.
        most: the most lines of a part that are shown; None for all.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("xw = k^2*xa + sin(xa)"))
    >>> print(passes_text(tape, sums=False).partition("== Rows")[2])
    : a value is forgotten after its last use
    row   step
      0   v3 = sin(xa)
      0   xw = v1*xa + v3
    rows: 1
    <BLANKLINE>
    tape 4 instructions -> optimized 4 -> 2 steps for every sample, 1 step once a call; 1 row
    """
    found = plan(tape, sums=sums)
    names = PlanNames(found.tape, found.size)
    placed = storage_of(found)
    parts = [
        _optimized(tape, found, most),
        _hoisted(found, names, most),
        _matrices(found, names, most),
        _blocks(found, names, most),
        _one_go(found, names, most),
        _reductions(found, names, most),
        _rows(found, placed, names, most),
    ]
    return "\n\n".join(["\n".join(part) for part in parts] + [_counts(tape, found, placed)])


class PlanNames:
    """What the values of a plan are called: as on its tape, and further ones counted on.

    Args:
        tape: the plan's.
        size: number of values.
    """

    def __init__(self, tape: Tape, size: int) -> None:
        self.tape = tape
        self.labels = labels(tape)
        taken = set(self.labels)
        count = sum(1 for name in self.labels if name.startswith("v") and name[1:].isdigit())
        for _ in range(tape.size, size):
            count += 1
            while f"v{count}" in taken:
                count += 1
            self.labels.append(f"v{count}")

    def tree(self, index: int) -> Expression:
        """A value as a name, or a number if it is a constant."""
        leaves = self.tape.leaves
        if index < len(leaves) and leaves[index].kind == "constant":
            return Number(leaves[index].value)
        return Name(self.labels[index])

    def __getitem__(self, index: int) -> str:
        return unparse(self.tree(index))

    def several(self, values: Iterable[int]) -> str:
        """Values, with commas between them."""
        return ", ".join(self[value] for value in values)


def step_line(step: Step, names: PlanNames, group: Affine | Outer | None = None) -> str:
    """A step as one line of readable code."""
    name, operands, results = step
    if isinstance(group, Affine):
        size = f"{len(group.outputs)}x{len(group.inputs)}"
        return f"{names.several(results)} = matrix {size} * ({names.several(operands)})"
    if isinstance(group, Outer):
        return f"sums of ({names.several(group.left)}) x ({names.several(group.right)})"
    trees = [names.tree(o) for o in operands]
    if name == "sum":
        return f"sum of {names[operands[0]]}"
    if name == "dot":
        return f"sum of {unparse(Apply('mul', tuple(trees)))}"
    if name == "sincos":
        return f"{names.several(results)} = sin({names[operands[0]]}), cos({names[operands[0]]})"
    formula = Apply(name, tuple(trees)) if name not in _FUSED else _fused(name, trees)
    return f"{names[results[0]]} = {unparse(formula)}"


def _fused(name: str, trees: list[Expression]) -> Expression:
    product = Apply("mul", (trees[0], trees[1]))
    if name == "fnma":
        return Apply("sub", (trees[2], product))
    return Apply("add" if name == "fma" else "sub", (product, trees[2]))


def _optimized(tape: Tape, found: Plan, most: int | None) -> list[str]:
    lean = dead_code(tape)
    merged = share(lean)
    powers = strength_reduced(merged)
    multiplied_out = _calls(merged, "pow") - _calls(powers, "pow")
    return [
        "== Dead code, sharing, whole powers",
        f"dead code: {len(tape)} -> {_instructions(len(lean))}",
        f"sharing:   {len(lean)} -> {_instructions(len(merged))}",
        f"powers:    {len(merged)} -> {_instructions(len(powers))};"
        f" {_counted(multiplied_out, 'power')} multiplied out",
        *cut(listing(found.tape).split("\n"), most),
    ]


def _calls(tape: Tape, name: str) -> int:
    return sum(1 for primitive, _ in tape.instructions if primitive == name)


def _hoisted(found: Plan, names: PlanNames, most: int | None) -> list[str]:
    steps = [s for s in found.uniform if s.results[0] < found.tape.size]
    return [
        "== Hoisting: once a call, not once a sample",
        *(cut([step_line(s, names) for s in steps], most) or ["none"]),
    ]


def _matrices(found: Plan, names: PlanNames, most: int | None) -> list[str]:
    lines = ["== Affine groups: sums of products over the same values are a matrix"]
    groups = [g for g in found.groups.values() if isinstance(g, Affine)]
    further = [s for s in found.uniform if s.results[0] >= found.tape.size]
    if further:
        lines += cut([f"once a call: {step_line(s, names)}" for s in further], most)
    for group in groups:
        head = ["", *(names[i] for i in group.inputs), "bias"]
        table = [
            [f"{names[o]} =", *(names[w] for w in row), names[b] if b >= 0 else "-"]
            for o, row, b in zip(group.outputs, group.weights, group.biases, strict=True)
        ]
        lines.append(f"{len(group.outputs)} sums over {len(group.inputs)} values")
        lines += _table([head, *table], most)
    return lines if groups else [*lines, "none"]


def _blocks(found: Plan, names: PlanNames, most: int | None) -> list[str]:
    lines = ["== Outer groups: all products of two lists, summed over the samples"]
    groups = [g for g in found.groups.values() if isinstance(g, Outer)]
    outputs = output_names(found.summed)
    for group in groups:
        head = ["", *(names[r] for r in group.right)]
        table = [
            [f"{names[value]} *", *(outputs[n][0] if n >= 0 else "-" for n in row)]
            for value, row in zip(group.left, group.numbers, strict=True)
        ]
        lines.append(f"{len(group.left)} by {len(group.right)}")
        lines += _table([head, *table], most)
    return lines if groups else [*lines, "none"]


def _one_go(found: Plan, names: PlanNames, most: int | None) -> list[str]:
    fused = [
        f"{step_line(s, names)}{_taken_in(found.tape, s, names)}"
        for s in found.varying
        if s.name in _FUSED
    ]
    pairs = [step_line(s, names) for s in found.varying if s.name == "sincos"]
    return [
        "== Multiply-add: a product that only one sum uses is a part of it",
        *(cut(fused, most) or ["none"]),
        "",
        "== Sine and cosine of one value",
        *(cut(pairs, most) or ["none"]),
    ]


def _taken_in(tape: Tape, step: Step, names: PlanNames) -> str:
    """Which product is not stored any more; nothing for sums that the tape does not have."""
    at = step.results[0]
    own = tape.instruction(at) if at < tape.size else None
    gone = [o for o in own.operands if o not in step.operands] if own else []
    return f"   without {names[gone[0]]}" if len(gone) == 1 else ""


def output_names(outputs: Mapping[str, int]) -> dict[int, list[str]]:
    """For each value or accumulator the outputs that it is, as they are shown."""
    found: dict[int, list[str]] = {}
    for name, number in outputs.items():
        found.setdefault(number, []).append(shown_name(name))
    return found


def _reductions(found: Plan, names: PlanNames, most: int | None) -> list[str]:
    outputs = output_names(found.summed)
    lines = [
        f"{', '.join(outputs[s.results[0]])} = {step_line(s, names)}"
        for s in found.varying
        if s.name in ("sum", "dot")
    ]
    lines += [
        f"{shown_name(name)} = samples * {names[index]}"
        for name, index in found.outputs.items()
        if found.summed
    ]
    head = "== Reductions: sums over the samples"
    if not found.summed:
        return [head, "none: a value for each sample is wanted"]
    return [head, *cut(lines, most)]


def _rows(found: Plan, placed: Storage, names: PlanNames, most: int | None) -> list[str]:
    lines = []
    for position, step in enumerate(found.varying):
        places = [placed.row_of[r] for r in step.results if r in placed.row_of]
        if step.name in ("sum", "dot", "outer"):
            places = []
        lines.append(f"{_ranges(places):>5} {step_line(step, names, found.groups.get(position))}")
    return [
        "== Rows: a value is forgotten after its last use",
        "row   step",
        *cut(lines, most),
        f"rows: {placed.count}",
    ]


def _ranges(places: Sequence[int]) -> str:
    """Row numbers in short: ``3-6`` for neighbours."""
    if len(places) > 2 and list(places) == list(range(places[0], places[0] + len(places))):
        return f"{places[0]}-{places[-1]}  "
    return ",".join(map(str, places)) + "  "


def _counts(tape: Tape, found: Plan, placed: Storage) -> str:
    return (
        f"tape {_instructions(len(tape))} -> optimized {len(found.tape)}"
        f" -> {_counted(len(found.varying), 'step')} for every sample,"
        f" {_counted(len(found.uniform), 'step')} once a call; {_counted(placed.count, 'row')}"
    )


def _instructions(count: int) -> str:
    return _counted(count, "instruction")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _table(table: list[list[str]], most: int | None) -> list[str]:
    """Columns of text under each other; wide and long tables are cut."""
    wide = len(table[0])
    if most is not None and wide > 10:
        table = [[*row[:8], "...", row[-1]] for row in table]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  " + "  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
    return [lines[0], *cut(lines[1:], most)]
