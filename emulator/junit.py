"""Writes results as JUnit XML: scenarios that were played, checks of a TPP, schedules of a search."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from xml.etree import ElementTree

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Case:
    """One test. `failure`: its message and details; `skipped`: why, if it was; `output`: what a passed one printed."""

    group: str
    name: str
    failure: tuple[str, str] | None = None
    skipped: str | None = None
    output: str | None = None
    seconds: float | None = None


def suite(name: str, cases: Iterable[Case]) -> ElementTree.Element:
    """A test suite. Characters that XML does not allow are replaced."""
    cases = list(cases)
    counts = {
        "tests": len(cases),
        "failures": sum(case.failure is not None for case in cases),
        "skipped": sum(case.skipped is not None for case in cases),
        "errors": 0,
    }
    element = ElementTree.Element("testsuite", _attributes(name=name, **counts))
    if any(case.seconds is not None for case in cases):
        element.set("time", f"{sum(case.seconds or 0 for case in cases):.3f}")
    for case in cases:
        test = ElementTree.SubElement(element, "testcase", _attributes(classname=case.group, name=case.name))
        if case.seconds is not None:
            test.set("time", f"{case.seconds:.3f}")
        if case.failure is not None:
            message, details = case.failure
            ElementTree.SubElement(test, "failure", _attributes(message=message)).text = _text(details)
        elif case.skipped is not None:
            ElementTree.SubElement(test, "skipped", _attributes(message=case.skipped) if case.skipped else {})
        elif case.output is not None:
            ElementTree.SubElement(test, "system-out").text = _text(case.output)
    return element


def document(root: ElementTree.Element) -> str:
    """The file: its root is a suite, or `testsuites` around several."""
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _attributes(**values: object) -> dict[str, str]:
    return {name: _text(str(value)) for name, value in values.items()}


def _text(text: str) -> str:
    return _NOT_XML.sub("?", text)
