"""``python -m cgprimer`` is ``cgprimer``."""

from cgprimer.cli import main

main()
