"""Where a tool is missing, tests are left out and counted."""

from __future__ import annotations

import os
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.warm import Command

ROOT = Path(__file__).parents[2]
ONE_NEEDS_IT = """
from tests.tools import tool

def test_of_everybody(): pass
def test_of_the_tool(): tool("no-such-tool", "nor-this")
"""


@pytest.mark.parametrize("needed", [False, True])
def test_where_a_tool_is_missing_its_tests_are_left_out_and_counted(tmp_path: Path, needed: bool) -> None:
    (tmp_path / "test_one.py").write_text(ONE_NEEDS_IT)
    line = ["-p", "tests.conftest", "-p", "no:cacheprovider", str(tmp_path), *(["--need-tools"] if needed else [])]
    environment = {**os.environ, "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    run = Command(*line, program="pytest", stdout=PIPE, stderr=PIPE, cwd=ROOT, env=environment)
    printed, errors = run.communicate(timeout=60)
    assert run.returncode == (1 if needed else 0), printed + errors
    assert ("no-such-tool is missing; .ci/tools installs it" in printed) == needed
    assert printed.count("would install: no-such-tool (1).") == (0 if needed else 1)
