from __future__ import annotations

import subprocess
import sys

import pytest
from jinja2 import UndefinedError

from cgprimer.support.templates import Markup, _create_environment

HOSTILE = "</script><b onload=x>_%\\|`{{ 7*7 }}<< 7*7 >>"


@pytest.mark.parametrize(
    ("suffix", "value", "escaped"),
    [
        ("html", "<b>{{ 7*7 }}", "&lt;b&gt;{{ 7*7 }}"),  # a value is no template
        ("tex", "50 % of a_b", r"50 \% of a\_b"),
        ("md", "a_b <i>", r"a\_b \<i\>"),
    ],
)
def test_values_are_escaped_for_the_format_but_markup_is_not(
    suffix: str, value: str, escaped: str
) -> None:
    source = "<< name >>" if suffix == "tex" else "{{ name }}"
    template = _create_environment(suffix).from_string(source)
    assert template.render(name=value) == escaped
    assert template.render(name=Markup(HOSTILE)) == HOSTILE
    with pytest.raises(UndefinedError, match="name"):
        template.render()


def test_jinja2_is_imported_when_the_first_template_is_rendered() -> None:
    code = "import sys, cgprimer.support.templates; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
