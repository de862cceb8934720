"""What can go wrong between us and an API server, as exceptions that callers can tell apart by type.

Three families: the server answered with an error (`ApiError`), it certainly never got the request (`TransportError`), or nobody knows
whether it acted on the request (`UnknownOutcome`). No text of these exceptions carries headers, tokens or request bodies.
"""

from typing import NamedTuple

import msgspec

__all__ = (
    "AlreadyExists",
    "ApiError",
    "BadRequest",
    "Conflict",
    "Distrusted",
    "FieldCause",
    "Forbidden",
    "Gone",
    "Invalid",
    "NotFound",
    "NotLeader",
    "ServerBusy",
    "StreamIdle",
    "TooManyRequests",
    "TransportError",
    "Unauthorized",
    "UnknownOutcome",
    "api_error",
)


class FieldCause(NamedTuple):
    """One cause of a refusal: the field's path, the server's message and its machine-readable reason."""

    field: str
    message: str
    reason: str


class ApiError(Exception):
    """The API server answered with a status outside 2xx.

    status: HTTP status. reason: metav1.Status reason, "" if the body was none. details: the causes, field by field.
    retry_after_s: how long the server asked us to wait, in seconds, if it did.
    """

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        *,
        details: tuple[FieldCause, ...] = (),
        retry_after_s: float | None = None,
        method: str = "",
        path: str = "",
    ) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after_s = retry_after_s
        self.method = method
        self.path = path

    @property
    def may_have_run(self) -> bool:
        """True when the server, or a proxy before it, gave up on a request that may still take effect (500, 502, 504)."""
        return self.status in (500, 502, 504)

    def __str__(self) -> str:
        return f"{self.method} {self.path}: {self.status} {self.reason}: {self.message}"


class BadRequest(ApiError):
    """400: the request itself is malformed."""


class Unauthorized(ApiError):
    """401, also after the credentials were refreshed."""


class Forbidden(ApiError):
    """403: RBAC, quota, admission or a terminating namespace. An everyday answer."""


class NotFound(ApiError):
    """404: no such object, or no such resource."""


class AlreadyExists(ApiError):
    """409 with reason AlreadyExists."""


class Conflict(ApiError):
    """409 of any other reason: a precondition or a field manager conflict."""


class Gone(ApiError):
    """410, or reason Expired: the resourceVersion or continue token is too old."""


class Invalid(ApiError):
    """422: validation refused the object; `details` name the fields."""


class TooManyRequests(ApiError):
    """429."""


class ServerBusy(ApiError):
    """Any 5xx: the server cannot serve this now."""


class TransportError(Exception):
    """The request was certainly not executed (refused connection, DNS, TLS), or it was a read that got no complete answer.

    cause: why, for people, without the request; the whole text where nothing shorter is known.
    """

    def __init__(self, text: str = "", cause: str = "") -> None:
        super().__init__(text)
        self.cause = cause or text


class Distrusted(TransportError):
    """No connection, because TLS failed: the server's certificate is not what the credentials' CA vouches for."""


class StreamIdle(TransportError):
    """A stream gave no byte for as long as its inactivity limit: it may be dead, or nothing happened."""


class UnknownOutcome(TransportError):
    """A write was sent and no complete answer came back: it may or may not have been committed."""


class NotLeader(Exception):
    """The fence is closed: this process may not write."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


class _Cause(msgspec.Struct):
    field: str = ""
    message: str = ""
    reason: str = ""


class _Details(msgspec.Struct, rename="camel"):
    causes: list[_Cause] | None = None
    retry_after_seconds: int = 0


class _Status(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_DECODER = msgspec.json.Decoder(_Status)
_MESSAGE_LIMIT = 2000


def _class_for(status: int, reason: str) -> type[ApiError]:
    if reason == "Expired":
        return Gone
    if status == 409 and reason == "AlreadyExists":
        return AlreadyExists
    if status >= 500:
        return ServerBusy
    return _BY_STATUS.get(status, ApiError)


def _seconds(header: str) -> float | None:
    return float(header) if header.isascii() and header.isdigit() else None


def api_error(status: int, body: bytes | msgspec.Raw, *, retry_after: str = "", method: str = "", path: str = "") -> ApiError:
    """The exception for an answer of HTTP status `status` (0: take the code in the body) whose body may be a metav1.Status.

    `retry_after` is the Retry-After header; API servers only ever send it in seconds.
    """
    try:
        parsed = _DECODER.decode(body)
    except (msgspec.DecodeError, ValueError):
        text = bytes(body)[:_MESSAGE_LIMIT].decode("utf-8", "replace").strip()
        parsed = _Status(message=text)
    details = parsed.details or _Details()
    wait_s = _seconds(retry_after)
    if wait_s is None and details.retry_after_seconds > 0:
        wait_s = float(details.retry_after_seconds)
    code = status or parsed.code
    return _class_for(code, parsed.reason)(
        code,
        parsed.reason,
        parsed.message[:_MESSAGE_LIMIT],
        details=tuple(FieldCause(c.field, c.message, c.reason) for c in details.causes or ()),
        retry_after_s=wait_s,
        method=method,
        path=path,
    )
