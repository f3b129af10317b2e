"""An address of this machine at which browsers find a page that follows a file."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from cgprimer.errors import UsageError
from cgprimer.visualization.pages.page_rendering import render_page
from cgprimer.visualization.pages.watching.live_pages import Live

HOST = "127.0.0.1"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'self'",  # the rest stands in the pages
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class _Server(ThreadingHTTPServer):
    """Answers from memory: no path of a request ever becomes one of a file."""

    daemon_threads, request_queue_size = True, 64
    allow_reuse_address = os.name == "posix"  # elsewhere it would share the port with others

    def __init__(self, port: int, live: Live, shell: str) -> None:
        super().__init__((HOST, port), _Answer)
        self.live, self.shell = live, shell
        self.started = os.urandom(8).hex()  # of another server's pages none has the same number
        # A page from elsewhere whose name is made to lead here (DNS rebinding) names itself.
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}
        if self.server_port == 80:
            self.hosts |= {HOST, "localhost"}

    def server_bind(self) -> None:
        """Without asking for this machine's name, which may take long without a network."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is no news."""

    def answer(self, path: str) -> tuple[str, str] | None:
        """The type and the text of an answer."""
        live = self.live
        if path == "/":
            return "text/html", self.shell
        if path == "/page":
            return "text/html", live.page
        if path == "/news":
            version = f"{self.started}-{live.version}" if live.page else ""
            return "application/json", json.dumps({"version": version, "error": live.error})
        return None


class _Answer(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "cgprimer", ""
    timeout = 10  # seconds that a browser may take to ask

    def do_GET(self) -> None:
        status, kind, text = 200, "text/plain", ""
        if self.headers.get("Host") not in self.server.hosts:
            status, text = 403, "this address is for browsers of this machine\n"
        elif found := self.server.answer(self.path.partition("?")[0]):
            kind, text = found
        else:
            status, text = 404, "there is no such page\n"
        content = text.encode()
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: the terminal is the lecturer's."""


@contextmanager
def serving(live: Live, title: str, *, port: int = 0, dark: bool = False) -> Iterator[str]:
    """Serve what is shown; the address.

    Args:
        live: what is shown.
        title: of the tab before there is a page.
        port: of the address; 0 for one that is free.
        dark: open in dark colours.

    Raises:
        UsageError: the port is taken, or one that only the system's administrator may use.
    """
    shell = render_page("visualization/pages/watching/live_page.html", title, dark=dark)
    try:
        server = _Server(port, live, shell)
    except OSError as error:
        raise UsageError(
            f"cannot serve at port {port}: {(error.strerror or str(error)).lower()}",
            hint="another --port, or none for one that is free",
        ) from None
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://{HOST}:{server.server_port}/"
    finally:
        server.shutdown()  # its thread would look at a closed socket for ever
        server.server_close()
