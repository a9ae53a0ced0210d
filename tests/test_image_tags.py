"""The tags of the images: what documents and files of deployments name is what the workflow pushes."""

import re
from typing import Any

import yaml

from tests.serving import REPOSITORY

WORKFLOW = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "image.yml").read_text(encoding="utf-8"))
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8")
DOCKER_PAGE = (REPOSITORY / "docs" / "docker.md").read_text(encoding="utf-8")
TAG = re.compile(r"\blatest-[a-z-]*[a-z]")
PAGES = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md"), *(REPOSITORY / "deploy").rglob("*")]
FILES = [*PAGES, *REPOSITORY.glob("*.yml"), *REPOSITORY.glob("*.yaml")]


def variants(job: str) -> list[str]:
    matrix: dict[str, Any] = WORKFLOW["jobs"][job]["strategy"]["matrix"]
    return list(matrix["variant"])


def table() -> dict[str, tuple[set[str], bool]]:
    """The tags of the page: architectures, and whether a model is in the image."""
    rows = re.findall(r"^\| `(latest-[\w-]+)` \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", DOCKER_PAGE, re.MULTILINE)
    return {tag: ({part.strip() for part in archs.split(",")}, model.strip() != "none") for tag, archs, model in rows}


def test_the_workflow_pushes_exactly_the_tags_of_the_page() -> None:
    assert {f"latest-{variant}" for variant in variants("tag")} == set(table())
    assert variants("build") == variants("tag")


def test_every_file_names_tags_that_are_pushed() -> None:
    named = {
        (path.name, tag)
        for path in FILES
        if path.is_file()
        for tag in TAG.findall(path.read_text(encoding="utf-8", errors="replace"))
    }
    assert {"docker.md", "render.yaml", "values.yaml", "docker-compose.yml"} <= {name for name, _ in named}
    assert {tag for _, tag in named} <= set(table())


def test_the_end_of_a_tag_is_a_backend_of_the_dockerfile() -> None:
    backends = set(re.findall(r"^\s+(\w+)\) index=", DOCKERFILE, re.MULTILINE))
    assert {variant.rpartition("-")[2] for variant in variants("build")} == backends


def test_architectures_and_models_are_those_of_the_page() -> None:
    matrix = WORKFLOW["jobs"]["build"]["strategy"]["matrix"]
    for tag, (architectures, with_model) in table().items():
        variant = tag.removeprefix("latest-")
        left_out = {one["arch"] for one in matrix["exclude"] if one["variant"] == variant}
        assert set(matrix["arch"]) - left_out == architectures, tag
        assert variant.startswith("with-model-") == with_model, tag


def test_the_model_in_the_images_is_the_default_of_the_server() -> None:
    from tis.settings import Settings

    assert WORKFLOW["env"]["MODEL"] == Settings().model_repo_id
    assert f"`{WORKFLOW['env']['MODEL']}`" in DOCKER_PAGE


def test_images_are_named_once() -> None:
    """Every file names the same repository of images."""
    names = {
        name
        for path in FILES
        if path.is_file()
        for name in re.findall(r"ghcr\.io/[\w.-]+/[\w.-]+", path.read_text(encoding="utf-8", errors="replace"))
    }
    assert len(names) == 1, names


def test_nothing_is_pushed_before_the_smoke_test_nor_by_a_pull_request() -> None:
    jobs = WORKFLOW["jobs"]
    assert jobs["build"]["needs"] == "smoke" and jobs["tag"]["needs"] == "build"
    assert jobs["build"]["if"] == "github.event_name == 'push'"
    assert "packages" not in WORKFLOW["permissions"] and "permissions" not in jobs["smoke"]
    used = " ".join(str(step) for step in jobs["smoke"]["steps"])
    assert "--read-only" in used and "sbom-action" in used and "scan-action" in used and "/ktp-ocr/" in used
