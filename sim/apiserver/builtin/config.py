"""Config maps, secrets, service accounts and their tokens."""

import base64
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from api.fielderrors import OMITTED, ErrorKind, FieldError, forbidden, invalid, required
from sim.apiserver.builtin.base import Builtin
from sim.apiserver.builtin.names import config_key_problems, subdomain_name
from sim.apiserver.builtin.parts import part
from sim.apiserver.metadata import timestamp
from sim.apiserver.objects import Object
from sim.apiserver.resources import Context, Effect
from sim.apiserver.status import invalid as invalid_status

__all__ = ("ConfigMapStrategy", "SecretStrategy", "issue_token", "token_secret_data")

_MAX_BYTES: Final = 1024 * 1024
_IMMUTABLE = "field is immutable when `immutable` is set"
_REDACTED = "<secret contents redacted>"
_ACCOUNT: Final = "kubernetes.io/service-account.name"
_ACCOUNT_TYPE: Final = "kubernetes.io/service-account-token"
_AUDIENCE: Final = "https://kubernetes.default.svc.cluster.local"
_HOUR_S: Final = 3600
_SHORTEST_S: Final = 600
_LONGEST_S: Final = 2**32
_REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


class ConfigMapStrategy(Builtin):
    """Config maps."""

    name_check = staticmethod(subdomain_name)

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        data, binary = part(obj, "data"), part(obj, "binaryData")
        out: list[FieldError] = []
        for key in sorted(data):
            out += [invalid(f"data[{key}]", key, text) for text in config_key_problems(key)]
            if key in binary:
                out.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        for key in sorted(binary):
            out += [invalid(f"binaryData[{key}]", key, text) for text in config_key_problems(key)]
        size = sum(len(v.encode()) for v in data.values()) + sum(_decoded_size(v) for v in binary.values())
        if size > _MAX_BYTES:
            out.append(FieldError(ErrorKind.TOO_LONG, "[]", OMITTED, f"may not be more than {_MAX_BYTES} bytes"))
        return out

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        return [*_frozen(obj, old, ("data", "binaryData")), *self.validate_create(ctx, obj)]


class SecretStrategy(Builtin):
    """Secrets: stringData becomes data."""

    name_check = staticmethod(subdomain_name)

    def fill(self, obj: Object) -> None:
        text: Mapping[str, str] | None = obj.pop("stringData", None)
        if text:
            encoded = {key: base64.b64encode(value.encode()).decode() for key, value in text.items()}
            obj["data"] = {**part(obj, "data"), **encoded}
        obj["type"] = obj.get("type") or "Opaque"

    def prepare_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> None:
        if obj.get("type") in (None, "", "Opaque") and old.get("type"):
            obj["type"] = old["type"]

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        data = part(obj, "data")
        out: list[FieldError] = []
        for key in sorted(data):
            out += [invalid(f"data[{key}]", key, text) for text in config_key_problems(key)]
        if sum(_decoded_size(v) for v in data.values()) > _MAX_BYTES:
            out.append(FieldError(ErrorKind.TOO_LONG, "data", OMITTED, f"may not be more than {_MAX_BYTES} bytes"))
        kind = obj["type"]
        if kind == _ACCOUNT_TYPE and not part(obj["metadata"], "annotations").get(_ACCOUNT):
            out.append(required(f"metadata.annotations[{_ACCOUNT}]"))
        elif kind == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
            out += [required("data[username]"), required("data[password]")]
        for key in _REQUIRED.get(kind, ()):
            if key not in data:
                out.append(required(f"data[{key}]"))
            elif key.startswith(".docker") and (problem := _json_problem(data[key])):
                out.append(invalid(f"data[{key}]", _REDACTED, problem))
        return out

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        out: list[FieldError] = []
        if obj["type"] != old["type"]:
            out.append(invalid("type", obj["type"], "field is immutable"))
        return [*out, *_frozen(obj, old, ("data",)), *self.validate_create(ctx, obj)]

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        return {"type": obj.get("type", "")}


def issue_token(ctx: Context, account: Object, request: Object) -> Effect:
    """POST of a TokenRequest: a token that means nothing to anybody. Raises StatusError."""
    spec = part(request, "spec")
    seconds: int = spec.get("expirationSeconds") or _HOUR_S
    path = "spec.expirationSeconds"
    if seconds < _SHORTEST_S:
        raise _refused(invalid(path, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > _LONGEST_S:
        raise _refused(invalid(path, seconds, "may not specify a duration larger than 2^32 seconds"))
    metadata = account["metadata"]
    answer: Object = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
            "creationTimestamp": timestamp(ctx.now),
        },
        "spec": {
            "audiences": spec.get("audiences") or [_AUDIENCE],
            "expirationSeconds": seconds,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {"token": _token(account, ctx), "expirationTimestamp": timestamp(ctx.now + timedelta(seconds=seconds))},
    }
    return Effect(answer)


def token_secret_data(ctx: Context, secret: Object, ca: str) -> Object | None:
    """`data` of a service-account token secret, as a controller fills it in; None where nothing is missing or the account does not exist.

    `ca`: PEM text of the cluster's certificate authority.
    """
    metadata, data = secret["metadata"], part(secret, "data")
    name = part(metadata, "annotations").get(_ACCOUNT, "")
    if secret.get("type") != _ACCOUNT_TYPE or {"token", "ca.crt", "namespace"} <= set(data):
        return None
    account = ctx.lookup.get("", "serviceaccounts", metadata["namespace"], name)
    if account is None:
        return None
    texts = {"ca.crt": ca, "namespace": metadata["namespace"], "token": _token(account, ctx)}
    return {**{key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}, **data}


def _token(account: Object, ctx: Context) -> str:
    metadata = account["metadata"]
    return f"simulated.{metadata['namespace']}.{metadata['name']}.{ctx.rng.getrandbits(128):032x}"


def _refused(error: FieldError) -> Exception:
    return invalid_status("authentication.k8s.io", "TokenRequest", "", [error])


def _frozen(obj: Object, old: Object, keys: tuple[str, ...]) -> list[FieldError]:
    """Changes of an object that is marked as immutable."""
    if not old.get("immutable"):
        return []
    out = [] if obj.get("immutable") else [forbidden("immutable", _IMMUTABLE)]
    return out + [forbidden(key, _IMMUTABLE) for key in keys if part(obj, key) != part(old, key)]


def _decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text.count("=", -2)


def _json_problem(encoded: str) -> str:
    """Go's words for what is wrong with base64 of JSON."""
    text = base64.b64decode(encoded).decode(errors="replace")
    try:
        json.loads(text)
    except ValueError as error:
        at: Any = getattr(error, "pos", 0)
        return f"invalid character '{text[at]}' looking for beginning of value" if at < len(text) else "unexpected end of JSON input"
    return ""
