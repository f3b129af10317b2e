"""Files in C99: a value, its derivatives and a ``main`` that checks them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from cgprimer.analysis.export.check_points import CheckPoint
from cgprimer.analysis.export.program_statements import Exported, Routine
from cgprimer.analysis.export.target_languages import INFIX, UNARY, Language, align_comments


def _define_function(name: str, arguments: Sequence[str], body: str) -> str:
    """Return the definition of a C function that evaluates an expression of doubles."""
    parameters = ", ".join(f"double {a}" for a in arguments)
    return f"static double {name}({parameters}) {{\n    return {body};\n}}"


_COMPUTE_SCALE = """\
/* Return max(1, fabs(a)), rounded down to a power of 2. */
static double compute_scale(double a) {
    double magnitude = isfinite(a) ? fabs(a) : 1.0;
    int exponent;
    frexp(magnitude > 1.0 ? magnitude : 1.0, &exponent);
    return ldexp(1.0, exponent - 1);
}"""
C = Language(
    texts={
        **INFIX, **{name: f"{name}({{a}})" for name in UNARY}, "pow": "pow({a}, {b})",
        "abs": "fabs({a})", "where": "({a} != 0.0 ? {b} : {c})",
        "less": "({a} < {b} ? 1.0 : 0.0)", "equal": "({a} == {b} ? 1.0 : 0.0)",
    },
    define=_define_function,
    helpers={"compute_scale": _COMPUTE_SCALE},
    special=("INFINITY", "NAN"),
)  # fmt: skip
_KEYWORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while asm typeof bool true false nullptr alignas alignof constexpr
    static_assert thread_local main value tangent gradient is_close step_size derivatives
    compute_scale printf fabs isfinite isnan frexp ldexp NULL EOF INFINITY NAN HUGE_VAL HUGE_VALF
    HUGE_VALL BUFSIZ stdin stdout
    stderr math_errhandling POINTS NAMES linux unix i386 errno
"""
_RESERVED = re.compile(r"_|MATH_|FP_|M_|SEEK_|TMP_|FILENAME_|FOPEN_|L_|P_")


def is_reserved(name: str) -> bool:
    """Return whether a word is already used by C, its headers or the exported file."""
    if _RESERVED.match(name):  # with a further final _, __LINE__ is not a macro
        return not name.endswith("_") or (name.endswith("__") and not name.endswith("___"))
    return name in _KEYWORDS.split() or name in C.list_words()


_TABLE = """\
/* Test points, reference values and tolerances, in the order of NAMES. */
static const struct {
    double at[ARGUMENTS], right[NUMBERS], within[NUMBERS];
} POINTS[] = {
ROWS
};
static const char *const NAMES[] = {
LABELS
};"""
_MAIN = """\
/* Return whether a number is within the tolerance; nan equals nan. */
static int is_close(double result, double expected, double tolerance) {
    int same = result == expected || (isnan(result) && isnan(expected));
    return same || fabs(result - expected) <= tolerance;
}

/* Check all results and return the exit code: 1 if a result is wrong, otherwise 0. */
int main(void) {
    int n_wrong = 0;
    for (unsigned k = 0; k < sizeof POINTS / sizeof POINTS[0]; k++) {
        const double *at = POINTS[k].at;
        double results[NUMBERS];
        results[0] = value(GIVEN);
        gradient(GIVEN, results + 1);
        for (unsigned i = 0; i < NUMBERS; i++) {
            double expected = POINTS[k].right[i];
            int correct = is_close(results[i], expected, POINTS[k].within[i]);
            n_wrong += !correct;
            printf("%s point %u: %s = %.17g", correct ? "ok   " : "WRONG", k, NAMES[i], results[i]);
            if (!correct) printf(", expected %.17g", expected);
            printf("\\n");
        }
    }
    if (n_wrong) printf("wrong results: %d\\n", n_wrong); else printf("all checks passed\\n");
    return n_wrong ? 1 : 0;
}"""


def build_c_file(exported: Exported, points: Sequence[CheckPoint], header: str) -> str:
    """Return the content of a C file that computes the graph and its derivatives."""
    functions = list(_define_functions(exported))
    n_numbers, n_arguments = 1 + len(exported.wrt), len(exported.arguments)
    tables = [[p.at, p.right, p.rounding] for p in points]
    rows = ",\n".join(
        "    {"
        + ",\n     ".join(f"{{{_format_initializers(table.values())}}}" for table in group)
        + "}"
        for group in tables
    )
    of = exported.idents[exported.of]
    labels = [of, *(f"d {of} / d {exported.idents[name]}" for name in exported.wrt)]
    table = _TABLE.replace("ROWS", rows).replace(
        "LABELS", ",\n".join(f'    "{label}"' for label in labels)
    )
    arguments = ", ".join(f"at[{k}]" for k in range(n_arguments))
    end = [
        text.replace("NUMBERS", str(n_numbers)).replace("ARGUMENTS", str(n_arguments))
        for text in (table, _MAIN.replace("GIVEN", arguments))
    ]
    helpers = C.collect_helpers(*functions)
    compile_ = "gcc -std=c99 -Wall -Wextra -Werror FILE.c -o FILE -lm && ./FILE"
    comment = "\n".join(f"// {line}".rstrip() for line in [*header.split("\n"), "", compile_])
    return (
        "\n\n".join([comment, "#include <math.h>\n#include <stdio.h>", *helpers, *functions, *end])
        + "\n"
    )


def _format_initializers(numbers: Iterable[float]) -> str:
    """Format numbers as the items in a C initializer list."""
    return ", ".join(C.format_number(float(n)).strip("()") for n in numbers)


def _define_functions(exported: Exported) -> Iterator[str]:
    """Yield the C code for ``value``, ``tangent`` (forward mode only) and ``gradient``."""
    of, arguments = exported.idents[exported.of], ", ".join(exported.arguments)
    end = [(f"return {exported.value.results[0]};", "")]
    yield _define_routine("double value", exported.value, f"Return {exported.of}.", end)
    routine = exported.sweep
    end = []
    if exported.differences:
        routine = Routine(exported.arguments, (), ())
        end = [("double step_size;", "")]
        for k, (name, size, quotient) in enumerate(exported.quotients()):
            comment = f"d {of} / d {exported.idents[name]}"
            end += [(f"step_size = {size};", ""), (f"derivatives[{k}] = {quotient};", comment)]
    elif exported.seeds:
        (result,) = routine.results
        comment = exported.describe_tangent()
        yield _define_routine("double tangent", routine, comment, [(f"return {result};", "")])
        routine = Routine(exported.arguments, (), ())
        for k, name in enumerate(exported.wrt):
            seed_values = ", ".join(
                str(float(s == exported.seeds[name])) for s in exported.seeds.values()
            )
            end.append(
                (
                    f"derivatives[{k}] = tangent({arguments}, {seed_values});",
                    f"d {of} / d {exported.idents[name]}",
                )
            )
    else:
        for k, (name, result) in enumerate(zip(exported.wrt, routine.results, strict=True)):
            end.append((f"derivatives[{k}] = {result};", f"d {of} / d {exported.idents[name]}"))
    comment = (
        f"Compute the derivatives of {exported.of} in the order of NAMES[1], NAMES[2], ..."
        f" ({exported.method})."
    )
    yield _define_routine("void gradient", routine, comment, end, ["double *derivatives"])


def _define_routine(
    name: str,
    routine: Routine,
    comment: str,
    end: list[tuple[str, str]],
    further_parameters: Sequence[str] = (),
) -> str:
    """Return the C definition of an exported function.

    Args:
        name: its return type and name.
        routine: its arguments and instructions.
        comment: the comment in front of it.
        end: its last lines of code, each with a comment.
        further_parameters: declarations of parameters after the arguments.
    """
    parameters = ", ".join([*(f"double {a}" for a in routine.arguments), *further_parameters])
    used = {name for line in routine.lines if not line.alias for name in line.operands}
    last = " ".join(code for code, _ in end)
    body = []
    for a in routine.arguments:
        if a not in used and not re.search(rf"\b{a}\b", last):
            body.append((f"(void) {a};", "unused parameter"))
    for line in routine.lines:
        if line.begins:
            body.append(("// the derivative", ""))
        code = f"{line.name} = {C.format_right_side(line)}"
        body.append((f"// {code}" if line.alias else f"const double {code};", line.note))
    lines = align_comments([(f"    {code}", note) for code, note in [*body, *end]], "//")
    return "\n".join([f"/* {comment} */", f"static {name}({parameters}) {{", *lines, "}"])
