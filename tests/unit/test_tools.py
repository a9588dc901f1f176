"""Where a tool is missing, tests are left out and counted, and another apt is waited for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ONE_NEEDS_IT = """
from tests.tools import tool

def test_of_everybody(): pass
def test_of_the_tool(): tool("no-such-tool", "nor-this")
"""


@pytest.mark.parametrize("needed", [False, True])
def test_where_a_tool_is_missing_its_tests_are_left_out_and_counted(tmp_path: Path, needed: bool) -> None:
    (tmp_path / "test_one.py").write_text(ONE_NEEDS_IT)
    line = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(
        [*line, *(["--need-tools"] if needed else [])],
        cwd=ROOT,
        env={**os.environ, "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    printed = done.stdout
    assert done.returncode == (1 if needed else 0), printed + done.stderr
    assert ("no-such-tool is missing; .ci/tools installs it" in printed) == needed
    assert printed.count("would install: no-such-tool (1).") == (0 if needed else 1)


APT = """#!/bin/bash
echo "$@" >> calls
case $1 in
  update)
    if [ "$(grep -c '^update' calls)" -le "$BUSY" ]; then
      echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt)" >&2
      exit 100
    fi
    exit "$UPDATED" ;;
  *) exit "$INSTALLED" ;;
esac
"""


@pytest.mark.parametrize(
    ("busy", "updated", "installed", "updates"),
    [(0, 0, 0, 1), (3, 0, 0, 4), (0, 100, 0, 1), (0, 0, 100, 1)],
    ids=["free", "another apt", "no network for the lists", "nothing can be had"],
)
def test_tools_waits_for_another_apt_and_ends_well(
    tmp_path: Path, busy: int, updated: int, installed: int, updates: int
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "id", "env", "grep", "tail"):
        (programs / name).symlink_to(shutil.which(name) or "")
    for name, text in {"apt-get": APT, "sleep": "#!/bin/bash\n", "sudo": '#!/bin/bash\nshift\n"$@"\n'}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    answers = {"BUSY": str(busy), "UPDATED": str(updated), "INSTALLED": str(installed)}
    environment = {"PATH": str(programs), "VENV": str(tmp_path), **answers}
    done = subprocess.run(
        [str(programs / "bash"), str(ROOT / ".ci" / "tools")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    *asked, install = (tmp_path / "calls").read_text().splitlines()
    assert asked == ["update -qq"] * updates
    assert "DPkg::Lock::Timeout=300" in install
    assert ("are left out" in done.stderr) == (installed != 0)
