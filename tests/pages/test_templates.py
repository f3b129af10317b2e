from __future__ import annotations

import subprocess
import sys

import pytest

from cgprimer.support.templates import Markup, _create_environment

HOSTILE = "</script><b onload=x>_%\\|`{{ 7*7 }}<< 7*7 >>"


def render(suffix: str, template: str, **values: object) -> str:
    return _create_environment(suffix).from_string(template).render(values)


def test_values_are_escaped_for_the_format_of_the_template() -> None:
    escaped = render("html", "<p>{{ name }}</p>", name=HOSTILE)
    assert "&lt;b onload" in escaped
    assert "{{ 7*7 }}" in escaped  # a value is no template
    assert render("tex", "<< name >>", name="50 % of a_b") == r"50 \% of a\_b"
    assert render("md", "{{ name }}", name="a_b <i>") == r"a\_b \<i\>"


@pytest.mark.parametrize("suffix", ["html", "tex", "md"])
def test_markup_is_inserted_unchanged(suffix: str) -> None:
    template = "<< name >>" if suffix == "tex" else "{{ name }}"
    assert render(suffix, template, name=Markup(HOSTILE)) == HOSTILE


@pytest.mark.parametrize("suffix", ["html", "tex", "md"])
def test_an_unknown_name_is_an_error(suffix: str) -> None:
    from jinja2 import UndefinedError

    template = "<< name >>" if suffix == "tex" else "{{ name }}"
    with pytest.raises(UndefinedError, match="name"):
        render(suffix, template)


def test_jinja2_is_imported_when_the_first_template_is_rendered() -> None:
    code = "import sys, cgprimer.support.templates; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
