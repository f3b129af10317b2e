"""Whatever is in the pipes of a submission's process, reading them gives a result."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from cgprimer.course.checks.channel import Outcome, Transcript, read_outcome
from cgprimer.course.checks.check_results import KINDS, Failure
from cgprimer.errors import Source

SOURCE = Source("ann.py", "def g(a):\n    return 1 / a\n")
FAILURE = {"kind": "exception", "message": "ZeroDivisionError", "line": 2, "from": 11, "to": 16}
HONEST: list[Any] = [
    {"loaded": True},
    {"request": 0, "value": {"ab": [1.0, float("nan")], "bc": "word"}},
    {"request": 1, "failure": FAILURE},
    {"request": 2, "value": 3},
]
CONTROL = b'{"protections": {"files": "kernel"}}\n{"ended": [0, 0, 0.1]}\n'
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 10**400, 1e308, float("inf"), "", "\ud800", "\x1b[2J", "x" * 10**5, [], [[]],
    {}, {"value": 1}, {"failure": {}}, {"request": 1}, {"loaded": True}, {"kind": "time"},
)  # fmt: skip


def lines(entries: list[Any]) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def outcome(answers: bytes, libraries: bytes = b"numpy\n", control: bytes = CONTROL) -> Outcome:
    return read_outcome(Transcript(control, answers, libraries, b""), SOURCE, 3, 1.0, 100)


def test_honest_answers_are_read() -> None:
    read = outcome(lines(HONEST))
    assert read.failure is None
    assert read.values[0]["bc"] == "word"
    assert read.values[1].where.splitlines()[0] == "ann.py:2:12"
    assert read.values[2] == 3
    assert read.libraries == ("numpy",)
    assert read.protections == ("files: kernel",)


def test_answers_before_the_end_of_a_process_count() -> None:
    read = outcome(lines(HONEST[:2]), control=CONTROL.replace(b"[0, 0", b"[0, 9"))
    assert len(read.values) == 1
    assert read.failure is not None
    assert read.failure.kind == "crash"


REFUSED = {
    "twice": [*HONEST[:2], HONEST[1], *HONEST[2:]],
    "more than were asked for": [*HONEST, {"request": 3, "value": 1}],
    "in another order": [HONEST[0], *HONEST[:0:-1]],
    "without loading": HONEST[1:],
    "with other keys": [*HONEST[:3], {"request": 2, "value": 3, "modules": []}],
    "both value and failure": [*HONEST[:3], {"request": 2, "value": 3, "failure": FAILURE}],
    "a number of another type": [*HONEST[:3], {"request": 2.0, "value": 3}],
    "too deep": [*HONEST[:3], {"request": 2, "value": json.loads("[" * 40 + "]" * 40)}],
    "a huge integer": [*HONEST[:3], {"request": 2, "value": 10**400}],
    "an unknown kind": [*HONEST[:3], {"request": 2, "failure": {"kind": "x", "message": ""}}],
    "protections": [{"protections": {}}, *HONEST],
}


@pytest.mark.parametrize("name", REFUSED)
def test_one_forged_line_and_no_answer_is_believed(name: str) -> None:
    read = outcome(lines(REFUSED[name]))
    assert read.values == ()
    assert_refused(read)


def assert_refused(read: Outcome) -> None:
    assert read.failure is not None
    assert read.failure.kind == "answers"


@pytest.mark.parametrize("names", [b"\xed\xa0\x80\n", b"a b\n", b"-\n", b"x" * 100 + b"\n", b"\n"])
def test_names_of_libraries_are_names(names: bytes) -> None:
    assert_refused(outcome(lines(HONEST), names))


def changed(entry: Any, chance: random.Random) -> Any:
    if chance.random() < 0.1:
        return chance.choice(ODD)
    if isinstance(entry, dict):
        return {k: changed(v, chance) for k, v in entry.items() if chance.random() > 0.05}
    if isinstance(entry, list):
        return [changed(v, chance) for v in entry if chance.random() > 0.05]
    return entry


def test_no_change_of_the_answers_raises_or_leaves_text_that_cannot_be_written() -> None:
    chance = random.Random(5)
    for _ in range(500):
        data = bytearray(lines([changed(entry, chance) for entry in HONEST]))
        for _ in range(chance.randrange(3)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        read = outcome(bytes(data))
        failures = [v for v in (*read.values, read.failure) if isinstance(v, Failure)]
        assert all(failure.kind in KINDS and len(failure.message) <= 1000 for failure in failures)
        repr(read).encode()
        values = [v for v in read.values if not isinstance(v, Failure)]
        json.dumps(values, ensure_ascii=False).encode()
