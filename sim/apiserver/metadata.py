"""metadata of objects: what the server sets, keeps and refuses, the same for every kind."""

import re
from collections.abc import Sequence
from datetime import datetime
from random import Random
from typing import Any

from api.fielderrors import FieldError, forbidden, invalid, required, too_long
from sim.apiserver.objects import Object

__all__ = (
    "clean",
    "generated_name",
    "is_subdomain",
    "layers",
    "new_uid",
    "opened",
    "prepare_create",
    "prepare_update",
    "timestamp",
    "validate",
    "validate_update",
)

LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX = 5
MAX_GENERATED = 63 - SUFFIX
MAX_ANNOTATIONS = 256 * 1024
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")

LAX = frozenset({"poddisruptionbudgets", "events"})
THOROUGH = frozenset(
    {"clusterrolebindings", "clusterroles", "configmaps", "deviceclasses", "endpoints", "ingresses", "jobs", "namespaces", "nodes",
     "persistentvolumeclaims", "persistentvolumes", "pods", "resourceclaims", "resourceclaimtemplates", "rolebindings", "roles",
     "runtimeclasses", "secrets", "serviceaccounts", "storageclasses"}
)  # fmt: skip
"""Resources whose metadata fewer layers look at than usual, and more."""

SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NAME_PART_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
QUALIFIED_TEXT = (
    "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an "
    "optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def timestamp(now: datetime) -> str:
    """metav1.Time."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def new_uid(rng: Random) -> str:
    """A version 4 UUID from the server's own randomness."""
    digits = f"{rng.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def generated_name(base: str, rng: Random) -> str:
    """generateName and five random characters."""
    return base[:MAX_GENERATED] + "".join(rng.choice(LETTERS) for _ in range(SUFFIX))


def opened(obj: Object) -> Object:
    """`metadata` of a private copy of an object, made a copy of its own and without what means nothing."""
    metadata = clean(obj.get("metadata") or {})
    obj["metadata"] = metadata
    return metadata


def clean(metadata: Object) -> Object:
    """A copy without nulls, empty strings, lists and maps, which ObjectMeta never prints."""
    return {key: value for key, value in metadata.items() if value not in (None, "", [], {}) and key != "selfLink"}


def prepare_create(metadata: Object, now: datetime, rng: Random, has_generation: bool) -> None:
    """Sets what belongs to the server on a new object."""
    for dropped in ("deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"):
        metadata.pop(dropped, None)
    metadata["uid"] = new_uid(rng)
    metadata["creationTimestamp"] = timestamp(now)
    if has_generation:
        metadata["generation"] = 1


def prepare_update(metadata: Object, old: Object) -> None:
    """Puts back what only the server changes, and what a client may leave out."""
    metadata.pop("managedFields", None)
    metadata["creationTimestamp"] = old["creationTimestamp"]
    for kept in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if kept not in metadata and kept in old:
            metadata[kept] = old[kept]
    if "generation" in old:
        metadata["generation"] = old["generation"]
    else:
        metadata.pop("generation", None)


def is_subdomain(text: str) -> bool:
    """Whether it is a DNS-1123 subdomain."""
    return len(text) <= 253 and SUBDOMAIN.fullmatch(text) is not None


def subdomain_errors(text: str) -> list[str]:
    """What is wrong with a DNS-1123 subdomain."""
    out: list[str] = []
    if len(text) > 253:
        out.append("must be no more than 253 bytes")
    if not SUBDOMAIN.fullmatch(text):
        out.append(SUBDOMAIN_TEXT)
    return out


def qualified_name_errors(key: str) -> list[str]:
    """What is wrong with a label key and the like."""
    parts = key.split("/")
    out: list[str] = []
    if len(parts) > 2:
        return [QUALIFIED_TEXT]
    if len(parts) == 2:
        if not parts[0]:
            out.append("prefix part must be non-empty")
        else:
            out += [f"prefix part {text}" for text in subdomain_errors(parts[0])]
    name = parts[-1]
    if not name:
        out.append("name part must be non-empty")
    elif len(name) > 63:
        out.append("name part must be no more than 63 bytes")
    if not NAME_PART.fullmatch(name):
        out.append(NAME_PART_TEXT)
    return out


def label_errors(labels: Object, path: str) -> list[FieldError]:
    """Of a map of labels."""
    out: list[FieldError] = []
    for key in sorted(labels):
        if not _is_qualified(key):
            out += [invalid(path, key, text) for text in qualified_name_errors(key)]
        value: Any = labels[key]
        if len(value) > 63:
            out.append(invalid(path, value, "must be no more than 63 bytes"))
        if not VALUE.fullmatch(value):
            out.append(invalid(path, value, VALUE_TEXT))
    return out


def validate(metadata: Object, *, namespaced: bool, name_errors: Sequence[str], path: str = "metadata") -> list[FieldError]:
    """Of a new object. `name_errors`: what the kind finds wrong with its name."""
    out: list[FieldError] = []
    if base := metadata.get("generateName"):
        out += [invalid(f"{path}.generateName", base, text) for text in subdomain_errors(base.rstrip("-") or "-")]
    name = metadata.get("name", "")
    if not name:
        out.append(required(f"{path}.name", "name or generateName is required"))
    else:
        out += [invalid(f"{path}.name", name, text) for text in name_errors]
    namespace = metadata.get("namespace", "")
    if namespaced:
        if not namespace:
            out.append(required(f"{path}.namespace"))
        elif not LABEL.fullmatch(namespace) or len(namespace) > 63:
            text = (
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
                "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            )
            out.append(invalid(f"{path}.namespace", namespace, text))
    elif namespace:
        out.append(forbidden(f"{path}.namespace", "not allowed on this type"))
    return out + _validate_maps(metadata, path)


def _validate_maps(metadata: Object, path: str) -> list[FieldError]:
    out: list[FieldError] = []
    if labels := metadata.get("labels"):
        out += label_errors(labels, f"{path}.labels")
    if annotations := metadata.get("annotations"):
        size = 0
        for key, value in annotations.items():
            if not _is_qualified(key.lower()):
                out += [invalid(f"{path}.annotations", key, text) for text in qualified_name_errors(key.lower())]
            size += len(key) + len(value)
        if size > MAX_ANNOTATIONS:
            out.append(too_long(f"{path}.annotations", f"may not be more than {MAX_ANNOTATIONS} bytes"))
    if owners := metadata.get("ownerReferences"):
        out += _owner_errors(owners, f"{path}.ownerReferences")
    if finalizers := metadata.get("finalizers"):
        out += _finalizer_errors(finalizers, f"{path}.finalizers")
    return out


def _is_qualified(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if len(name) > 63 or not NAME_PART.fullmatch(name):
        return False
    return not slash or is_subdomain(prefix)


def _owner_errors(owners: list[Object], path: str) -> list[FieldError]:
    out: list[FieldError] = []
    controllers: list[str] = []
    for owner in owners:
        version = owner.get("apiVersion", "")
        if not version or version.startswith("/"):
            out.append(invalid(f"{path}.apiVersion", version, "version must not be empty"))
        missing = [key for key in ("kind", "name", "uid") if not owner.get(key)]
        out += [invalid(f"{path}.{key}", "", "must not be empty") for key in missing]
        if (version, owner.get("kind")) == ("v1", "Event"):
            out.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            controllers.append(f"{owner.get('kind', '')}")
            if len(controllers) > 1:
                text = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{_owner_text(owners, 0)} and {_owner_text(owners, 1)}"
                )
                out.append(invalid(path, owners, text))
                break
    return out


def _owner_text(owners: list[Object], position: int) -> str:
    marked = [o for o in owners if o.get("controller")]
    owner = marked[position]
    return f"{owner.get('kind', '')}/{owner.get('name', '')}"


def _finalizer_errors(finalizers: list[str], path: str) -> list[FieldError]:
    out: list[FieldError] = []
    for index, name in enumerate(finalizers):
        if not _is_qualified(name):
            out += [invalid(f"{path}[{index}]", name, text) for text in qualified_name_errors(name)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        out.append(invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set"))
    return out


def layers(plural: str, subresource: str) -> int:
    """How many layers of the server look at the metadata of an update, and say the same each."""
    if plural in LAX:
        return 2
    return 4 if not subresource and plural in THOROUGH else 3


def validate_update(metadata: Object, old: Object, layers: int = 3, path: str = "metadata") -> list[FieldError]:
    """What may not change, and the maps again, as often as there are layers that look at them."""
    out: list[FieldError] = []
    if old.get("deletionTimestamp") and (added := set(metadata.get("finalizers", ())) - set(old.get("finalizers", ()))):
        text = "no new finalizers can be added if the object is being deleted, found new finalizers " + _go_list(sorted(added))
        out.append(forbidden(f"{path}.finalizers", text))
    for key in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if metadata.get(key) != old.get(key):
            value = metadata.get(key, "" if key in ("name", "namespace", "uid") else None)
            twice = 1 if key in ("name", "namespace") else 2  # two layers of the server say the same
            out += [invalid(f"{path}.{key}", value, "field is immutable")] * twice
    changed = ("labels", "annotations", "ownerReferences", "finalizers")
    news = {key: metadata[key] for key in changed if key in metadata and metadata[key] is not old.get(key)}
    if not news:
        return out
    finalizers = _finalizer_errors(news.pop("finalizers", []), f"{path}.finalizers")
    return out + _validate_maps(news, path) * layers + finalizers * max(1, layers - 2)


def _go_list(values: Sequence[str]) -> str:
    return "[]string{" + ", ".join(f'"{v}"' for v in values) + "}"
