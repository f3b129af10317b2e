"""The playground in real browsers: ``python -m pytest -m browser tests/playground``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest

import cgprimer
from cgprimer.support.number_format import SHORT, mark_rounding
from tests.pages.conftest import move, press, resize, texts
from tests.playground.conftest import Server

pytestmark = pytest.mark.browser
TABS = ("graph", "methods", "trace", "step", "plot", "train")
CHIPS = "[...document.querySelectorAll('#gradient .chip')].map(chip => chip.textContent)"


def wait(browser: Any, condition: str, seconds: float = 60) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, seconds, 0.05).until(
        lambda b: b.execute_script(f"return {condition}"), condition
    )


def visit(browser: Any, server: Server, link: str = "", query: str = "") -> Any:
    """Open the page again, and wait until Python has answered."""
    browser.get("about:blank")
    browser.get(f"http://localhost:{server.server_port}/{query}#{link}")
    wait(browser, "performance.getEntriesByName('python-ready').length > 0")
    return browser


def choose(browser: Any, tab: str) -> None:
    browser.find_element("id", f"tab-{tab}").click()


def write(browser: Any, text: str) -> None:
    """Replace the text of the graph, as a user does."""
    move(browser, "#text", text)


def gradient_chips(text: str, at: dict[str, float] | None = None) -> list[str]:
    """The derivatives as the page shows them, computed by CPython."""
    graph = cgprimer.parse(text)
    numbers = cgprimer.gradient(graph, at).items()
    return [f"d{graph.outputs[0]}/d{n} = {mark_rounding(float(v), SHORT)}" for n, v in numbers]


@pytest.fixture(scope="module")
def page(browser: Any, server: Server) -> Any:
    return visit(browser, server)


def test_the_page_computes_the_gradient_that_cpython_computes(page: Any) -> None:
    text = "xw = tanh(ab*xa) + ab^2; input xa = 0.7; parameter ab = 0.3"
    write(page, text)
    wait(page, f"{CHIPS}.join(';') === {json.dumps(';'.join(gradient_chips(text)))}")
    move(page, "#at-ab", -1.5)
    expected = gradient_chips(text, {"ab": -1.5})
    wait(page, f"{CHIPS}[0] === {json.dumps(expected[0])}")
    assert texts(page, "#colors .function") == ["tanh"]
    assert texts(page, "#colors .keyword") == ["input", "parameter"]


def test_an_error_is_underlined_described_and_corrected(page: Any) -> None:
    write(page, "xw = ab*xa\nxz = sni(xw)")
    wait(page, "!window.error.hidden")
    assert texts(page, "#colors .wrong") == ["sni"]
    assert texts(page, "#what") == ["Line 2, column 6: unknown function 'sni'"]
    assert texts(page, "#excerpt") == ["xz = sni(xw)\n     ^^^"]
    assert "sin" in texts(page, "#hint")[0]
    assert page.find_element("id", "text").get_attribute("aria-invalid") == "true"
    page.find_element("id", "jump").click()
    assert page.execute_script("return [text.selectionStart, text.selectionEnd]") == [16, 19]
    write(page, "xw = ab*")  # the end of the text has no character to underline
    wait(page, "document.querySelectorAll('#colors .wrong').length === 1")
    write(page, "xw = ab*xa")
    wait(page, "window.error.hidden")


def test_nothing_typed_leaves_the_page(page: Any, server: Server, playground: Path) -> None:
    write(page, "xw = sqrt(unmistakable)*xa")
    wait(page, f"{CHIPS}[0]?.includes('unmistakable')")
    for tab in TABS:
        choose(page, tab)
    listed = json.loads((playground / "playground.json").read_text("utf-8"))["files"]
    addresses = [
        request.split()[1].partition("?")[0][1:] or "index.html" for request in server.requests
    ]
    assert set(addresses) <= {*listed, "playground.json"}
    assert "unmistakable" not in "".join(server.requests)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_tab_shows_results_and_is_accessible(page: Any, axe_script: str, dark: bool) -> None:
    write(page, "xw = sigmoid(ab*xa + ac); input xa = 0.5; parameter ab = 1, ac = 2")
    if (page.find_element("id", "look").get_attribute("aria-pressed") == "true") != dark:
        page.find_element("id", "look").click()
    page.execute_script(axe_script)
    shown = {
        "graph": "document.querySelectorAll('#graph .vertex').length === 4",
        "methods": "document.querySelectorAll('#programs pre').length >= 4",
        "trace": "document.querySelector('#trace tbody').rows.length > 3",
        "step": "steps.contentDocument?.documentElement.classList.contains('ready')",
        "plot": "document.querySelectorAll('#curve path.curve').length === 2",
        "train": "document.querySelectorAll('#losses path.curve').length === 1",
    }
    violations = []
    for tab in TABS:
        choose(page, tab)
        if tab == "train":
            move(page, "#epochs", 20)
            page.find_element("id", "train").click()
        wait(page, shown[tab])
        assert texts(page, f"#pane-{tab} > .problem") == []
        violations += page.execute_async_script(
            "const [name, done] = arguments; axe.run().then(result =>"
            " done(result.violations.map(v => `${name}: ${v.id} ${v.nodes[0].html}`)))",
            tab,
        )
    assert violations == []


def test_symbolic_differentiation_is_loaded_when_asked_for(page: Any) -> None:
    write(page, "xw = sin(xa)^2; input xa = 0.5")
    choose(page, "methods")
    wait(page, "document.getElementById('load-symbolic')")
    page.execute_script("document.getElementById('load-symbolic').click()")
    wait(
        page,
        "[...document.querySelectorAll('#programs h2')].some(h => h.textContent === 'symbolic')",
    )


def test_training_learns_from_csv_reports_progress_and_stops(page: Any) -> None:
    write(page, "y = k*x + b; input x; parameter k = 0, b = 0; output y")
    choose(page, "train")
    page.find_element("css selector", "input[value=csv]").click()
    rows = "\n".join(f"{x / 10},{3 * x / 10 - 1}" for x in range(-20, 20))
    for name, value in {"csv": f"x,y\n{rows}", "epochs": 300, "learning-rate": 0.1}.items():
        move(page, f"#{name}", value)
    page.find_element("id", "train").click()
    wait(page, "window.epoch.textContent === 'epoch 300 of 300'")
    learned = [float(cell.lstrip("≈")) for cell in texts(page, "#learned td:nth-child(2)")]
    assert learned == pytest.approx([3, -1], abs=0.01)
    move(page, "#epochs", 10000)
    page.find_element("id", "train").click()
    wait(
        page,
        "!window.cancel.disabled && window.progress.value > 0",
    )
    page.find_element("id", "cancel").click()
    wait(page, "window.cancel.disabled")
    assert 0 < page.execute_script("return window.progress.value") < 1
    page.execute_script(
        "const files = new DataTransfer();"
        " files.items.add(new File([new Uint8Array(1e8)], 'big.csv'));"
        " file.files = files.files; file.dispatchEvent(new Event('change'))"
    )
    assert "big.csv has 100 MB" in texts(page, "#train-error")[0]


def test_a_link_carries_text_values_and_tab(page: Any, server: Server) -> None:
    text = "xw = ab*xa # 100% & more; ∂"
    visit(
        page,
        server,
        f"text={quote(text)}&at={quote(json.dumps({'ab': 4}))}&wrt=xa&tab=trace",
        "?embed",
    )
    wait(page, "document.querySelectorAll('#trace tbody tr').length === 3")
    assert page.execute_script("return window.text.value") == text
    assert page.find_element("id", "at-ab").get_attribute("value") == "4"
    assert page.find_element("id", "wrt").get_attribute("value") == "xa"
    assert not page.find_element("id", "examples").is_displayed()  # the compact form
    move(page, "#at-ab", 5)
    link = page.execute_script("return location.hash")
    page.execute_script("arguments[0]; document.getElementById('share').click()", 0)
    assert page.find_element("id", "link").get_attribute("value").endswith(link)
    frame = page.find_element("id", "frame").get_attribute("value")
    assert re.search(r'^<iframe src="http://localhost:\d+/\?embed#text=[^"<>]+tab=trace"', frame)
    visit(page, server, link[1:])
    assert page.find_element("id", "at-ab").get_attribute("value") == "5"


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("text=%E0%A4%A", "This link is damaged"),
        ("text=" + "x" * 60_000, "more than 50000 characters"),
        ("example=missing", "no example missing"),
        ("at={&tab=nonsense&wrt=zz", ""),
        (f'at={{"xa":{"[" * 5000}1{"]" * 5000}}}', ""),
    ],
    ids=["broken", "enormous", "unknown", "harmless", "deep"],
)
def test_a_bad_link_shows_one_message_and_an_example(
    page: Any, server: Server, link: str, message: str
) -> None:
    visit(page, server, link)
    wait(page, f"{CHIPS}.length === 4")
    assert message in texts(page, "#notice span")[0]


def test_names_of_javascript_are_names_like_others(page: Any, server: Server) -> None:
    text = "xw = __proto__*constructor + toString^2; input __proto__ = 3"
    visit(page, server, f"text={quote(text)}&tab=step")
    wait(page, "steps.contentDocument?.querySelectorAll('#sliders [data-number]').length === 3")
    for name in ("__proto__", "constructor", "toString"):
        assert page.find_element("id", f"at-{name}").get_attribute("value").isdecimal()
    page.switch_to.frame("steps")
    for name in ("__proto__", "constructor"):
        move(page, f"#sliders [data-number={name}]", 4)
    page.switch_to.default_content()
    wait(page, "document.getElementById('at-constructor').value === '4'")
    move(page, "#at-toString", 5)
    choose(page, "graph")
    wait(page, f"{CHIPS}.join() === 'dxw/dconstructor = 4,dxw/dtoString = 10'")
    visit(page, server, page.execute_script("return location.hash.slice(1)"))
    wait(page, f"{CHIPS}.join() === 'dxw/dconstructor = 4,dxw/dtoString = 10'")


def test_a_crash_deletes_the_memory_that_the_browser_keeps(page: Any, server: Server) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    visit(page, server)
    script = """const [done] = arguments;
        caches.match("snapshot.bin").then(kept => done(kept !== undefined), () => done(null))"""
    WebDriverWait(page, 30, 0.2).until(lambda b: b.execute_async_script(script))
    page.execute_script(
        "const { postMessage } = Worker.prototype; Worker.prototype.postMessage = function (sent) {"
        " Worker.prototype.postMessage = postMessage;"
        " postMessage.call(this, sent.request ? { request: 1 } : sent) }"
    )
    write(page, "xw = 3*xa; input xa = 1")  # the worker fails, as with damaged memory
    wait(page, "document.body.textContent.includes('Python stopped unexpectedly')")
    assert page.execute_async_script(script) is False


def test_text_that_is_no_unicode_is_answered(page: Any, server: Server) -> None:
    visit(page, server, "text=xw%3Dxa")
    page.execute_script(
        "text.value = 'xw = a*xa # \\ud800'; text.dispatchEvent(new Event('input'))"
    )
    wait(page, f"{CHIPS}.join() === 'dxw/da = 1'")
    assert page.execute_script("return [notice.hidden, location.hash.includes('%EF%BF%BD')]") == [
        True,
        True,
    ]


def test_links_of_others_do_not_fill_the_cache(page: Any, server: Server) -> None:
    visit(page, server)
    wait(page, "navigator.serviceWorker.controller !== null")
    script = """const [done] = arguments; (async () => {
        for (const query of ['sympy.zip?1', 'index.html?2', 'licenses.html?sympy.zip']) {
          const frame = document.createElement('iframe');
          frame.src = query;
          document.body.append(frame);
        }
        await fetch('sympy.zip?v=0');
        await new Promise(resolve => setTimeout(resolve, 1000));
        const names = await caches.keys();
        const caught = await Promise.all(names.map(name => caches.open(name)));
        const lists = await Promise.all(caught.map(cache => cache.keys()));
        done(lists.flat().map(request => request.url));
        })()"""
    kept = page.execute_async_script(script)
    assert any("cgprimer.zip?v=" in address for address in kept)
    assert not [address for address in kept if "?" in address and "?v=" not in address]
    assert not [address for address in kept if address.endswith("?v=0")]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (  # the button appears after 50 milliseconds instead of a second, and is then selected
            "const wait = setTimeout, stop = document.getElementById('stop');"
            " window.setTimeout = (act, time) => wait(act, time === 1000 ? 50 : time);"
            " const timer = setInterval(() => {"
            " if (!stop.hidden) { clearInterval(timer); stop.click(); } }, 20)",
            "Stopped.",
        ),
        (  # the longest time, 30 seconds, passes in half a second
            "const wait = setTimeout;"
            " window.setTimeout = (act, time) => wait(act, time === 30000 ? 500 : time)",
            "Stopped after 30 seconds.",
        ),
        (
            "const { postMessage } = Worker.prototype; Worker.prototype.postMessage = function"
            " (sent) { postMessage.call(this, sent.request ? { request: 1 } : sent) }",
            "Python stopped unexpectedly",
        ),
    ],
    ids=["stopped", "late", "crash"],
)
def test_the_page_stays_usable_after_its_worker_has_ended(
    page: Any, server: Server, script: str, message: str
) -> None:
    visit(page, server, "tab=plot")
    original = "const act = [setTimeout, Worker.prototype.postMessage]; window.restore = () =>"
    page.execute_script(f"{original} {{ [window.setTimeout, Worker.prototype.postMessage] = act }}")
    page.execute_script(script)
    write(page, "\n".join(f"x{k} = sin(x{k - 1} + a{k})" for k in range(1, 950)))
    wait(page, f"document.body.textContent.includes({json.dumps(message)})")
    page.execute_script("restore()")
    write(page, "xw = 7*xa; input xa = 1")
    choose(page, "graph")
    wait(page, f"{CHIPS}.join() === 'dxw/dxa = 7'")


def test_pictures_and_programs_are_exported(page: Any, server: Server) -> None:
    visit(page, server)
    page.execute_script("""window.saved = []; URL.createObjectURL = (original => blob => {
        saved.push(blob); return original.call(URL, blob); })(URL.createObjectURL)""")
    page.find_element("id", "share").click()
    for name in ("save-svg", "save-png"):
        page.find_element("id", name).click()
        ending = name[-3:]
        wait(
            page,
            f"window.shared.textContent === 'Saved lecture-graph.{ending}.'",
        )
    svg, *_, png = page.execute_async_script("""const [done] = arguments;
        Promise.all(saved.map(async blob => blob.type === "image/png"
            ? [...new Uint8Array(await blob.slice(0, 8).arrayBuffer())]
            : blob.text())).then(done)""")
    root = ElementTree.fromstring(svg)
    labels = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"xa", "0.5", "bar ≈161.81"} <= set(labels)
    assert "var(" not in svg
    assert bytes(png) == b"\x89PNG\r\n\x1a\n"
    for kind, words in {
        "latex": "\\documentclass",
        "python": "def gradient",
        "tikz": "\\begin{tikzpicture}",
    }.items():
        page.find_element("css selector", f"[data-export={kind}]").click()
        wait(page, f"window.code.value.includes({json.dumps(words)})")


def test_tabs_and_splitter_work_by_keyboard(page: Any, server: Server) -> None:
    visit(page, server)
    page.find_element("id", "text").click()
    press(page, "TAB")
    assert page.execute_script("return document.activeElement.id") != "text"
    page.find_element("id", "tab-graph").click()
    press(page, "ARROW_RIGHT", "END")
    assert page.execute_script("return document.activeElement.id") == "tab-train"
    assert (
        page.execute_script("return document.activeElement.getAttribute('aria-selected')") == "true"
    )
    page.find_element("id", "tab-graph").click()
    width = "return graph.getBoundingClientRect().width"
    before = page.execute_script(width)
    page.find_element("id", "zoom-in").click()
    assert page.execute_script(width) == pytest.approx(1.25 * before, rel=0.01)
    page.execute_script("document.getElementById('splitter').focus()")
    before = page.find_element("id", "left").size["width"]
    press(page, "ARROW_RIGHT", "ARROW_RIGHT")
    assert page.find_element("id", "left").size["width"] > before


def test_the_results_have_room(page: Any, server: Server) -> None:
    visit(page, server, "tab=step")
    left, edit = (page.find_element("id", name) for name in ("left", "edit"))
    assert not left.is_displayed()  # the step page has the whole width
    edit.click()
    assert left.is_displayed()
    assert edit.get_attribute("aria-expanded") == "true"
    edit.click()
    write(page, "xw = ab*")
    wait(page, "document.getElementById('what').offsetWidth > 0")
    if page.name == "chrome":
        resize(page, 390, 844)
        visit(page, server)
        assert not page.find_element("id", "values").is_displayed()
        assert page.execute_script("return picture.getBoundingClientRect().top < innerHeight - 200")
        assert page.execute_script("return document.documentElement.scrollWidth") == 390
        page.find_element("css selector", "#values-fold summary").click()
        assert page.find_element("id", "at-ab").is_displayed()
        visit(page, server, "", "?embed")  # a small frame shows only results
        assert not page.find_element("id", "left").is_displayed()
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_second_visit_needs_no_server(page: Any, server: Server) -> None:
    visit(page, server)
    script = """const [done] = arguments; caches.keys().then(names => caches.open(names[0]))
        .then(cache => cache.match("snapshot.bin")).then(done, () => done(null))"""
    wait(page, "navigator.serviceWorker.controller !== null")
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(page, 30, 0.2).until(lambda b: b.execute_async_script(script))
    server.is_down = True
    try:
        visit(page, server)
        write(page, "xw = 5*xa; input xa = 1")
        wait(page, f"{CHIPS}.join() === 'dxw/dxa = 5'")
    finally:
        server.is_down = False


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("delete window.WebAssembly", "no WebAssembly"),
        (
            "navigator.serviceWorker.register = () => Promise.reject(new Error('blocked'))",
            "keep its files",
        ),
    ],
    ids=["no WebAssembly", "blocked storage"],
)
def test_a_limited_browser_gets_one_message(
    page: Any, server: Server, script: str, message: str
) -> None:
    if page.name != "chrome":
        pytest.skip("only chromium can run a script before the page")
    added = page.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    try:
        page.get("about:blank")
        page.get(f"http://localhost:{server.server_port}/#{quote(message)}")
        wait(page, f"document.body.textContent.includes({json.dumps(message)})")
    finally:
        page.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def test_an_opened_file_says_how_to_serve_it(page: Any, playground: Path) -> None:
    page.get((playground / "index.html").as_uri())
    wait(page, "window.unserved.offsetHeight > 0")
    assert "python -m http.server -d" in texts(page, "#unserved pre")[0]
    assert not page.find_element("id", "app").is_displayed()
