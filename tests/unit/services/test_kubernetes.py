"""The manifests of Kubernetes: valid for each version that is maintained, and what they refer to is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docker" / "kubernetes"
FILES = sorted(file.name for file in FOLDER.glob("*.yaml"))
VERSIONS = ("1.33", "1.34", "1.35")
DOCUMENTS: list[dict[str, Any]] = [
    document for name in FILES for document in yaml.safe_load_all((FOLDER / name).read_text())
]


def named(kind: str, name: str = "migrator") -> dict[str, Any]:
    [found] = [one for one in DOCUMENTS if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_every_document_is_valid(version: str) -> None:
    assert len(DOCUMENTS) > 6
    for document in DOCUMENTS:
        kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "replicas"), "one"),
        (("spec", "template", "spec", "terminationGracePeriodSecond"), 1),
        (("spec", "template", "spec", "containers", 0, "livenessProbe", "exec"), {"commands": []}),
    ],
)
def test_a_wrong_field_is_noticed(path: tuple[Any, ...], value: object) -> None:
    document = yaml.safe_load(yaml.safe_dump(named("StatefulSet")))
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, VERSIONS[-1], strict=True)


def test_what_is_referred_to_is_there() -> None:
    state = named("StatefulSet")["spec"]
    pod = state["template"]["spec"]
    [container] = pod["containers"]
    assert named("Service")["metadata"]["name"] == state["serviceName"]
    assert named("Service")["spec"]["selector"].items() <= state["template"]["metadata"]["labels"].items()
    assert pod["serviceAccountName"] == named("ServiceAccount")["metadata"]["name"]
    secrets = [one["secretRef"]["name"] for one in container["envFrom"]]
    assert [named("Secret", name)["metadata"]["name"] for name in secrets] == secrets
    volumes = {one["name"] for one in pod["volumes"]} | {
        one["metadata"]["name"] for one in state["volumeClaimTemplates"]
    }
    assert {one["name"] for one in container["volumeMounts"]} == volumes


def test_the_pod_is_the_images_user_and_may_write_its_state() -> None:
    pod = named("StatefulSet")["spec"]["template"]["spec"]
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text()
    assert f"USER {pod['securityContext']['runAsUser']}:{pod['securityContext']['fsGroup']}\n" in dockerfile
    [container] = pod["containers"]
    mounted = {one["mountPath"] for one in container["volumeMounts"]}
    assert "VOLUME /project/.migrator\n" in dockerfile
    assert {"/project/.migrator", "/tmp", "/home/migrator"} == mounted, (
        "all that is written, on a read-only image"
    )
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_probes_ask_for_a_run_that_began_and_lives() -> None:
    [container] = named("StatefulSet")["spec"]["template"]["spec"]["containers"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["exec"]["command"] == ["healthy", "begun"], probe
    live = container["livenessProbe"]
    assert live["periodSeconds"] * live["failureThreshold"] >= 60, "a machine that is busy isn't dead"
