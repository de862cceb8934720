"""What is wrong with a CustomResourceDefinition, in the words of kube-apiserver."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# JSON data is told apart by isinstance, which says nothing about what is inside.

import re
from collections.abc import Iterator
from typing import Any, Final

from api.fielderrors import FieldError, forbidden, invalid, not_supported, required
from sim.apiserver.custom.structure import check_schema
from sim.apiserver.custom.versions import check_version
from sim.apiserver.objects import Object, dig

__all__ = ("validate_crd",)

_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_DOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_TEXT: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an "
    "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_DOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def validate_crd(crd: Object, old: Object | None) -> list[FieldError]:
    """Errors of a definition with its defaults filled in. `old`: what it replaces. Total on anything with the right types."""
    spec: Object = crd.get("spec") or {}
    names: Object = spec.get("names") or {}
    errors: list[FieldError] = []
    name, group = dig(crd, "metadata", "name"), spec.get("group", "")
    if old is None and name != f"{names.get('plural', '')}.{group}":
        errors.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    errors += _group(crd, group)
    errors += _scope(spec)
    errors += _versions(spec, dig(crd, "status", "storedVersions"))
    errors += _names(names)
    errors += _conversion(spec.get("conversion") or {"strategy": "None"})
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        errors.append(invalid("spec.preserveUnknownFields", True, text))
    if old is not None:
        errors += _unchanged(spec, old.get("spec") or {})
    return errors


def _group(crd: Object, group: str) -> Iterator[FieldError]:
    if not group:
        yield required("spec.group")
    elif _DOMAIN.fullmatch(group) is None:
        yield invalid("spec.group", group, _DOMAIN_TEXT)
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    if group.endswith((".k8s.io", ".kubernetes.io")) or group in ("k8s.io", "kubernetes.io"):
        note = "api-approved.kubernetes.io"
        if not dig(crd, "metadata", "annotations", note):
            text = f'protected groups must have approval annotation "{note}", see https://github.com/kubernetes/enhancements/pull/1111'
            yield required(f"metadata.annotations[{note}]", text)


def _scope(spec: Object) -> Iterator[FieldError]:
    scope = spec.get("scope", "")
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", scope, ["Cluster", "Namespaced"])


def _versions(spec: Object, stored: list[str] | None) -> Iterator[FieldError]:
    versions: list[Object] = spec.get("versions") or []
    is_same = len({repr(v.get("schema")) for v in versions}) == 1
    for index, version in enumerate(versions):
        where = f"spec.versions[{index}]"
        if _LABEL.fullmatch(version.get("name", "")) is None:
            yield invalid(f"{where}.name", version.get("name", ""), _LABEL_TEXT)
        if version.get("deprecationWarning") and not version.get("deprecated"):
            yield invalid(f"{where}.deprecationWarning", version["deprecationWarning"], "can only be set for deprecated versions")
        if not dig(version, "schema", "openAPIV3Schema"):
            yield required(f"{where}.schema.openAPIV3Schema")
    if len({v.get("name") for v in versions}) != len(versions):
        yield invalid("spec.versions", _internal(spec), "must contain unique version names")
    storage = [v for v in versions if v.get("storage")]
    if len(storage) != 1:
        yield invalid("spec.versions", _internal(spec), "must have exactly one version marked as storage version")
    # What all versions have in common is checked, and named, once.
    for index, version in enumerate(versions[:1] if is_same else versions):
        where = "spec" if is_same else f"spec.versions[{index}]"
        yield from _schema(version, "spec.validation" if is_same else f"{where}.schema")
        yield from check_version(version, "spec" if len(versions) == 1 else f"spec.versions[{index}]")
    yield from _stored(versions, stored)
    if versions and _LABEL.fullmatch(versions[0].get("name", "")) is None:
        # The first version is also that of old definitions, which had but one.
        yield invalid("spec.version", versions[0].get("name", ""), _LABEL_TEXT)


def _schema(version: Object, path: str) -> Iterator[FieldError]:
    schema = dig(version, "schema", "openAPIV3Schema")
    if schema:
        yield from check_schema(schema, f"{path}.openAPIV3Schema")


def _stored(versions: list[Object], stored: list[str] | None) -> Iterator[FieldError]:
    if not stored:
        yield invalid("status.storedVersions", None, "must have at least one stored version")
        return
    left = {name: index for index, name in enumerate(stored)}
    for version in versions:
        if left.pop(str(version.get("name", "")), None) is None and version.get("storage"):
            yield invalid("status.storedVersions", stored, f"must have the storage version {version.get('name')}")
    for name, index in left.items():
        text = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage "
            f"migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        )
        yield invalid(f"status.storedVersions[{index}]", name, text)


def _internal(spec: Object) -> Any:
    """Versions as the server prints them: its internal form."""
    versions: list[Object] | None = spec.get("versions")
    if versions is None:
        return None
    return [
        {
            "Name": v.get("name", ""),
            "Served": v.get("served", False),
            "Storage": v.get("storage", False),
            "Deprecated": v.get("deprecated", False),
            "DeprecationWarning": v.get("deprecationWarning"),
            "Schema": None,
            "Subresources": None,
            "AdditionalPrinterColumns": None,
            "SelectableFields": None,
        }
        for v in versions
    ]


def _names(names: Object) -> Iterator[FieldError]:
    for key in ("plural", "singular", "kind", "listKind"):
        value = names.get(key, "")
        path = f"spec.names.{key}"
        if not value:
            yield required(path)
        elif key in ("plural", "singular"):
            if _LABEL.fullmatch(value) is None or len(value) > 63:
                yield invalid(path, value, _LABEL_TEXT)
        elif _LABEL.fullmatch(value.lower()) is None or len(value) > 63:
            yield invalid(path, value, f"may have mixed case, but should otherwise match: {_LABEL_TEXT}")
    for key in ("shortNames", "categories"):
        for index, value in enumerate(names.get(key) or ()):
            if _LABEL.fullmatch(value) is None:
                yield invalid(f"spec.names.{key}[{index}]", value, _LABEL_TEXT)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _conversion(conversion: Object) -> Iterator[FieldError]:
    strategy, webhook = conversion.get("strategy", ""), conversion.get("webhook") or {}
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    path = "spec.conversion"
    if strategy not in ("None", "Webhook"):
        yield required(f"{path}.strategy") if not strategy else not_supported(f"{path}.strategy", strategy, ["None", "Webhook"])
    if strategy != "Webhook":
        for key, value in (("webhookClientConfig", client), ("conversionReviewVersions", reviews)):
            if value:
                yield forbidden(f"{path}.{key}", "should not be set when strategy is not set to Webhook")
        return
    where = f"{path}.webhookClientConfig"
    if client is None:
        yield required(where, "required when strategy is set to Webhook")
    elif ("url" in client) == ("service" in client):
        yield required(where, "exactly one of url or service is required")
    elif "url" in client and not client["url"].startswith("https://"):
        scheme = client["url"].partition(":")[0]
        yield invalid(f"{where}.url", scheme, "'https' is the only allowed URL scheme; desired format: https://host[/path]")
    if not reviews:
        yield required(f"{path}.conversionReviewVersions")


def _unchanged(spec: Object, old: Object) -> Iterator[FieldError]:
    for path in (("group",), ("scope",), ("names", "kind"), ("names", "plural")):
        if dig(spec, *path) != dig(old, *path):
            yield invalid(f"spec.{'.'.join(path)}", dig(spec, *path), "field is immutable")
