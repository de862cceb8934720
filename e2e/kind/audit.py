"""What service accounts did, from the API server's audit log, compared with what they may do. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

__all__ = ("Grant", "Request", "forbidden", "grants", "requests", "unused", "writes")

WRITING = frozenset({"create", "update", "patch", "delete", "deletecollection"})
FORBIDDEN = 403


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One verb on one resource ("pods", "pods/binding") of one API group ("" is core) for one account; `name`: of that object only."""

    account: str
    group: str
    resource: str
    verb: str
    name: str = ""

    def __str__(self) -> str:
        named = f" {self.name}" if self.name else ""
        return f"{self.account}: {self.verb} {self.resource}{'.' if self.group else ''}{self.group}{named}"


@dataclass(frozen=True, slots=True)
class Request:
    """One completed request of a service account."""

    account: str
    """As audit logs name it: system:serviceaccount:<namespace>:<name>."""
    verb: str
    group: str
    resource: str
    name: str
    namespace: str
    code: int
    at: datetime
    uri: str

    def __str__(self) -> str:
        return f"{self.at:%H:%M:%S} {self.account.removeprefix('system:serviceaccount:')} {self.verb} {self.uri} {self.code}"

    @property
    def is_write(self) -> bool:
        """Whether it asked for a change."""
        return self.verb in WRITING


def requests(events: Iterable[Mapping[str, Any]], since: datetime) -> Iterator[Request]:
    """Completed requests for resources that arrived at or after `since`, as the log has them."""
    for event in events:
        target = event.get("objectRef")
        at = datetime.fromisoformat(event["requestReceivedTimestamp"])
        if event.get("stage") != "ResponseComplete" or target is None or at < since:
            continue
        subresource = target.get("subresource", "")
        yield Request(
            account=event["user"]["username"],
            verb=event["verb"],
            group=target.get("apiGroup", ""),
            resource=target["resource"] + (f"/{subresource}" if subresource else ""),
            name=target.get("name", ""),
            namespace=target.get("namespace", ""),
            code=int((event.get("responseStatus") or {}).get("code", 0)),
            at=at,
            uri=event["requestURI"],
        )


def forbidden(done: Iterable[Request]) -> list[Request]:
    """Requests that RBAC refused. Other 403 (quota, a namespace that ends) come with the right to ask."""
    return [request for request in done if request.code == FORBIDDEN]


def writes(done: Iterable[Request]) -> list[Request]:
    """Requests for changes of anything but Leases."""
    return [request for request in done if request.is_write and request.resource != "leases"]


def grants(account: str, rules: Iterable[Mapping[str, Any]]) -> set[Grant]:
    """What rules of a Role or ClusterRole give an account, one by one. Rules for paths (nonResourceURLs) are left out."""
    return {
        Grant(account, group, resource, verb, name)
        for rule in rules
        for group in rule.get("apiGroups") or ()
        for resource in rule.get("resources") or ()
        for verb in rule["verbs"]
        for name in rule.get("resourceNames") or ("",)
    }


def unused(given: Iterable[Grant], done: Iterable[Request]) -> list[Grant]:
    """Grants that no successful request needed, sorted. A wildcard is never used: nothing needs all of anything."""
    seen = {(r.account, r.group, r.resource, r.verb, name) for r in done if r.code < 400 for name in ("", r.name)}
    return sorted(g for g in given if (g.account, g.group, g.resource, g.verb, g.name) not in seen)
