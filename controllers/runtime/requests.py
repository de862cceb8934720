"""From an operation to the request that carries it out. Pure: no I/O, so that every body can be tested as data."""

from dataclasses import dataclass

import msgspec

from api.core import Pod
from api.plan import Apply, ApplyStatus, Bind, Create, Delete, Emit, Manifest, Op, PatchStatus, Ref, SetFinalizers, Ungate

__all__ = ("Request", "is_leaving", "is_ours", "named", "request_for", "target_of")

_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request to the API server. `body` is JSON (which is YAML too, as the apply patch wants it)."""

    method: str
    path: str
    body: bytes
    content_type: str = _JSON
    query: dict[str, str] | None = None


def target_of(op: Op) -> Ref:
    """The object that an operation writes."""
    if isinstance(op, Create | Apply):
        metadata = op.manifest["metadata"]
        uid = op.uid if isinstance(op, Apply) else ""
        return Ref(op.kind, metadata.get("namespace", ""), metadata["name"], uid)
    return op.ref


def request_for(op: Op, field_manager: str) -> Request:
    """The request of an operation. An `Emit` has none: events go through the recorder."""
    ref = target_of(op)
    match op:
        case Create():
            query = {"fieldManager": field_manager}
            return Request("POST", ref.kind.path(ref.namespace), _body(_typed(ref, op.manifest)), _JSON, query)
        case Apply():
            return _server_side_apply(ref, _with_uid(_typed(ref, op.manifest), op.uid), field_manager, "")
        case ApplyStatus():
            manifest = _typed(ref, {"metadata": _identity(ref), "status": op.status})
            return _server_side_apply(ref, manifest, field_manager, "status")
        case PatchStatus():
            body = {"metadata": {"uid": ref.uid}, "status": op.status}
            return _patch(ref, body, _STRATEGIC, field_manager, "status")
        case SetFinalizers():
            metadata = {"uid": ref.uid, "resourceVersion": op.resource_version, "finalizers": list(op.finalizers)}
            return _patch(ref, {"metadata": metadata}, _MERGE, field_manager, "")
        case Ungate():
            gates = [{"$patch": "delete", "name": op.gate}]
            return _patch(ref, {"metadata": {"uid": ref.uid}, "spec": {"schedulingGates": gates}}, _STRATEGIC, field_manager, "")
        case Delete():
            return Request("DELETE", ref.kind.path(ref.namespace, ref.name), _body(_delete_options(op)))
        case Bind():
            return Request("POST", Pod.KIND.path(ref.namespace, ref.name, "binding"), _body(_binding(op)))
        case Emit():
            raise TypeError("an Emit is not a request")


def named(op: Create, name: str) -> Create:
    """The same create under another name."""
    metadata = {**op.manifest["metadata"], "name": name}
    return Create(op.kind, {**op.manifest, "metadata": metadata}, op.match_labels)


def is_ours(op: Create, live: Manifest) -> bool:
    """Whether the live object is an earlier execution of this create: same controller, same identifying labels, not being deleted."""
    wanted, found = op.manifest["metadata"], live.get("metadata", {})
    if found.get("deletionTimestamp") or _controller_uid(wanted) != _controller_uid(found):
        return False
    want: Manifest = wanted.get("labels") or {}
    have: Manifest = found.get("labels") or {}
    return all(want.get(label) == have.get(label) for label in op.match_labels)


def is_leaving(op: Create, live: Manifest) -> bool:
    """Whether the live object is about to go: it is being deleted, or its controller is an earlier life of ours, so that the garbage
    collector will take it."""
    wanted, found = op.manifest["metadata"], live.get("metadata", {})
    if found.get("deletionTimestamp"):
        return True
    ours, theirs = _controller(wanted), _controller(found)
    same_name = all(ours.get(field) == theirs.get(field) for field in ("kind", "name"))
    return bool(ours) and same_name and ours.get("uid") != theirs.get("uid")


def _controller_uid(metadata: Manifest) -> str:
    return _controller(metadata).get("uid", "")


def _controller(metadata: Manifest) -> Manifest:
    owners: list[Manifest] = metadata.get("ownerReferences") or []
    return next((o for o in owners if o.get("controller")), Manifest())


def _identity(ref: Ref) -> Manifest:
    identity = {"name": ref.name, "namespace": ref.namespace, "uid": ref.uid}
    return {field: value for field, value in identity.items() if value}


def _typed(ref: Ref, manifest: Manifest) -> Manifest:
    return {"apiVersion": ref.kind.api_version, "kind": ref.kind.kind, **manifest}


def _with_uid(manifest: Manifest, uid: str) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "uid": uid}} if uid else manifest


def _server_side_apply(ref: Ref, manifest: Manifest, field_manager: str, subresource: str) -> Request:
    query = {"fieldManager": field_manager, "force": "true"}
    return Request("PATCH", ref.kind.path(ref.namespace, ref.name, subresource), _body(manifest), _APPLY, query)


def _patch(ref: Ref, body: Manifest, content_type: str, field_manager: str, subresource: str) -> Request:
    path = ref.kind.path(ref.namespace, ref.name, subresource)
    return Request("PATCH", path, _body(body), content_type, {"fieldManager": field_manager})


def _delete_options(op: Delete) -> Manifest:
    preconditions = {"uid": op.ref.uid}
    if op.resource_version:
        preconditions["resourceVersion"] = op.resource_version
    options: Manifest = {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": preconditions,
        "propagationPolicy": "Background",
    }
    if op.grace_period_s is not None:
        options["gracePeriodSeconds"] = op.grace_period_s
    return options


def _binding(op: Bind) -> Manifest:
    target = {"apiVersion": "v1", "kind": "Node", "name": op.node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": _identity(op.ref), "target": target}


def _body(value: Manifest) -> bytes:
    return msgspec.json.encode(value)
