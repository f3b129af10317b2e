"""What each pass makes of a tape, as text for a projector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cgprimer.core.language.syntax import Apply, Expression, Name, Number
from cgprimer.core.primitives.notation import unparse
from cgprimer.core.tape.passes import dead_code
from cgprimer.core.tape.printing import labels, listing, shown_name
from cgprimer.core.tape.scalars import scalarize
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import plural
from cgprimer.native.plans.making import plan
from cgprimer.native.plans.optimization import optimize
from cgprimer.native.plans.plan import Affine, Outer, Plan, Step
from cgprimer.native.plans.storage import Storage, storage_of

_FUSED = ("fma", "fms", "fnma")
_SUMS = ("sum", "dot")


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
        tape: any tape; one of arrays is written out in numbers.
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
    tape = scalarize(tape)
    found = plan(tape, sums=sums)
    names, placed, size = PlanNames(found.tape, found.size), storage_of(found), found.tape.size
    steps = [(s, step_line(s, names, found.groups.get(k))) for k, s in enumerate(found.varying)]
    uniform = [(s.results[0] < size, step_line(s, names)) for s in found.uniform]
    fused = [f"{t}{_taken_in(found.tape, s, names)}" for s, t in steps if s.name in _FUSED]
    matrices, products = _groups(found, names, most)
    if matrices:
        matrices[:0] = cut([f"once a call: {text}" for own, text in uniform if not own], most)
    none = "none" if found.summed else "none: a value for each sample is wanted"
    rows = cut([f"{_places(s, placed):>5} {text}" for s, text in steps], most)
    sections = [
        ("Dead code, sharing, whole powers", _optimized(tape, found, most)),
        ("Hoisting: once a call, not once a sample", cut([t for own, t in uniform if own], most)),
        ("Affine groups: sums of products over the same values are a matrix", matrices),
        ("Outer groups: all products of two lists, summed over the samples", products),
        ("Multiply-add: a product that only one sum uses is a part of it", cut(fused, most)),
        ("Sine and cosine of one value", cut([t for s, t in steps if s.name == "sincos"], most)),
        ("Reductions: sums over the samples", cut(_sums(found, steps, names), most) or [none]),
        (
            "Rows: a value is forgotten after its last use",
            ["row   step", *rows, f"rows: {placed.count}"],
        ),
    ]
    parts = ["\n".join((f"== {head}", *(lines or ["none"]))) for head, lines in sections]
    counts = (
        f"tape {plural(len(tape), 'instruction')} -> optimized {len(found.tape):,}"
        f" -> {plural(len(found.varying), 'step')} for every sample,"
        f" {plural(len(found.uniform), 'step')} once a call; {plural(placed.count, 'row')}"
    )
    return "\n\n".join([*parts, counts])


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
    merged = optimize(lean, powers=False)
    powers = optimize(merged)
    gone = sum(name == "pow" for name, _ in merged.instructions)
    gone -= sum(name == "pow" for name, _ in powers.instructions)
    return [
        f"dead code: {len(tape):,} -> {plural(len(lean), 'instruction')}",
        f"sharing:   {len(lean):,} -> {plural(len(merged), 'instruction')}",
        f"powers:    {len(merged):,} -> {plural(len(powers), 'instruction')};"
        f" {plural(gone, 'power')} multiplied out",
        *cut(listing(found.tape).split("\n"), most),
    ]


def _groups(found: Plan, names: PlanNames, most: int | None) -> tuple[list[str], list[str]]:
    """Matrices and blocks of products as tables."""
    matrices: list[str] = []
    products: list[str] = []
    outputs = output_names(found.summed)
    for group in found.groups.values():
        if isinstance(group, Affine):
            table = [["", *(names[i] for i in group.inputs), "bias"]]
            for o, row, b in zip(group.outputs, group.weights, group.biases, strict=True):
                table.append([f"{names[o]} =", *map(names.__getitem__, row)])
                table[-1].append(names[b] if b >= 0 else "-")
            matrices.append(f"{len(group.outputs)} sums over {len(group.inputs)} values")
            matrices += _table(table, most)
        else:
            table = [["", *(names[r] for r in group.right)]]
            for value, row in zip(group.left, group.numbers, strict=True):
                table.append([f"{names[value]} *"])
                table[-1] += [outputs[n][0] if n >= 0 else "-" for n in row]
            products.append(f"{len(group.left)} by {len(group.right)}")
            products += _table(table, most)
    return matrices, products


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


def _sums(found: Plan, steps: list[tuple[Step, str]], names: PlanNames) -> list[str]:
    if not found.summed:
        return []
    outputs = output_names(found.summed)
    return [
        *(f"{', '.join(outputs[s.results[0]])} = {t}" for s, t in steps if s.name in _SUMS),
        *(f"{shown_name(n)} = samples * {names[index]}" for n, index in found.outputs.items()),
    ]


def _places(step: Step, placed: Storage) -> str:
    """The rows of a step's results in short: ``3-6`` for neighbours."""
    places = [] if step.name in (*_SUMS, "outer") else [placed.row_of[r] for r in step.results]
    if len(places) > 2 and places == list(range(places[0], places[0] + len(places))):
        return f"{places[0]}-{places[-1]}  "
    return ",".join(map(str, places)) + "  "


def _table(table: list[list[str]], most: int | None) -> list[str]:
    """Columns of text under each other; wide and long tables are cut."""
    if most is not None and len(table[0]) > 10:
        table = [[*row[:8], "...", row[-1]] for row in table]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  " + "  ".join(map(str.rjust, row, widths)).rstrip() for row in table]
    return [lines[0], *cut(lines[1:], most)]
