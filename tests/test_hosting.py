"""What hosts read, checked by their schemas: Compose, GitHub, Render, Space, systemd."""

import json
import re
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from huggingface_hub import SpaceCard

from scripts.write_space import FILES, write_space
from tests.serving import REPOSITORY
from tests.test_dockerfile import STAGES
from tis.http.settings import AccessSettings
from tis.settings import Settings

COMPOSE = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text(encoding="utf-8"))
UNIT = REPOSITORY / "deploy" / "systemd" / "tis.service"
# The fields of https://render.com/docs/blueprint-spec that a service with an image may have.
RENDER_SCHEMA = {
    "type": "object",
    "required": ["services"],
    "additionalProperties": False,
    "properties": {
        "services": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "name", "runtime", "image", "plan"],
                "additionalProperties": False,
                "properties": {
                    "type": {"enum": ["web", "pserv", "worker"]},
                    "name": {"type": "string"},
                    "runtime": {"const": "image"},
                    "image": {"type": "object", "required": ["url"], "properties": {"url": {"type": "string"}}},
                    "plan": {"enum": ["starter", "standard", "pro", "pro plus", "pro max", "pro ultra"]},
                    "numInstances": {"type": "integer", "minimum": 1},
                    "healthCheckPath": {"type": "string", "pattern": "^/"},
                    "maxShutdownDelaySeconds": {"type": "integer", "minimum": 1, "maximum": 300},
                    "disk": {
                        "type": "object",
                        "required": ["name", "mountPath", "sizeGB"],
                        "additionalProperties": False,
                        "properties": {
                            "name": {"type": "string"},
                            "mountPath": {"type": "string"},
                            "sizeGB": {"type": "integer", "minimum": 1},
                        },
                    },
                    "envVars": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["key"],
                            "additionalProperties": False,
                            "minProperties": 2,
                            "maxProperties": 2,
                            "properties": {
                                "key": {"type": "string"},
                                "value": {"type": "string"},
                                "generateValue": {"const": True},
                                "sync": {"const": False},
                            },
                        },
                    },
                },
            },
        }
    },
}


@cache
def published_schema(name: str) -> dict[str, Any]:
    """As its project publishes it; the package that carries it is not imported."""
    package = find_spec("check_jsonschema")
    assert package and package.submodule_search_locations
    folder = Path(package.submodule_search_locations[0]) / "builtin_schemas" / "vendor"
    schema: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return schema


def check(document: Any, schema: dict[str, Any]) -> None:
    jsonschema.validators.validator_for(schema)(schema).validate(document)


@pytest.mark.parametrize(
    "path", sorted((REPOSITORY / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.name
)
def test_workflows_follow_the_schema_of_github(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    workflow["on"] = workflow.pop(True)  # YAML 1.1 reads `on` as true
    check(workflow, published_schema("github-workflows"))


def test_compose_follows_its_specification() -> None:
    check(COMPOSE, published_schema("compose-spec"))
    profiles = {profile for service in COMPOSE["services"].values() for profile in service.get("profiles", [])}
    assert profiles == {"postgres", "redis", "nginx", "monitoring"}
    page = (REPOSITORY / "docs" / "docker.md").read_text(encoding="utf-8")
    assert profiles <= set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))


def test_the_server_of_compose_is_the_image_with_a_read_only_root_and_settings_that_exist() -> None:
    server = COMPOSE["services"]["server"]
    assert server["read_only"] and server["tmpfs"] == ["/tmp"] and server["volumes"] == ["data:/data"]
    assert set(server["environment"]) <= set(Settings.variables().values()) | {"HF_TOKEN_PATH"}
    arguments = {value.partition("=")[0] for stage in STAGES.values() for value in stage.values("ARG")}
    assert set(server["build"]["args"]) <= arguments
    # The token is a file: `docker inspect` shows none.
    assert "HF_TOKEN" not in server["environment"] and server["secrets"] == ["hf_token"]


def test_what_the_page_says_of_compose_reaches_the_server() -> None:
    """A variable that Compose does not pass on would be set in vain."""
    page = (REPOSITORY / "docs" / "docker.md").read_text(encoding="utf-8")
    section = page.partition("## Compose")[2].partition("\n## ")[0]
    named = set(re.findall(r"\b[A-Z][A-Z_]+\b", section))
    environment = set(COMPOSE["services"]["server"]["environment"])
    assert named & set(Settings.variables().values()) == environment - {"HF_TOKEN_PATH"}
    assert set(re.findall(r"\$\{(\w+)", str(COMPOSE))) <= named


def test_compose_uses_what_it_declares() -> None:
    services = COMPOSE["services"].values()
    named = {str(volume).partition(":")[0] for service in services for volume in service.get("volumes", [])}
    assert {name for name in named if not name.startswith(".")} == set(COMPOSE["volumes"])
    configs = {config["source"] for service in services for config in service.get("configs", [])}
    assert configs == set(COMPOSE["configs"])
    for name in ("prometheus", "grafana_source", "grafana_dashboards"):
        assert isinstance(yaml.safe_load(COMPOSE["configs"][name]["content"]), dict)


def test_nginx_of_compose_does_what_the_file_of_nginx_does() -> None:
    pattern = re.compile(r"^\s*((?:client_max_body_size|proxy_)[^;]+);", re.MULTILINE)
    lines = set(pattern.findall(COMPOSE["configs"]["nginx"]["content"].replace("$$", "$")))
    file = (REPOSITORY / "deploy" / "nginx" / "tis.conf").read_text(encoding="utf-8")
    assert lines - {"proxy_pass http://server:3000"} <= set(pattern.findall(file))
    assert {"proxy_buffering off", "proxy_next_upstream off", "proxy_set_header X-Forwarded-For $remote_addr"} <= lines


PROMTOOL = shutil.which("promtool")


@pytest.mark.skipif(not PROMTOOL, reason="promtool is not here: `apt-get install prometheus`")
def test_prometheus_of_compose_reads_its_configuration(tmp_path: Path) -> None:
    assert PROMTOOL
    written = COMPOSE["configs"]["prometheus"]["content"].replace("${METRICS_KEY:-}", "secret")
    alerts = str(REPOSITORY / "deploy" / "prometheus")
    (tmp_path / "prometheus.yml").write_text(written.replace("/etc/prometheus/rules", alerts))
    command = [PROMTOOL, "check", "config", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and "1 rule files found" in done.stdout + done.stderr, done.stderr


def test_no_password_has_a_default() -> None:
    variables = re.findall(r"\$\{(\w*(?:PASSWORD|KEY|KEYS|TOKEN))(:?-([^}]*))?\}", str(COMPOSE))
    assert variables and all(default == "" for _, _, default in variables)


def test_render_gets_a_blueprint_it_knows() -> None:
    blueprint = yaml.safe_load((REPOSITORY / "render.yaml").read_text(encoding="utf-8"))
    check(blueprint, RENDER_SCHEMA)
    [service] = blueprint["services"]
    variables = {variable["key"]: variable for variable in service["envVars"]}
    assert set(variables) <= set(Settings.variables().values())
    assert variables["API_KEYS"].get("generateValue"), "the server would be open to all"
    assert variables["HF_TOKEN"].get("sync") is False, "a secret in the repository"
    assert service["disk"]["mountPath"] == STAGES["server"].values("VOLUME")[0]
    assert int(variables["DRAIN_SECONDS"]["value"]) < service["maxShutdownDelaySeconds"]


def test_the_front_matter_of_the_space_is_what_the_hub_knows() -> None:
    card = SpaceCard(
        (REPOSITORY / "deploy" / "space" / "README.md").read_text(encoding="utf-8"), ignore_metadata_errors=False
    )
    front = card.data.to_dict()
    colours = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
    assert front["sdk"] == "docker" and str(front["app_port"]) == STAGES["server"].values("EXPOSE")[0]
    assert {front["colorFrom"], front["colorTo"]} <= colours
    assert front["title"] and front["emoji"] and front["pinned"] is False
    assert len(front["short_description"]) <= 60  # more is an error of the hub
    assert front["models"] == [Settings().model_repo_id]


def test_the_folder_of_the_space_has_all_that_the_dockerfile_copies(tmp_path: Path) -> None:
    copied = {source for stage in STAGES.values() for origin, paths in stage.copies() if not origin for source in paths}
    assert copied - {"README.md"} <= set(FILES)
    if not (REPOSITORY / ".git").exists():
        pytest.skip("this is no checkout of git: nothing can be archived")
    write_space(tmp_path / "space")
    assert all((tmp_path / "space" / source).exists() for source in copied)
    assert (tmp_path / "space" / "README.md").read_text(encoding="utf-8").startswith("---\ntitle:")
    with pytest.raises(SystemExit, match="not empty"):
        write_space(tmp_path / "space")


def test_the_unit_starts_the_server_with_settings_that_exist() -> None:
    lines = UNIT.read_text(encoding="utf-8").splitlines()
    words = [word for line in lines if line.startswith("Environment=") for word in line.partition("=")[2].split()]
    environment = dict(word.split("=", 1) for word in words)
    settings = Settings.from_env({k: v for k, v in environment.items() if k != "HF_HOME"}, env_file=None)
    assert settings.sessions_db_path == "/var/lib/tis/sessions.db" and settings.persist_sessions
    [stop] = [int(line.partition("=")[2]) for line in lines if line.startswith("TimeoutStopSec=")]
    assert settings.drain_seconds < stop
    assert isinstance(settings, AccessSettings)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not here")
def test_systemd_finds_no_fault_in_the_unit(tmp_path: Path) -> None:
    """But for the program, which is installed elsewhere."""
    unit = tmp_path / "tis.service"
    program = "ExecStart=/opt/tis/.venv/bin/tis "
    text = UNIT.read_text(encoding="utf-8")
    assert program in text
    unit.write_text(text.replace(program, "ExecStart=/bin/true "))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, [line for line in done.stderr.splitlines() if "tis.service" in line]) == (0, [])
