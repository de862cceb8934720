"""What a kind cluster is made of, as text."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.kind.nodes import NodeAddress, addresses
from hack.kind.settings import (
    AUDIT_FOLDER,
    NODES,
    WORKERS,
    Settings,
    audit_policy,
    cni_configuration,
    kind_configuration,
    node_labels,
    settings_digest,
)

PLAIN = Settings(image="node:1", policy=Path("/cache/policy.yaml"), has_network=True, cgroup_v1=False, keeps_oom_score=False)


def configuration(**changes: Any) -> dict[str, Any]:
    return yaml.safe_load(kind_configuration(replace(PLAIN, **changes)))


def patch(config: dict[str, Any], kind: str) -> dict[str, Any] | None:
    return next((p for p in map(yaml.safe_load, config["kubeadmConfigPatches"]) if p["kind"] == kind), None)


def test_three_nodes_of_the_image() -> None:
    nodes = configuration()["nodes"]
    assert [(node["role"], node["image"]) for node in nodes] == [("control-plane", "node:1"), ("worker", "node:1"), ("worker", "node:1")]
    assert len(NODES) == 3
    assert NODES[0].endswith("-control-plane")


def test_limits_of_the_machine_are_named_only_where_they_are() -> None:
    ordinary = configuration()
    assert patch(ordinary, "KubeletConfiguration") is None
    assert "containerdConfigPatches" not in ordinary
    assert patch(configuration(cgroup_v1=True), "KubeletConfiguration") == {"kind": "KubeletConfiguration", "failCgroupV1": False}
    [containerd] = configuration(keeps_oom_score=True)["containerdConfigPatches"]
    assert "restrict_oom_score_adj = true" in containerd


@pytest.mark.parametrize("has_network", [True, False])
def test_kind_installs_a_network_that_the_image_brings(has_network: bool) -> None:
    assert configuration(has_network=has_network)["networking"]["disableDefaultCNI"] is not has_network


def test_the_api_server_reads_the_policy_and_writes_the_log_on_the_node() -> None:
    config = configuration()
    [mount] = config["nodes"][0]["extraMounts"]
    cluster = patch(config, "ClusterConfiguration")
    assert cluster is not None
    flags = {a["name"]: a["value"] for a in cluster["apiServer"]["extraArgs"]}
    volumes = {v["mountPath"]: v for v in cluster["apiServer"]["extraVolumes"]}
    assert mount == {"hostPath": "/cache/policy.yaml", "containerPath": flags["audit-policy-file"], "readOnly": True}
    assert volumes[str(Path(flags["audit-policy-file"]).parent)]["readOnly"] is True
    assert (volumes[AUDIT_FOLDER]["readOnly"], flags["audit-log-path"]) == (False, f"{AUDIT_FOLDER}/audit.log")
    assert "extraMounts" not in config["nodes"][1]


def test_kinds_own_argument_survives_the_patch() -> None:
    cluster = patch(configuration(), "ClusterConfiguration")
    assert cluster is not None
    assert {"name": "enable-hostpath-provisioner", "value": "true"} in cluster["controllerManager"]["extraArgs"]


def test_the_policy_keeps_completed_requests_of_accounts_outside_kubernetes() -> None:
    policy = yaml.safe_load(audit_policy())
    assert set(policy["omitStages"]) == {"RequestReceived", "ResponseStarted", "Panic"}
    # The first rule that fits decides.
    assert policy["rules"] == [
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ]


def test_a_node_hands_out_addresses_of_its_own_range() -> None:
    network = json.loads(cni_configuration("10.244.1.0/24"))
    ptp = network["plugins"][0]
    assert (ptp["type"], ptp["ipMasq"], ptp["ipam"]["ranges"]) == ("ptp", False, [[{"subnet": "10.244.1.0/24"}]])


def test_workers_differ_in_every_level_of_the_topology() -> None:
    sample = yaml.safe_load((Path(__file__).parents[2] / "manifests/samples/topology.yaml").read_text())
    keys = {level["key"] for level in sample["spec"]["levels"]} - {"kubernetes.io/hostname"}
    first, second = map(node_labels, WORKERS)
    assert keys | {"topology.kubernetes.io/zone"} == first.keys() == second.keys()
    assert (first["topology.kubernetes.io/zone"], second["topology.kubernetes.io/zone"]) == ("z1", "z2")
    assert all(first[key] != second[key] for key in keys)


def test_a_cluster_is_made_anew_when_configuration_or_image_change() -> None:
    seen = {settings_digest("a", "x"), settings_digest("a", "x"), settings_digest("b", "x"), settings_digest("a", "y")}
    assert len(seen) == 3


def test_nodes_without_a_range_have_no_address_yet() -> None:
    status = {"addresses": [{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "172.18.0.2"}]}
    listed = [
        {"metadata": {"name": "new"}, "spec": {}, "status": {}},
        {"metadata": {"name": "known"}, "spec": {"podCIDR": "10.244.0.0/24"}, "status": status},
    ]
    assert addresses({"items": listed}) == (NodeAddress("known", "10.244.0.0/24", "172.18.0.2"),)
