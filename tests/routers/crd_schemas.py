"""JSON schemas of the custom resources in deploy/kubernetes, which no package on PyPI has.

They have the names, types and rules of the published CRDs, without fields that deploy/ does not use:
  InferencePool: kubernetes-sigs/gateway-api-inference-extension v1.6.0,
    config/crd/bases/inference.networking.k8s.io_inferencepools.yaml,
    SHA-256 55e0dbf39c50c4bbdd60106493a4573df4bb44479f9ce46762f1af718883e5cd
  LeaderWorkerSet: kubernetes-sigs/lws v0.10.0,
    config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml,
    SHA-256 c5dcad8ed943e495490241f00b9a1b45d51203b6d484020db3636d5bf553568e
  HTTPRoute: kubernetes-sigs/gateway-api v1.6.1,
    config/crd/standard/gateway.networking.k8s.io_httproutes.yaml,
    SHA-256 a424a0d6c953b162e71d1d97bb7e75012d8f1ac264e7274f2763d1b96ab39852
`crd_schemas.py CRD.yaml …` compares them with published files.
"""

import sys

# A pod template, which Kubernetes' own schema checks.
_TEMPLATE = {"type": "object", "x-pod-template": True}
_NAME = {"type": "string", "minLength": 1, "maxLength": 253}
_INT = {"type": "integer"}
_INT_OR_STRING = {"type": ["integer", "string"]}
_PORT = {"type": "integer", "minimum": 1, "maximum": 65535}


def _object(required: tuple[str, ...] = (), **properties: dict) -> dict:
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


def _array(items: dict, **more: int) -> dict:
    return {"type": "array", "items": items, **more}


def _enum(*values: str) -> dict:
    return {"type": "string", "enum": list(values)}


SPECS = {
    ("inference.networking.k8s.io/v1", "InferencePool"): _object(
        ("selector", "targetPorts"),
        appProtocol=_enum("http", "kubernetes.io/h2c"),
        endpointPickerRef=_object(
            ("name",),
            failureMode=_enum("FailOpen", "FailClose"),
            group={"type": "string", "maxLength": 253},
            kind={"type": "string", "minLength": 1, "maxLength": 63},
            name=_NAME,
            port=_object(("number",), number=_PORT),
        ),
        selector=_object(
            ("matchLabels",),
            matchLabels={
                "type": "object",
                "minProperties": 1,
                "maxProperties": 64,
                "additionalProperties": {
                    "type": "string",
                    "maxLength": 63,
                    "pattern": "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
                },
            },
        ),
        targetPorts=_array(_object(("number",), number=_PORT), minItems=1, maxItems=8),
    ),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): _object(
        ("leaderWorkerTemplate",),
        leaderWorkerTemplate=_object(
            ("workerTemplate",),
            leaderTemplate=_TEMPLATE,
            workerTemplate=_TEMPLATE,
            size=_INT,
            restartPolicy=_enum(
                "Default", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None"
            ),
        ),
        networkConfig=_object(
            ("subdomainPolicy",), subdomainPolicy=_enum("Shared", "UniquePerReplica")
        ),
        replicas={"type": "integer", "minimum": 0, "maximum": 1000000},
        rolloutStrategy=_object(
            ("type",),
            type=_enum("RollingUpdate"),
            rollingUpdateConfiguration=_object(
                maxSurge=_INT_OR_STRING, maxUnavailable=_INT_OR_STRING, partition=_INT
            ),
        ),
        startupPolicy=_enum("LeaderCreated", "LeaderReady"),
    ),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): _object(
        hostnames=_array({"type": "string"}, maxItems=16),
        parentRefs=_array(
            _object(
                ("name",),
                group={"type": "string"},
                kind={"type": "string"},
                name=_NAME,
                namespace={"type": "string"},
                sectionName={"type": "string"},
            ),
            maxItems=32,
        ),
        rules=_array(
            _object(
                matches=_array(
                    _object(
                        path=_object(
                            type=_enum("Exact", "PathPrefix", "RegularExpression"),
                            value={"type": "string", "maxLength": 1024},
                        )
                    )
                ),
                backendRefs=_array(
                    _object(
                        ("name",),
                        group={"type": "string"},
                        kind={"type": "string"},
                        name=_NAME,
                        port=_PORT,
                        weight={"type": "integer", "minimum": 0, "maximum": 1000000},
                    )
                ),
                timeouts=_object(
                    request={"type": "string", "pattern": "^([0-9]{1,5}(h|m|s|ms)){1,4}$"},
                    backendRequest={"type": "string", "pattern": "^([0-9]{1,5}(h|m|s|ms)){1,4}$"},
                ),
            ),
            minItems=1,
            maxItems=16,
        ),
    ),
}


def differences(own: dict, published: dict, path: str = "spec") -> list[str]:
    """Names what `own` has and a published schema has not, or has otherwise."""
    if own.get("x-pod-template"):
        return []
    found = []
    is_int_or_string = published.get("x-kubernetes-int-or-string", False)
    for key in ("type", "enum", "minimum", "maximum", "minLength", "maxLength", "minItems",
                "maxItems", "minProperties", "maxProperties", "pattern"):  # fmt: skip
        if key in own and own[key] != published.get(key) and not is_int_or_string:
            found.append(f"{path}: {key} is {own[key]}, published {published.get(key)}")
    if sorted(own.get("required", [])) != sorted(published.get("required", [])):
        found.append(f"{path}: required {own.get('required')}, published {published.get('required')}")
    for name, schema in own.get("properties", {}).items():
        if name not in published.get("properties", {}):
            found.append(f"{path}.{name} is not published")
        else:
            found += differences(schema, published["properties"][name], f"{path}.{name}")
    if "items" in own:
        found += differences(own["items"], published.get("items", {}), path + "[]")
    return found


def main() -> int:
    import yaml

    found = []
    for path in sys.argv[1:]:
        with open(path) as file:
            crd = yaml.safe_load(file)
        for version in crd["spec"]["versions"]:
            key = (f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"])
            if key in SPECS:
                schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
                print("compared", *key)
                found += differences(SPECS[key], schema, key[1])
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
