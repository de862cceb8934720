"""Failures as metav1.Status: codes, reasons and messages of kube-apiserver."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from api.fielderrors import ErrorKind, FieldError, aggregate
from sim.apiserver.objects import Object

__all__ = (
    "StatusError",
    "already_exists",
    "bad_request",
    "conflict",
    "forbidden",
    "gone",
    "invalid",
    "method_not_allowed",
    "not_acceptable",
    "not_found",
    "too_large",
    "unsupported_media_type",
)

CAUSES = {
    ErrorKind.REQUIRED: "FieldValueRequired",
    ErrorKind.INVALID: "FieldValueInvalid",
    ErrorKind.DUPLICATE: "FieldValueDuplicate",
    ErrorKind.NOT_FOUND: "FieldValueNotFound",
    ErrorKind.NOT_SUPPORTED: "FieldValueNotSupported",
    ErrorKind.FORBIDDEN: "FieldValueForbidden",
    ErrorKind.TOO_LONG: "FieldValueTooLong",
    ErrorKind.TOO_MANY: "FieldValueTooMany",
    ErrorKind.TYPE_INVALID: "FieldValueTypeInvalid",
    ErrorKind.INTERNAL: "InternalError",
}


@dataclass(eq=False)
class StatusError(Exception):
    """A refused request. `details`: metav1.StatusDetails; `retry_after_s`: sent as Retry-After when above zero."""

    code: int
    reason: str
    message: str
    details: Object = field(default_factory=dict)
    retry_after_s: int = 0
    metadata: Object = field(default_factory=dict)
    shows_details: bool = False
    """Whether details are answered even if there are none."""

    def __str__(self) -> str:
        return f"{self.code} {self.reason}: {self.message}"

    def body(self) -> Object:
        """The answer."""
        out: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": dict(self.details),
            "code": self.code,
        }
        if self.retry_after_s:
            out["details"]["retryAfterSeconds"] = self.retry_after_s
        if not out["details"] and not self.shows_details:
            del out["details"]
        if not self.reason:
            del out["reason"]
        return out


def qualified(resource: str, group: str) -> str:
    """`pods`, `podcliques.grove.io`."""
    return f"{resource}.{group}" if group else resource


def not_found(group: str, resource: str, name: str) -> StatusError:
    """An object that does not exist. `resource`: the plural."""
    details = {"name": name, "group": group, "kind": resource}
    return StatusError(404, "NotFound", f'{qualified(resource, group)} "{name}" not found', _some(details))


def already_exists(group: str, resource: str, name: str) -> StatusError:
    """A name that is taken."""
    details = {"name": name, "group": group, "kind": resource}
    return StatusError(409, "AlreadyExists", f'{qualified(resource, group)} "{name}" already exists', _some(details))


def conflict(group: str, resource: str, name: str, why: str) -> StatusError:
    """A precondition that does not hold, or an object that has changed."""
    message = f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {why}'
    return StatusError(409, "Conflict", message, _some({"name": name, "group": group, "kind": resource}))


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """An object that fails validation; each error becomes a cause."""
    causes = [{"reason": CAUSES[e.kind], "message": e.body, "field": e.path} for e in errors]
    message = f'{qualified(kind, group)} "{name}" is invalid: {aggregate(errors)}'
    return StatusError(422, "Invalid", message, {**_some({"name": name, "group": group, "kind": kind}), "causes": causes})


def forbidden(group: str, resource: str, name: str, why: str) -> StatusError:
    """Refused by policy (admission, namespaces that end)."""
    message = f'{qualified(resource, group)} "{name}" is forbidden: {why}' if name else f"{qualified(resource, group)} is forbidden: {why}"
    return StatusError(403, "Forbidden", message, _some({"name": name, "group": group, "kind": resource}))


def bad_request(message: str) -> StatusError:
    """A request that cannot be understood."""
    return StatusError(400, "BadRequest", message)


def gone(message: str) -> StatusError:
    """A resourceVersion or continue token that is too old."""
    return StatusError(410, "Expired", message)


def method_not_allowed(message: str = "the server does not allow this method on the requested resource") -> StatusError:
    """A verb that the resource does not have."""
    return StatusError(405, "MethodNotAllowed", message, shows_details=True)


def not_acceptable(message: str) -> StatusError:
    """No form of the answer that the client accepts."""
    return StatusError(406, "NotAcceptable", message)


def unsupported_media_type(message: str, *, shows_details: bool = False) -> StatusError:
    """A body whose content type the resource does not take."""
    return StatusError(415, "UnsupportedMediaType", message, shows_details=shows_details)


def too_large(why: str) -> StatusError:
    """A body above a limit."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {why}")


def _some(details: Object) -> Object:
    return {k: v for k, v in details.items() if v}
