"""Checks deploy/kubernetes against published schemas, and that it and deploy/Containerfile fit the binary.

    deploy_test.py --quire BINARY [TEST …]
"""

import argparse
import json
import re
import subprocess
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml
from crd_schemas import SPECS
from served import Served

options = argparse.Namespace()

_DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
# preStop's sleep is of 1.30; the last one is the newest that the package has.
_KUBERNETES_VERSIONS = ("1.30", "1.37")


def resources() -> Iterator[tuple[str, dict]]:
    for path in sorted((_DEPLOY / "kubernetes").glob("*.yaml")):
        for resource in yaml.safe_load_all(path.read_text()):
            yield f"{path.name}: {resource['kind']} {resource['metadata']['name']}", resource


def pod_templates() -> Iterator[tuple[str, dict]]:
    for name, resource in resources():
        if resource["kind"] == "Deployment":
            yield name, resource["spec"]["template"]
        elif resource["kind"] == "LeaderWorkerSet":
            group = resource["spec"]["leaderWorkerTemplate"]
            yield f"{name}, leader", group["leaderTemplate"]
            yield f"{name}, worker", group["workerTemplate"]


def validate(resource: dict) -> None:
    """Raises if the resource, or one of its pod templates, has an unknown field or a wrong value."""
    spec = SPECS.get((resource["apiVersion"], resource["kind"]))
    if spec is not None:
        jsonschema.Draft202012Validator(spec).validate(resource["spec"])
        return
    for version in _KUBERNETES_VERSIONS:
        kubernetes_validate.validate(resource, version, strict=True)


def pod(template: dict) -> dict:
    metadata = {"name": "test"} | template["metadata"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


class KubernetesTest(unittest.TestCase):
    def test_schemas(self) -> None:
        for name, resource in resources():
            with self.subTest(name):
                validate(resource)
        for name, template in pod_templates():
            with self.subTest(name):
                validate(pod(template))

    def test_schemas_refuse(self) -> None:
        """Each kind with a misspelt field, and with a value of a wrong type."""
        for name, resource in resources():
            for wrong in ({"replica": 1}, {next(iter(resource["spec"])): 0.5}):
                with self.subTest(name, wrong=wrong):
                    with self.assertRaises(jsonschema.ValidationError):
                        validate(resource | {"spec": resource["spec"] | wrong})

    def test_selectors(self) -> None:
        """Every selector of pods finds a pod template."""
        labels = [template["metadata"]["labels"] for _, template in pod_templates()]
        for name, resource in resources():
            selector = resource["spec"].get("selector")
            if selector is None:
                continue
            selector = selector.get("matchLabels", selector)
            with self.subTest(name):
                self.assertTrue(any(selector.items() <= found.items() for found in labels))

    def test_times(self) -> None:
        """The kubelet's grace is longer than what the pod does in it."""
        for name, template in pod_templates():
            (container,) = template["spec"]["containers"]
            hook = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {})
            (drain_s,) = [int(arg.split("=")[1]) for arg in container["args"] if "drain-timeout" in arg]
            with self.subTest(name):
                grace_s = template["spec"]["terminationGracePeriodSeconds"]
                self.assertGreater(grace_s, drain_s + hook.get("seconds", 0) + 5)

    def test_claims(self) -> None:
        """Each file defines the volumes that its pods claim, and pods with GPUs tolerate the taint of such nodes."""
        claims = [name.replace(": PersistentVolumeClaim ", "/") for name, _ in resources()]
        for name, template in pod_templates():
            spec = template["spec"]
            used = [v["persistentVolumeClaim"] for v in spec["volumes"] if "persistentVolumeClaim" in v]
            with self.subTest(name):
                self.assertIn(f"{name.split(':')[0]}/{used[0]['claimName']}", claims)
                self.assertIn("nvidia.com/gpu", [toleration["key"] for toleration in spec["tolerations"]])

    def test_flags(self) -> None:
        flags = flags_of_serve()
        for name, template in pod_templates():
            (container,) = template["spec"]["containers"]
            used = {arg.split("=")[0] for arg in container["args"] if arg.startswith("--")}
            with self.subTest(name):
                self.assertLessEqual(used, flags)

    def test_probes(self) -> None:
        """Probes and annotations name routes and ports that the server has."""
        with Served(options.quire, "--kv-cache-memory", "64M") as served:
            document = subprocess.check_output(["curl", "-sSf", served.url + "/openapi.json"])
        routes = set(json.loads(document)["paths"])
        for name, template in pod_templates():
            (container,) = template["spec"]["containers"]
            paths = {
                probe["httpGet"]["path"]
                for kind, probe in container.items()
                if kind.endswith("Probe")
            }
            annotations = template["metadata"].get("annotations", {})
            paths |= {value for key, value in annotations.items() if key.endswith("/path")}
            ports = {f"--port={port['containerPort']}" for port in container.get("ports", [])}
            with self.subTest(name):
                self.assertLessEqual(paths, routes)
                self.assertLessEqual(ports, set(container["args"]))


class ContainerfileTest(unittest.TestCase):
    """No tool that builds images runs here, so this reads the instructions."""

    def setUp(self) -> None:
        text = (_DEPLOY / "Containerfile").read_text()
        text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
        self.stages: dict[str, list[tuple[str, str]]] = {"": []}
        name = ""
        for line in filter(None, map(str.strip, text.split("\n"))):
            instruction, rest = line.split(None, 1)
            if instruction == "FROM":
                _, name = rest.split(" AS ")
                self.stages[name] = []
            self.stages[name].append((instruction, rest))

    def test_instructions(self) -> None:
        known = "FROM ARG WORKDIR COPY RUN ENV USER EXPOSE HEALTHCHECK STOPSIGNAL ENTRYPOINT CMD".split()
        for name, stage in self.stages.items():
            for instruction, rest in stage:
                with self.subTest(name, instruction=instruction):
                    self.assertIn(instruction, known)
                    if instruction in ("ENTRYPOINT", "CMD"):
                        self.assertIsInstance(json.loads(rest), list)
                    if instruction == "RUN":  # the shell can parse it
                        subprocess.run(["sh", "-n", "-c", rest], check=True)
                    for stage_name in re.findall(r"--from=(\S+)", rest):
                        self.assertIn(stage_name, self.stages)

    def test_images(self) -> None:
        flags = flags_of_serve()
        for name in ("cpu", "cuda"):
            stage = dict(self.stages[name])
            with self.subTest(name):
                self.assertNotIn(stage["USER"].split(":")[0], ("0", "root"))
                self.assertIn("/health", stage["HEALTHCHECK"])
                used = {arg for arg in json.loads(stage["CMD"]) if arg.startswith("--")}
                self.assertLessEqual(used, flags)


def flags_of_serve() -> set[str]:
    text = subprocess.check_output([options.quire, "help", "serve"], text=True)
    return set(re.findall(r"--[a-z][a-z-]+", text))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quire", type=Path, required=True, help="the binary")
    parser.add_argument("tests", nargs="*", help="names, as unittest's")
    parser.parse_args(namespace=options)
    unittest.main(argv=[sys.argv[0], *options.tests])


if __name__ == "__main__":
    main()
