"""Printer columns of built-in kinds, as kube-apiserver 1.36 has them."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from sim.apiserver.front.ages import age
from sim.apiserver.front.cells import AGE, CREATED_AT, NAME, NONE, column, labels_text, number, shortened, text, timed
from sim.apiserver.front.podcells import POD_COLUMNS
from sim.apiserver.front.workloads import AUTOSCALER, DAEMON_SET, DEPLOYMENT, JOB, REPLICA_SET, STATEFUL_SET
from sim.apiserver.objects import Object, dig, maps
from sim.apiserver.resources import Column

__all__ = ("BUILT_IN", "OTHERWISE")

ROLE_PREFIX: Final = "node-role.kubernetes.io/"
ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _node_status(node: Object) -> str:
    conditions = maps(node, "status", "conditions")
    words = ["Ready" if one["status"] == "True" else "NotReady" for one in conditions if one["type"] == "Ready"] or ["Unknown"]
    return ",".join(words + (["SchedulingDisabled"] if dig(node, "spec", "unschedulable") else []))


def _node_roles(node: Object) -> str:
    labels: dict[str, str] = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(ROLE_PREFIX) for key in labels if key.startswith(ROLE_PREFIX)} | {labels.get("kubernetes.io/role", "")}
    return ",".join(sorted(roles - {""})) or NONE


def _node_address(kind: str) -> Callable[[Object], str]:
    def find(node: Object) -> str:
        addresses = maps(node, "status", "addresses")
        return next((one["address"] for one in addresses if one["type"] == kind), NONE)

    return find


def _kernel(node: Object) -> str:
    kernel, architecture = (dig(node, "status", "nodeInfo", key) or "" for key in ("kernelVersion", "architecture"))
    return (f"{kernel} ({architecture})" if architecture else kernel) if kernel else "<unknown>"


def _cluster_ip(service: Object) -> str:
    addresses: list[str] = service["spec"].get("clusterIPs") or []
    return addresses[0] if addresses else NONE


def _external_ip(service: Object) -> str:
    spec: Object = service["spec"]
    own: list[str] = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ExternalName":
            return spec.get("externalName", "")
        case "LoadBalancer":
            ingress = maps(service, "status", "loadBalancer", "ingress")
            return ",".join([one.get("ip") or one.get("hostname", "") for one in ingress] + own) or "<pending>"
        case _:
            return ",".join(own) or NONE


def _service_ports(service: Object) -> str:
    ports = maps(service, "spec", "ports")
    return ",".join(f"{_ports(one)}/{one.get('protocol', 'TCP')}" for one in ports) or NONE


def _ports(port: Object) -> str:
    return f"{port['port']}:{port['nodePort']}" if port.get("nodePort") else str(port["port"])


def _last_seen(event: Object, now: datetime) -> str:
    if event.get("series"):
        return age(event["series"].get("lastObservedTime"), now)
    # The two APIs of events name the old fields differently.
    last = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp")
    return age(last, now) if last else _first_seen(event, now)


def _first_seen(event: Object, now: datetime) -> str:
    return age(event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime"), now)


def _target(event: Object) -> Object:
    return event.get("involvedObject") or event.get("regarding") or {}


def _event_object(event: Object) -> str:
    target = _target(event)
    kind = target.get("kind", "").lower()
    return f"{kind}/{target['name']}" if target.get("name") else kind


def _event_source(event: Object) -> str:
    source: Object = event.get("source") or event.get("deprecatedSource") or {}
    component = source.get("component") or event.get("reportingComponent") or event.get("reportingController") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    return ", ".join(part for part in (component, host) if part)


def _event_count(event: Object) -> int:
    return dig(event, "series", "count") or event.get("count") or event.get("deprecatedCount") or 1


def _volume_state(claim: Object) -> str:
    return "Terminating" if claim["metadata"].get("deletionTimestamp") else dig(claim, "status", "phase") or ""


def _capacity(claim: Object) -> str:
    return (dig(claim, "status", "capacity", "storage") or "") if dig(claim, "spec", "volumeName") else ""


def _modes(claim: Object) -> str:
    if not dig(claim, "spec", "volumeName"):
        return ""
    modes: list[str] = dig(claim, "status", "accessModes") or []
    return ",".join(short for mode, short in ACCESS_MODES.items() if mode in modes)


def _endpoints(endpoints: Object) -> str:
    found: list[str] = []
    for subset in maps(endpoints, "subsets"):
        addresses = [one["ip"] for one in maps(subset, "addresses")]
        ports = [f":{one['port']}" for one in maps(subset, "ports")] or [""]
        found += [f"{address}{port}" for port in ports for address in addresses]
    return shortened(found, 3)


def _slice_endpoints(endpoint_slice: Object) -> str:
    return shortened([address for one in maps(endpoint_slice, "endpoints") for address in one["addresses"]], 3, "<unset>")


def _slice_ports(endpoint_slice: Object) -> str:
    ports = maps(endpoint_slice, "ports")
    return shortened([str(one["port"]) if one.get("port") is not None else "*" for one in ports], 3, "<unset>")


def _role(binding: Object) -> str:
    return f"{binding['roleRef']['kind']}/{binding['roleRef']['name']}"


def _subjects(kind: str) -> Callable[[Object], str]:
    def find(binding: Object) -> str:
        subjects = [one for one in maps(binding, "subjects") if one["kind"] == kind]
        return ", ".join(f"{one['namespace']}/{one['name']}" if kind == "ServiceAccount" else one["name"] for one in subjects)

    return find


def _claim_state(claim: Object) -> str:
    states = ["deleted"] if claim["metadata"].get("deletionTimestamp") else []
    if not dig(claim, "status", "allocation"):
        return ",".join(states) if states else "pending"
    return ",".join([*states, "allocated", *(["reserved"] if dig(claim, "status", "reservedFor") else [])])


def _storage_class_name(storage_class: Object) -> str:
    name: str = storage_class["metadata"].get("name", "")
    annotations: dict[str, str] = storage_class["metadata"].get("annotations") or {}
    return f"{name} (default)" if annotations.get("storageclass.kubernetes.io/is-default-class") == "true" else name


def _controller(obj: Object) -> str:
    """Kind, group and name of the controlling owner."""
    owner = next((one for one in maps(obj, "metadata", "ownerReferences") if one.get("controller")), None)
    if owner is None:
        return NONE
    group, slash, _ = owner["apiVersion"].partition("/")
    return f"{owner['kind'].lower()}{f'.{group}' if slash else ''}/{owner['name']}"


def _amount(*path: str) -> Callable[[Object], str]:
    """A number or percentage that may be left out."""
    return lambda obj: "N/A" if (value := dig(obj, *path)) is None else str(value)


NODE = (
    NAME,
    column("Status", _node_status),
    column("Roles", _node_roles),
    AGE,
    column("Version", text("status", "nodeInfo", "kubeletVersion")),
    column("Internal-IP", _node_address("InternalIP"), wide=1),
    column("External-IP", _node_address("ExternalIP"), wide=1),
    column("OS-Image", text("status", "nodeInfo", "osImage", otherwise="<unknown>"), wide=1),
    column("Kernel-Version", _kernel, wide=1),
    column("Container-Runtime", text("status", "nodeInfo", "containerRuntimeVersion", otherwise="<unknown>"), wide=1),
)
SERVICE = (
    NAME,
    column("Type", text("spec", "type")),
    column("Cluster-IP", _cluster_ip),
    column("External-IP", _external_ip),
    column("Port(s)", _service_ports),
    AGE,
    column("Selector", lambda service: labels_text(service["spec"].get("selector")), wide=1),
)
EVENT = (
    timed("Last Seen", _last_seen),
    column("Type", text("type")),
    column("Reason", text("reason")),
    column("Object", _event_object),
    column("Subobject", lambda event: _target(event).get("fieldPath", ""), wide=1),
    column("Source", _event_source, wide=1),
    column("Message", lambda event: (event.get("message") or event.get("note") or "").strip()),
    timed("First Seen", _first_seen, wide=1),
    column("Count", _event_count, wide=1),
    Column("Name", "string", value=NAME.value, format="name", priority=1),
)
CLAIM = (
    NAME,
    column("Status", _volume_state),
    column("Volume", text("spec", "volumeName")),
    column("Capacity", _capacity),
    column("Access Modes", _modes),
    column("StorageClass", text("spec", "storageClassName")),
    column("VolumeAttributesClass", text("spec", "volumeAttributesClassName", otherwise="<unset>")),
    AGE,
    column("VolumeMode", text("spec", "volumeMode", otherwise="<unset>"), wide=1),
)
BINDING = (
    NAME,
    column("Role", _role),
    AGE,
    column("Users", _subjects("User"), wide=1),
    column("Groups", _subjects("Group"), wide=1),
    column("ServiceAccounts", _subjects("ServiceAccount"), wide=1),
)
BUDGET = (
    NAME,
    column("Min Available", _amount("spec", "minAvailable")),
    column("Max Unavailable", _amount("spec", "maxUnavailable")),
    column("Allowed Disruptions", number("status", "disruptionsAllowed"), "integer"),
    AGE,
)
PRIORITY_CLASS = (
    NAME,
    column("Value", number("value"), "integer"),
    column("Global-Default", lambda obj: bool(obj.get("globalDefault")), "boolean"),
    AGE,
    column("PreemptionPolicy", text("preemptionPolicy")),
)
STORAGE_CLASS = (
    Column("Name", "string", value=lambda obj, _: _storage_class_name(obj), format="name"),
    column("Provisioner", text("provisioner")),
    column("ReclaimPolicy", text("reclaimPolicy", otherwise="Delete")),
    column("VolumeBindingMode", text("volumeBindingMode", otherwise="Immediate")),
    column("AllowVolumeExpansion", lambda obj: bool(obj.get("allowVolumeExpansion"))),
    AGE,
)
WEBHOOKS = (NAME, column("Webhooks", lambda obj: len(maps(obj, "webhooks")), "integer"), AGE)
ENDPOINT_SLICE = (
    NAME,
    column("AddressType", text("addressType")),
    column("Ports", _slice_ports),
    column("Endpoints", _slice_endpoints),
    AGE,
)
CONFIG_MAP = (NAME, column("Data", lambda obj: len(obj.get("data") or {}) + len(obj.get("binaryData") or {})), AGE)
SECRET = (NAME, column("Type", text("type")), column("Data", lambda obj: len(obj.get("data") or {})), AGE)
OTHERWISE: Final = (NAME, CREATED_AT)
"""Of built-in kinds without columns of their own."""
AGED: Final = (NAME, AGE)

BUILT_IN: Final[Mapping[tuple[str, str], tuple[Column, ...]]] = {
    ("", "pods"): POD_COLUMNS,
    ("", "nodes"): NODE,
    ("", "services"): SERVICE,
    ("", "namespaces"): (NAME, column("Status", text("status", "phase")), AGE),
    ("", "events"): EVENT,
    ("events.k8s.io", "events"): EVENT,
    ("", "configmaps"): CONFIG_MAP,
    ("", "secrets"): SECRET,
    ("", "serviceaccounts"): AGED,
    ("", "persistentvolumeclaims"): CLAIM,
    ("", "endpoints"): (NAME, column("Endpoints", _endpoints), AGE),
    ("apps", "deployments"): DEPLOYMENT,
    ("apps", "replicasets"): REPLICA_SET,
    ("apps", "statefulsets"): STATEFUL_SET,
    ("apps", "daemonsets"): DAEMON_SET,
    ("apps", "controllerrevisions"): (NAME, column("Controller", _controller), column("Revision", number("revision")), AGE),
    ("autoscaling", "horizontalpodautoscalers"): AUTOSCALER,
    ("batch", "jobs"): JOB,
    ("coordination.k8s.io", "leases"): (NAME, column("Holder", text("spec", "holderIdentity")), AGE),
    ("discovery.k8s.io", "endpointslices"): ENDPOINT_SLICE,
    ("policy", "poddisruptionbudgets"): BUDGET,
    ("rbac.authorization.k8s.io", "rolebindings"): BINDING,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): BINDING,
    ("resource.k8s.io", "resourceclaims"): (NAME, column("State", _claim_state), AGE),
    ("resource.k8s.io", "resourceclaimtemplates"): AGED,
    ("resource.k8s.io", "deviceclasses"): AGED,
    ("scheduling.k8s.io", "priorityclasses"): PRIORITY_CLASS,
    ("storage.k8s.io", "storageclasses"): STORAGE_CLASS,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): WEBHOOKS,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): WEBHOOKS,
}
