"""Configurations of admission webhooks: defaults and what is refused."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from api.fielderrors import FieldError, duplicate, invalid, not_supported, required
from sim.apiserver.builtin.names import bad_subdomain
from sim.apiserver.builtin.parts import items, part
from sim.apiserver.builtin.scheduling_validation import label_selector_errors
from sim.apiserver.objects import Object

__all__ = ("fill_webhooks", "webhook_errors")

_REVIEWS: Final = ("v1", "v1beta1")
_VERSION: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_VERSION_TEXT: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an "
    "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_CHOICES: Final = (
    ("failurePolicy", ("Fail", "Ignore")),
    ("matchPolicy", ("Equivalent", "Exact")),
    ("reinvocationPolicy", ("IfNeeded", "Never")),
)
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_URL_FORM: Final = "desired format: https://host[/path]"


def fill_webhooks(obj: Object) -> None:
    is_mutating = obj.get("kind") == "MutatingWebhookConfiguration"
    if hooks := items(obj, "webhooks"):
        obj["webhooks"] = [_filled(h, is_mutating) for h in hooks]


def _filled(hook: Object, is_mutating: bool) -> Object:
    out: Object = {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "timeoutSeconds": 10,
        **({"reinvocationPolicy": "Never"} if is_mutating else {}),
        **hook,
    }
    client = part(hook, "clientConfig")
    if service := part(client, "service"):
        out["clientConfig"] = {**client, "service": {"port": 443, **service}}
    if rules := items(hook, "rules"):
        out["rules"] = [{"scope": "*", **r} for r in rules]
    return out


def webhook_errors(obj: Object) -> list[FieldError]:
    """Of a whole configuration; match conditions are not compiled."""
    out: list[FieldError] = []
    names: set[str] = set()
    for i, hook in enumerate(items(obj, "webhooks")):
        path, name = f"webhooks[{i}]", hook.get("name") or ""
        out += _name_errors(f"{path}.name", name)
        if name in names:
            out.append(duplicate(f"{path}.name", name))
        names.add(name)
        out += _version_errors(f"{path}.admissionReviewVersions", hook.get("admissionReviewVersions") or ())
        out += (e for j, rule in enumerate(items(hook, "rules")) for e in _rule_errors(f"{path}.rules[{j}]", rule))
        out += (not_supported(f"{path}.{key}", hook[key], known) for key, known in _CHOICES if hook.get(key, known[0]) not in known)
        effects = hook.get("sideEffects")
        if effects is None:
            out.append(required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun"))
        elif effects not in ("None", "NoneOnDryRun"):
            out.append(not_supported(f"{path}.sideEffects", effects, ("None", "NoneOnDryRun")))
        if not 1 <= (seconds := hook["timeoutSeconds"]) <= 30:
            out.append(invalid(f"{path}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds"))
        for key in ("namespaceSelector", "objectSelector"):
            out += label_selector_errors(f"{path}.{key}", hook[key] or {})
        out += _client_errors(f"{path}.clientConfig", part(hook, "clientConfig"))
    return out


def _name_errors(path: str, name: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    if errors := bad_subdomain(path, name):
        return errors
    few = name.count(".") < 2
    return [invalid(path, name, "should be a domain with at least three segments separated by dots")] if few else []


def _version_errors(path: str, versions: Sequence[str]) -> Iterator[FieldError]:
    if not versions:
        yield required(path, "must specify one of v1, v1beta1")
        return
    for i, version in enumerate(versions):
        if version in versions[:i]:
            yield invalid(f"{path}[{i}]", version, "duplicate version")
        elif not _VERSION.fullmatch(version):
            yield invalid(f"{path}[{i}]", version, _VERSION_TEXT)
    if not set(versions) & set(_REVIEWS):
        yield invalid(path, versions, "must include at least one of v1, v1beta1")


def _rule_errors(path: str, rule: Object) -> Iterator[FieldError]:
    for key, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values: list[str] = rule.get(key) or []
        if not values:
            yield required(f"{path}.{key}")
        elif "*" in values and len(values) > 1:
            yield invalid(f"{path}.{key}", values, f"if '*' is present, must not specify other {what}")
        if key == "apiVersions":
            yield from (required(f"{path}.{key}[{i}]") for i, value in enumerate(values) if not value)
    yield from _resource_errors(f"{path}.resources", rule.get("resources") or [])
    operations: list[str] = rule.get("operations") or []
    if not operations:
        yield required(f"{path}.operations")
    elif "*" in operations and len(operations) > 1:
        yield invalid(f"{path}.operations", operations, "if '*' is present, must not specify other operations")
    for i, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield not_supported(f"{path}.operations[{i}]", operation, _OPERATIONS)
    if (scope := rule.get("scope", "*")) not in _SCOPES:
        yield not_supported(f"{path}.scope", scope, _SCOPES)


def _resource_errors(path: str, resources: list[str]) -> Iterator[FieldError]:
    """Names, of which none may be part of what another one says."""
    if not resources:
        yield required(path)
    for i, name in enumerate(resources):
        plural, _, sub = name.partition("/")
        if not name:
            yield required(f"{path}[{i}]")
        for wide in (f"{plural}/*", f"*/{sub}") if sub else ():
            if wide != name and wide in resources[:i]:
                yield invalid(f"{path}[{i}]", name, f"if '{wide}' is present, must not specify {name}")
    if "*/*" in resources and len(resources) > 1:
        yield invalid(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and sum("/" not in name for name in resources) > 1:
        yield invalid(path, resources, "if '*' is present, must not specify other resources without subresources")


def _client_errors(path: str, client: Object) -> Iterator[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url_errors(f"{path}.url", url)
    else:
        yield from _service_errors(f"{path}.service", part(client, "service"))


def _url_errors(path: str, url: str) -> Iterator[FieldError]:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}; {_URL_FORM}")
        return
    user, _, host = parts.netloc.rpartition("@")
    if parts.scheme != "https":
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme; {_URL_FORM}")
    if not host:
        yield invalid(path, "", f"host must be specified; {_URL_FORM}")
    if user:
        yield invalid(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(path, parts.query, "query parameters are not permitted in the URL")


def _service_errors(path: str, service: Object) -> Iterator[FieldError]:
    yield from (required(f"{path}.{key}") for key in ("name", "namespace") if not service.get(key))
    port: Any = service.get("port", 443)
    if not 1 <= port <= 65535:
        yield invalid(f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive")
    where = service.get("path")
    if where is None or where in ("", "/"):
        return
    if not where.startswith("/"):
        yield invalid(f"{path}.path", where, "must start with a '/'")
    segments = where.removeprefix("/").removesuffix("/").split("/") if where.startswith("/") else ["", *where.split("/")[1:]]
    yield from (invalid(f"{path}.path", where, f"segment[{i}] may not be empty") for i, segment in enumerate(segments) if not segment)
