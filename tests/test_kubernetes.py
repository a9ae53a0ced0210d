"""The Helm chart and the manifest that is made of it, checked by the schemas of Kubernetes."""

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests.serving import REPOSITORY
from tests.test_dockerfile import STAGES
from tis.settings import Settings

CHART = REPOSITORY / "deploy" / "helm" / "tis"
MANIFEST = REPOSITORY / "deploy" / "kubernetes" / "tis.yaml"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
IMAGE = STAGES["server"]
HELM = shutil.which("helm")
needs_helm = pytest.mark.skipif(not HELM, reason="helm is not here: https://helm.sh/docs/intro/install")
_SHARED = ("DATABASE_URL", "REDIS_URL", "RESPONSES_URL")  # of several replicas; each may have a password in it
_OF_BUCKET = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
CLUSTER = "1.30.0"  # what `helm template` renders for; its built-in version may be older than the chart allows
SOME_VALUES: dict[str, dict[str, Any]] = {
    "everything": {
        "ingress": {"enabled": True},
        "autoscaling": {"enabled": True},
        "persistence": {"storageClass": "fast"},
        "networkPolicy": {
            "from": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}],
            "to": [{"to": [{"podSelector": {"matchLabels": {"name": "postgres"}}}], "ports": [{"port": 5432}]}],
        },
    },
    "gpu": {
        "resources": {"limits": {"nvidia.com/gpu": 1}},
        "nodeSelector": {"gpu": "yes"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "replicas": 3,
    },
    "little": {"disruptionBudget": {"enabled": False}, "networkPolicy": {"enabled": False}},
}


@cache
def objects() -> dict[str, dict[str, Any]]:
    """By kind; the second Service is `Service tis-pods`."""
    found = {}
    for one in yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8")):
        kind = one["kind"] if one["metadata"]["name"] == "tis" else f"{one['kind']} {one['metadata']['name']}"
        found[kind] = one
    return found


def pod() -> dict[str, Any]:
    spec: dict[str, Any] = objects()["StatefulSet"]["spec"]["template"]["spec"]
    return spec


def server() -> dict[str, Any]:
    [container] = pod()["containers"]
    return dict(container)


def helm(*arguments: str) -> str:
    assert HELM
    done = subprocess.run([HELM, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_schemas_of_kubernetes_accept_the_manifest_and_refuse_another() -> None:
    for one in objects().values():
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
    assert set(objects()) == {"StatefulSet", "Service", "Service tis-pods", "PodDisruptionBudget", "NetworkPolicy"}
    wrong = {**objects()["Service"], "spec": {**objects()["Service"]["spec"], "port": 80}}
    with pytest.raises(jsonschema.ValidationError):
        kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)


def test_the_pod_runs_as_the_user_of_the_image_with_a_read_only_root() -> None:
    context = pod()["securityContext"]
    assert [f"{context['runAsUser']}:{context['runAsGroup']}"] == IMAGE.values("USER")
    assert context["runAsNonRoot"] and context["fsGroup"] == 1000
    assert server()["securityContext"]["readOnlyRootFilesystem"]
    assert {mount["mountPath"] for mount in server()["volumeMounts"]} == {*IMAGE.values("VOLUME"), "/tmp"}
    assert [str(port["containerPort"]) for port in server()["ports"]] == IMAGE.values("EXPOSE")


def test_its_variables_are_settings_and_its_secrets_are_no_values() -> None:
    variables = {variable["name"]: variable for variable in server()["env"]}
    assert set(variables) <= {*Settings.variables().values(), *_OF_BUCKET}
    for name in ("API_KEYS", "ADMIN_KEY", "HF_TOKEN", "JWT_SECRET_KEY", *_SHARED, *_OF_BUCKET):
        assert "value" not in variables[name], name
    assert variables["API_KEYS"]["valueFrom"]["secretKeyRef"]["optional"] is False


def test_prometheus_is_not_sent_to_pods_that_would_refuse_it() -> None:
    """Annotations hold no key, and the pod has keys."""
    template = objects()["StatefulSet"]["spec"]["template"]
    assert "METRICS_PUBLIC" not in VALUES["settings"] and "annotations" not in template["metadata"]


def test_a_pod_has_time_to_leave() -> None:
    [pause] = re.findall(r"\d+", str(server()["lifecycle"]["preStop"]["exec"]["command"]))
    drain = next(int(variable["value"]) for variable in server()["env"] if variable["name"] == "DRAIN_SECONDS")
    assert int(pause) + drain < pod()["terminationGracePeriodSeconds"]


def test_probes_ask_what_the_server_answers() -> None:
    paths = {name: server()[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}
    # A server that loads or drains is alive.
    assert paths == {"startup": "/ready", "readiness": "/ready", "liveness": "/live"}


def test_selectors_find_the_pod() -> None:
    labels = objects()["StatefulSet"]["spec"]["template"]["metadata"]["labels"].items()
    selectors = [
        objects()["StatefulSet"]["spec"]["selector"]["matchLabels"],
        objects()["Service"]["spec"]["selector"],
        objects()["Service tis-pods"]["spec"]["selector"],
        objects()["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        objects()["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector and selector.items() <= labels for selector in selectors)
    assert objects()["StatefulSet"]["spec"]["serviceName"] == objects()["Service tis-pods"]["metadata"]["name"]


def test_the_manifest_has_the_values_of_the_chart() -> None:
    """Where helm is, the next test compares all of it."""
    assert server()["image"] == f"{VALUES['image']['repository']}:{VALUES['image']['tag']}"
    assert server()["resources"] == VALUES["resources"]
    assert {variable["name"]: variable.get("value") for variable in server()["env"]}.items() >= VALUES[
        "settings"
    ].items()
    used = set(re.findall(r"\.Values\.([\w.]+)", "".join(path.read_text() for path in CHART.rglob("templates/*"))))
    tops = {name.partition(".")[0] for name in used}
    assert tops == set(VALUES)


@needs_helm
def test_the_manifest_is_the_chart_with_its_defaults() -> None:
    made = helm("template", "tis", str(CHART), "--kube-version", CLUSTER, "--namespace", "default")
    found = {(one["kind"], one["metadata"]["name"]): one for one in filter(None, yaml.safe_load_all(made))}
    assert found == {(one["kind"], one["metadata"]["name"]): one for one in objects().values()}


@needs_helm
@pytest.mark.parametrize("values", SOME_VALUES.values(), ids=SOME_VALUES)
def test_the_chart_follows_the_schemas_whatever_its_values(values: dict[str, Any], tmp_path: Path) -> None:
    kinds = {one["kind"] for one in rendered(values, tmp_path)}
    assert {"StatefulSet", "Service"} <= kinds
    for name, its_kinds in (
        ("ingress", {"Ingress"}),
        ("autoscaling", {"HorizontalPodAutoscaler"}),
        ("disruptionBudget", {"PodDisruptionBudget"}),
        ("networkPolicy", {"NetworkPolicy"}),
    ):
        enabled = values.get(name, {}).get("enabled", VALUES[name]["enabled"])
        assert bool(its_kinds & kinds) == enabled, name


@needs_helm
def test_a_setting_is_text_as_it_was_written(tmp_path: Path) -> None:
    written = {"MAX_BODY_BYTES": 104857600, "GPU_MEMORY": 0.5, "PERSIST_SESSIONS": True, "MODEL_REPO_ID": 'a "b"'}
    [one] = [one for one in rendered({"settings": written}, tmp_path) if one["kind"] == "StatefulSet"]
    found = {
        variable["name"]: variable.get("value") for variable in one["spec"]["template"]["spec"]["containers"][0]["env"]
    }
    expected = {
        "MAX_BODY_BYTES": "104857600",
        "GPU_MEMORY": "0.5",
        "PERSIST_SESSIONS": "true",
        "MODEL_REPO_ID": 'a "b"',
    }
    assert expected.items() <= found.items()


@needs_helm
@pytest.mark.parametrize("value", ["1", 1])
def test_prometheus_finds_pods_whose_metrics_are_public(value: object, tmp_path: Path) -> None:
    [one] = [one for one in rendered({"settings": {"METRICS_PUBLIC": value}}, tmp_path) if one["kind"] == "StatefulSet"]
    assert one["spec"]["template"]["metadata"]["annotations"]["prometheus.io/scrape"] == "true"


def rendered(values: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """By `helm template`, after `helm lint` and the schemas of Kubernetes."""
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    helm("lint", "--strict", str(CHART), "--values", str(file))
    made = helm("template", "other", str(CHART), "--kube-version", CLUSTER, "--values", str(file))
    found = list(filter(None, yaml.safe_load_all(made)))
    for one in found:
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
    return found
