"""``python -m tests.benchmarks.stepping``: how long a step takes in the page, in chromium.

A step counts from the call to the end of the layout that it causes. The machine's own noise is
measured beside it: the same page spins for a millisecond, and whatever it takes longer than that
is nobody's step.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import cgprimer

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
_MEASURE = """
  const [walk, forwards] = arguments, times = [], noise = [];
  chooseWalk(walk);
  const many = data.walks[walk].steps.length;
  for (let k = 0; k < many; k++) {
    const from = performance.now();
    goTo(forwards ? k : many - 1 - k);
    document.body.getBoundingClientRect();
    times.push(performance.now() - from);
    const idle = performance.now();
    while (performance.now() - idle < 1);
    noise.push(performance.now() - idle);
  }
  return [times.sort((a, b) => a - b), noise.sort((a, b) => a - b)];"""


def chain(instructions: int) -> tuple[cgprimer.ExpressionGraph, dict[str, float]]:
    """A graph of about so many instructions, deep and with parameters of many uses."""
    count = round(instructions / 3)
    lines = [f"x{k} = sin(x{k - 1})*p{k % 3} + x{k - 1}" for k in range(1, count + 1)]
    graph = cgprimer.parse("\n".join(lines).replace("x0", "xa"))
    return graph, {"xa": 0.5, "p0": 0.1, "p1": -0.2, "p2": 0.3}


def quantile(times: list[float], part: float) -> float:
    """Of sorted times."""
    return times[min(int(part * len(times)), len(times) - 1)]


def chromium(profile: str) -> Any:
    """A headless browser of 1920 times 1080 pixels."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={profile}", "--window-size=1920,1080"):
        options.add_argument(flag)
    browser = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
    )
    browser.set_script_timeout(300)
    return browser


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.stepping")
    parser.add_argument("instructions", nargs="*", type=int, default=[100, 300])
    given = parser.parse_args()
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("chromium is not installed: nothing was measured")
        return 0
    print(f"{'tape':>5} {'method':<18} {'steps':>6} {'median':>8} {'p99':>8} {'slowest':>8}  ms")
    with tempfile.TemporaryDirectory() as folder:
        browser = chromium(f"{folder}/profile")
        try:
            for instructions in given.instructions:
                graph, point = chain(instructions)
                path = Path(folder, f"{instructions}.html")
                cgprimer.step(graph, point, output=path, level="operations")
                browser.get(path.as_uri())
                walks = browser.execute_script(
                    "return data.walks.map(w => [w.method, w.steps.length])"
                )
                idle: list[float] = []
                for number, (method, steps) in enumerate(walks):
                    for forwards in (True, False) if steps else ():
                        times, noise = browser.execute_script(_MEASURE, number, forwards)
                        idle += noise
                        what = f"{method}{'' if forwards else ', back'}"
                        figures = [quantile(times, part) for part in (0.5, 0.99, 1.0)]
                        print(f"{instructions:>5} {what:<24} {steps:>6}", *(
                            f"{figure:>8.2f}" for figure in figures
                        ))  # fmt: skip
                figures = [quantile(sorted(idle), part) - 1.0 for part in (0.5, 0.99, 1.0)]
                print(f"{instructions:>5} {'the machine, idle':<24} {len(idle):>6}", *(
                    f"{figure:>8.2f}" for figure in figures
                ))  # fmt: skip
        finally:
            browser.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main())
