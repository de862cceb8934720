"""Which webhooks a request goes to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sim.apiserver.care.reviews import namespace_of, request_of
from sim.apiserver.objects import Object, dig
from sim.apiserver.resources import Lookup, Version
from sim.apiserver.schema.cel.evaluate import build
from sim.apiserver.schema.cel.program import bounded
from sim.apiserver.schema.cel.syntax import CelSyntaxError, parse
from sim.apiserver.schema.cel.values import CelError
from sim.apiserver.selectors import Selector, matches, selector_of
from sim.apiserver.status import forbidden, not_found
from sim.apiserver.writes import Attributes

__all__ = ("EXEMPT", "Hook", "hook_of", "is_wanted", "version_for")

EXEMPT: Final = frozenset(
    {
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    }
)
"""Resources of admissionregistration.k8s.io that no webhook is asked about, so that a bad one can be removed."""
_VARIABLES: Final = frozenset({"object", "oldObject", "request"})

Condition = tuple[str, Callable[[dict[str, Any]], Any]]


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook of a configuration, ready to be matched."""

    name: str
    client_config: Object
    rules: Sequence[Object]
    namespaces: Selector
    objects: Selector
    conditions: Sequence[Condition]
    is_equivalent: bool
    """matchPolicy: whether it also wants requests for other versions of what its rules name, converted."""
    is_ignorable: bool
    """failurePolicy: whether requests pass when it cannot be asked."""
    is_reinvoked: bool
    timeout_s: float
    side_effects: str


def hook_of(webhook: Object) -> Hook:
    """From an entry of `webhooks` with its defaults."""
    return Hook(
        webhook.get("name", ""),
        webhook.get("clientConfig") or {},
        webhook.get("rules") or (),
        selector_of(webhook.get("namespaceSelector")),
        selector_of(webhook.get("objectSelector")),
        [(c["expression"], _compiled(c["expression"])) for c in webhook.get("matchConditions") or ()],
        webhook.get("matchPolicy", "Equivalent") == "Equivalent",
        webhook.get("failurePolicy", "Fail") == "Ignore",
        webhook.get("reinvocationPolicy") == "IfNeeded",
        float(webhook.get("timeoutSeconds") or 10),
        webhook.get("sideEffects") or "Unknown",
    )


def version_for(hook: Hook, attributes: Attributes, obj: Object | None, lookup: Lookup) -> Version | None:
    """In which version the hook wants to be asked about the request; None: not at all.

    Raises StatusError 404 where the request's namespace does not exist.
    """
    version = next((v for v in _candidates(hook, attributes) if any(_holds(rule, attributes, v) for rule in hook.rules)), None)
    if version is None or not _fits_namespace(hook, attributes, obj, lookup):
        return None
    if hook.objects and not any(o is not None and matches(hook.objects, _labels(o)) for o in (obj, attributes.old)):
        return None
    return version


def is_wanted(hook: Hook, attributes: Attributes, version: Version, obj: Object | None, old: Object | None) -> bool:
    """Whether the match conditions hold, of the objects in the hook's version. Raises StatusError 403 where they cannot be evaluated."""
    if not hook.conditions:
        return True
    scope = {"object": obj, "oldObject": old, "request": request_of(attributes, version)}
    failed: list[str] = []
    for source, run in hook.conditions:
        try:
            if run(dict(scope)) is not True:
                return False
        except CelError as error:
            failed.append(f"expression '{source}' resulted in error: {error}")
    if not failed:
        return True
    if hook.is_ignorable:
        return False
    text = failed[0] if len(failed) == 1 else f"[{', '.join(failed)}]"
    raise forbidden(attributes.resource.group, attributes.resource.plural, attributes.key.name, text)


def _candidates(hook: Hook, attributes: Attributes) -> list[Version]:
    """The version of the request, then the others that are served, if the hook takes them."""
    asked = attributes.version
    return [asked, *(v for v in attributes.resource.versions if hook.is_equivalent and v.is_served and v.name != asked.name)]


def _holds(rule: Object, attributes: Attributes, version: Version) -> bool:
    resource = attributes.resource
    return (
        _names(rule.get("operations"), attributes.operation)
        and _names(rule.get("apiGroups"), resource.group)
        and _names(rule.get("apiVersions"), version.name)
        and any(_is_resource(name, resource.plural, attributes.subresource) for name in rule.get("resources") or ())
        and rule.get("scope", "*") in ("*", "Namespaced" if resource.is_namespaced else "Cluster")
    )


def _names(patterns: Sequence[str] | None, value: str) -> bool:
    return patterns is not None and (value in patterns or "*" in patterns)


def _is_resource(pattern: str, plural: str, subresource: str) -> bool:
    """pods, pods/status, pods/*, */scale, */*; without a slash never a subresource."""
    name, _, sub = pattern.partition("/")
    return name in ("*", plural) and sub in ("*", subresource)


def _fits_namespace(hook: Hook, attributes: Attributes, obj: Object | None, lookup: Lookup) -> bool:
    """Labels of the namespace count; of one that is being written those that it will have. Other cluster-scoped objects always fit."""
    name = namespace_of(attributes)
    if not hook.namespaces or not name:
        return True
    is_namespace = attributes.resource.place == ("", "namespaces")
    if is_namespace and not attributes.subresource and attributes.operation != "DELETE" and obj is not None:
        return matches(hook.namespaces, _labels(obj))
    found = lookup.get("", "namespaces", "", name)
    if found is None:
        raise not_found("", "namespaces", name)
    return matches(hook.namespaces, _labels(found))


def _labels(obj: Object) -> dict[str, str]:
    return dig(obj, "metadata", "labels") or {}


def _compiled(source: str) -> Callable[[dict[str, Any]], Any]:
    try:
        return bounded(build(parse(source), _VARIABLES))
    except CelSyntaxError as error:
        text = str(error)

        def fail(scope: dict[str, Any]) -> Any:
            raise CelError(text)

        return fail
