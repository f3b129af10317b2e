"""Griffe extension of the API reference: docstrings as Markdown, and the settings of ``train``."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import griffe

DIRECTIVE = re.compile(r"^::: (cgprimer[\w.]*)$", re.MULTILINE)
EXAMPLE = re.compile(r"^>>> .*?(?=\n[ \t]*\n(?!>>> )|\Z)", re.MULTILINE | re.DOTALL)
REFERENCE = re.compile(r":(?:func|class|mod|meth|data):`~?([\w.]+)`")


class Docstrings(griffe.Extension):
    """Turns examples into code blocks and references to objects into links."""

    def __init__(self, pages: str) -> None:
        texts = [page.read_text(encoding="utf-8") for page in Path(pages).glob("*.md")]
        names = [path for text in texts for path in DIRECTIVE.findall(text)]
        names.sort(key=lambda path: -path.count("."))  # cgprimer.fit before cgprimer.plot.fit
        self.paths = {path.rpartition(".")[2]: path for path in names}
        self.paths |= {path: path for path in names}

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Convert the docstring of an object."""
        if obj.docstring:
            text = REFERENCE.sub(self._link, obj.docstring.value)
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", text)

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """List the settings of a training run in the signature, as Python does at run time."""
        if not any("add_settings" in str(decorator.value) for decorator in func.decorators):
            return
        function = getattr(import_module(func.module.path), func.name)
        (variadic,) = (p for p in func.parameters if p.kind is griffe.ParameterKind.var_keyword)
        del func.parameters[variadic.name]
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name not in func.parameters and parameter.name != variadic.name:
                func.parameters.add(
                    griffe.Parameter(
                        parameter.name,
                        annotation=parameter.annotation,
                        kind=griffe.ParameterKind.keyword_only,
                        default=repr(parameter.default),
                    )
                )
        func.parameters.add(variadic)

    def _link(self, reference: re.Match[str]) -> str:
        """Return a link to a documented object, or the name as code if it has no page."""
        name = reference[1]
        return f"[`{name}`][{self.paths[name]}]" if name in self.paths else f"`{name}`"
