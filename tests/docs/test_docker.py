"""The files of containers and of CI agree with the program and with published schemas; no engine runs them here."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml

from emulator import manual
from emulator.api.messages import Request
from emulator.assemble import assemble, authority_for
from emulator.settings import FLAGS, ServeSettings, read

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


def test_what_is_copied_exists_and_reaches_the_build() -> None:
    patterns = (ROOT / ".docker" / "Dockerfile.dockerignore").read_text().splitlines()
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        for source in sources.split():
            assert (ROOT / source).exists()
            assert f"!{source}" in patterns


def test_the_image_runs_without_rights_and_looks_after_itself() -> None:
    instructions = re.findall(r"^([A-Z]+) (.*)$", DOCKERFILE, re.MULTILINE)
    users = [argument for name, argument in instructions if name == "USER"]
    assert users == ["10001"]
    assert DOCKERFILE.index("USER 10001") < DOCKERFILE.index("ENTRYPOINT")
    assert re.search(r"^HEALTHCHECK .*\\\n.*/health", DOCKERFILE, re.MULTILINE)
    assert ("VOLUME", "/state") in instructions
    assert COMPOSE["services"]["app"]["depends_on"] == {"bank": {"condition": "service_healthy"}}


GUIDES = {"github-actions": "github-workflows", "gitlab": "gitlab-ci", "docker": "compose-spec"}  # page, schema
OURS = {
    "github-workflows": [*(ROOT / ".github" / "workflows").glob("*.yml")],
    "compose-spec": [*(ROOT / ".docker").glob("*.yaml")],
}


def shown(page: str) -> list[str]:
    """The files that a guide shows."""
    blocks = re.findall(r"(?:^(?: {4}.*)?\n)+", manual.pages()[f"how-to/{page}"].text, re.MULTILINE)
    return [block for block in map(textwrap.dedent, blocks) if re.match(r"\n*(jobs|services|test):", block)]


@pytest.mark.parametrize("page", GUIDES)
def test_the_files_of_a_guide_set_variables_that_serve_reads(page: str) -> None:
    assert shown(page)
    for text in shown(page):
        assert set(re.findall(r"BANK_EMULATOR_[A-Z_]+", text)) <= VARIABLES


@pytest.mark.parametrize("page", GUIDES)
def test_the_files_of_a_guide_and_of_the_repository_fit_the_published_schema(page: str, tmp_path: Path) -> None:
    files = list(OURS.get(GUIDES[page], ()))
    for number, text in enumerate(shown(page)):
        files.append(tmp_path / f"{number}.yaml")
        # a guide shows the jobs of a workflow alone
        files[-1].write_text(("on: push\n" if page == "github-actions" else "") + text)
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{GUIDES[page]}", *map(str, files)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


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


def test_the_user_of_the_image_shares_its_folder_with_group_0() -> None:
    assert re.search(r"useradd --uid (\d+) --gid 0 ", DOCKERFILE)
    assert "--group 0 --mode 0770 /state" in DOCKERFILE
