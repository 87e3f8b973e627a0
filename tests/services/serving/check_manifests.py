"""packaging/containers and packaging/kubernetes: manifests hold to the schemas of Kubernetes and KServe, containers are
started with arguments that the programs in them take, and haproxy accepts the balancer's configuration."""

import pathlib
import re
import shutil
import subprocess

import kserve
import pytest
import yaml
from kubernetes import client
from treadle.serving import _command

ROOT = pathlib.Path(__file__).parents[3]
FILES = sorted((ROOT / "packaging" / "kubernetes").glob("*.yaml"))
DOCUMENTS = {
    f"{path.stem}-{document['kind']}": document for path in FILES for document in yaml.safe_load_all(path.read_text())
}
CLASSES = {
    "apps/v1": "V1{}",
    "v1": "V1{}",
    "policy/v1": "V1{}",
    "serving.kserve.io/v1beta1": "V1beta1{}",
}
PLAIN = {"str": str, "int": int, "bool": bool, "object": object}


def class_named(name):
    return getattr(kserve, name, None) or getattr(client, name)


def check(value, kind, where):
    """That a value of a manifest has the type that the schema names, and no field that the schema lacks."""
    if found := re.fullmatch(r"[lL]ist\[(.+)\]", kind):
        assert isinstance(value, list), where
        for i, element in enumerate(value):
            check(element, found[1], f"{where}[{i}]")
    elif found := re.fullmatch(r"dict\(str, (.+)\)|Dict\[str, (.+)\]", kind):
        assert isinstance(value, dict), where
        for key, element in value.items():
            check(element, found[1] or found[2], f"{where}.{key}")
    elif kind in PLAIN:
        assert isinstance(value, PLAIN[kind]), f"{where}: {value!r} is no {kind}"
    else:
        schema = class_named(kind)
        names = {json: name for name, json in schema.attribute_map.items()}
        assert isinstance(value, dict), where
        for key, element in value.items():
            assert key in names, f"{where} has no field {key}"
            check(element, schema.openapi_types[names[key]], f"{where}.{key}")
        schema(**{names[key]: element for key, element in value.items()})  # all required fields exist


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_manifests_hold_to_their_schemas(document):
    check(document, CLASSES[document["apiVersion"]].format(document["kind"]), document["kind"])


def containers():
    for name, document in DOCUMENTS.items():
        spec = document.get("spec", {})
        spec = spec.get("predictor") or spec.get("template", {}).get("spec", {})
        for container in spec.get("containers", []):
            yield pytest.param(spec, container, id=name)


@pytest.mark.parametrize(("spec", "container"), list(containers()))
def test_containers_fit_together(spec, container):
    volumes = {volume["name"] for volume in spec.get("volumes", [])}
    assert {mount["name"] for mount in container.get("volumeMounts", [])} == volumes
    ports = {port["name"] for port in container["ports"]} | {port["containerPort"] for port in container["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        for way in ("httpGet", "tcpSocket"):
            if way in container.get(probe, {}):
                assert container[probe][way]["port"] in ports
    if container["image"].startswith("treadle-kserve"):
        options = _command.parser().parse_args(container["args"])
        assert options.drain_s < spec["terminationGracePeriodSeconds"]


def test_haproxy_accepts_the_balancer(tmp_path):
    if not shutil.which("haproxy"):
        pytest.skip("haproxy is not installed")
    text = DOCUMENTS["balancer-ConfigMap"]["data"]["haproxy.cfg"]
    (tmp_path / "haproxy.cfg").write_text(text)
    done = subprocess.run(
        ["haproxy", "-c", "-f", tmp_path / "haproxy.cfg"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", sorted((ROOT / "packaging" / "containers").iterdir()), ids=lambda path: path.stem)
def test_recipes_copy_the_wheels_and_packages_of_the_project(path):
    text = path.read_text()
    made = {"build/wheels": "wheels", "build/debs": "debs"}
    copied = re.findall(r"^COPY (\S+) ", text, re.MULTILINE)
    assert copied and all(f"./dev {made[folder]}" in text for folder in copied)
    if entry := re.search(r'^ENTRYPOINT \["python", "-m", "treadle.serving.kserve", (.*)\]$', text, re.MULTILINE):
        _command.parser().parse_args(["model.onnx", *re.findall(r'"([^"]*)"', entry[1])])
