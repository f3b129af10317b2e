"""How objects show themselves in a notebook: pictures and tables, with text for whoever needs it.

The package attaches this to the classes of its objects from above (`cgprimer/__init__.py`), so that
no graph, tape or trace knows of pictures or pages. A picture comes as SVG and as PNG: a notebook
that is not trusted by its reader shows only the latter. Nothing is wider than its cell.

Source: IPython, "Integrating your objects with IPython", rich display.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from cgprimer.analysis.text_tables import html_table
from cgprimer.errors import CgprimerError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cgprimer.analysis.comparison import Comparison
    from cgprimer.analysis.trace import Trace
    from cgprimer.expressions import ExpressionGraph
    from cgprimer.recording.graph_memory import Memory
    from cgprimer.training.ensembles import Ensemble
    from cgprimer.training.fitting.fit_result import Fit
    from cgprimer.training.predictions import Score
    from cgprimer.training.runs import TrainingRun
    from cgprimer.training.sweeps import Sweep
    from cgprimer.visualization.pages.stepping.step_page import Page

Bundle = dict[str, str]  # media type to content; pictures that are no text in base 64
_MOST_LINES = 200  # of a text or a table
_MOST_LETTERS = 200  # of a line of text
_LARGEST_SVG = 2_000_000  # characters; beyond them a notebook gets slow, and the PNG is smaller
_FRAME_HEIGHT = 720  # pixels of a page in a cell; the page itself scrolls
_ALLOWED = 'sandbox="allow-scripts" allow="fullscreen"'  # to a page: nothing of the notebook


def bundle(shown: object) -> Bundle:
    """What a notebook shows of an object, by media type; only its `repr` where nothing is drawn.

    >>> import cgprimer
    >>> sorted(bundle(cgprimer.parse("xw = ab*xa")))
    ['image/png', 'image/svg+xml', 'text/plain']
    >>> bundle(cgprimer.tape(cgprimer.parse("xw = less(xa, ab)")))["text/html"].split("\\n")[3]
    'xw = less(xa, ab)'
    """
    content: Bundle = {"text/plain": f"{shown!r:.{_MOST_LETTERS}}"}
    if _shows_only_text():
        return content
    view = next(_VIEWS[c.__name__] for c in type(shown).__mro__ if c.__name__ in _VIEWS)
    try:
        return content | view(shown)
    except CgprimerError:
        return content  # nothing to draw, or no library that could


def show_figures() -> None:
    """Show figures in the notebook that runs, if one does, without `%matplotlib inline`.

    Figures that belong to pyplot are left to it.
    """
    shell = sys.modules["IPython"].get_ipython()
    if shell is not None:
        register = shell.display_formatter.mimebundle_formatter.for_type_by_name
        register("matplotlib.figure", "Figure", _own_figure)


def _shows_only_text() -> bool:
    """Whether this is IPython in a terminal, for which drawing would be in vain."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and "image/svg+xml" not in shell.display_formatter.active_types


def _own_figure(figure: Figure) -> Bundle | None:
    of_pyplot = getattr(figure.canvas, "manager", None) is not None
    return None if of_pyplot or _shows_only_text() else _figure(figure)


def _figure(figure: Figure) -> Bundle:
    from cgprimer.visualization.diagrams.figure_files import figure_bytes

    content = {"image/png": base64.b64encode(figure_bytes(figure, "png")).decode()}
    picture = figure_bytes(figure, "svg").decode()
    if len(picture) <= _LARGEST_SVG:
        # Into a page it goes without a prologue, and no wider than the cell.
        picture = picture[picture.index("<svg") :]
        fitting = '<svg style="max-width: 100%; height: auto"'
        content["image/svg+xml"] = picture.replace("<svg", fitting, 1)
    return content


def _graph(graph: ExpressionGraph) -> Bundle:
    from cgprimer.visualization.diagrams.drawing import draw

    return _figure(draw(graph))


def _program(program: object) -> Bundle:
    lines = str(program).split("\n")
    shown = [line if len(line) <= _MOST_LETTERS else line[:_MOST_LETTERS] + " …" for line in lines]
    text = "\n".join([*shown[:_MOST_LINES], *_left_out(lines, "lines")])
    return {"text/html": f'<pre style="max-height: 30em; overflow: auto">\n{escape(text)}\n</pre>'}


def _trace(trace: Trace) -> Bundle:
    from cgprimer.support.number_format import format_array

    rows = [
        [r.name, r.expression, format_array(r.value), format_array(r.derivative)]
        for r in trace.rows
    ]
    table = _table(["name", "expression", "value", trace.heading], rows, left=2)
    if trace.backward:
        steps = [[r.name, r.expression, format_array(r.value)] for r in trace.backward]
        table += "\n" + _table(["backward", "expression", "value"], steps, left=2)
    return {"text/html": table, "text/plain": str(trace)}


def _comparison(found: Comparison) -> Bundle:
    from cgprimer.visualization.pages.comparison.comparison_page import notebook_html
    from cgprimer.visualization.pages.comparison.comparison_slides import draw_comparison

    picture = _figure(draw_comparison(found))["image/png"]
    return {"text/html": notebook_html(found), "image/png": picture, "text/plain": str(found)}


def _run(run: TrainingRun) -> Bundle:
    from cgprimer.support.number_format import format_number
    from cgprimer.visualization.plots.loss_plot import loss

    run = run.in_numbers()
    names = list(run.parameters)
    columns = {"start": run.start, "learnt": run.parameters, "true": run.truth}
    given = {title: values for title, values in columns.items() if values}
    rows = [[n, *(format_number(values.get(n)) for values in given.values())] for n in names]
    losses = f"loss {format_number(run.start_loss)} → {format_number(run.loss)}"
    said = escape(f"{run.stopped} after {run.steps:,} steps, {losses}")
    picture = _figure(loss(run)) if run.step_losses else {}
    parts = (f"<p>{said}</p>", _table(["parameter", *given], rows, left=1))
    return {"text/html": "\n".join([*parts, picture.pop("image/svg+xml", "")]), **picture}


def _fit(found: Fit) -> Bundle:
    from cgprimer.support.number_format import format_number
    from cgprimer.visualization.plots.fit_plot import fit

    errors = found.standard_errors
    rows = [
        [n, format_number(v), format_number(errors.get(n))] for n, v in found.parameters.items()
    ]
    how = "converged" if found.converged else "not converged"
    said = "".join(f"<p>{escape(s)}</p>\n" for s in (f"{how}: {found.reason}", *found.sentences))
    table = _table(["parameter", "value", "standard error"], rows, left=1)
    return _with_picture(said + table, fit(found), repr(found))


def _sweep(found: Sweep) -> Bundle:
    from cgprimer.visualization.plots.sweep_plot import sweep

    header, rows, left = found.cells()
    return _with_picture(_table(header, rows, left=left), sweep(found), found.table())


def _ensemble(bag: Ensemble) -> Bundle:
    from cgprimer.support.number_format import format_number
    from cgprimer.visualization.plots.loss_plot import loss

    rows = [
        [name.replace("-", " "), format_number(value)] for name, value in bag.out_of_bag().items()
    ]
    said = f"<p>{escape(repr(bag)[1:-1])}</p>\n" + _table(["out of bag", ""], rows, left=1)
    members = {f"member {k}": run for k, run in enumerate(bag.runs, start=1)}
    return _with_picture(said, loss(members), repr(bag))


def _score(score: Score) -> Bundle:
    from cgprimer.support.number_format import format_number

    named = {"samples": score.samples, "loss": score.loss, "R²": score.r2}
    named |= {} if score.accuracy is None else {"accuracy": score.accuracy}
    parts = [_table(list(named), [[format_number(v) for v in named.values()]], left=0)]
    if (found := score.confusion) is not None:
        names = [
            label if isinstance(label, str) else format_number(label) for label in found.labels
        ]
        rows = [[n, *map(str, row)] for n, row in zip(names, found.counts.tolist(), strict=True)]
        parts.append(_table(["true, predicted:", *names], rows, left=1))
    return {"text/html": "\n".join(parts)}


def _memory(kept: Memory) -> Bundle:
    from cgprimer.visualization.plots.memory_plot import memory

    return _with_picture(_program(kept)["text/html"], memory(kept), str(kept))


def _with_picture(html: str, figure: Figure, text: str) -> Bundle:
    picture = _figure(figure)
    html = "\n".join([html, picture.pop("image/svg+xml", "")])
    return {"text/html": html, "text/plain": text, **picture}


def _page(page: Page) -> Bundle:
    """A page in a frame, where its style sheet and its keys are its own."""
    frame = f'style="width: 100%; height: {_FRAME_HEIGHT}px; border: 0"'
    return {"text/html": f'<iframe {frame} {_ALLOWED} srcdoc="{escape(page)}"></iframe>'}


def _table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int | Sequence[int]
) -> str:
    """Rows as HTML, the first columns aligned to the left, or those that are given."""
    columns = range(left) if isinstance(left, int) else left
    table = html_table(header, rows[:_MOST_LINES], left=columns)
    return "\n".join([table, *(f"<p>{text}</p>" for text in _left_out(rows, "rows"))])


def _left_out(all_: Sequence[Any], what: str) -> list[str]:
    more = len(all_) - _MOST_LINES
    return [f"… {more:,} more {what}; print(...) shows all"] if more > 0 else []


_VIEWS: dict[str, Callable[[Any], Bundle]] = {
    "Comparison": _comparison,
    "DerivativeProgram": _program,
    "Ensemble": _ensemble,
    "ExpressionGraph": _graph,
    "Fit": _fit,
    "Memory": _memory,
    "Page": _page,
    "Recording": lambda recording: _graph(recording.graph) | {"text/plain": str(recording)},
    "Score": _score,
    "Sweep": _sweep,
    "Tape": _program,
    "Trace": _trace,
    "TrainingRun": _run,
}
