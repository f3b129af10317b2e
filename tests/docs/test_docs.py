"""The documentation is run: examples, commands, links, tables, and the table of the lectures.

``python -m tests.docs.test_docs [PAGE.md ...]`` writes what the examples now print, the tables and
the listings into the pages. Read the difference before you keep it.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import fnmatch
import io
import json
import linecache
import math
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer

# The help of draw lists the picture formats when it is imported: before a page registers another.
import cgprimer.cli.draw_command
from cgprimer import networks, plot
from cgprimer.cli import cli
from tests.cli.cli_tools import environment, good, here, vectors_of, write_package
from tests.test_architecture import PACKAGES

ROOT = Path(__file__).parents[2]
LISTING = re.compile(r"^<!-- from (\S+): (.+?) -->\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINES, COLUMNS = 32, 100  # of 14 points on a slide of 13.33 by 7.5 inches


def with_listings(text: str) -> str:
    """Return a page with its listings of the package's code, without docstrings, taken again.

    A comment above a block says ``from FILE: NAME, NAME``. A name is a function, a class, an
    assignment, ``Class.method``, or the first argument of a call. ``NAME @ START`` is
    the first statement within that begins with START.
    """
    return LISTING.sub(
        lambda m: f"<!-- from {m[1]}: {m[2]} -->\n```{m[3]}\n{listed(*m.group(1, 2))}```", text
    )


@cache
def listed(file: str, names: str) -> str:
    source = (ROOT / file).read_text(encoding="utf-8")
    shown = [_shown(source, name) for name in names.split(", ")]
    apart = "\n" if any(text.startswith(("def ", "class ", "@")) for text in shown) else ""
    return apart.join(shown)


def _shown(source: str, name: str) -> str:
    name, _, start = name.partition(" @ ")
    module = ast.parse(source)
    node: ast.AST = module
    for part in name.split("."):
        node = next(n for n in ast.iter_child_nodes(node) if part in _names(n))
    lines = source.splitlines()
    if start:
        node = next(
            n for n in ast.walk(node)
            if isinstance(n, ast.stmt) and lines[n.lineno - 1].lstrip().startswith(start)
        )  # fmt: skip
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])  # type: ignore[attr-defined]
    kept = dict(enumerate(lines[first - 1 : node.end_lineno], first))  # type: ignore[attr-defined]
    for inner in ast.walk(node):
        body = getattr(inner, "body", None)
        if isinstance(inner, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(inner):
            assert isinstance(body, list)
            for number in range(body[0].lineno, body[0].end_lineno + 1):
                del kept[number]
            if isinstance(inner, ast.ClassDef):
                kept.pop(body[0].end_lineno + 1, None)  # the empty line behind it
    return textwrap.dedent("\n".join(kept.values())).replace("  # fmt: skip", "") + "\n"


def _names(node: ast.AST) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Expr(value=ast.Call(args=[ast.Constant(value=value), *_])):
            return [str(value)]
    return []


FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ARCHITECTURE = ROOT / "docs" / "internals" / "architecture.md"
# A block of code; the blocks of content tabs are indented by four columns. A title names the file
# in which readers save the block.
FENCE = re.compile(r"^( *)```(\w*(?: title=\"[\w.-]+\")?)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
DOWNLOAD = re.compile(r"\]\(([\w-]+\.csv)\)")
FLAGS = doctest.ELLIPSIS


def named(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


# --- running what the files show -----------------------------------------------------------------


@dataclass
class Mismatch:
    where: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.where}\nexpected:\n{self.expected}\ngot:\n{self.got}"


def run_python(text: str, names: dict[str, object], where: str, found: list[Mismatch]) -> str:
    """Run a block of ``>>>`` examples; returns the block with what they printed.

    A block without prompts is a program to paste; a comment behind a print is what it prints.
    """
    if ">>>" not in text:
        expected = "".join(f"{line}\n" for line in re.findall(r"^print\(.*\)  # (.*)$", text, re.M))
        if (got := printed_by(text, "exec", names)) != expected:
            found.append(Mismatch(where, expected, got))
        return text
    lines, shift = text.splitlines(keepends=True), 0
    for example in doctest.DocTestParser().get_examples(text):
        got, want = printed_by(example.source, "single", names), example.want
        if not doctest.OutputChecker().check_output(want, got, FLAGS):
            found.append(Mismatch(f"{where}: {example.source.splitlines()[0]}", want, got))
            first = example.lineno + example.source.count("\n") + shift
            lines[first : first + want.count("\n")] = got.splitlines(keepends=True)
            shift += got.count("\n") - want.count("\n")
    return "".join(lines)


def printed_by(source: str, mode: str, names: dict[str, object]) -> str:
    """Run a program; returns what it prints, and the error with which it ends."""
    file = f"<example {len(linecache.cache)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(), file)  # read by messages
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(compile(source, file, mode), names)  # noqa: S102 - the documentation is ours
        except Exception as error:
            message = "".join(traceback.format_exception_only(error))
            print(f"Traceback (most recent call last):\n    ...\n{message}", end="")
    return printed.getvalue()


def run_console(text: str, where: str, found: list[Mismatch]) -> str:
    """Run a block of ``$ cgprimer ...`` lines; returns the block with what they printed."""
    written = []
    for part in re.split(r"^(?=\$ )", text, flags=re.MULTILINE):
        if not part.strip():
            continue
        command, _, expected = part.partition("\n")
        got = run_command(command.removeprefix("$ "))
        if same(expected, got):
            written.append(part)
        else:
            found.append(Mismatch(f"{where}: {command}", expected, got))
            written.append(f"{command}\n{got}")
    return "".join(written)


def run_command(line: str) -> str:
    """What ``cgprimer ...`` prints on both streams.

    ``; echo $?``, ``echo TEXT |`` and ``CGPRIMER_VECTORS=BITS`` are known.
    """
    if line.startswith("CGPRIMER_VECTORS="):
        bits, line = line.removeprefix("CGPRIMER_VECTORS=").split(" ", 1)
        with vectors_of(bits):
            return run_command(line)
    typed = ""
    if line.startswith("echo "):
        shown, line = line.removeprefix("echo ").split(" | ")
        typed = shlex.split(shown)[0] + "\n"
    line, status, _ = line.partition("; echo $?")
    program, *arguments = shlex.split(line)
    if program == "head":
        number, file = arguments
        return "".join(Path(file).read_text().splitlines(keepends=True)[: -int(number)])
    assert program == "cgprimer", line
    done = here(*arguments, stdin=typed, merged=True)
    return done.stdout + (f"{done.returncode}\n" if status else "")


NUMBER = re.compile(r"((?<![\w.])[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?(?![\w]))")
WORD = re.compile(r"\S+")
TIME = "TIME"
TIMES = (
    re.compile(r"(\d+\.\d+) s;"),
    re.compile(r"(\S+)  (?:finished|diverged|converged)$", re.MULTILINE),
    re.compile(r"^(?:finite-|symbolic|forward|reverse|path-).*\s(\d+)$", re.MULTILINE),
)


def same(expected: str, got: str) -> bool:
    """Return whether two outputs agree up to times, last digits and what ``...`` stands for.

    Counts must be equal. Other numbers must agree to 1e-4; numbers below 1e-6 are rounding errors.
    Words must begin or end in the same columns, so that printed tables keep their alignment.
    """

    def without_times(text: str) -> str:
        spans = sorted(m.span(1) for pattern in TIMES for m in pattern.finditer(text))
        for start, end in reversed(spans):
            text = f"{text[:start]}{TIME}{text[end:]}"
        return text

    if doctest.OutputChecker().check_output(without_times(expected), without_times(got), FLAGS):
        return True
    lines = expected.splitlines(), got.splitlines()
    return len(lines[0]) == len(lines[1]) and all(map(same_line, *lines))


def same_line(expected: str, got: str) -> bool:
    """Return whether two lines agree up to times and the last digits of numbers."""
    lines = [split_words(line) for line in (expected, got)]
    if len(lines[0]) != len(lines[1]):
        return False
    shift = 0  # of the words behind a time
    for (word, start, end), (other, begin, finish) in zip(*lines, strict=True):
        if start != begin - shift and end != finish - shift and end != finish:
            return False
        if word == other == TIME:
            shift += (finish - begin) - (end - start)
        elif not same_word(word, other):
            return False
    return True


def split_words(line: str) -> list[tuple[str, int, int]]:
    """Return the words of a line with their columns; times of any length are equal words."""
    times = [match.span(1) for pattern in TIMES for match in pattern.finditer(line)]
    words = [(m[0], *m.span()) for m in WORD.finditer(line)]
    return [(TIME if (start, end) in times else word, start, end) for word, start, end in words]


def same_word(expected: str, got: str) -> bool:
    """Return whether two words agree up to last digits; rules of any length agree."""
    if {*expected} == {*got} == {"-"} and len(expected) > 2:
        return True
    left, right = NUMBER.split(expected), NUMBER.split(got)
    return len(left) == len(right) and all(map(_same_piece, left, right))


def _same_piece(expected: str, got: str) -> bool:
    if expected == got:
        return True
    if not (NUMBER.fullmatch(expected) and NUMBER.fullmatch(got)):
        return False
    if expected.lstrip("+-").isdecimal() and got.lstrip("+-").isdecimal():
        return False
    return math.isclose(float(expected), float(got), rel_tol=1e-4, abs_tol=1e-6)


@contextlib.contextmanager
def workplace(folder: Path) -> Iterator[None]:
    """Change to a folder with a copy of the examples."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    with contextlib.chdir(folder):
        yield


def run_file(path: Path, folder: Path) -> tuple[str, list[Mismatch]]:
    """Run every block of a file in its order; returns the file as it should be.

    A block with a title is saved under that name. Data files next to the page to which it links
    are copied into the folder, as readers download them.
    """
    text = path.read_text(encoding="utf-8")
    found: list[Mismatch] = []
    names: dict[str, object] = {}

    def run(block: re.Match[str]) -> str:
        where = f"{named(path)}:{text.count(chr(10), 0, block.start()) + 2}"
        indent, language, body = block.groups()
        language, _, title = language.partition(" ")
        if title:
            file = title.removeprefix("title=").strip('"')
            Path(file).write_text(textwrap.dedent(body), encoding="utf-8")
            return block[0]
        if language == "python":
            body = run_python(textwrap.dedent(body), names, where, found)
        elif language == "console":
            body = run_console(textwrap.dedent(body), where, found)
        else:
            return block[0]
        return textwrap.indent(f"```{language}\n{body}```", indent)

    with workplace(folder):
        for name in DOWNLOAD.findall(text):
            shutil.copyfile(path.parent / name, name)
        return FENCE.sub(run, text), found


# test_gallery.py runs the pages with a folder of pictures.
QUICK = {"README.md", "docs/index.md", "docs/learn/five-minutes.md", "docs/learn/neuron.md"}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=named(path), marks=[pytest.mark.slow] * (named(path) not in QUICK))
        for path in FILES
        if re.search("```(python|console)", path.read_text(encoding="utf-8"))
        and (named(path) in QUICK or not path.with_suffix("").is_dir())
    ],
)
def test_examples_print_what_the_page_shows(path: Path, tmp_path: Path) -> None:
    _, mismatches = run_file(path, tmp_path)
    assert not mismatches, "\n\n".join(map(str, mismatches))


def test_wrong_examples_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    blocks = (
        "```python\n>>> 1 + 1\n3\n>>> [1,  2]\n[1,  2]\n```\n"
        "```python\nprint(1 + 1)  # 3\n```\n"
        '```console\n$ cgprimer grad -e "xw = 2*xa" --at xa=1\nxw = 2.5\n```\n'
    )
    page.write_text(blocks)
    corrected, mismatches = run_file(page, tmp_path / "folder")
    gradient = "xw = 2.0\nd xw / d xa = 2.0\n"
    assert [m.got for m in mismatches] == ["2\n", "[1, 2]\n", "2\n", gradient]
    expected = blocks.replace("1\n3", "1\n2").replace("\n[1,  2]", "\n[1, 2]")
    assert corrected == expected.replace("xw = 2.5\n", gradient)


@pytest.mark.parametrize(
    ("expected", "got", "equal"),
    [
        ("loss 2.00001, 1.40 s; done", "loss 2.00002, 0.90 s; done", True),
        ("loss 2.001", "loss 2.002", False),
        ("error 3e-12", "error 0", True),
        ("1 pass", "2 pass", False),
        ("forward  1.5  9  120", "forward  1.5  9  88", True),
        ("forward  1.5  9  120", "forward  1.5  8  88", False),
        ("a ... d", "a b c d", True),
        ("forward  1.5  9  120", "forward  1.5  9   88", True),
        ("forward  1.5  9  120", "forward   1.5  9  120", False),
        ("name  value\n----  -----", "name value\n---- -----", False),
        ("k   2.0000001  a", "k         2.0  a", True),
    ],
)
def test_outputs_are_compared_up_to_times_and_last_digits(
    expected: str, got: str, equal: bool
) -> None:
    assert same(expected, got) is equal


# --- tables that are made from the package -------------------------------------------------------


INFIX = {"add": "a + b", "sub": "a - b", "mul": "a*b", "div": "a/b", "pow": "a^b", "neg": "-a",
         "copy": "a"}  # fmt: skip


def function_cells(row: dict[str, Any]) -> list[str]:
    """Return the cells of a function in the table, from what the command prints as JSON."""
    if "arity" not in row:
        return [f"`{row['function']}`", row["meaning"], f"`{row['reverse']}`"]
    operands = "abc"[: row["arity"]]
    call = INFIX.get(row["name"]) or f"{row['function']}({', '.join(operands)})"
    pairs = zip(operands, row["partials"], strict=True)
    partials = "<br>".join(f"d/d{operand}: `{text}`" for operand, text in pairs)
    domain = f"`{row['domain']}`" if re.search("[<>=|]", row["domain"]) else row["domain"]
    cells = [f"`{call}`", partials, domain, row["edges"].replace("*", r"\*")]
    return [cell.replace("|", r"\|") for cell in cells]


HEADS = {
    "functions": ("function", "derivatives", "domain", "edges"),
    "functions of arrays": ("array function", "meaning", "adjoints of the operands"),
}


def table(name: str) -> str:
    """Return a table of functions, which have an arity, or of those of arrays."""
    rows = json.loads(run_command("cgprimer primitives --json"))
    chosen = [row for row in rows if ("arity" in row) == (name == "functions")]
    lines = [HEADS[name], ["---"] * len(HEADS[name]), *map(function_cells, chosen)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


GENERATED = re.compile(r"(<!-- (functions(?: of arrays)?) -->\n).*?(\n<!-- end -->)", re.DOTALL)


def with_tables(text: str) -> str:
    """The text with its generated tables made anew."""
    return GENERATED.sub(lambda m: f"{m[1]}\n{table(m[2])}\n{m[3]}", text)


# --- links and names ------------------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    """The headings of a file as GitHub names them in links."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def broken_links(path: Path) -> list[str]:
    """Return the links of a page to files of the repository that do not lead to a heading."""
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", path.read_text(encoding="utf-8"))):
        file, _, anchor = target.partition("#")
        page = (path.parent / file).resolve() if file else path
        if not target.startswith(("http://", "https://")) and (
            not page.exists() or (anchor and anchor not in anchors(page))
        ):
            wrong.append(target)
    return wrong


@pytest.mark.parametrize("path", FILES, ids=named)
def test_tables_listings_links_and_file_names_are_current(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert with_listings(with_tables(text)) == text, "run: python -m tests.docs.test_docs"
    assert text.count("<!-- from ") == len(LISTING.findall(text))
    assert broken_links(path) == []
    files = re.findall(r"`((?:cgprimer|examples|tests|docs)/[\w./-]+)`", text)
    assert [name for name in files if not (ROOT / name).exists()] == []


def test_links_to_missing_files_and_headings_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A heading\n[a](#a-heading) [b](#another) [c](page.md) [d](none.md)\n")
    assert broken_links(page) == ["#another", "none.md"]


def test_bare_file_names_in_the_architecture_exist() -> None:
    """`foo.py` is a file of some folder; NAME stands for any name, as in `NAME_plot.py`."""
    names = re.findall(r"`([\w-]+\.(?:pyi?|md|toml|txt|json))`", ARCHITECTURE.read_text("utf-8"))
    assert len(names) > 20
    folders = [ROOT / name for name in ("cgprimer", "docs", "tests", "examples")]
    files = [path for folder in folders for path in folder.rglob("*.*")] + [*ROOT.glob("*.*")]
    existing = {path.name for path in files}
    patterns = {name: name.replace("NAME", "*") for name in names}
    assert [name for name, glob in patterns.items() if not fnmatch.filter(existing, glob)] == []


@pytest.mark.parametrize("name", list(cli.commands))
def test_every_command_has_a_section_that_ends_with_its_help(name: str) -> None:
    folder = ROOT / "docs" / "reference" / "commands"
    assert f".md#{name})" in (folder / "index.md").read_text("utf-8")
    pages = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md")))
    (text,) = re.findall(rf"^## {name}\n.*?(?=^##? |\Z)", pages, re.MULTILINE | re.DOTALL)
    kinds = [f"{name} {kind}" for kind in getattr(cli.commands[name], "commands", {})]
    assert re.findall(r"^### (.+)$", text, re.MULTILINE)[: len(kinds)] == kinds
    helps = re.findall(r"^<!-- help: cgprimer (.+) -->$", text, re.MULTILINE)
    assert helps == (kinds or [name])  # docs/site/build.py inserts them
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1 if kinds else 0 :]:
        assert part.rstrip().endswith("-->")


def test_packages_names_tables_and_listings_are_on_their_pages() -> None:
    architecture = ARCHITECTURE.read_text(encoding="utf-8")
    explained = re.findall(r"^\| `(\w+)(?:\.py|/)` \|", architecture, re.MULTILINE)
    assert explained == list(PACKAGES)
    text = "".join(path.read_text(encoding="utf-8") for path in FILES)
    assert set(cgprimer.__all__) - set(re.findall(r"\w+", text)) == set()
    assert {m[2] for m in GENERATED.finditer(text)} == set(HEADS)
    hour = (ROOT / "docs" / "teach" / "hour-with-the-code.md").read_text(encoding="utf-8")
    shown = {names: body.splitlines() for _, names, _, body in LISTING.findall(hour)}
    assert len(shown) > 10
    too_long = [n for n, b in shown.items() if len(b) > LINES or max(map(len, b)) > COLUMNS]
    assert too_long == []  # for a slide


def test_the_readme_has_two_commands_and_the_lecture_example() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) < 150
    _, heading, rest = text.partition("\n## Install and test\n")  # where .ci/run looks for them
    assert heading
    _, kind, body = FENCE.findall(rest)[0]
    first, second = body.splitlines()
    assert kind == "bash"
    assert first.endswith("cgprimer train examples/lecture.cg")
    assert second.endswith("pytest -q -n auto")
    lines = (ROOT / "examples" / "lecture.cg").read_text(encoding="utf-8").splitlines()
    shown = next(body for _, kind, body in FENCE.findall(text) if kind == "text")
    assert shown.splitlines() == [line for line in lines if not line.startswith("#")]


EXTENDED = {  # command lines, and a part of what they print
    'grad -e "xw = swish(k*xa)" --at k=1,xa=2 --method backprop': "d xw / d k = 2.1815",
    'grad -e "xw = swish(k*xa)" --at k=1,xa=2 --engine loop': "d xw / d k = 2.1815",
    "train lecture --optimizer signs --loss log-cosh --method backprop --engine loop --samples 60"
    " --epochs 2": "method backprop, engine loop, optimizer signs",
    "draw olah -o olah.edges": "wrote olah.edges",
    "info": "loop: available",
}
PRINTING = """
import shlex, sys
from tests.cli.cli_tools import here
print(*[here(*shlex.split(line), merged=True).stdout for line in sys.argv[1:]], sep="\\0")
"""


@pytest.mark.slow
def test_commands_use_the_extensions_of_an_installed_package(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "internals" / "extending.md").read_text(encoding="utf-8")
    blocks = {kind: body for _, kind, body in FENCE.findall(text)}
    project = tomllib.loads(blocks["toml"])["project"]
    write_package(tmp_path, "my_lecture", blocks["py"], project["entry-points"])
    process = subprocess.run(
        [sys.executable, "-c", PRINTING, *EXTENDED], capture_output=True, text=True, check=False,
        cwd=tmp_path, env=environment(PYTHONPATH=f"{tmp_path}:{ROOT}"),
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    for expected, printed in zip(EXTENDED.values(), process.stdout.split("\0"), strict=True):
        assert expected in printed
    edges = sorted((tmp_path / "olah.edges").read_text().splitlines())
    assert edges == ["a -> c", "b -> c", "b -> d", "c -> e", "d -> e"]


LECTURES = ROOT / "docs" / "teach" / "lectures.md"
ROW = re.compile(r"^\| (?P<item>[^|]+) \| `(?P<code>[^`]+)` \| (?P<more>[^|]+) \|$", re.MULTILINE)
ROWS = [(m["item"], m["code"]) for m in ROW.finditer(LECTURES.read_text(encoding="utf-8"))]
NAMES = {
    **{name: getattr(cgprimer, name) for name in ("Function", "Node", "Value", "primitive")},
    **{"cgprimer": cgprimer, "networks": networks, "np": np, "plot": plot},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the files that commands of the table read."""
    folder = tmp_path / "work"
    folder.mkdir()
    x = np.linspace(-2, 2, 60).tolist()
    rows = "".join(f"{v},{np.sin(3 * v)}\n" for v in x)
    (folder / "sine.csv").write_text(f"x,y\n{rows}")
    (folder / "one.csv").write_text("x,a\n1,0\n")
    (folder / "three.csv").write_text("x,y\n0,1\n1,1.6487212707001282\n2,2.718281828459045\n")
    with workplace(folder):
        pass
    return folder


def test_every_line_of_the_table_is_read() -> None:
    lines = LECTURES.read_text(encoding="utf-8").splitlines()
    bodies = [li for li in lines if li.startswith("| ") and not li.startswith(("| item", "| ---"))]
    assert len(bodies) == len(ROWS) == len({item for item, _ in ROWS}) > 60


@pytest.mark.slow
@pytest.mark.parametrize(("item", "code"), ROWS, ids=[item for item, _ in ROWS])
def test_code_of_the_table_runs(item: str, code: str, folder: Path) -> None:
    program, *words = shlex.split(code) if code.startswith("cgprimer ") else [code]
    if program == "cgprimer":
        good(*words, cwd=folder)
        if "-o" in words:
            assert (folder / words[words.index("-o") + 1]).stat().st_size > 0
    elif program.endswith(".py"):
        assert (ROOT / "examples" / program).is_file()
    else:
        exec(code, dict(NAMES))  # noqa: S102


def write(names: list[str]) -> None:
    """Bring the pages whose paths end with these names up to date, or all pages."""
    import tempfile

    for path in FILES:
        if names and not any(f"/{named(path)}".endswith(f"/{name}") for name in names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            text, found = run_file(path, Path(folder))
        path.write_text(with_listings(with_tables(text)), encoding="utf-8")
        for mismatch in found:
            print(f"rewritten: {mismatch.where}")


if __name__ == "__main__":
    write(sys.argv[1:])
