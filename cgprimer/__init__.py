"""Computational graphs and automatic differentiation, taught.

>>> import cgprimer
>>> graph = cgprimer.parse("xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3")
>>> cgprimer.gradient(graph, {"xa": 0.5, "ab": 1, "bc": 2, "cd": 3, "ac": 4})
{'ab': 5.671875, 'ac': 11.34375, 'bc': 5.671875, 'cd': 0.25}
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

# The public names are written once, in the stub that type checkers read, each with its module.
# Nothing is imported before it is asked for: `import cgprimer` and `cgprimer --help` are instant.
# Source: scientific-python's SPEC 1, "Lazy loading of submodules and functions".
_PUBLIC = {
    name: module
    for module, name in re.findall(
        r"^from cgprimer\.?(\S*) import (?:\(\s*)?(\w+)",
        Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
}
__all__ = ["__version__"]
__all__ += list(_PUBLIC)

# What notebooks ask these for; `cgprimer.visualization.notebook_display` has the answers.
_SHOWN = (
    "Comparison", "DerivativeProgram", "Ensemble", "ExpressionGraph", "Fit", "Memory", "Page",
    "Recording", "Score", "Sweep", "Tape", "Trace", "TrainingRun",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'cgprimer' has no attribute {name!r}")
    # Without a module it is one, of functions called by both names: cgprimer.plot.loss(run).
    home = import_module(f"cgprimer.{_PUBLIC[name] or name}")
    value = getattr(home, name) if _PUBLIC[name] else home
    globals()[name] = value
    _attach()
    return value


def _attach() -> None:
    """Teach the classes loaded so far to show themselves in a notebook; they do not look up."""

    def bundle(shown: object, include: Any = None, exclude: Any = None) -> Any:
        return import_module("cgprimer.visualization.notebook_display").bundle(shown)

    for name in _SHOWN:
        kind = getattr(sys.modules.get(f"cgprimer.{_PUBLIC[name]}"), name, None)
        if kind is not None and "_repr_mimebundle_" not in vars(kind):
            kind._repr_mimebundle_ = bundle
            if name == "ExpressionGraph":
                kind._repr_svg_ = lambda shown: bundle(shown).get("image/svg+xml")
            else:
                kind._repr_html_ = lambda shown: bundle(shown).get("text/html")
    if "IPython" in sys.modules:
        import_module("cgprimer.visualization.notebook_display").show_figures()


class _DeprecatedModules:
    """Finds modules under the names that they had in earlier versions; Python asks it last."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> Any:
        if not name.startswith("cgprimer."):
            return None
        return import_module("cgprimer.support.moved_modules").find_module_spec(name)


sys.meta_path.append(_DeprecatedModules)  # type: ignore[arg-type]


def __dir__() -> list[str]:
    return sorted(__all__)
