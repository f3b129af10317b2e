"""In a real browser: the page that follows a file, the quiz, one sheet of paper, small screens."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.support.number_format import mark_rounding
from cgprimer.visualization.pages.stepping.step_frames import stepping
from cgprimer.visualization.pages.stepping.step_page import step
from cgprimer.visualization.pages.watching.live_pages import LivePage
from cgprimer.visualization.pages.watching.page_server import serve_page
from tests.pages.conftest import opened, press, resize, wait

pytestmark = pytest.mark.browser
LECTURE = cgprimer.load("lecture")
MAZUR = cgprimer.load("mazur")


def text(browser: Any, name: str) -> str:
    found: str = browser.execute_script(
        "return document.getElementById(arguments[0]).textContent", name
    )
    return found


# --- a page that follows a file -----------------------------------------------------------------
class Followed:
    """A file, and a browser at the address that follows it."""

    def __init__(self, browser: Any, path: Path) -> None:
        self.browser, self.path = browser, path
        self.write(LECTURE.text)
        self.live = LivePage(
            lambda: step(cgprimer.load(path), method="forward", of="xw"), [str(path)]
        )
        self.live.refresh()

    def write(self, graph: str) -> None:
        self.path.write_text(graph)

    def edit(self, graph: str) -> None:
        """Write a text and wait until the browser shows what comes of it."""
        self.write(graph)
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
    browser.get_log("browser")
    with serve_page(made.live, "graph.cg") as address:
        browser.get(address)
        wait(browser, "frame !== null && shown !== ''")
        yield made
        assert browser.get_log("browser") == [], "the console has errors"
        browser.get("about:blank")


def test_an_edit_keeps_the_place(followed: Followed) -> None:
    followed.inside(
        """chooseWalk(1); goTo(16); setQuiz(true); setSlidersOpen(false);
        foldPanes(false, true); switchTheme();
        const box = document.querySelector("[data-number=xa]"); box.value = "0.75";
        const other = document.querySelector("[data-number=cd]"); other.value = "7";
        for (const moved of [box, other]) moved.dispatchEvent(new Event("input"));
        $("answer").value = "1.5"; $("speed").value = "4";"""
    )
    at = "return [$('what').textContent.split(' →')[0], data.walks[state.walk].method, getIndex()]"
    assert followed.inside(at) == ["bar_xy = bar_xz", "reverse", 16]
    dark = followed.inside("return document.documentElement.dataset.look")
    # A line more, and another value for a parameter that was moved.
    edited = LECTURE.text.replace("cd = 3", "cd = 2").replace("xa^2", "xfirst*xa")
    followed.edit(f"xfirst = sin(xa)\n{edited}")
    assert followed.inside("return data.rows.some(row => row[0] === 'xfirst')")
    what, method, step_now = followed.inside(at)
    assert (what, method) == ("bar_xy = bar_xz", "reverse")
    assert step_now == 17
    assert followed.inside("return [state.point.xa, state.point.cd]") == [0.75, 2]
    assert followed.inside(
        """return [quiz.on, $("answer").value, $("speed").value, $("sliders").hidden,
        isFolded("trace"), isFolded("program"), document.documentElement.dataset.look]"""
    ) == [True, "1.5", "4", True, False, True, dark]
    assert followed.browser.execute_script("return document.documentElement.dataset.look") == dark
    assert followed.browser.execute_script("return document.querySelectorAll('iframe').length") == 1
    # The instruction is gone, so is the tab's reason to stay where it was.
    followed.edit("xw = cd*xa^2; parameter cd = 2; input xa = 0.5")
    at = "return [data.walks[state.walk].method, getIndex() < data.walks[1].steps.length]"
    assert followed.inside(at) == ["reverse", True]


def test_an_error_stands_over_the_last_page(followed: Followed) -> None:
    browser = followed.browser
    before = followed.inside("goTo(3); return $('what').textContent")
    wrong = f"{LECTURE.text}\nxq = <img src=x onerror=alert(1)>\n"
    followed.edit(wrong)
    banner = browser.find_element("id", "banner")
    assert banner.is_displayed()
    line = wrong.count("\n")
    assert f"{followed.path}:{line}:6: " in text(browser, "error")
    lines = text(browser, "error").splitlines()
    at = next(k for k, said in enumerate(lines) if "<img" in said)
    assert lines[at + 1].index("^") == lines[at].index("<")
    assert browser.find_elements("css selector", "#banner img") == []
    assert followed.inside("return $('what').textContent") == before
    followed.edit(LECTURE.text)
    assert not banner.is_displayed()
    assert followed.inside("return $('what').textContent") == before


def test_an_end_and_a_new_beginning(browser: Any, tmp_path: Path) -> None:
    made = Followed(browser, tmp_path / "graph.cg")
    with serve_page(made.live, "graph.cg") as address:
        browser.get(address)
        wait(browser, "frame !== null && shown !== ''")
    port = int(address.rstrip("/").rpartition(":")[2])
    wait(browser, "$('said').textContent.includes('cgprimer has stopped')")
    assert made.inside("return data.wrt.length") == 4  # what was there is there
    made.write("xw = k*xa; parameter k = 2; input xa = 3")
    again = LivePage(lambda: step(cgprimer.load(made.path)), [str(made.path)])
    again.refresh()
    with serve_page(again, "graph.cg", port=port):
        wait(browser, "$('banner').hidden && frame.contentDocument.title.includes('xw')")
        wait(browser, "frame.contentDocument.querySelectorAll('#results .chip').length === 1")
        browser.get("about:blank")


# --- the quiz -----------------------------------------------------------------------------------
@pytest.fixture
def quiz(browser: Any, tmp_path: Path) -> Iterator[Any]:
    path = tmp_path / "quiz.html"
    step(LECTURE, output=path, method="reverse", quiz=True)
    browser.get("about:blank")
    yield opened(browser, path)
    assert browser.get_log("browser") == []


def answer(page: Any, given: str) -> str:
    page.execute_script("$('answer').value = arguments[0]; $('quiz').requestSubmit()", given)
    return text(page, "verdict")


def test_a_class_answers_every_question(quiz: Any) -> None:
    frames = stepping(LECTURE).frames("reverse")
    assert quiz.execute_script("return document.activeElement.id") == "answer"
    for frame in frames[1:]:
        assert text(quiz, "question") == f"{frame.step.text.split(' = ')[0]} = ?"
        assert frame.result is not None
        press(quiz, f"{frame.result:.3g}", "\ue007")
        assert text(quiz, "verdict") == f"✓ {frame.result:.3g} is correct"
        assert frame.step.text in text(quiz, "what")  # the explanation
    asked = len(frames) - 1
    assert text(quiz, "score") == f"correct at first try: {asked} of {asked}"
    assert text(quiz, "kind") == "that was the last step"
    assert quiz.execute_script("return [localStorage.length, document.cookie]") == [0, ""]


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        *((t, "✓") for t in ("22.6875", "22.7", "22,7", "22.69", "363/16", "2.27e1", "2,27·10^1")),
        *((t, "✓") for t in ("≈22.7", " + 22.7", "45.375 / 2")),
        *((t, "✗") for t in ("22.6", "5", "1/0", "nan", "inf", "0")),
        *((t, "check the sign") for t in ("-22.7", "−22.7")),
        *((t, "rounded too much") for t in ("23", "2e1")),
        *((t, "is not a number") for t in ("22..7", "1,234.5", "alert(1)", "1/2/3", "<b>")),
        ("", ""),
    ],
)
def test_answers(quiz: Any, given: str, verdict: str) -> None:
    quiz.execute_script("goTo(data.walks[1].steps.findIndex(s => s.text.startsWith('bar_xz')) - 1)")
    said = answer(quiz, given)
    assert verdict in said
    assert (said == "") == (verdict == "")
    counted = {"✓": "1 of 1", "✗": "0 of 1", "check the sign": "0 of 1"}.get(verdict, "0 of 0")
    assert text(quiz, "score") == f"correct at first try: {counted}"


def test_the_keys_of_the_quiz(quiz: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    press(quiz, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    assert quiz.execute_script("return getIndex()") == 1
    press(quiz, "1", "2", Keys.ARROW_LEFT, "3")  # in a number arrows move the caret
    at = quiz.execute_script("return [$('answer').value, getIndex(), state.walk]")
    assert at == ["132", 1, 1]
    press(quiz, "q")
    assert not quiz.find_element("id", "quiz").is_displayed()
    press(quiz, "3")
    assert quiz.execute_script("return state.walk") == 2  # digits are tabs again
    press(quiz, "2", "q")
    quiz.find_element("id", "forward").click()
    press(quiz, "2", ",", "0", Keys.ENTER)  # typed while a button has the focus
    assert "✓ 2,0 is correct" in text(quiz, "verdict")
    assert quiz.find_element("id", "ask").get_attribute("aria-pressed") == "true"


def test_the_number_that_is_asked_for_is_marked_and_not_shown(quiz: Any) -> None:
    quiz.execute_script("goTo(16)")
    marked_nodes = quiz.execute_script(
        "return [...document.querySelectorAll('.asked')].map(n => n.textContent)"
    )
    line = stepping(LECTURE).walk("reverse").steps[17]
    assert line.text in marked_nodes
    assert "not computed" in marked_nodes
    assert mark_rounding(22.6875) not in "".join(t for t in marked_nodes if "=" in t)


def test_zero_infinity_and_what_rounding_leaves(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "odd.html"
    graph = cgprimer.parse("xb = sin(xa) - sin(xa); xc = sin(3.141592653589793*xa); xd = 1/xb")
    step(graph, {"xa": 1.0}, wrt=["xa"], of="xd", output=path, method="reverse", quiz=True)
    opened(browser, path)
    agrees = "return isCorrect(...arguments[0].map(v => Array.isArray(v) ? v : Number(v)))"
    for given, right in (
        (["0", "1.2246e-16", [3.14]], True),
        (["0", "1e-9", [3.14]], False),
        (["0", "0", []], True),
        (["1e-300", "0", [1]], False),
        (["Infinity", "Infinity", []], True),
        (["NaN", "NaN", []], True),
        (["-Infinity", "Infinity", []], False),
        (["1e-9", "1.004e-9", []], True),
        (["999.4", "1000", []], True),
        (["995", "1000", []], True),
        (["994", "1000", []], False),
        (["0.3333", str(1 / 3), []], True),
    ):
        assert browser.execute_script(agrees, given) == right, given
    assert browser.get_log("browser") == []


# --- paper --------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [(8.27, 11.69)], ids=["A4"])
@pytest.mark.parametrize(
    ("graph", "method"),
    [(LECTURE, "reverse"), (LECTURE, "path-sum"), (MAZUR, "reverse"), (MAZUR, "path-sum")],
    ids=["lecture", "lecture's paths", "mazur", "mazur's paths"],
)
def test_one_sheet_has_it_all(
    browser: Any, tmp_path: Path, graph: Any, method: str, size: tuple[float, float]
) -> None:
    path = tmp_path / "paper.html"
    step(graph, output=path, method=method, dark=True, quiz=True)
    browser.get("about:blank")
    opened(browser, path, 390, 844)  # whatever the window is like
    browser.execute_script("goTo(Infinity); foldPanes(true, true)")
    given = {
        "printBackground": True,
        "preferCSSPageSize": True,
        "paperWidth": size[0],
        "paperHeight": size[1],
    }
    paper = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", given)["data"])
    assert len(re.findall(rb"/Type /Page\b", paper)) == 1
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", paper)
    assert box is not None
    assert float(box[1]) > float(box[2])  # across
    points = float(
        browser.execute_script("return root.style.getPropertyValue('--paper')").removesuffix("pt")
    )
    assert points >= (8 if graph is LECTURE else 5)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        seen = browser.execute_script(
            """const all = query => [...document.querySelectorAll(query)];
            const shown = query => all(query).filter(n => n.getClientRects().length).length;
            return [...["#graph", "#rows tr", "#lines li", "input", "#quiz",
              "button:not([aria-selected=true])"].map(shown),
              getComputedStyle(document.body).backgroundColor];"""
        )
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    walk = stepping(graph).walk(method)
    rows = len(stepping(graph).scene.rows)
    assert seen == [1, rows, len(walk.lines), 0, 0, 0, "rgb(255, 255, 255)"]


# --- small screens ------------------------------------------------------------------------------
@pytest.mark.parametrize("graph", [LECTURE, MAZUR], ids=["lecture", "mazur"])
@pytest.mark.parametrize("dark", [True])
def test_a_telephone(browser: Any, tmp_path: Path, graph: Any, dark: bool) -> None:
    path = tmp_path / "page.html"
    step(graph, output=path, method="reverse", dark=dark)
    browser.get("about:blank")
    opened(browser, path, 390, 844)
    tops = "['picture', 'trace', 'program'].map(id => $(id).getBoundingClientRect().top)"
    graph, trace, program = browser.execute_script(f"return {tops}")
    assert graph < trace < program
    assert 844 - graph > 300  # most of the graph is on the first screen
    for script in (
        "goTo(5)",
        "chooseWalk(2); goTo(Infinity)",
        "chooseWalk(3); setQuiz(true)",
        "showWholeGraph(true)",
    ):
        found = browser.execute_script(
            script
            + """; const boxes = [...document.querySelectorAll("button, select, input")]
              .map(n => [n.id || n.textContent, n.getBoundingClientRect()]);
            const small = ([, b]) => b.height < 44 || b.width < 44 || b.right > 391 || b.left < 0;
            return [document.documentElement.scrollWidth,
              boxes.filter(([, b]) => b.width).filter(small).map(([n]) => n),
              [...document.querySelectorAll("main section")]
                .filter(s => s.clientWidth < 380 || s.clientHeight < 250).length];"""
        )
        assert found == [390, [], 0], script
    browser.execute_script("window.scrollTo(0, 900)")
    box = browser.execute_script("return $('forward').getBoundingClientRect().top")
    assert 0 <= box < 100  # steps stay in reach
    assert browser.get_log("browser") == []
