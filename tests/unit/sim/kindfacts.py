"""What a real API server answered, and the same asked of the hooks of built-in kinds.

facts/*.json: [method, path, body, status, answer] of kube-apiserver v1.36.3 in the order of the requests; answers are in `normalized` form.
Times, uids, allotted addresses and ports, and what is not the hooks' (managedFields, resourceVersion) are left out of the comparison.
"""

import json
import re
from pathlib import Path
from typing import Any

from sim.apiserver.objects import Object, copied
from sim.apiserver.schema.builtin import schema_of
from sim.apiserver.schema.normal import normalize
from sim.apiserver.status import StatusError, not_found
from tests.unit.sim.kindworld import RESOURCES, KindWorld

__all__ = ("FACTS", "answered", "facts", "normalized")

FACTS = Path(__file__).parent / "facts"
NAMESPACE = "facts"
HIDDEN = ("managedFields", "uid", "resourceVersion", "creationTimestamp")
PATTERNS = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"in object meta: \d+", "in object meta: VERSION"),
    (r"10\.(9[6-9]|10\d|11[01])\.\d+\.\d+", "ADDRESS"),
    (r'"nodePort": 3\d{4}', '"nodePort": "PORT"'),
)


def facts(name: str) -> list[tuple[str, str, Any, int, Any]]:
    return [tuple(fact) for fact in json.loads((FACTS / f"{name}.json").read_text())]


def normalized(answer: Object) -> Object:
    """Without what differs between two servers that do the same."""
    out = copied(answer)
    for key in HIDDEN:
        out.get("metadata", {}).pop(key, None)
    text = json.dumps(out)
    for pattern, word in PATTERNS:
        text = re.sub(pattern, word, text)
    return json.loads(text)


def answered(world: KindWorld, method: str, path: str, body: Any) -> tuple[int, Object]:
    """Status and answer to a create, a merge patch, a POST to a subresource or a GET."""
    group, version, namespace, plural, name, subresource = _parts(path.partition("?")[0])
    resource = RESOURCES[group, plural]
    namespace = namespace if resource.is_namespaced else ""
    api_version = resource.api_version(version)
    try:
        if resource.review is not None:
            posted = {"kind": resource.kind, "apiVersion": api_version, **copied(body)}
            posted["metadata"] = {"namespace": namespace} if namespace else {}
            return 201, resource.review(world.ctx, posted)
        old = world.get(group, plural, namespace, name)
        if not name:
            obj = copied(body)
            normalize(obj, schema_of(group, version, resource.kind))
            obj = resource.strategy.convert({**obj, "apiVersion": api_version}, resource.api_version(resource.storage))
            new, status = world.create(plural, obj, group, namespace), 201
        elif old is None:
            raise not_found(group, plural, name)
        elif method == "POST":
            effect = resource.actions[subresource](world.ctx, old, body)
            if "dryRun" not in path:
                world.carry_out((group, plural, namespace, name), effect)
            return effect.status, effect.answer
        elif method == "PATCH":
            new, status = world.patch(plural, name, body, subresource, group, namespace), 200
        else:
            new, status = old, 200
    except StatusError as error:
        return error.code, error.body()
    return status, resource.strategy.convert({**new, "kind": resource.kind}, api_version)


def _parts(path: str) -> tuple[str, str, str, str, str, str]:
    words = path.strip("/").split("/")
    group, version, rest = ("", words[1], words[2:]) if words[0] == "api" else (words[1], words[2], words[3:])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = [*rest, "", ""][:3]
    return group, version, namespace, plural, name, subresource
