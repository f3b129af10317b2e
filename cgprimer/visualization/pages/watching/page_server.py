"""A local HTTP server for a page that follows a file."""

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
from cgprimer.visualization.pages.watching.live_pages import LivePage

HOST = "127.0.0.1"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'self'",  # the pages contain the rest of the policy
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class _Server(ThreadingHTTPServer):
    """An HTTP server for one live page, which is served from memory; no files are opened."""

    daemon_threads, request_queue_size = True, 64
    allow_reuse_address = os.name == "posix"  # elsewhere it would share the port with others

    def __init__(self, port: int, live: LivePage, shell: str) -> None:
        super().__init__((HOST, port), _RequestHandler)
        self.live, self.shell = live, shell
        self.started = os.urandom(8).hex()  # distinguishes the pages of different servers
        # With DNS rebinding, a foreign page resolves to this server but sends its own host name.
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}
        if self.server_port == 80:
            self.hosts |= {HOST, "localhost"}

    def server_bind(self) -> None:
        """Bind the socket without looking up the host name, which is slow without a network."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connection errors, which occur for instance when a browser disconnects."""

    def find_response(self, path: str) -> tuple[str, str] | None:
        """Return the media type and the content for a URL path; return None for an unknown path."""
        live = self.live
        if path == "/":
            return "text/html", self.shell
        if path == "/page":
            return "text/html", live.page
        if path == "/news":
            version = f"{self.started}-{live.version}" if live.page else ""
            return "application/json", json.dumps({"version": version, "error": live.error})
        return None


class _RequestHandler(BaseHTTPRequestHandler):
    """The handler for HTTP requests from browsers on this machine."""

    server: _Server
    server_version, sys_version = "cgprimer", ""
    timeout = 10  # seconds to receive a request

    def do_GET(self) -> None:
        """Answer a GET request for the page or for the number of its current version."""
        status, kind, text = 200, "text/plain", ""
        if self.headers.get("Host") not in self.server.hosts:
            status, text = 403, "only browsers on this machine may use this address\n"
        elif response := self.server.find_response(self.path.partition("?")[0]):
            kind, text = response
        else:
            status, text = 404, "unknown page\n"
        content = text.encode()
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Discard log messages, which would clutter the terminal during a lecture."""


@contextmanager
def serve_page(live: LivePage, title: str, *, port: int = 0, dark: bool = False) -> Iterator[str]:
    """Serve a live page in a background thread, and yield its URL.

    Args:
        live: the page.
        title: the title of the tab before the first page.
        port: the port; 0 for any free port.
        dark: open in dark colors.

    Raises:
        UsageError: the port is in use, or reserved for administrators.
    """
    shell = render_page("visualization/pages/watching/live_page.html", title, dark=dark)
    try:
        server = _Server(port, live, shell)
    except OSError as error:
        raise UsageError(
            f"cannot serve on port {port}: {(error.strerror or str(error)).lower()}",
            hint="choose another --port, or omit the option to use a free port",
        ) from None
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://{HOST}:{server.server_port}/"
    finally:
        server.shutdown()  # otherwise its thread would poll a closed socket
        server.server_close()
