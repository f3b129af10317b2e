"""``cgprimer``, and ``python -m cgprimer``."""

from __future__ import annotations

import sys


def main() -> None:
    """The command line; Ctrl-C while it is loaded ends it as quietly as later."""
    try:
        from cgprimer.cli import main as run

        run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)  # noqa: T201
        sys.exit(130)


if __name__ == "__main__":
    main()
