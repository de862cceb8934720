"""How webhooks are called: over HTTPS, or in the same process."""

import asyncio
import base64
import errno
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import aiohttp
import msgspec

from sim.apiserver.objects import Object

__all__ = ("CallFailed", "Caller", "Http", "InProcess", "Resolver", "Serve", "no_services", "url_of")

AGENT = "kube-apiserver-admission"
TEXTS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
QUOTED = (403, 406, 415)
"""Statuses of which the answer's own text is passed on."""


class CallFailed(Exception):
    """A webhook that was not reached or did not answer with success; the text is that of the real client."""


class Caller(Protocol):
    """Sends one review."""

    async def post(self, client_config: Object, url: str, body: bytes, timeout_s: float) -> bytes:
        """The body of the answer. `url`: as `url_of` makes it, without query. Raises CallFailed."""
        ...


Resolver = Callable[[str, str, int], Awaitable[tuple[str, int]]]
"""From namespace, name and port of a service to a host and a port that can be dialed. Raises CallFailed."""
Serve = Callable[[Object], Awaitable[Object]]
"""A webhook in this process: from a decoded review to the decoded answer; CallFailed fails the call."""


def url_of(client_config: Object) -> str:
    """Where clientConfig of a webhook points: its url, or that of its service."""
    service: Object | None = client_config.get("service")
    if service is None:
        return client_config.get("url", "")
    path: str = service.get("path") or ""
    return f"https://{service['name']}.{service['namespace']}.svc:{service.get('port') or 443}/{path.lstrip('/')}"


async def no_services(namespace: str, name: str, port: int) -> tuple[str, int]:
    """There is no cluster network: no service can be reached."""
    raise CallFailed(f'service "{name}" in namespace "{namespace}" cannot be reached on port {port}: this server has no cluster network')


@dataclass(frozen=True, slots=True)
class InProcess:
    """Webhooks that are functions, by url (services: as `url_of` makes it). Timeouts pass on the clock of the running loop."""

    webhooks: Mapping[str, Serve]

    async def post(self, client_config: Object, url: str, body: bytes, timeout_s: float) -> bytes:
        del client_config
        posted = f'Post "{url}?timeout={timeout_s:g}s": '
        serve = self.webhooks.get(url)
        if serve is None:
            raise CallFailed(f"{posted}connect: connection refused")
        try:
            async with asyncio.timeout(timeout_s):
                return msgspec.json.encode(await serve(msgspec.json.decode(body)))
        except TimeoutError:
            raise CallFailed(f"{posted}context deadline exceeded") from None


@dataclass(frozen=True, slots=True)
class Http:
    """HTTPS with verified certificates. Each call has a connection of its own, so there is nothing to close."""

    resolve: Resolver = no_services

    async def post(self, client_config: Object, url: str, body: bytes, timeout_s: float) -> bytes:
        wanted = f"{url}?timeout={timeout_s:g}s"
        try:
            return await self._sent(client_config, wanted, body, timeout_s)
        except TimeoutError:
            raise CallFailed(f'Post "{wanted}": context deadline exceeded') from None
        except (aiohttp.ClientError, ssl.SSLError, ValueError) as error:
            raise CallFailed(f'Post "{wanted}": {_reason(error)}') from error

    async def _sent(self, client_config: Object, url: str, body: bytes, timeout_s: float) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json, */*", "User-Agent": AGENT}
        dialed, server_name = url, None
        if (service := client_config.get("service")) is not None:
            server_name = f"{service['name']}.{service['namespace']}.svc"
            port: int = service.get("port") or 443
            try:
                host, real_port = await self.resolve(service["namespace"], service["name"], port)
            except CallFailed as error:
                raise CallFailed(f'Post "{url}": {error}') from None
            headers["Host"] = f"{server_name}:{port}"
            dialed = url.replace(headers["Host"], f"{host}:{real_port}", 1)
        connector = aiohttp.TCPConnector(ssl=_context(client_config.get("caBundle") or ""), force_close=True)
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
            session.post(dialed, data=body, headers=headers, allow_redirects=False, server_hostname=server_name) as response,
        ):
            answer = await response.read()
            content_type = response.headers.get("Content-Type", "")
            if not 200 <= response.status < 300:
                raise CallFailed(_refusal(response.status, content_type, answer))
            if not answer:
                raise CallFailed(f"0-length response with status code: {response.status} and content type: {content_type}")
            return answer


@lru_cache(maxsize=64)
def _context(bundle: str) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=base64.b64decode(bundle).decode() if bundle else None)


def _refusal(status: int, content_type: str, body: bytes) -> str:
    """What a client of Kubernetes makes of an answer without success."""
    try:
        found = msgspec.json.decode(body)
        if found["kind"] == "Status" and found["message"]:
            return found["message"]
    except (msgspec.DecodeError, TypeError, KeyError):
        pass
    text = body.decode(errors="replace").strip() if content_type.startswith("text/") else ""
    text = text or "unknown"
    if status in QUOTED:
        return text
    if status in TEXTS:
        return TEXTS[status]
    if status >= 500:
        return f'an error on the server ("{text}") has prevented the request from succeeding'
    return f"the server responded with the status code {status} but did not return more information"


def _reason(error: Exception) -> str:
    """The real client's words for a connection that failed."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return "tls: failed to verify certificate: " + _distrust(str(error.certificate_error))
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {error.host}: no such host"
        case aiohttp.ClientConnectorError() if error.os_error.errno == errno.ECONNREFUSED:
            return f"dial tcp {error.host}:{error.port}: connect: connection refused"
        case aiohttp.ServerDisconnectedError():
            return "EOF"
        case _:
            return str(error) or type(error).__name__


def _distrust(text: str) -> str:
    if "expired" in text:
        return "x509: certificate has expired or is not yet valid"
    if "match" in text or "mismatch" in text:
        return "x509: certificate is not valid for the name that was asked for"
    return "x509: certificate signed by unknown authority"
