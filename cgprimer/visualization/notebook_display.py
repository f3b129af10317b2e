"""The display of objects in notebooks: pictures and tables, with text as an alternative.

`cgprimer/__init__.py` attaches the display to the classes, so that graphs, tapes and traces do not
depend on pictures or pages. A picture is an SVG and a PNG file: notebooks that the reader does not
trust show only the latter. Nothing is wider than its cell.

Source: IPython, "Integrating your objects with IPython", rich display.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from cgprimer.analysis.text_tables import html_table
from cgprimer.errors import CgprimerError
from cgprimer.support.templates import Markup, render_template

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

Bundle = dict[str, str]  # content by media type; binary pictures are encoded in base 64
_MAX_LINES = 200  # of a listing or a table
_MAX_CHARACTERS = 200  # of a line
_LARGEST_SVG = 2_000_000  # characters; larger pictures make a notebook slow, and PNG is smaller


class OutputTable(NamedTuple):
    """An HTML table for the output of a notebook cell, with a note on omitted rows."""

    content: Markup
    note: str


def bundle(displayed: object) -> Bundle:
    """Return an object's representations for display in a notebook, keyed by media type.

    Only its `repr` if there is no picture.

    >>> import cgprimer
    >>> sorted(bundle(cgprimer.parse("xw = ab*xa")))
    ['image/png', 'image/svg+xml', 'text/plain']
    >>> bundle(cgprimer.tape(cgprimer.parse("xw = less(xa, ab)")))["text/html"].split("\\n")[3]
    'xw = less(xa, ab)'
    """
    content: Bundle = {"text/plain": f"{displayed!r:.{_MAX_CHARACTERS}}"}
    if _is_terminal():
        return content
    classes = type(displayed).__mro__
    display = next(_DISPLAYS[c.__name__] for c in classes if c.__name__ in _DISPLAYS)
    try:
        return content | display(displayed)
    except CgprimerError:
        return content  # nothing to draw, or a missing library


def show_figures() -> None:
    """Enable the display of figures in the running notebook without `%matplotlib inline`.

    Figures of pyplot are left to pyplot.
    """
    shell = sys.modules["IPython"].get_ipython()
    if shell is not None:
        register = shell.display_formatter.mimebundle_formatter.for_type_by_name
        register("matplotlib.figure", "Figure", _display_figure)


def _is_terminal() -> bool:
    """Return whether IPython runs in a terminal, which cannot show pictures."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and "image/svg+xml" not in shell.display_formatter.active_types


def _display_figure(figure: Figure) -> Bundle | None:
    """Display a matplotlib figure that is not managed by pyplot."""
    belongs_to_pyplot = getattr(figure.canvas, "manager", None) is not None
    return None if belongs_to_pyplot or _is_terminal() else _encode_figure(figure)


def _encode_figure(figure: Figure) -> Bundle:
    """Encode a figure as PNG and, unless the file is large, as SVG."""
    from cgprimer.visualization.diagrams.figure_files import encode_figure
    from cgprimer.visualization.pages.page_rendering import inline_svg

    content = {"image/png": base64.b64encode(encode_figure(figure, "png")).decode()}
    picture = encode_figure(figure, "svg")
    if len(picture) <= _LARGEST_SVG:
        style = "max-width: 100%; height: auto"
        content["image/svg+xml"] = str(
            inline_svg(picture, themed=False, keep_size=True, style=style)
        )
    return content


def _render_output(
    *,
    paragraphs: Sequence[str] = (),
    listing: str | None = None,
    tables: Sequence[OutputTable] = (),
    figure: Figure | None = None,
) -> Bundle:
    """Render the output of a notebook cell as HTML: paragraphs, listing, tables and figure."""
    pictures = {} if figure is None else _encode_figure(figure)
    html = render_template(
        "visualization/notebook_output.html",
        paragraphs=paragraphs,
        text=listing,
        tables=tables,
        picture=Markup(pictures.pop("image/svg+xml", "")),
    )
    return {"text/html": html.rstrip("\n"), **pictures}


def _build_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int | Sequence[int]
) -> OutputTable:
    """Build an HTML table; ``left`` lists the left-aligned columns, or is their number."""
    columns = range(left) if isinstance(left, int) else left
    content = Markup(html_table(header, rows[:_MAX_LINES], left=columns))
    return OutputTable(content, _format_omission_note(len(rows), "rows"))


def _format_omission_note(count: int, noun: str) -> str:
    """Return a note on the number of omitted lines or rows; return '' if none are omitted."""
    n_omitted = count - _MAX_LINES
    return f"… {n_omitted:,} more {noun}; print(...) shows all" if n_omitted > 0 else ""


def _display_graph(graph: ExpressionGraph) -> Bundle:
    """Display the picture of a graph; without matplotlib, only as SVG."""
    from cgprimer.visualization.diagrams.drawing import draw
    from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
    from cgprimer.visualization.diagrams.svg_pictures import render_svg

    if find_spec("matplotlib") is None:
        return {"image/svg+xml": render_svg(graph_diagram(graph))}
    return _encode_figure(draw(graph))


def _shorten_listing(text: str) -> str:
    """Shorten a listing to the maximum number of lines and characters shown in a notebook."""
    lines = text.split("\n")
    shortened = [
        line if len(line) <= _MAX_CHARACTERS else line[:_MAX_CHARACTERS] + " …"
        for line in lines[:_MAX_LINES]
    ]
    return "\n".join(
        filter(None, ["\n".join(shortened), _format_omission_note(len(lines), "lines")])
    )


def _display_program(program: object) -> Bundle:
    """Display the listing of a tape or a derivative program."""
    return _render_output(listing=_shorten_listing(str(program)))


def _display_trace(trace: Trace) -> Bundle:
    """Display the table of a trace, followed by the table of its backward pass if it has one."""
    from cgprimer.support.number_format import format_array

    rows = [
        [r.name, r.expression, format_array(r.value), format_array(r.derivative)]
        for r in trace.rows
    ]
    tables = [_build_table(["name", "expression", "value", trace.heading], rows, left=2)]
    if trace.backward:
        backward = [[r.name, r.expression, format_array(r.value)] for r in trace.backward]
        tables.append(_build_table(["backward", "expression", "value"], backward, left=2))
    return {**_render_output(tables=tables), "text/plain": str(trace)}


def _display_comparison(comparison: Comparison) -> Bundle:
    """Display the graph, the derivatives and the costs of a comparison."""
    from cgprimer.visualization.pages.comparison.comparison_page import render_notebook_html
    from cgprimer.visualization.pages.comparison.comparison_slides import draw_comparison

    return {
        "text/html": render_notebook_html(comparison),
        "image/png": _encode_figure(draw_comparison(comparison))["image/png"],
        "text/plain": str(comparison),
    }


def _display_run(run: TrainingRun) -> Bundle:
    """Display the losses and the parameters of a training run."""
    from cgprimer.support.number_format import format_number
    from cgprimer.visualization.plots.loss_plot import loss

    run = run.in_numbers()
    columns = {"start": run.start, "learned": run.parameters, "true": run.truth}
    columns = {title: values for title, values in columns.items() if values}
    rows = [
        [name, *(format_number(values.get(name)) for values in columns.values())]
        for name in run.parameters
    ]
    losses = f"loss {format_number(run.start_loss)} → {format_number(run.loss)}"
    return _render_output(
        paragraphs=[f"{run.stopped} after {run.steps:,} steps, {losses}"],
        tables=[_build_table(["parameter", *columns], rows, left=1)],
        figure=loss(run) if run.step_losses else None,
    )


def _display_fit(result: Fit) -> Bundle:
    """Display the parameters of a fit with their standard errors, and the fitted curve."""
    from cgprimer.support.number_format import format_number
    from cgprimer.visualization.plots.fit_plot import fit

    errors = result.standard_errors
    rows = [
        [name, format_number(value), format_number(errors.get(name))]
        for name, value in result.parameters.items()
    ]
    status = "converged" if result.converged else "not converged"
    output = _render_output(
        paragraphs=[f"{status}: {result.reason}", *result.sentences],
        tables=[_build_table(["parameter", "value", "standard error"], rows, left=1)],
        figure=fit(result),
    )
    return {**output, "text/plain": repr(result)}


def _display_sweep(result: Sweep) -> Bundle:
    """Display the results of a sweep as a table and a plot."""
    from cgprimer.visualization.plots.sweep_plot import sweep

    header, rows, left = result.cells()
    output = _render_output(tables=[_build_table(header, rows, left=left)], figure=sweep(result))
    return {**output, "text/plain": result.table()}


def _display_ensemble(ensemble: Ensemble) -> Bundle:
    """Display the out-of-bag scores of an ensemble, and the losses of its members."""
    from cgprimer.support.number_format import format_number
    from cgprimer.visualization.plots.loss_plot import loss

    rows = [
        [name.replace("-", " "), format_number(value)]
        for name, value in ensemble.out_of_bag().items()
    ]
    output = _render_output(
        paragraphs=[repr(ensemble)[1:-1]],
        tables=[_build_table(["out of bag", ""], rows, left=1)],
        figure=loss({f"member {k}": run for k, run in enumerate(ensemble.runs, start=1)}),
    )
    return {**output, "text/plain": repr(ensemble)}


def _display_score(score: Score) -> Bundle:
    """Display the metrics of predictions and, for classes, the confusion matrix."""
    from cgprimer.support.number_format import format_number

    metrics = {"samples": score.samples, "loss": score.loss, "R²": score.r2}
    metrics |= {} if score.accuracy is None else {"accuracy": score.accuracy}
    tables = [_build_table(list(metrics), [[format_number(v) for v in metrics.values()]], left=0)]
    if (confusion := score.confusion) is not None:
        labels = [
            label if isinstance(label, str) else format_number(label) for label in confusion.labels
        ]
        counts = zip(labels, confusion.counts.tolist(), strict=True)
        rows = [[label, *map(str, row)] for label, row in counts]
        tables.append(_build_table(["true, predicted:", *labels], rows, left=1))
    return _render_output(tables=tables)


def _display_memory(result: Memory) -> Bundle:
    """Display the memory use of a graph as a listing and a plot."""
    from cgprimer.visualization.plots.memory_plot import memory

    output = _render_output(listing=_shorten_listing(str(result)), figure=memory(result))
    return {**output, "text/plain": str(result)}


def _display_page(page: Page) -> Bundle:
    """Display a page in a frame, isolated from the notebook's styles and keyboard shortcuts."""
    from cgprimer.visualization.pages.page_rendering import render_frame

    return {"text/html": render_frame(page)}


_DISPLAYS: dict[str, Callable[[Any], Bundle]] = {
    "Comparison": _display_comparison,
    "DerivativeProgram": _display_program,
    "Ensemble": _display_ensemble,
    "ExpressionGraph": _display_graph,
    "Fit": _display_fit,
    "Memory": _display_memory,
    "Page": _display_page,
    "Recording": lambda recording: _display_graph(recording.graph) | {"text/plain": str(recording)},
    "Score": _display_score,
    "Sweep": _display_sweep,
    "Tape": _display_program,
    "Trace": _display_trace,
    "TrainingRun": _display_run,
}
