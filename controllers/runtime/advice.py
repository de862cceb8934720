"""What errors mean for the person who runs a process: what is wrong, and what mends it. Pure: from exceptions to sentences."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from api.registry import MODELS
from controllers.runtime.errors import ApiError, Forbidden, NotFound, TransportError, Unauthorized

__all__ = ("INSTALL", "MissingRight", "advice", "missing_right")

INSTALL = "grovekeeper install --crds"
"""The command that installs the custom resource definitions."""
_DEFINITIONS = frozenset(model.KIND.resource for model in MODELS)
_READ = ("list", "watch")
_DENIED = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>[a-z]+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)
_ESCALATION = re.compile(r'user "(?P<user>[^"]*)".* is attempting to grant RBAC permissions not currently held:(?P<rules>.*)', re.DOTALL)
_LONGEST = 300


class MissingRight(NamedTuple):
    """What an identity may not do. `namespace`: where it tried, "" for the whole cluster."""

    user: str
    verb: str
    group: str
    resource: str
    namespace: str = ""

    @property
    def who(self) -> str:
        """The identity as people know it."""
        prefix, _, account = self.user.partition("system:serviceaccount:")
        return f"ServiceAccount {account.replace(':', '/', 1)}" if not prefix and account else f"User {self.user}"

    @property
    def is_read(self) -> bool:
        """Whether a cache needs it: whoever reads tells of it."""
        return self.verb in _READ

    @property
    def what(self) -> str:
        """The resource with its group, as kubectl takes it."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.who} may not {self.verb} {self.what}{where}. {_grant([self], (self.verb,))}"


def missing_right(error: ApiError) -> MissingRight | None:
    """The right that a refusal by RBAC names; None for every other refusal (quota, admission, …)."""
    if error.status != 403:
        return None
    if (found := _DENIED.search(error.message)) is not None:
        return MissingRight(found["user"], found["verb"], found["group"], found["resource"], found["namespace"] or "")
    if (found := _ESCALATION.search(error.message)) is not None:
        rules = " ".join(found["rules"].split())[:_LONGEST]
        return MissingRight(found["user"], "grant", "", f"the rights {rules} that it lacks itself")
    return None


def advice(server: str, errors: Mapping[str, Exception]) -> list[str]:
    """Sentences about what keeps a process from working.

    `errors`: the last error by what it concerns, the resource (as Kind.resource) or another name. Equal causes are told once.
    """
    missing = sorted(what for what, error in errors.items() if isinstance(error, NotFound))
    rights = {what: right for what, error in errors.items() if isinstance(error, Forbidden) and (right := missing_right(error))}
    out: list[str] = []
    if definitions := [what for what in missing if what in _DEFINITIONS]:
        out.append(f"Custom resource definitions are missing: {', '.join(definitions)}. Install them: {INSTALL}")
    out += [f"The API server does not know {what}: {errors[what]}" for what in missing if what not in _DEFINITIONS]
    out += _rights(rights.values())
    rest = {what: error for what, error in errors.items() if what not in missing and what not in rights}
    return list(dict.fromkeys((*out, *(_sentence(server, what, error) for what, error in sorted(rest.items())))))


def _rights(rights: Iterable[MissingRight]) -> list[str]:
    """One sentence per identity about what it may not read, and one for each other right."""
    out: list[str] = []
    unread: dict[str, list[MissingRight]] = {}
    for right in sorted(set(rights)):
        if right.is_read:
            unread.setdefault(right.who, []).append(right)
        else:
            out.append(str(right))
    for who, denied in unread.items():
        verbs = " and ".join(sorted({right.verb for right in denied}))
        whats = ", ".join(dict.fromkeys(right.what for right in denied))
        out.append(f"{who} may not {verbs} {whats}. {_grant(denied, _READ)}")
    return out


def _grant(rights: Iterable[MissingRight], verbs: tuple[str, ...]) -> str:
    """The rules that are missing, and where they come from."""
    if verbs == ("grant",):
        return "Give its ClusterRole these rights: kubectl apply -k manifests/base restores the shipped roles"
    groups: dict[str, list[str]] = {}
    for right in rights:
        groups.setdefault(right.group, []).append(right.resource)
    rules = "; ".join(
        f'apiGroups: ["{group}"], resources: [{", ".join(dict.fromkeys(found))}], verbs: [{", ".join(verbs)}]'
        for group, found in groups.items()
    )
    return f"Add to a role bound to it: {rules}; or restore the shipped roles: kubectl apply -k manifests/base"


def _sentence(server: str, what: str, error: Exception) -> str:
    match error:
        case Unauthorized():
            return (
                f"API server {server} refuses the credentials (401): the token has expired, was revoked or belongs to another cluster. "
                "A token file is read again by itself; put a valid token there"
            )
        case ApiError() if error.status >= 500 or error.status == 429:
            return f"API server {server} cannot serve {what} now: {error.status} {error.message[:_LONGEST]}"
        case TransportError():
            return f"API server {server} cannot be reached: {error.cause}"
        case _:
            return f"{what}: {error}"
