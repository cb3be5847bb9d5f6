"""The manifests in examples/kubernetes: valid to Kubernetes' schemas, to kgroup and to Spark on Kubernetes.

No cluster runs here. What is executed: kgroup with each manifest's own arguments, on local[1] instead of the
master that they name; and the part of Spark that makes an executor's pod of these arguments.
"""

import json
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

pytest.importorskip("pyspark")

from kgroup.pipeline.tables.store import Store
from kgroup.storage.options import KEYS
from tests.pipeline.test_ingest import check_equal, in_process

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
FOLDER = Path(__file__).resolve().parents[2] / "examples" / "kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))
VERSIONS = ("1.29", kubernetes_validate.latest_version())
SECRETS = {name for name, key in KEYS.items() if key.secret} | {"AWS_ACCESS_KEY_ID"}
MADE_BEFOREHAND = {("Secret", "kgroup-storage"), ("Secret", "kgroup-client")}


def documents(file: Path) -> list[dict[str, Any]]:
    return [found for found in yaml.safe_load_all(file.read_text()) if found]


ALL = [(file.name, document) for file in FILES for document in documents(file)]


def pod_of(document: dict[str, Any]) -> dict[str, Any] | None:
    """The spec of the pods that an object makes."""
    spec = document.get("spec", {})
    spec = spec.get("jobTemplate", {}).get("spec", spec)
    found: dict[str, Any] | None = spec.get("template", {}).get("spec")
    return found


PODS = [(name, pod) for name, document in ALL if (pod := pod_of(document)) is not None]


def test_there_are_manifests():
    assert [name for name, _ in PODS] == [
        "pipeline-cronjob.yaml",
        "pipeline-follow.yaml",
        "pipeline-on-executors.yaml",
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("name", "document"), ALL)
def test_kubernetes_takes_them(name, document, version):
    """By the API's own schema, and no field that it does not know."""
    kubernetes_validate.validate(document, version, strict=True)
    assert document["metadata"]["namespace"] == "kafka"


def referred(pod: dict[str, Any]) -> set[tuple[str, str]]:
    """The kind and name of all that a pod needs."""
    (container,) = pod["containers"]
    found = {("Secret", source["secretRef"]["name"]) for source in container.get("envFrom", [])}
    for volume in pod.get("volumes", []):
        if "secret" in volume:
            found.add(("Secret", volume["secret"]["secretName"]))
        if "persistentVolumeClaim" in volume:
            found.add(("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]))
    if "serviceAccountName" in pod:
        found.add(("ServiceAccount", pod["serviceAccountName"]))
    for name, value in settings_of(container).items():
        if ".secretKeyRef." in name:
            found.add(("Secret", value.partition(":")[0]))
        if name.endswith(".options.claimName"):
            found.add(("PersistentVolumeClaim", value))
    return found


def settings_of(container: dict[str, Any]) -> dict[str, str]:
    """Spark's settings among the arguments."""
    given = [arg.removeprefix("--conf=") for arg in container["args"] if arg.startswith("--conf=")]
    return {name: value for name, _, value in (text.partition("=") for text in given)}


@pytest.mark.parametrize(("name", "pod"), PODS)
def test_all_they_refer_to_is_there_or_told(name, pod):
    made = {(document["kind"], document["metadata"]["name"]) for _, document in ALL}
    needed = referred(pod)
    assert needed and needed <= made | MADE_BEFOREHAND
    text = (FOLDER / name).read_text()
    for kind, secret in needed & MADE_BEFOREHAND:
        assert secret in text.partition("apiVersion")[0], f"{name} does not say how {kind} {secret} is made"


@pytest.mark.parametrize(("name", "pod"), PODS)
def test_no_secret_is_in_a_command_line_or_manifest(name, pod):
    (container,) = pod["containers"]
    assert not [env for env in container.get("env", []) if env["name"] in SECRETS]
    for arg in container["args"]:
        assert ".secretKeyRef." in arg or not any(secret in arg for secret in SECRETS), arg


@pytest.mark.parametrize(
    ("name", "pod"), [(name, pod) for name, pod in PODS if "--follow" not in pod["containers"][0]["args"]]
)
def test_kgroup_takes_their_arguments(name, pod, made, tmp_path, kgroup):
    """A folder and this machine stand in for the bucket, the volume and the master; all else is as it is."""
    (container,) = pod["containers"]
    swapped = {"s3://kafka-backup/": str(made), "/tables": str(tmp_path / "out")}
    args = [swapped.get(arg, arg) for arg in container["args"]]
    args[args.index("--master") + 1] = "local[1]"
    # The names and ports of pods are nobody's here.
    args = [arg for arg in args if not arg.startswith("--conf=spark.driver.")]
    assert container["command"] == ["kgroup"]
    done = kgroup(*args)
    assert done.code == 0, done.err
    check_equal(Store(tmp_path / "out"), in_process(made))


def executor_pod(spark: Any, settings: dict[str, str]) -> dict[str, Any]:
    """The pod that Spark would ask the API for, made by Spark itself; no server is asked."""
    context = spark.sparkContext
    jvm = context._jvm
    deploy, scheduler = jvm.org.apache.spark.deploy.k8s, jvm.org.apache.spark.scheduler.cluster.k8s
    conf = jvm.org.apache.spark.SparkConf(False)
    for name, value in {**settings, "spark.master": "k8s://https://127.0.0.1:1", "spark.app.id": "a"}.items():
        conf.set(name, value)
    nobody = jvm.scala.Option.empty()
    asked = module(deploy, "KubernetesConf").createExecutorConf(conf, "1", "a", nobody, 0)
    client = jvm.io.fabric8.kubernetes.client.KubernetesClientBuilder().build()
    profiles, manager = (
        module(jvm.org.apache.spark.resource, "ResourceProfile"),
        jvm.org.apache.spark.SecurityManager,
    )
    profile = profiles.reInitDefaultProfile(conf)
    security = manager(conf, nobody, getattr(manager, "$lessinit$greater$default$3")())
    made = scheduler.KubernetesExecutorBuilder().buildFromFeatures(asked, security, client, profile).pod()
    # It belongs to the JVM, so the session's own is put back.
    profiles.reInitDefaultProfile(context._jsc.sc().conf())
    written = jvm.io.fabric8.kubernetes.client.utils.Serialization
    pod: dict[str, Any] = json.loads(written.asJson(made.pod()))
    pod["spec"]["containers"] = [json.loads(written.asJson(made.container()))]
    client.close()
    return pod


def module(package: Any, name: str) -> Any:
    """Scala's object of that name."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def test_spark_makes_executors_of_them(spark):
    ((_, driver),) = [entry for entry in PODS if entry[0] == "pipeline-on-executors.yaml"]
    settings = settings_of(driver["containers"][0])
    address = "10.1.2.3"  # what Kubernetes puts for the variable
    pod = executor_pod(spark, {name: value.replace("$(POD_IP)", address) for name, value in settings.items()})
    kubernetes_validate.validate(pod, VERSIONS[-1], strict=True)
    (container,) = pod["spec"]["containers"]
    assert container["image"] == driver["containers"][0]["image"]
    # The JVM's gigabyte, and what Python needs.
    assert container["resources"]["limits"]["memory"] == "6144Mi"
    given = {env["name"]: env for env in container["env"]}
    for secret in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        assert given[secret]["valueFrom"]["secretKeyRef"] == {"name": "kgroup-storage", "key": secret}
    assert given["SPARK_DRIVER_URL"]["value"] == f"spark://CoarseGrainedScheduler@{address}:7078"
    assert "/tables" in [mount["mountPath"] for mount in container["volumeMounts"]]
    claims = [v["persistentVolumeClaim"] for v in pod["spec"]["volumes"] if "persistentVolumeClaim" in v]
    assert claims == [{"claimName": "kgroup-shared-tables", "readOnly": False}]


def test_the_drivers_ports_are_open():
    ((_, driver),) = [entry for entry in PODS if entry[0] == "pipeline-on-executors.yaml"]
    (container,) = driver["containers"]
    settings = settings_of(container)
    ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
    expected = {"driver": settings["spark.driver.port"], "blocks": settings["spark.driver.blockManager.port"]}
    assert ports == expected
