"""The results of stories as JUnit XML, which CI servers read (`scenario play --junit FILE`)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from xml.etree import ElementTree

from emulator.scenario.player import FAILED, SKIPPED, Played

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def report(stories: Sequence[Played]) -> str:
    """One test suite for each story, one test case for each step, of the same name in every run."""
    root = ElementTree.Element("testsuites", name="scenarios")
    for story in stories:
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=story.scenario,
            tests=str(len(story.steps)),
            failures=str(sum(step.outcome == FAILED for step in story.steps)),
            skipped=str(sum(step.outcome == SKIPPED for step in story.steps)),
            time=f"{sum(step.seconds for step in story.steps):.3f}",
        )
        for step in story.steps:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=story.scenario,
                name=_clean(f"{step.number} {step.written or step.title}"),
                time=f"{step.seconds:.3f}",
            )
            if step.outcome == SKIPPED:
                ElementTree.SubElement(case, "skipped")
            elif step.outcome == FAILED:
                failure = ElementTree.SubElement(case, "failure", message=_clean("; ".join(step.differences)))
                failure.text = _clean(json.dumps(step.as_json(), ensure_ascii=False, indent=2))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _clean(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return _NOT_XML.sub("?", text)
