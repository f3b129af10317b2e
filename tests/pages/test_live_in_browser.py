"""In a browser: the page that follows a file, and the quiz; ``-m browser``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.visualization.pages.stepping.step_frames import stepping
from cgprimer.visualization.pages.stepping.step_page import step
from cgprimer.visualization.pages.watching.live_pages import LivePage
from cgprimer.visualization.pages.watching.page_server import serve_page
from tests.pages.conftest import SCRIPTS, TABLES, open_steps, press, resize, texts, wait

pytestmark = pytest.mark.browser
LECTURE = cgprimer.load("lecture")


# --- a page that follows a file -----------------------------------------------------------------
class Followed:
    """A file, and a browser at the address that follows it."""

    def __init__(self, browser: Any, path: Path) -> None:
        self.browser, self.path = browser, path
        path.write_text(LECTURE.text)
        self.live = LivePage(
            lambda: step(cgprimer.load(path), method="forward", of="xw"), [str(path)]
        )
        self.live.refresh()

    def edit(self, graph: str) -> None:
        """Write a text and wait until the browser shows what comes of it."""
        self.path.write_text(graph)
        while not self.live.refresh():
            pass
        wait(self.browser, "shown.endsWith(arguments[0])", f"-{self.live.version}")
        wait(self.browser, "$('error').textContent === arguments[0]", self.live.error)

    def inside(self, script: str) -> Any:
        """What a script finds in the page."""
        self.browser.switch_to.frame(0)
        try:
            return self.browser.execute_script(script)
        finally:
            self.browser.switch_to.default_content()


@pytest.fixture
def followed(browser: Any, tmp_path: Path) -> Iterator[Followed]:
    made = Followed(browser, tmp_path / "graph.cg")
    resize(browser, 1280, 720)
    with serve_page(made.live, "graph.cg") as address:
        browser.get(address)
        wait(browser, "frame !== null && shown !== ''")
        yield made
        browser.get("about:blank")


def test_an_edit_keeps_the_place(followed: Followed) -> None:
    before = followed.inside(SCRIPTS["leave a place"])
    look = "return document.documentElement.dataset.look"
    dark = followed.inside(look)
    # A line more, and another value for a parameter that was moved.
    edited = LECTURE.text.replace("cd = 3", "cd = 2").replace("xa^2", "xfirst*xa")
    followed.edit(f"xfirst = sin(xa)\n{edited}")
    after = followed.inside("return saveState()")
    place, old_place = (saved.pop("places")[1] for saved in (after, before))
    assert place == old_place | {"at": 17}
    assert place["text"] == "bar_xy = bar_xz"
    assert after == before | {"moved": [["xa", 0.5, 0.75]]}
    kept = {"method": "reverse", "scheme": "forward", "panes": [False, True], "speed": "4"}
    assert kept.items() <= after.items()
    assert followed.inside(look) == followed.browser.execute_script(look) == dark
    assert followed.browser.execute_script("return document.querySelectorAll('iframe').length") == 1
    # The instruction is gone, so is the tab's reason to stay where it was.
    followed.edit("xw = cd*xa^2; parameter cd = 2; input xa = 0.5")
    at = "return [data.walks[state.walk].method, getIndex() < data.walks[1].steps.length]"
    assert followed.inside(at) == ["reverse", True]


def test_an_error_is_shown_above_the_last_page(followed: Followed) -> None:
    browser, what = followed.browser, "return $('what').textContent"
    before = followed.inside(f"goTo(3); {what}")
    wrong = f"{LECTURE.text}\nxq = <img src=x onerror=alert(1)>\n"
    followed.edit(wrong)
    banner = browser.find_element("id", "banner")
    assert banner.is_displayed()
    (error,) = texts(browser, "#error")
    line = wrong.count("\n")
    assert f"{followed.path}:{line}:6: " in error
    lines = error.splitlines()
    at = next(k for k, said in enumerate(lines) if "<img" in said)
    assert lines[at + 1].index("^") == lines[at].index("<")
    assert browser.find_elements("css selector", "#banner img") == []
    assert followed.inside(what) == before
    followed.edit(LECTURE.text)
    assert not banner.is_displayed()
    assert followed.inside(what) == before


def test_a_page_survives_its_server_and_follows_the_next(browser: Any, tmp_path: Path) -> None:
    made = Followed(browser, tmp_path / "graph.cg")
    with serve_page(made.live, "graph.cg") as address:
        browser.get(address)
        wait(browser, "frame !== null && shown !== ''")
    port = int(address.rstrip("/").rpartition(":")[2])
    wait(browser, "$('said').textContent.includes('cgprimer has stopped')")
    assert made.inside("return data.wrt.length") == 4  # what was there is there
    made.path.write_text("xw = k*xa; parameter k = 2; input xa = 3")
    made.live.refresh()
    again = LivePage(lambda: step(cgprimer.load(made.path)), [str(made.path)])
    again.refresh()
    with serve_page(again, "graph.cg", port=port):
        wait(browser, "$('banner').hidden && frame.contentDocument.title.includes('xw')")
        wait(browser, "frame.contentDocument.querySelectorAll('#results .chip').length === 1")
        browser.get("about:blank")
    browser.get_log("browser")  # requests while nobody served


# --- the quiz -----------------------------------------------------------------------------------
@pytest.fixture
def quiz(browser: Any, tmp_path: Path) -> Any:
    return open_steps(browser, tmp_path, LECTURE, quiz=True)


def test_a_class_answers_every_question(quiz: Any) -> None:
    frames = stepping(LECTURE).frames("reverse")
    assert quiz.execute_script("return document.activeElement.id") == "answer"
    for frame in frames[1:]:
        asked = texts(quiz, ".asked")  # where the number will appear
        assert "not computed" in asked or frame.step.text in asked
        assert texts(quiz, "#question") == [f"{frame.step.text.split(' = ')[0]} = ?"]
        assert frame.result is not None
        press(quiz, f"{frame.result:.3g}", "ENTER")
        assert texts(quiz, "#verdict") == [f"✓ {frame.result:.3g} is correct"]
        assert frame.step.text in texts(quiz, "#what")[0]  # the explanation
    count = len(frames) - 1
    assert texts(quiz, "#score") == [f"correct at first try: {count} of {count}"]
    assert texts(quiz, "#kind") == ["that was the last step"]
    assert quiz.execute_script("return [localStorage.length, document.cookie]") == [0, ""]


def test_answers_and_their_verdicts(quiz: Any) -> None:
    for verdict, answers, score in TABLES["answers and verdicts"]:
        for answer in answers.split(" ... "):
            quiz.refresh()
            quiz.execute_script(SCRIPTS["answer"], answer)
            (said,) = texts(quiz, "#verdict")
            assert verdict in said, answer
            assert (said == "") == (verdict == "")
            assert texts(quiz, "#score") == [f"correct at first try: {score}"]


def test_the_keys_of_the_quiz(quiz: Any) -> None:
    press(quiz, "ARROW_RIGHT", "ARROW_RIGHT", "ARROW_LEFT")
    assert quiz.execute_script("return getIndex()") == 1
    press(quiz, "1", "2", "ARROW_LEFT", "3")  # in a number arrows move the caret
    at = quiz.execute_script("return [$('answer').value, getIndex(), state.walk]")
    assert at == ["132", 1, 1]
    press(quiz, "q")
    wait(quiz, "document.activeElement.id !== 'answer'")  # a hidden box loses the focus later
    press(quiz, "3")
    assert quiz.execute_script("return state.walk") == 2  # digits are tabs again
    press(quiz, "2", "q")
    quiz.find_element("id", "forward").click()
    press(quiz, "2", ",", "0", "ENTER")  # typed while a button has the focus
    assert "✓ 2,0 is correct" in texts(quiz, "#verdict")[0]
    assert quiz.find_element("id", "ask").get_attribute("aria-pressed") == "true"


def test_answers_about_zero_infinity_and_rounding_errors(quiz: Any) -> None:
    for answer, value, operands, correct in TABLES["correct answers"]:
        script = "return isCorrect(Number(arguments[0]), Number(arguments[1]), arguments[2])"
        found = quiz.execute_script(script, answer, value, json.loads(operands))
        assert found == (correct == "correct"), (answer, value)
