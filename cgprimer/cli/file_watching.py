"""``--watch``: run a command again whenever a file that it has read changes."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import click

from cgprimer.cli.argument_options import name_options
from cgprimer.cli.grouped_help import OUTPUT, combine_options, option
from cgprimer.cli.option_values import followed_files
from cgprimer.cli.shared_options import is_given
from cgprimer.core.graph.loading import load, resolve_graph_path
from cgprimer.errors import CgprimerError, MissingValueError, SourceError, UsageError

ARGUMENTS, _LIVE = "cgprimer.arguments", "cgprimer.live"  # of a context: what was typed; run anew
note = partial(click.echo, err=True)
_EVERY = 0.1  # seconds between two looks at the files
_IN_A_TERMINAL = ("www-browser", "lynx", "links", "elinks", "w3m")  # they know no JavaScript


watch_options = combine_options(
    option(
        "--watch",
        group=OUTPUT,
        is_flag=True,
        help="Serve the result as a web page, and update it when FILE changes.",
    ),
    option(
        "--port",
        group=OUTPUT,
        metavar="N",
        type=click.IntRange(min=0, max=65535),
        help="Port of the web server of --watch (default: a free port).",
    ),
    option(
        "--open",
        "open_browser",
        group=OUTPUT,
        is_flag=True,
        help="Open the page of --watch in a browser.",
    ),
)
"""The option ``--watch`` and the options of its web server."""


class NoExpressionsError(UsageError):
    """Raised if a graph file contains no expressions."""


_MENDABLE = (SourceError, MissingValueError, NoExpressionsError)  # in the file


def start_watching(file: str | None, arguments: dict[str, Any]) -> bool | None:
    """Remove ``--watch`` and its options from the arguments, and serve the page if requested.

    Returns:
        None if the page was served until Ctrl-C, otherwise whether the command must return a page.

    Raises:
        click.UsageError: ``--port`` or ``--open`` without ``--watch``.
        UsageError: no file is given.
    """
    context = click.get_current_context()
    watch, port, open_browser = (arguments.pop(name) for name in ("watch", "port", "open_browser"))
    if file is not None and watch:
        followed_files().add(str(resolve_graph_path(file)))
    if _LIVE in context.meta:
        return True
    for name, flag in {"port": "--port", "open_browser": "--open"}.items():
        if not watch and is_given(name):
            raise click.UsageError(f"{flag} requires --watch")
    if not watch:
        return False
    if file is not None and file != "-" and not resolve_graph_path(file).is_file():
        load(file)  # raises an error that explains the problem
    if file == "-" or not followed_files():
        raise UsageError("--watch requires a file", hint="pass a FILE")
    title = str(resolve_graph_path(file)) if file else "the graph"
    _serve_until_interrupted(context, title, port or 0, open_browser, bool(arguments["dark"]))
    return None


def _serve_until_interrupted(
    context: click.Context, title: str, port: int, open_browser: bool, dark: bool
) -> None:
    """Serve the page of a command until Ctrl-C; rebuild it whenever one of its files changes."""
    from cgprimer.visualization.pages.watching.live_pages import LivePage
    from cgprimer.visualization.pages.watching.page_server import serve_page

    arguments = list(context.meta[ARGUMENTS])
    context.meta[_LIVE] = True
    raised: list[Exception] = []

    def build_page() -> str:
        """Run the command again and return its page as HTML."""
        try:
            context_arguments = (context.info_name, list(arguments), context.parent or context)
            with context.command.make_context(*context_arguments) as again:
                page_text: str = context.command.invoke(again)
                return page_text
        except Exception as error:
            raised[:] = [error]
            if isinstance(error, click.ClickException):
                raise UsageError(error.format_message()) from None
            if isinstance(error, CgprimerError):
                raise UsageError(name_options(error)) from None
            raise

    live = LivePage(build_page, followed_files())
    with serve_page(live, title, port=port, dark=dark) as address:
        try:
            live.refresh()
            if raised and not isinstance(raised[0], _MENDABLE):
                raise raised[0]
            note(f"serving {title} at {address} (press Ctrl-C to stop)")
            if live.error:
                note(f"error: {live.error}")
            if open_browser and not _open_browser(address):
                note("note: no browser found; open the address manually")
            while True:
                time.sleep(_EVERY)
                if live.refresh():
                    note(f"error: {live.error}" if live.error else f"{title} was updated")
        except KeyboardInterrupt:
            note(f"\nstopped watching {title}")


def _open_browser(address: str) -> bool:
    """Open an address in a graphical browser; return whether the browser started."""
    import webbrowser

    try:
        browser = webbrowser.get()
        text = getattr(browser, "name", "") in _IN_A_TERMINAL
        return not text and browser.open(address)
    except (webbrowser.Error, OSError):
        return False
