"""Arguments of the library in messages, translated into options of the command line.

The library writes an argument as ``name=value`` between backticks. The option has the name of the
argument, with a few exceptions.
"""

from __future__ import annotations

import re

from cgprimer.errors import CgprimerError

_ARGUMENT = re.compile(r"`([a-z_]+)=([^`]*)`")
_ITEM = re.compile(r"'?(\w+)'?: ")
_OPTIONS = {
    ("ExpressionSwellError", "limit"): "--symbolic-limit",
    ("ExpressionSwellError", "share"): "--symbolic-share",
    ("PathLimitError", "limit"): "--path-limit",
}


def name_options(error: CgprimerError) -> str:
    """Return the message of a library error, with arguments written as command-line options.

    >>> from cgprimer.errors import PathLimitError, UsageError
    >>> print(name_options(PathLimitError("too many paths", hint="raise the limit: `limit=N`")))
    too many paths
      hint: raise the limit: `--path-limit N`
    >>> print(name_options(UsageError("missing value for 'xa'", hint="give one: `at={'xa': 0.5}`")))
    missing value for 'xa'
      hint: give one: `--at xa=0.5`
    """
    return _ARGUMENT.sub(lambda match: f"`{_format_option(error, *match.groups())}`", str(error))


def _format_option(error: CgprimerError, argument: str, value: str) -> str:
    """Format a library argument and its value as a command-line option."""
    default = f"--{argument.replace('_', '-')}"
    option = _OPTIONS.get((type(error).__name__, argument), default)
    if value == "True":
        return option
    if value.startswith("{"):
        items = _ITEM.sub(r"\1=", value.strip("{}"))
        return f"{option} {items}"
    text = value.strip("'")
    return f"{option} {text}"
