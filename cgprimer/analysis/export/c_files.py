"""Files in C99: a value, its derivatives and a ``main`` that checks them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from cgprimer.analysis.export.check_points import Checked
from cgprimer.analysis.export.program_statements import Exported, Routine
from cgprimer.analysis.export.target_languages import INFIX, UNARY, Language, aligned


def _define(name: str, arguments: Sequence[str], body: str) -> str:
    given = ", ".join(f"double {a}" for a in arguments)
    return f"static double {name}({given}) {{\n    return {body};\n}}"


_DISTANCE = """\
/* The size of a number, 1 or more, rounded down to a power of two. */
static double distance(double a) {
    double size = isfinite(a) ? fabs(a) : 1.0;
    int power;
    frexp(size > 1.0 ? size : 1.0, &power);
    return ldexp(1.0, power - 1);
}"""
C = Language(
    texts={
        **INFIX, **{name: f"{name}({{a}})" for name in UNARY}, "pow": "pow({a}, {b})",
        "abs": "fabs({a})", "where": "({a} != 0.0 ? {b} : {c})",
        "less": "({a} < {b} ? 1.0 : 0.0)", "equal": "({a} == {b} ? 1.0 : 0.0)",
    },
    define=_define,
    helpers={"distance": _DISTANCE},
    special=("INFINITY", "NAN"),
)  # fmt: skip
_KEYWORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while asm typeof bool true false nullptr alignas alignof constexpr
    static_assert thread_local main value tangent gradient wrong same move slopes distance size
    printf
    fabs isfinite frexp ldexp NULL EOF INFINITY NAN HUGE_VAL HUGE_VALF HUGE_VALL BUFSIZ stdin stdout
    stderr math_errhandling POINTS NAMES linux unix i386 errno
"""
_RESERVED = re.compile(r"_|MATH_|FP_|M_|SEEK_|TMP_|FILENAME_|FOPEN_|L_|P_")


def taken(name: str) -> bool:
    """Whether the language, its headers or the file have a word; it then gets ``_`` behind it."""
    if _RESERVED.match(name):  # with one more _ behind, __LINE__ is no macro any more
        return not name.endswith("_") or (name.endswith("__") and not name.endswith("___"))
    return name in _KEYWORDS.split() or name in C.words()


_TABLE = """\
/* Points, what is right there, and by how much rounding errors may move each number: the value
   first, then the derivatives. */
static const struct {
    double at[ARGUMENTS], right[NUMBERS], within[NUMBERS];
} POINTS[] = {
ROWS
};
static const char *const NAMES[] = {
LABELS
};"""
_MAIN = """\
/* Whether a number is right, an infinite one and one that is none, too. */
static int same(double found, double right, double within) {
    return found == right || (found != found && right != right) || fabs(found - right) <= within;
}

/* Checks all that the file says; the exit code is 1 if something is wrong. */
int main(void) {
    int wrong = 0;
    for (unsigned k = 0; k < sizeof POINTS / sizeof POINTS[0]; k++) {
        const double *at = POINTS[k].at;
        double found[NUMBERS];
        found[0] = value(GIVEN);
        gradient(GIVEN, found + 1);
        for (unsigned n = 0; n < NUMBERS; n++) {
            int good = same(found[n], POINTS[k].right[n], POINTS[k].within[n]);
            wrong += !good;
            printf("%s point %u: %s = %.17g", good ? "ok   " : "WRONG", k, NAMES[n], found[n]);
            if (!good) printf(", not %.17g", POINTS[k].right[n]);
            printf("\\n");
        }
    }
    if (wrong) printf("%d wrong\\n", wrong); else printf("all right\\n");
    return wrong ? 1 : 0;
}"""


def c_file(made: Exported, points: Sequence[Checked], header: str) -> str:
    """The whole file; what the header says is put into comments."""
    functions = list(_functions(made))
    numbers, arguments = 1 + len(made.wrt), len(made.arguments)
    tables = [[p.at, p.right, p.rounding] for p in points]
    rows = ",\n".join(
        "    {" + ",\n     ".join(f"{{{_row(table.values())}}}" for table in three) + "}"
        for three in tables
    )
    of = made.idents[made.of]
    labels = [of, *(f"d {of} / d {made.idents[name]}" for name in made.wrt)]
    table = _TABLE.replace("ROWS", rows).replace(
        "LABELS", ",\n".join(f'    "{label}"' for label in labels)
    )
    given = ", ".join(f"at[{k}]" for k in range(arguments))
    end = [
        text.replace("NUMBERS", str(numbers)).replace("ARGUMENTS", str(arguments))
        for text in (table, _MAIN.replace("GIVEN", given))
    ]
    helpers = C.needed(*functions)
    compile_ = "gcc -std=c99 -Wall -Wextra -Werror FILE.c -o FILE -lm && ./FILE"
    said = "\n".join(f"// {line}".rstrip() for line in [*header.split("\n"), "", compile_])
    return (
        "\n\n".join([said, "#include <math.h>\n#include <stdio.h>", *helpers, *functions, *end])
        + "\n"
    )


def _row(numbers: Iterable[float]) -> str:
    return ", ".join(C.number(float(n)).strip("()") for n in numbers)


def _functions(made: Exported) -> Iterator[str]:
    of, given = made.idents[made.of], ", ".join(made.arguments)
    end = [(f"return {made.value.results[0]};", "")]
    yield _function("double value", made.value, f"{made.of} at a point.", end)
    slopes, routine = made.wrt, made.sweep
    end = []
    if made.differences:
        routine = Routine(made.arguments, (), ())
        end = [("double move;", "")]
        for k, (name, size, quotient) in enumerate(made.quotients()):
            said = f"d {of} / d {made.idents[name]}"
            end += [(f"move = {size};", ""), (f"slopes[{k}] = {quotient};", said)]
    elif made.seeds:
        (result,) = routine.results
        said = f"The derivative of {made.of} along a direction: each name times its seed."
        yield _function("double tangent", routine, said, [(f"return {result};", "")])
        routine = Routine(made.arguments, (), ())
        for k, name in enumerate(slopes):
            ones = ", ".join(str(float(s == made.seeds[name])) for s in made.seeds.values())
            end.append(
                (f"slopes[{k}] = tangent({given}, {ones});", f"d {of} / d {made.idents[name]}")
            )
    else:
        for k, (name, result) in enumerate(zip(slopes, routine.results, strict=True)):
            end.append((f"slopes[{k}] = {result};", f"d {of} / d {made.idents[name]}"))
    said = f"The derivatives of {made.of}, in the order of NAMES: {made.method}."
    yield _function("void gradient", routine, said, end, ["double *slopes"])


def _function(
    name: str, routine: Routine, said: str, end: list[tuple[str, str]], more: Sequence[str] = ()
) -> str:
    given = ", ".join([*(f"double {a}" for a in routine.arguments), *more])
    used = {word for line in routine.lines if not line.alias for word in line.operands}
    last = " ".join(code for code, _ in end)
    body = []
    for a in routine.arguments:
        if a not in used and not re.search(rf"\b{a}\b", last):
            body.append((f"(void) {a};", "nothing here depends on it"))
    for line in routine.lines:
        if line.begins:
            body.append(("// the derivative", ""))
        code = f"{line.name} = {C.line(line)}"
        body.append((f"// {code}" if line.alias else f"const double {code};", line.note))
    lines = aligned([(f"    {code}", note) for code, note in [*body, *end]], "//")
    return "\n".join([f"/* {said} */", f"static {name}({given}) {{", *lines, "}"])
