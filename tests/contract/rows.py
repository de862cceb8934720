"""Cases as tables: a row is a name and steps, a step is a request and what its answer must have.

Text between angle brackets is replaced before use, in bodies, paths and expectations alike: `<ns>` by the test's namespace,
`<0.metadata.uid>` by that field of the answer to step 0. In an expectation `<time>` stands for any time in whole seconds.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from tests.contract import kinds
from tests.contract.client import PATCH_TYPES, Api, Reply
from tests.contract.crds import WIDGET_CRD, manifest_crd
from tests.contract.kinds import CRDS, Kind
from tests.contract.things import THING_CRD

__all__ = ("ANY", "GONE", "RESOURCES", "Step", "apply", "case", "delete", "ends", "fails", "get", "patch", "post", "put", "run", "serve")

GROVE, RBAC = "grove.io/v1alpha1", "rbac.authorization.k8s.io/v1"
_MORE = (
    Kind(GROVE, "podcliquesets", "PodCliqueSet"),
    Kind(GROVE, "podcliquescalinggroups", "PodCliqueScalingGroup"),
    Kind(GROVE, "clustertopologybindings", "ClusterTopologyBinding", is_namespaced=False),
    Kind("scheduler.grove.io/v1alpha1", "podgangs", "PodGang"),
    Kind("scheduling.grovekeeper.io/v1alpha1", "gangplacements", "GangPlacement"),
    Kind("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    Kind("v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    Kind("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    Kind("resource.k8s.io/v1", "resourceclaims", "ResourceClaim"),
    Kind("resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate"),
    Kind("resource.k8s.io/v1", "deviceclasses", "DeviceClass", is_namespaced=False),
    Kind(RBAC, "rolebindings", "RoleBinding"),
    Kind(RBAC, "clusterroles", "ClusterRole", is_namespaced=False),
    Kind("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", is_namespaced=False),
    Kind("admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", is_namespaced=False),
    Kind("contract.example.com/v1", "things", "Thing"),
)
RESOURCES = {k.plural: k for k in (*_MORE, *(v for v in vars(kinds).values() if isinstance(v, Kind)))}
"""Kinds by the plural that steps name."""
CUSTOM = {
    "podcliques": manifest_crd("grove.io_podcliques"),
    "podcliquesets": manifest_crd("grove.io_podcliquesets"),
    "podcliquescalinggroups": manifest_crd("grove.io_podcliquescalinggroups"),
    "clustertopologybindings": manifest_crd("grove.io_clustertopologybindings"),
    "podgangs": manifest_crd("scheduler.grove.io_podgangs"),
    "gangplacements": manifest_crd("scheduling.grovekeeper.io_gangplacements"),
    "things": THING_CRD,
    "widgets": WIDGET_CRD,
}
"""The definitions of those that a plain cluster lacks; `serve` creates them when first needed."""


class Mark:
    """A value that stands for a property of the field instead of for its value."""


ANY, GONE = Mark(), Mark()
"""A field that is there; a field that is not."""

Expected = Mapping[str, Any]
_NOTHING: Expected = {}


@dataclass(frozen=True, slots=True)
class Step:
    """A request. `target`: an absolute path, or plural[/name[/subresource]] of a kind.

    `expected`: dotted path -> value, ANY, GONE or a pattern; `@` is the status of the answer, a last part `#` the length, `@owned`
    the managed fields as text and `@causes` the causes of a failure as (field, reason).
    """

    method: str
    target: str
    body: Any
    expected: Expected
    query: str = ""
    content_type: str = "application/json"
    status: int = 200


def get(target: str, expected: Expected = _NOTHING, query: str = "") -> Step:
    return Step("GET", target, None, expected, query)


def post(target: str, body: Any = None, expected: Expected = _NOTHING, query: str = "") -> Step:
    """Create; the name of the target goes into the object. Three parts name a subresource."""
    return Step("POST", target, {} if body is None else body, expected, query, status=201)


def put(target: str, body: Any, expected: Expected = _NOTHING, query: str = "") -> Step:
    return Step("PUT", target, body, expected, query)


def patch(how: str, target: str, body: Any, expected: Expected = _NOTHING, query: str = "") -> Step:
    """`how`: json, merge, strategic, or a content type."""
    return Step("PATCH", target, body, expected, query, PATCH_TYPES.get(how, how))


def apply(target: str, body: Any, expected: Expected = _NOTHING, query: str = "", manager: str = "one") -> Step:
    """Server-side apply; kind and name come from the target."""
    query = "&".join(q for q in (f"fieldManager={manager}" if manager else "", query) if q)
    return Step("PATCH", target, body, expected, query, PATCH_TYPES["apply"])


def delete(target: str, body: Any = None, expected: Expected = _NOTHING, query: str = "") -> Step:
    return Step("DELETE", target, body, expected, query)


def fails(status: int, reason: Any, message: Any = ANY, **more: Any) -> dict[str, Any]:
    """A Status. Of `more`, causes are a list of (field, reason)."""
    extra = {"@causes": more.pop("causes")} if "causes" in more else {}
    return {"@": status, "kind": "Status", "code": status, "reason": reason, "message": message, **extra, **more}


def ends(text: str) -> re.Pattern[str]:
    """A message with this end; for those that quote a whole object before."""
    return re.compile(".*" + re.escape(text), re.DOTALL)


def case(name: str, *steps: Step) -> Any:
    """One row of a table."""
    return pytest.param(steps, id=name)


async def serve(api: Api, *plurals: str) -> None:
    """Have these custom resources served."""
    for plural in plurals:
        kind = RESOURCES[plural]
        if (await api.list(kind, limit=1)).status == 404:
            made = await api.create(CRDS, CUSTOM[plural])
            assert made.status in (201, 409), made.text
        await api.poll(lambda kind=kind: _is_served(api, kind))


async def _is_served(api: Api, kind: Kind) -> bool:
    # A definition that was just established gets its storage anew, which answers 429 for a moment.
    return [(await api.list(kind, limit=1)).status for _ in range(3)] == [200] * 3


async def run(api: Api, steps: tuple[Step, ...]) -> list[Reply]:
    """Take the steps and check each answer."""
    await serve(api, *dict.fromkeys(plural for step in steps if (plural := step.target.split("/")[0]) in CUSTOM))
    replies: list[Reply] = []
    for number, step in enumerate(steps):
        method, path, body = step.method, *_request(api, step, replies)
        reply = await api.request(method, path, body, query=_filled(api, step.query, replies) or None, content_type=step.content_type)
        replies.append(reply)
        expected = {"@": step.status, **step.expected}
        wrong = [text for path, want in expected.items() if (text := _differs(api, replies, path, want))]
        assert not wrong, f"step {number}, {method} {step.target}: " + "; ".join(wrong) + f"\n{reply.text[:1500]}"
    return replies


def _request(api: Api, step: Step, replies: list[Reply]) -> tuple[str, Any]:
    """Path and body as they are sent."""
    target = _filled(api, step.target, replies)
    body = step.body
    if isinstance(body, str):
        body = yaml.safe_load(_filled(api, body, replies))
    body = _filled(api, body, replies)
    if target.startswith("/"):
        return target, body
    plural, name, subresource = [*target.split("/"), "", ""][:3]
    kind = RESOURCES[plural]
    if isinstance(body, dict) and step.method != "DELETE" and not subresource:
        is_patch = step.method == "PATCH" and step.content_type != PATCH_TYPES["apply"]
        body = body if is_patch else _named(kind, name, body)
    elif isinstance(body, dict) and (step.method == "PUT" or step.content_type == PATCH_TYPES["apply"]):
        body = body if "kind" in body else _named(kind, name, body)
    if step.method == "POST" and not subresource:
        name = ""
    return api.path(kind, name, subresource), body


def _named(kind: Kind, name: str, body: dict[str, Any]) -> dict[str, Any]:
    """The object with what the target says of it, where it does not say so itself."""
    metadata = {**({"name": name} if name else {}), **(body.get("metadata") or {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, **body, "metadata": metadata}


def _filled(api: Api, value: Any, replies: list[Reply]) -> Any:
    """The value with its references replaced."""
    if isinstance(value, str):
        return re.sub(r"<(ns|\d+\.[\w.]+)>", lambda m: _reference(api, m[1], replies), value)
    if isinstance(value, dict):
        return {_filled(api, k, replies): _filled(api, v, replies) for k, v in value.items()}
    return [_filled(api, v, replies) for v in value] if isinstance(value, list) else value


def _reference(api: Api, name: str, replies: list[Reply]) -> str:
    if name == "ns":
        return api.ns
    number, _, path = name.partition(".")
    return str(found(replies[int(number)].body, path))


def _differs(api: Api, replies: list[Reply], path: str, want: Any) -> str:
    """How the last answer differs from what is expected; empty if it does not."""
    reply = replies[-1]
    have = reply.status if path == "@" else found(reply.body, path)
    want = _filled(api, want, replies)
    if "<time>" in str(want) and have is not GONE:
        have = json.loads(re.sub(r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"', '"<time>"', json.dumps(have)))
    if path == "@causes" or (path == "message" and "is invalid: [" in str(have)):
        have, want = _unordered(have), _unordered(want)
    if want is ANY or want is GONE:
        fits = (have is GONE) is (want is GONE)
    else:
        fits = bool(want.fullmatch(have)) if isinstance(want, re.Pattern) and isinstance(have, str) else have == want
    return "" if fits else f"{path} is {'absent' if have is GONE else repr(have)}, not {want!r}"


def _unordered(value: Any) -> Any:
    """Causes, or a message that lists them, without their order: the real server walks maps of fields in random order."""
    if isinstance(value, str):
        head, found_list, rest = value.partition("is invalid: [")
        return [head, *sorted(rest.removesuffix("]").split(", "))] if found_list else value
    return sorted(value) if isinstance(value, list) else value


def found(body: Any, path: str) -> Any:
    """The value at a dotted path, or GONE."""
    if path == "@owned":
        return [_entry_text(e) for e in body["metadata"].get("managedFields", [])]
    if path == "@causes":
        return [(c.get("field", ""), c.get("reason", "")) for c in body.get("details", {}).get("causes", [])]
    for part in path.split("."):
        if part == "#":
            body = len(body)
        elif isinstance(body, list):
            body = body[int(part)] if int(part) < len(body) else GONE
        else:
            body = body.get(part, GONE) if isinstance(body, dict) else GONE
    return body


def _entry_text(entry: dict[str, Any]) -> str:
    """`manager Operation[ subresource]: leaf leaf`; a leaf is its path without the marks of field names."""
    head = f"{entry['manager']} {entry['operation']}{' ' + entry['subresource'] if 'subresource' in entry else ''}"
    return f"{head}: {' '.join(_leaves(entry['fieldsV1'], ''))}"


def _leaves(fields: dict[str, Any], path: str) -> list[str]:
    out: list[str] = []
    for key, inner in fields.items():
        here = f"{path}/{key.removeprefix('f:')}" if path else key.removeprefix("f:")
        out += _leaves(inner, here) if inner else [here]
    return out
