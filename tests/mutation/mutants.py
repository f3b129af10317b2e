"""Planted bugs: sampled by a seed from the operators of cosmic-ray, or written by hand.

The sample needs no list in the repository. Every possible change of the package has a hash that
depends on the seed, the file, the line and the operator; the sample of a package consists of the
changes with the smallest hashes. Editing one file therefore leaves the sample of others as it was.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
PACKAGES = (
    "support",
    "core",
    "recording",
    "backends",
    "analysis",
    "training",
    "visualization",
    "course",
    "cli",
)
PER_PACKAGE = 25
SEED = 26

# Changes that look like a slip of a programmer. Operators that fail at once (+ replaced by <<) or
# that change type annotations (|) are left out.
OPERATORS = (
    "ReplaceBinaryOperator_Add_Sub",
    "ReplaceBinaryOperator_Sub_Add",
    "ReplaceBinaryOperator_Mul_Div",
    "ReplaceBinaryOperator_Div_Mul",
    "ReplaceBinaryOperator_FloorDiv_Mul",
    "ReplaceBinaryOperator_Mod_Mul",
    "ReplaceBinaryOperator_Pow_Mul",
    "ReplaceComparisonOperator_Eq_NotEq",
    "ReplaceComparisonOperator_NotEq_Eq",
    "ReplaceComparisonOperator_Lt_LtE",
    "ReplaceComparisonOperator_LtE_Lt",
    "ReplaceComparisonOperator_Gt_GtE",
    "ReplaceComparisonOperator_GtE_Gt",
    "ReplaceComparisonOperator_Is_IsNot",
    "ReplaceComparisonOperator_IsNot_Is",
    "ReplaceUnaryOperator_USub_UAdd",
    "ReplaceUnaryOperator_Delete_Not",
    "AddNot",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "NumberReplacer",
    "ZeroIterationForLoop",
)


@dataclass(frozen=True)
class Mutant:
    """One planted bug: `before` is replaced by `after` from line `line` (counted from 1) of `file`.

    `judgement` is empty, or says why no test can be asked to catch the bug: "equivalent: ..." for a
    change without effect, "cosmetic: ..." for a distance or a size in a picture.
    """

    name: str
    package: str
    file: str
    line: int
    before: str
    after: str
    judgement: str = ""

    @contextlib.contextmanager
    def planted(self, root: Path = ROOT) -> Iterator[None]:
        """Change the source file while the block runs."""
        path = root / self.file
        original = path.read_bytes()
        path.write_text(self.apply(original.decode("utf-8")), "utf-8", newline="")
        try:
            yield
        finally:
            path.write_bytes(original)

    def apply(self, source: str) -> str:
        """Return the source with the bug, raising ValueError if its lines are not found."""
        lines = source.split("\n")
        before = self.before.split("\n")
        starts = [i for i in range(len(lines)) if lines[i : i + len(before)] == before]
        if not starts:
            raise ValueError(f"{self.name}: these lines are no longer in {self.file}: {before}")
        start = min(starts, key=lambda i: abs(i + 1 - self.line))
        return "\n".join([*lines[:start], *self.after.split("\n"), *lines[start + len(before) :]])


def list_candidates(package: str, seed: int = SEED) -> list[tuple[str, Path, str, int]]:
    """Return (hash, path, operator, occurrence) of every possible change, ordered by hash."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator

    operators = {name: get_operator(f"core/{name}")() for name in OPERATORS}
    candidates = []
    for path in sorted((ROOT / "cgprimer" / package).rglob("*.py")):
        source = path.read_text("utf-8")
        lines = source.split("\n")
        relative = path.relative_to(ROOT).as_posix()
        occurrences: Counter[str] = Counter()
        repetitions: Counter[tuple[str, str]] = Counter()
        for node in ast_nodes(get_ast(source)):
            for name, operator in operators.items():
                for (row, _), _ in operator.mutation_positions(node):
                    text = lines[row - 1]
                    key = f"{seed}|{relative}|{name}|{text.strip()}|{repetitions[name, text]}"
                    digest = hashlib.sha256(key.encode()).hexdigest()
                    candidates.append((digest, path, name, occurrences[name]))
                    occurrences[name] += 1
                    repetitions[name, text] += 1
    return sorted(candidates)


def sample_mutants(package: str, count: int = PER_PACKAGE, seed: int = SEED) -> list[Mutant]:
    """Return the first `count` mutants of a package, at most one for each line."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    judgements = read_judgements()
    mutants: list[Mutant] = []
    for digest, path, operator, occurrence in list_candidates(package, seed):
        source = path.read_text("utf-8")
        mutated = mutate_code(source, get_operator(f"core/{operator}")(), occurrence)
        if mutated is None or _has_same_meaning(source, mutated):
            continue
        file = path.relative_to(ROOT).as_posix()
        line, before, after = _find_changed_lines(source, mutated)
        if "strict=" in before or (file, line) in {(m.file, m.line) for m in mutants}:
            continue  # the lengths that strict=True compares are always equal
        judgement = judgements.get((file, before.strip(), after.strip()), "")
        name = f"{package}-{digest[:6]}"
        mutants.append(Mutant(name, package, file, line, before, after, judgement))
        if len(mutants) == count:
            break
    return mutants


def read_planted(package: str | None = None) -> list[Mutant]:
    """Return the bugs of planted.json: written by hand, with lists of lines before and after."""
    records: list[dict[str, Any]] = json.loads((HERE / "planted.json").read_text("utf-8"))
    for record in records:
        record |= {key: "\n".join(record[key]) for key in ("before", "after")}
    mutants = [Mutant(**record) for record in records]
    return [mutant for mutant in mutants if package in (None, mutant.package)]


def read_judgements() -> dict[tuple[str, str, str], str]:
    """Return the judgements of judgements.json, keyed by file, line before and line after."""
    records = json.loads((HERE / "judgements.json").read_text("utf-8"))
    return {(r["file"], r["before"], r["after"]): r["judgement"] for r in records}


def _has_same_meaning(source: str, mutated: str) -> bool:
    """Return whether both sources have the same code, or the second has a syntax error."""
    try:
        trees = [ast.parse(text) for text in (source, mutated)]
    except SyntaxError:
        return True
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.arguments):  # def f(*, a) becomes def f(/, a)
                node.args, node.kwonlyargs, node.posonlyargs = [], [], []
    return ast.dump(trees[0]) == ast.dump(trees[1])


def _find_changed_lines(source: str, mutated: str) -> tuple[int, str, str]:
    """Return the first changed line (counted from 1), and the changed lines of both sources."""
    old, new = source.split("\n"), mutated.split("\n")
    start = next(i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    end = 0
    while end < min(len(old), len(new)) - start - 1 and old[-1 - end] == new[-1 - end]:
        end += 1
    return (
        start + 1,
        "\n".join(old[start : len(old) - end]),
        "\n".join(new[start : len(new) - end]),
    )
