"""Discovery: which groups, versions and resources there are, in the plain and the aggregated form; version and health."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from sim.apiserver.front.accept import DISCOVERY, JSON, negotiate
from sim.apiserver.objects import Object
from sim.apiserver.requests import Answer, Request
from sim.apiserver.resources import Resource, Version
from sim.apiserver.schema.builtin import KUBERNETES
from sim.apiserver.status import StatusError, method_not_allowed

__all__ = ("BUILT_IN_GROUPS", "GIT_VERSION", "Discovery", "by_precedence", "not_found_page")

GIT_VERSION: Final = f"{KUBERNETES}+grovekeeper.embedded"
AGGREGATED_TYPE: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TEXT_TYPE: Final = "text/plain; charset=utf-8"

# In the order in which kube-apiserver lists them; groups of custom resources follow by name.
BUILT_IN_GROUPS: Final = (
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
)
HEALTH: Final = ("healthz", "livez", "readyz")
CUSTOM_VERB_ORDER: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
WRITE_VERBS: Final = ("get", "patch", "update")


class Sub(NamedTuple):
    """A subresource. `group` and `version` are those of its kind where they differ from the resource's."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


class Discovery:
    """Answers of one set of resources; make a new one when a CustomResourceDefinition changes the set.

    `address`: host:port that /api names as the server's.
    """

    def __init__(self, resources: Sequence[Resource], address: str = "127.0.0.1") -> None:
        self._address = address
        groups: dict[str, dict[str, list[tuple[Resource, Version]]]] = {}
        for resource in sorted(resources, key=lambda r: r.plural):
            for version in resource.versions:
                if version.is_served:
                    groups.setdefault(resource.group, {}).setdefault(version.name, []).append((resource, version))
        order = {name: at for at, name in enumerate(BUILT_IN_GROUPS)}
        self._groups = {
            name: {version: groups[name][version] for version in by_precedence(groups[name])}
            for name in sorted(groups, key=lambda g: (order.get(g, len(order)), g))
        }
        self._answers: dict[tuple[str, str], Answer] = {}

    def answer(self, request: Request) -> Answer | None:
        """The answer when the path is one of discovery, health or version, else None. Raises StatusError (405, 406)."""
        path = request.path.rstrip("/") or "/"
        health = path.split("/")[1]
        if health in HEALTH:
            return _health(request.path, "verbose" in request.query)
        document = self._document(path)
        if document is None:
            return None
        # Groups are described by plain handlers, which look at no method; all else is routed.
        is_routed = path.startswith(("/api/", "/version")) or path == "/api" or _is_built_in_version(path)
        if is_routed and request.method != "GET":
            raise method_not_allowed()
        accepted = negotiate(request.accept, DISCOVERY, is_custom=not is_routed) if path != "/" else JSON
        is_aggregated = accepted.kind != "" and path in ("/api", "/apis")
        content_type = AGGREGATED_TYPE if is_aggregated else accepted.content_type
        if (ready := self._answers.get((path, content_type))) is None:
            body = self._aggregated(path) if is_aggregated else document
            ready = self._answers[path, content_type] = Answer(200, _encoded(body, accepted.is_yaml), content_type)
        return ready

    def missing(self, path: str) -> Answer:
        """What an unknown path gets: a failure below built-in groups, elsewhere the page of the HTTP library. Raises StatusError (404)."""
        parts = path.split("/")
        is_built_in = parts[1:2] == ["api"] or (parts[1:2] == ["apis"] and len(parts) > 3 and parts[2] in BUILT_IN_GROUPS)
        if is_built_in:
            raise StatusError(404, "NotFound", "the server could not find the requested resource", shows_details=True)
        return not_found_page()

    def _document(self, path: str) -> Object | None:
        match path.split("/")[1:]:
            case ["api"]:
                return self._core()
            case ["api", version] if version in self._groups.get("", {}):
                return self._resources("", version)
            case ["apis"]:
                groups = [_group(name, versions) for name, versions in self._groups.items() if name]
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            case ["apis", group] if group and group in self._groups:
                return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, self._groups[group])}
            case ["apis", group, version] if group and version in self._groups.get(group, {}):
                return self._resources(group, version)
            case ["version"]:
                return _VERSION
            case [""]:
                return {"paths": self._paths()}
            case _:
                return None

    def _core(self) -> Object:
        here = {"clientCIDR": "0.0.0.0/0", "serverAddress": self._address}
        return {"kind": "APIVersions", "versions": list(self._groups.get("", {})), "serverAddressByClientCIDRs": [here]}

    def _resources(self, group: str, version: str) -> Object:
        listed: list[Object] = []
        for resource, served in self._groups[group][version]:
            listed.append(_resource(resource))
            for sub in _subresources(resource, served):
                head: Object = {"name": f"{resource.plural}/{sub.name}", "singularName": "", "namespaced": resource.is_namespaced}
                where = {"group": sub.group, "version": sub.version} if sub.group else {}
                listed.append({**head, **where, "kind": sub.kind, "verbs": list(sub.verbs)})
        named: Object = {"groupVersion": f"{group}/{version}" if group else version}
        return {"kind": "APIResourceList", **({"apiVersion": "v1"} if group else {}), **named, "resources": listed}

    def _aggregated(self, path: str) -> Object:
        items: list[Object] = []
        for group, versions in self._groups.items():
            if (path == "/api") != (group == ""):
                continue
            listed = [
                {"version": name, "resources": [_aggregated(r, v) for r, v in served], "freshness": "Current"}
                for name, served in versions.items()
            ]
            items.append({"metadata": {"name": group} if group else {}, "versions": listed})
        return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}

    def _paths(self) -> list[str]:
        paths = ["/api", "/apis", "/openapi/v2", "/openapi/v3", "/version", *(f"/{name}" for name in HEALTH)]
        for group, versions in self._groups.items():
            root = f"/apis/{group}" if group else "/api"
            paths += [*([root] if group else []), *(f"{root}/{version}" for version in versions)]
        return sorted(paths)


def by_precedence(versions: Sequence[str] | dict[str, Any]) -> list[str]:
    """Version names, best first: v2, v1, v2beta1, v1beta1, v1alpha1, then others by name."""
    return sorted(versions, key=_precedence)


def not_found_page() -> Answer:
    """The answer to a path that nothing serves."""
    return Answer(404, b"404 page not found\n", TEXT_TYPE, {"X-Content-Type-Options": "nosniff"})


def _is_built_in_version(path: str) -> bool:
    parts = path.split("/")
    return len(parts) == 4 and parts[2] in BUILT_IN_GROUPS


_VERSION: Final[Object] = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": GIT_VERSION,
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}
_VERSION_NAME: Final = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STABILITY: Final = {None: 0, "beta": 1, "alpha": 2}


def _precedence(name: str) -> tuple[int, int, int, str]:
    match = _VERSION_NAME.fullmatch(name)
    if match is None:
        return (3, 0, 0, name)
    return (_STABILITY[match[2]], -int(match[1]), -int(match[3] or 0), name)


def _health(path: str, is_verbose: bool) -> Answer:
    _, name, *check = path.split("/")
    if check not in ([], ["ping"]):
        return not_found_page()
    if check or not is_verbose:
        return Answer(200, b"ok", TEXT_TYPE)
    return Answer(200, f"[+]ping ok\n{name} check passed\n".encode(), TEXT_TYPE)


def _group(name: str, versions: dict[str, Any]) -> Object:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _verbs(resource: Resource) -> list[str]:
    return [v for v in CUSTOM_VERB_ORDER if v in resource.verbs] if resource.is_custom else sorted(resource.verbs)


def _names(resource: Resource) -> Object:
    lists = {"shortNames": list(resource.short_names), "categories": list(resource.categories)}
    return {name: values for name, values in lists.items() if values}


def _resource(resource: Resource) -> Object:
    singular = resource.singular or resource.kind.lower()
    head: Object = {"name": resource.plural, "singularName": singular, "namespaced": resource.is_namespaced, "kind": resource.kind}
    return {**head, "verbs": _verbs(resource), **_names(resource)}


def _subresources(resource: Resource, version: Version) -> Iterator[Sub]:
    found = [Sub(name, one.kind, one.verbs, one.group, one.version) for name, one in resource.subresources.items()]
    if version.has_status:
        found.append(Sub("status", resource.kind, WRITE_VERBS))
    if version.scale is not None:
        found.append(Sub("scale", "Scale", WRITE_VERBS, "autoscaling", "v1"))
    yield from found if resource.is_custom else sorted(found)


def _aggregated(resource: Resource, version: Version) -> Object:
    # Built-in resources leave group and version of their own kind to the reader.
    own = {"group": resource.group, "version": version.name} if resource.is_custom else {"group": "", "version": ""}
    subs: list[Object] = []
    for sub in _subresources(resource, version):
        where = {"group": sub.group, "version": sub.version} if sub.group else own
        subs.append({"subresource": sub.name, "responseKind": {**where, "kind": sub.kind}, "verbs": list(sub.verbs)})
    return {
        "resource": resource.plural,
        "responseKind": {**own, "kind": resource.kind},
        "scope": "Namespaced" if resource.is_namespaced else "Cluster",
        "singularResource": resource.singular or resource.kind.lower(),
        "verbs": _verbs(resource),
        **_names(resource),
        **({"subresources": subs} if subs else {}),
    }


def _encoded(document: Object, is_yaml: bool) -> bytes:
    return yaml.safe_dump(document).encode() if is_yaml else msgspec.json.encode(document)
