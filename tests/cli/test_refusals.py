"""Wrong use: exit code 2, one readable message on standard error, nothing on standard output."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import cgprimer
from tests.approval import approved, refused
from tests.cli.cli_tools import LECTURE, bad, good, run

REFUSALS: list[tuple[str, str]] = [  # command lines, and the values in their messages
    ("nosuch", "'nosuch' ... cgprimer --help"),
    ("gard lecture", "'gard' ... 'grad'"),
    ("check gradent", "'gradent' ... 'gradient'"),
    ("plot lecture", "'lecture' ... FILE"),
    ("grad", "-e TEXT"),
    ("grad lecture lecture", "(lecture)"),
    ("grad lecture -e xw=1", "-e"),
    ("grad a=2 -e xw=a", "--at a=2,x=3"),
    ("grad lectur", "lectur ... 'lecture'"),
    ("grad examples/lecture.cg", "'lecture'"),
    ("grad nosuch.cg", "nosuch.cg"),
    ("grad .", "."),
    ("grad binary.cg", "binary.cg"),
    ("grad empty.cg", "empty.cg"),
    ("train empty.cg", "expressions"),
    ("grad 'xw = xa^2'", "xw = xa^2 ... -e"),
    ("grad forward", "--method forward"),
    ("draw adjoints", "--adjoints"),
    ("grad lecture --foo", "--foo"),
    ("grad lecture --method", "--method"),
    ("grad lecture --wrt xa ab", "(ab)"),
    ("train lecture -epochs 3", "'-epochs' ... '--epochs'"),
    ("train lecture --lr 0.1", "'--learning-rate'"),
    ("grad lecture --lr 0.1", "--lr"),
    ("grad -e 'xw = 1 +'", "<command line>:1:9"),
    ("grad -e 'xw = tahn(xa)'", "<command line>:1:6 ... 'tanh'"),
    ("grad wrong.cg", "wrong.cg:3:"),
    ("info -e 'xa = xb; xb = xa'", "xa -> xb -> xa"),
    ("grad -e 'a = 1; xw = 2*a'", "parameter ab = 1"),
    ("grad -e 'xw = k*xa' --at k=2", "--at xa="),
    ("grad lecture --at xa", "NAME=VALUE ... 'xa'"),
    ("grad lecture --at =1", "NAME=VALUE ... '=1'"),
    ("grad lecture --at xa=abc", "'abc'"),
    ("grad lecture --at xa=1 --at xa=2", "xa"),
    ("grad lecture --at xa=1,2", "'2' ... xa=[1,2]"),
    ("grad lecture --at xq=1", "'xq'"),
    ("grad lecture --at xx=1", "'xx'"),
    ("grad lecture --at broken.json", "broken.json"),
    ("grad matrix_backpropagation --at x=[1,2", "'x=[1,2'"),
    ("grad matrix_backpropagation --at x=[a]", "'[a]' ... x"),
    ("grad matrix_backpropagation --at x=1]", "'1]' ... x"),
    ("grad matrix_backpropagation --at w1=[1,2]", "[2, 2] ... [2]"),
    ("grad sine_chain --at w=0:1,b=0", "LOW:HIGH:COUNT"),
    ("grad sine_chain --at w=0:1:1,b=0", "LOW:HIGH:COUNT"),
    ("grad sine_chain --at w=0:1:x,b=0", "LOW:HIGH:COUNT"),
    ("grad sine_chain --at w=0:inf:3,b=0", "LOW:HIGH:COUNT"),
    ("grad sine_chain --at w=0:1:1e9,b=0", "LOW:HIGH:COUNT"),
    ("grad lecture --step 1e-3", "--step ... --method finite-difference"),
    ("grad lecture --no-symbolic-share", "--method symbolic"),
    ("grad lecture --method forwards", "'forwards' ... 'forward'"),
    ("grad lecture --engine abacus", "'abacus' ... numpy"),
    ("grad lecture --simplify", "--show"),
    ("grad lecture --loss '(xww - y)^2' --at y=1", "'xw'"),
    ("grad lecture --loss '(xw - y)^2'", "'y'"),
    ("draw lecture --loss croos-entropy", "'cross-entropy'"),
    ("trace lecture --format word", "'word' ... markdown"),
    ("trace lecture --method reverse --wrt xa", "reverse"),
    ("tape lecture --wrt ab", "--method"),
    ("tape lecture --method reverse --step 1e-3", "--step ... --method finite-difference"),
    ("tape lecture --passes --code cpu", "--passes ... --code"),
    ("tape lecture --code tpu", "'tpu'"),
    ("rules lectrue", "'lecture'"),
    ("rules x²", "'^2'"),
    ("rules homework/x.cg", "homework/x.cg"),
    ("rules 'x*'", "<formula>:1:3"),
    ("rules", "FILE ... -e FORMULA"),
    ("rules 'W @ x'", "arrays"),
    ("rules x^2 --functions q", "'q'"),
    ("primitives tahn", "'tahn' ... 'tanh'"),
    ("compare lecture -o a.gif", "a.gif ... .html, .pdf, .png, .svg"),
    ("compare nosuch.cg -o a.gif", "a.gif"),
    ("compare lecture -o missing/a.pdf", "missing"),
    ("compare lecture -o a.pdf --json", "-o ... --json"),
    ("compare lecture --title a", "--title ... -o"),
    ("draw lecture -o a.gif", ".png, .svg, .pdf"),
    ("draw lecture -o nosuch/a.png", "nosuch"),
    ("draw lecture -o text.dot", "text.dot"),
    ("step lecture -o text.html", "text.html"),
    ("data lecture -o a.txt", ".csv, .npz or .parquet"),
    ("data lecture --samples 0", "--samples"),
    ("data lecture --low 1 --high 0", "low ... high"),
    ("data -e 'xw = k*xa'", "k ... --truth"),
    ("data -e 'xw = k*log(xa)' --truth k=1", "'xw' ... nan ... --low"),
    ("examples --topic graphics", "Arrays"),
    ("examples --copy lectur", "'lecture'"),
    ("train lecture --batch-size 0", "--batch-size ... 'all'"),
    ("train lecture --data d.csv --truth ab=1", "--truth"),
    ("train lecture --data words.csv", "words.csv:3 ... 'oops'"),
    ("train lecture --data d.csv --columns xa=t", "'t'"),
    ("train lecture --loss target^2", "out"),
    ("train lecture --start zz=1", "'zz'"),
    ("train lecture --freeze cd --bounds cd=0:1", "3 ... cd"),
    ("train lecture --optimizer gauss-newton", "cgprimer fit"),
    ("train lecture --optimizer momentum --hyper bta=1", "'beta'"),
    ("train lecture --schedule cosin", "'cosine'"),
    ("train lecture --l2 abc", "'abc'"),
    ("train lecture --bounds ab=1", "LOW:HIGH"),
    ("train lecture --bounds ab=2:1", "ascend"),
    ("train lecture --validation 1.5", "fraction"),
    ("train lecture --validation nan", "fraction"),
    ("train lecture --validation words.csv", "words.csv:3"),
    ("train lecture --save nosuch/run.json", "nosuch"),
    ("train lecture --save .", "."),
    ("train lecture --plot loss.bmp", "loss.bmp"),
    ("train lecture --save d.csv", "d.csv ... --force"),
    ("train graph.cg --data d.csv --save ./graph.cg --force", "graph.cg"),
    ("train lecture --resume text.dot", "text.dot"),
    ("train lecture --resume empty.cg", "empty.cg"),
    ("predict broken.json --data d.csv -o d.csv --force", "d.csv"),
    ("fit exponential --weights w", "--weights ... --data"),
    ("fit exponential --bounds k=0:1,k=0:2", "k"),
    ("fit exponential --bounds q=0:1", "'q'"),
    ("fit exponential --bootstrap 1", "1"),
    ("fit exponential --level 95", "0 ... 1"),
    ("fit exponential --carry", "--method forward"),
    ("fit exponential --first-damping 3 --algorithm dogleg", "first_damping"),
    ("fit exponential --resample pairs", "--bootstrap"),
    ("fit exponential --data d.csv --noise 3", "--noise"),
    ("fit exponential --plot fit.word", "fit.word"),
    ("plot error -e 'xw = sin(xa)' --at xa=1", "-o"),
    ("plot error -e 'xw = sin(xa)' --at xa=1 -o a.jpg", ".pdf"),
    ("plot loss -o a.png", "RUN"),
    ("plot loss run.json run.json -o a.png", "twice"),
    ("plot loss nan.json -o a.png", "finite"),
    ("plot parameters none.json -o a.png", "'none' ... --epochs"),
    ("plot parameters run.json --names cx -o a.png", "'cx'"),
    ("plot parameters run.json --final --log-steps -o a.png", "--log-steps"),
    ("plot cost --sizes 1,x -o a.png", "'x'"),
    ("plot boundary run.json -o a.png", "--data"),
    ("plot boundary run.json --data d.csv -o a.jpg", ".gif, .html"),
    ("plot descent lecture --rates sgd=1 -o a.png", "sgd"),
    ("plot batches lecture --batches 6 -o a.png", "5"),
    ("plot surface lecture --3d --gradient 1 -o a.png", "3-D"),
    ("plot surface lecture --range 1-2 -o a.png", "LOW:HIGH"),
    ("plot function -e 'xw = xa' --range 2:1 -o a.png", "ascend"),
    ("exercise --students empty.csv", "empty.csv"),
    ("exercise lecture --kind tracing", "'tracing'"),
    ("exercise --difficulty 4", "'4'"),
    ("exercise -o d.csv", "d.csv"),
    ("check trace d.csv d.csv", "d.csv"),
    ("check trace", "'SHEET'"),
    ("check gradient graph.cg sub.py --csv sub.py --force", "sub.py"),
    ("check gradient graph.cg sub.py --csv new --page new --force", "new"),
    ("check formula lecture 1,2,3,4 --at xa=0:1:3", "xa"),
    ("check formula 'd(x) = 1' --at x=inf", "finite"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with files of most kinds, right and wrong, which no test changes."""
    folder = tmp_path_factory.mktemp("refusals")
    texts = {
        "graph.cg": "xw = k*xa + b; parameter k = 3, b = -1",
        "wrong.cg": "# a comment\nxa = 1\nxw = (2*xa + 1\n",
        "empty.cg": "",
        "text.dot": "my homework",
        "text.html": "my homework",
        "d.csv": "xa,xw\n1,2\n0,1\n",
        "words.csv": "xa,xw\n1,2\n3,oops\n",
        "empty.csv": "name,id\n",
        "sub.py": "def gradient(xa, k): return xa",
        "broken.json": '{"format": "cgprimer-fit"}',
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "binary.cg").write_bytes(bytes(range(256)))
    graph = cgprimer.load(folder / "graph.cg")
    data = cgprimer.make_dataset(graph, samples=10)
    cgprimer.train(graph, data, epochs=0).save(folder / "none.json")
    cgprimer.train(graph, data, epochs=2).save(folder / "run.json")
    fields = json.loads((folder / "run.json").read_text())
    fields |= {name: ["nan"] * len(fields[name]) for name in ("step_losses", "epoch_losses")}
    (folder / "nan.json").write_text(json.dumps(fields))
    return folder


@pytest.mark.parametrize(("line", "values"), REFUSALS, ids=[line for line, _ in REFUSALS])
def test_wrong_use_is_refused_and_changes_no_file(line: str, values: str, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    message = bad(*shlex.split(line), cwd=folder)
    approved(message.replace(f"{folder}/", ""), values)
    assert "defect" not in message
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("line", "values"),
    [
        (
            "train graph.cg --optimizer sgd --learning-rate 1e300 --batch-size all",
            "--learning-rate",
        ),
        ("grad lecture --method path-sum --path-limit 1 --wrt xa", "--path-limit"),
        ("fit lecture --samples 50 --algorithm gauss-newton --json", "singular"),
    ],
)
def test_failed_jobs_have_exit_code_1(line: str, values: str, folder: Path) -> None:
    process = run(*shlex.split(line), cwd=folder)
    assert process.returncode == 1
    approved(process.stderr, values)


@pytest.mark.parametrize("text", ["", "xa = = 1"])
def test_errors_in_standard_input_are_located(text: str) -> None:
    approved(bad("grad", "-", stdin=text), "<stdin>")


def test_long_expressions_without_option_are_refused() -> None:
    text = "xw = xa" + " + xa" * 99  # too long for the name of a file
    assert "File name too long" in bad("grad", text)
    assert "unknown command 'xw" in bad(text)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device")
def test_endless_files_are_refused() -> None:
    approved(bad("grad", "/dev/zero"))


def test_generated_files_are_replaced_and_texts_of_users_are_kept(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    for name in ("a.dot", "a.mmd", "a.tex", "a.png"):
        (tmp_path / name).touch()  # an empty file of mktemp
        for _ in range(2):
            good("draw", LECTURE, "-o", name, cwd=tmp_path)
    for _ in range(2):
        good("compare", LECTURE, "-o", page)
    page.write_text("my homework")
    with refused(cgprimer.UsageError):
        cgprimer.step(cgprimer.parse("xw = k*xa"), {"k": 1, "xa": 2}, output=page)
    assert page.read_text() == "my homework"
