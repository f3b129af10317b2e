"""Readers of quiz files, written from the descriptions of the formats and not from the writers.

The notation of Cloze questions is that of Moodle's importer: it ends alternatives at an unescaped
``~`` or ``}``, ends answers at an unescaped ``#``, and decodes character references once.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from decimal import Decimal
from html import unescape
from xml.etree import ElementTree
from zipfile import ZipFile

NAMESPACES = {"qti": "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"}
_FIELD = re.compile(r"\{(\d+):(NUMERICAL|MULTICHOICE|MULTIRESPONSE_H):(.*?)(?<!\\)\}", re.DOTALL)
_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


@dataclass
class Alternative:
    """An answer to a field, with the fraction of the points and the feedback as HTML."""

    answer: str
    fraction: float
    feedback: str
    tolerance: Decimal = Decimal(0)


@dataclass
class ReadField:
    """A field: its place in a table, and its alternatives."""

    row: str
    column: str
    kind: str
    weight: int
    alternatives: list[Alternative]

    def grade(self, answer: str) -> tuple[float, str]:
        """Grade one answer as Moodle: the first alternative that matches counts."""
        for a in self.alternatives:
            near = self.kind == "NUMERICAL" and (
                abs(Decimal(answer) - Decimal(a.answer)) <= a.tolerance
            )
            if near or answer == a.answer:
                return a.fraction, a.feedback
        return 0.0, ""


@dataclass
class ReadQuestion:
    """A question with its category or group, and the fields of its tables."""

    pool: str
    name: str
    html: str
    solution: str = ""
    fields: list[ReadField] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


def read_moodle(text: str) -> list[ReadQuestion]:
    """Read the questions of a Moodle XML file."""
    questions, pool = [], ""
    for node in ElementTree.fromstring(text):
        if node.get("type") == "category":
            pool = node.findtext("category/text") or ""
            continue
        assert node.get("type") == "cloze"
        html = node.findtext("questiontext/text") or ""
        question = ReadQuestion(pool, node.findtext("name/text") or "", html)
        question.solution = node.findtext("generalfeedback/text") or ""
        question.files = {f.get("name", ""): f.text or "" for f in node.iter("file")}
        question.fields = [*_read_fields(html)]
        questions.append(question)
    return questions


def _read_fields(html: str) -> list[ReadField]:
    codes = _FIELD.findall(html)
    marked = _FIELD.sub("\0", html)
    fields = []
    for table in re.findall(r"<table.*?</table>", marked, re.DOTALL):
        header, *rows = (
            [unescape(re.sub("<[^>]*>", "", c)) for c in re.findall(r"<t[hd].*?</t[hd]>", row)]
            for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
        )
        for cells in rows:
            for column, cell in zip(header, cells, strict=True):
                for _ in range(cell.count("\0")):
                    weight, kind, text = codes.pop(0)
                    alternatives = [_read_alternative(kind, a) for a in re.split(r"(?<!\\)~", text)]
                    fields.append(ReadField(cells[0], column, kind, int(weight), alternatives))
    assert not codes, "a field is outside the tables"
    return fields


def _read_alternative(kind: str, text: str) -> Alternative:
    match = re.fullmatch(r"(=|%-?[\d.]+%)?(.+?)(?:(?<!&)(?<!\\)#(.*))?", text, re.DOTALL)
    assert match, text
    credit, answer, feedback = match.groups()
    fraction = 1.0 if credit == "=" else float((credit or "0").strip("%")) / 100
    if credit == "%" or kind != "NUMERICAL":
        return Alternative(unescape(answer), fraction, unescape(feedback or ""))
    number = re.fullmatch(f"({_NUMBER}):({_NUMBER})", answer)
    assert number, answer
    return Alternative(number[1], fraction, unescape(feedback or ""), Decimal(number[2]))


class QtiPackage:
    """A QTI package: its questions in order, each with its group, and its files."""

    def __init__(self, content: bytes) -> None:
        archive = ZipFile(io.BytesIO(content))
        self.files = {name: archive.read(name) for name in archive.namelist()}
        manifest = ElementTree.fromstring(self.files["imsmanifest.xml"])
        hrefs = [n.get("href", "") for n in manifest.iter() if n.tag.endswith("}file")]
        assert sorted(hrefs) == sorted(self.files.keys() - {"imsmanifest.xml"})
        (path,) = (h for h in hrefs if h.endswith(".xml") and "meta" not in h)
        self.root = ElementTree.fromstring(self.files[path])
        self.groups = {
            section.get("ident", ""): section.findall("qti:item", NAMESPACES)
            for section in self.root.iter(f"{{{NAMESPACES['qti']}}}section")
        }
        self.items = [item for items in self.groups.values() for item in items]


def metadata(item: ElementTree.Element, label: str) -> str:
    """Return an entry of the metadata of a QTI item."""
    fields = item.iterfind(".//qti:qtimetadatafield", NAMESPACES)
    return next(entry.text or "" for name, entry in fields if name.text == label)


def grade_item(item: ElementTree.Element, answers: set[str]) -> tuple[float, set[str]]:
    """Run the response processing of an item; return its score and the shown feedback."""
    score, shown = 0.0, set[str]()
    for rule in item.iterfind("qti:resprocessing/qti:respcondition", NAMESPACES):
        condition = rule.find("qti:conditionvar", NAMESPACES)
        assert condition is not None
        if not all(_holds(node, answers) for node in condition):
            continue
        if (value := rule.find("qti:setvar", NAMESPACES)) is not None:
            score = float(value.text or 0)
        shown |= {n.get("linkrefid", "") for n in rule.iterfind("qti:displayfeedback", NAMESPACES)}
        if rule.get("continue") == "No":
            break
    return score, shown


def _holds(node: ElementTree.Element, answers: set[str]) -> bool:
    name = node.tag.rpartition("}")[2]
    if name in ("and", "or", "not"):
        parts = [_holds(child, answers) for child in node]
        return {"and": all(parts), "or": any(parts), "not": not parts[0]}[name]
    if name == "varequal":
        return node.text in answers
    if name == "other":
        return True
    number, limit = Decimal(next(iter(answers))), Decimal(node.text or "")
    return {"vargte": number >= limit, "varlte": number <= limit}[name]
