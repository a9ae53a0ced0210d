"""The examples for KServe and llm-d follow the schemas of their resources and of Kubernetes."""

import copy
import json
from functools import cache
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests.serving import REPOSITORY
from tests.test_dockerfile import STAGES
from tis.settings import Settings

IMAGE = STAGES["server"]
SCHEMAS = REPOSITORY / "tests" / "schemas"
_SHARED = ("REDIS_URL", "DATABASE_URL", "PICTURES_URL")  # a pod's own folder is gone with it, and no other reads it
_OF_BUCKET = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@cache
def objects() -> dict[str, dict[str, Any]]:
    """By kind."""
    files = [REPOSITORY / "deploy" / name / "tis.yaml" for name in ("kserve", "llm-d")]
    found = [one for file in files for one in yaml.safe_load_all(file.read_text(encoding="utf-8"))]
    return {one["kind"]: one for one in found}


def schema(name: str) -> Any:
    return json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))


def pod_of_kserve() -> dict[str, Any]:
    """What its predictor says of the pod; the rest is KServe's own."""
    predictor = objects()["InferenceService"]["spec"]["predictor"]
    fields = schema("kserve_inference_service")["properties"]["spec"]["properties"]["predictor"]["properties"]
    return {name: value for name, value in predictor.items() if fields[name] is True}


PODS = {
    "kserve": pod_of_kserve(),
    "llm-d": objects()["Deployment"]["spec"]["template"]["spec"],
}


def test_kserve_takes_its_example_and_refuses_another() -> None:
    service = objects()["InferenceService"]
    jsonschema.validate(service, schema("kserve_inference_service"))
    wrong = copy.deepcopy(service)
    wrong["spec"]["predictor"]["minReplicas"] = "two"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema("kserve_inference_service"))


def test_llm_d_takes_its_example_and_refuses_another() -> None:
    pool = objects()["InferencePool"]
    jsonschema.validate(pool, schema("inference_pool"))
    wrong = copy.deepcopy(pool)
    del wrong["spec"]["endpointPickerRef"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema("inference_pool"))
    kubernetes_validate.validate(objects()["Deployment"], kubernetes_validate.latest_version(), strict=True)


def test_the_pool_has_the_pods_of_the_deployment() -> None:
    labels = objects()["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for selector in (objects()["InferencePool"]["spec"]["selector"], objects()["Deployment"]["spec"]["selector"]):
        assert selector["matchLabels"].items() <= labels.items()
    [port] = objects()["InferencePool"]["spec"]["targetPorts"]
    assert [str(port["number"])] == IMAGE.values("EXPOSE")


@pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
def test_a_pod_is_one_of_kubernetes_and_runs_the_image_as_it_wants(pod: dict[str, Any]) -> None:
    one = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tis"}, "spec": pod}
    kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
    [server] = pod["containers"]
    context = pod["securityContext"]
    assert [f"{context['runAsUser']}:{context['runAsGroup']}"] == IMAGE.values("USER")
    assert {mount["mountPath"] for mount in server["volumeMounts"]} == {*IMAGE.values("VOLUME"), "/tmp"}
    variables = {variable["name"]: variable for variable in server["env"]}
    assert set(variables) <= {*Settings.variables().values(), *_OF_BUCKET}
    assert variables["SESSION_STORE"]["value"] == "redis"
    assert all("value" not in variables[name] for name in ("API_KEYS", "JWT_SECRET_KEY", *_SHARED, *_OF_BUCKET))
    [pause] = [int(word) for word in server["lifecycle"]["preStop"]["exec"]["command"] if word.isdigit()]
    assert pause + int(variables["DRAIN_SECONDS"]["value"]) < pod["terminationGracePeriodSeconds"]
