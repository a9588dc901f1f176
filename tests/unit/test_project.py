"""What surrounds the code: dependencies, the checks of a change, the workflows that call them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import emulator
from tests.planted import FAULTS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RUN = (ROOT / ".ci" / "run").read_text()

# Shapes of JSON, whose class names are the names of schemas or kinds of documents: an Account is one in each of them.
SHAPES = (
    "api/shapes/",
    "bank/documents.py",
    "bank/feed.py",
    "bank/fixtures/definitions.py",
    "control/operations/",
    "scenario/effects/",
)
# Where `"x" in` does not ask for a member of a document: the body of a TPP, an error of pydantic, a model.
OTHER_MAPPINGS = {"initiation", "named", "ctx", "part", "self.model_fields_set"}
# Classes outside of them that are the same thing as one of them: the snapshots of an answer are those of the store.
ALSO_SHAPES = {"Bank", "Belief", "Message", "Observation", "Rules", "Tpp"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
VAGUE = {"found", "told", "kept", "made", "said"}


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in yaml.safe_load(workflow.read_text())["jobs"].values() for step in job["steps"]]


def test_every_dependency_has_a_lower_bound_so_that_the_lowest_versions_can_be_tried() -> None:
    assert [text for text in PROJECT["dependencies"] if not re.match(r"[a-z0-9-]+>=[0-9]", text)] == []


def test_the_python_versions_that_are_promised_are_those_that_are_tried() -> None:
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert PROJECT["requires-python"] == f">={promised[0]}"
    tried = re.search(r"for version in ([0-9. ]+);", RUN)
    assert tried is not None
    assert tried[1].split() == promised
    matrix = yaml.safe_load((ROOT / ".github/workflows/check.yml").read_text())["jobs"]["run"]["strategy"]["matrix"]
    assert matrix["python"] == promised
    parts = {*matrix["part"], *(extra["part"] for extra in matrix["include"])}
    assert all(f"\n{part}() {{" in RUN for part in parts)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_the_checks_and_needs_few_rights(workflow: Path) -> None:
    content = yaml.safe_load(workflow.read_text())
    assert content["permissions"] == {"contents": "read"}
    assert any(step.get("run", "").startswith(".ci/run ") for step in steps(workflow))
    for step in steps(workflow):  # an expression in a script would be run as part of it
        assert "github.event" not in step.get("run", "")
        # by the hash of a commit: a tag can be moved to another
        ours = step.get("uses") == "./.github/actions/bank"
        assert "uses" not in step or ours or re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", step["uses"])


def test_the_release_checks_the_tag_against_the_version_of_the_program() -> None:
    [check] = [
        step["run"] for step in steps(ROOT / ".github/workflows/release.yml") if "__version__" in step.get("run", "")
    ]
    [command] = re.findall(r"version=\$\((.*)\)$", check, re.MULTILINE)
    shown = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == emulator.__version__


def test_the_checks_have_parts_and_refuse_others() -> None:
    refused = subprocess.run([str(ROOT / ".ci" / "run"), "other"], capture_output=True, text=True)
    usage = "usage: .ci/run [main|packages|postgresql|long|lowest|versions]\n"
    assert (refused.returncode, refused.stderr) == (2, usage)


def test_the_tests_that_coverage_leaves_out_are_there() -> None:
    for line in (ROOT / "tests" / "not_measured.txt").read_text().split():
        path, _, name = line.partition("::")
        assert (ROOT / path).exists(), line
        assert not name or name in (ROOT / path).read_text(), line


@cache
def texts(folder: str) -> dict[str, str]:
    """The modules of a folder, by path."""
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted((ROOT / folder).rglob("*.py"))}


def variables(tree: ast.Module) -> set[str]:
    """The names that functions of a module bind, and their own."""
    names = set()
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, inside = waiting.pop()
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if inside:
                names.add(name)
        if isinstance(node, FUNCTIONS):
            inside = True
            if isinstance(node, ast.FunctionDef):
                names.add(node.name)
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
    return names


def test_a_class_name_means_one_thing() -> None:
    places, shapes = defaultdict(list), set()
    for path, text in texts("emulator").items():
        module, names = path.removeprefix("emulator/"), re.findall(r"^ *class _?(\w+)[(:]", text, re.MULTILINE)
        if module.startswith(SHAPES):
            shapes.update(names)
        else:
            for name in names:
                places[name].append(module)
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}
    assert places.keys() & shapes == ALSO_SHAPES


def test_a_misspelt_member_of_a_document_or_an_answer_is_an_error_of_type(tmp_path: Path) -> None:
    """Also in `get`, by the plugin `tests/typed_members.py`. What mypy has read in `make check` it has kept."""
    pytest.importorskip("mypy", reason="a library of make check")
    code = """from emulator.api.operation import Reply
from emulator.api.shapes.answers import ScaStatus
from emulator.bank.documents import Payment
def answered() -> Reply[ScaStatus]:
    return Reply(200, {"scaState": "started"})
def misspelt(payment: Payment) -> list[object]:
    payment["statu"] = "RCVD"
    return [payment["amont"], payment.get("progres"), payment.get("progress"), payment.pop("hold", None)]
"""
    (tmp_path / "misspelt.py").write_text(code)
    command = (sys.executable, "-m", "mypy", str(tmp_path / "misspelt.py"))
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert re.findall(r'(?:has no|Extra) key "(\w+)"', checked.stdout) == [
        "scaState",
        "statu",
        "amont",
        "progres",
        "hold",
    ]


def test_a_member_that_the_bank_asks_for_is_declared() -> None:
    """`"x" in document` is checked by no type: that x is a member of some document is checked here."""
    declared = {
        node.target.id
        for node in ast.walk(ast.parse((ROOT / "emulator/bank/documents.py").read_text()))
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    unknown = [
        f"{path}: {name}"
        for folder in ("emulator/bank", "emulator/api/operations")
        for path, text in texts(folder).items()
        for name, mapping in re.findall(r'"([a-z]+[A-Za-z]*)" (?:not )?in ([\w.]+)', text)
        if mapping not in OTHER_MAPPINGS and name not in declared
    ]
    assert unknown == []


def test_a_variable_says_what_it_holds() -> None:
    """Names such as `found` say only that something was."""
    bound = re.compile(rf"\b({'|'.join(VAGUE)})(: .+)?(, \w+)*(\(| = | in |, |\))")  # much faster than to parse all
    some = {path: ast.parse(text) for path, text in (texts("emulator") | texts("tests")).items() if bound.search(text)}
    assert {path: vague for path, tree in some.items() if (vague := variables(tree) & VAGUE)} == {}


def test_a_planted_fault_quotes_a_line_of_the_code() -> None:
    for fault in FAULTS:
        text = (ROOT / "emulator" / fault.file).read_text(encoding="utf-8")
        assert text.count(fault.old) == 1, f"tests/planted.py: {fault.file}: {fault.about}"
