"""The location of a subexpression in a source text, for error messages and explanations."""

from __future__ import annotations

from cgprimer.core.language.tokens import locate_tokens, tokenize
from cgprimer.errors import Source, Span


def locate_expression(source: Source, definition: int, text: str) -> Span:
    """Return the span of a subexpression in a definition.

    Args:
        source: the source text.
        definition: index of the first token of the definition.
        text: the subexpression. Redundant parentheses and the spelling of numbers and powers are
            ignored.

    Returns:
        The span; that of the right-hand side if it does not contain the subexpression.
    """
    token_spans = locate_tokens(source)
    tokens = [source.text[span.start : span.end] for span in token_spans]
    end = next(i for i in range(definition, len(tokens)) if tokens[i] in ("\n", ";", ""))
    indices = [i for i in range(definition + 2, end) if tokens[i] not in "()"]
    line = [_normalize_token(tokens[i]) for i in indices]
    expected = [_normalize_token(token) for token in tokenize(text)[:-1] if token not in "()"]
    first, last = definition + 2, end - 1
    for start in range(len(line) - len(expected) + 1):
        following = line[start + len(expected) :][:1]
        if line[start : start + len(expected)] == expected and following != ["["]:
            first, last = indices[start], indices[start + len(expected) - 1]
            depth = [0]
            for token in tokens[first : last + 1]:
                depth.append(depth[-1] + (token[-1:] == "(") - (token == ")"))
            first += min(depth)  # include the parentheses that are opened before and closed in
            last += depth[-1] - min(depth)  # the expression, or opened in it and closed after
            break
    return Span(source, token_spans[first].start, token_spans[last].end)


def _normalize_token(token: str) -> str | float:
    """Convert a token to a comparable form: a number to a float, ``**`` to ``^``."""
    if token[:1].isdigit() or token[:1] == ".":
        return float(token)
    return "^" if token == "**" else token
