"""A container registry that takes what `docker push` sends and forgets it at the end: the registry of a reader, for pages.

https://distribution.github.io/distribution/spec/api/ as far as a push needs it; Docker speaks plain HTTP to registries on loopback.
"""

import contextlib
import hashlib
import http.server
import re
import threading
import urllib.parse
from collections.abc import Generator
from http import HTTPStatus
from typing import Any

__all__ = ("PORT", "running_registry")

PORT = 5001
"""Of the registry on the pages, localhost:5001."""
PATH = re.compile(r"/v2/(?P<name>[a-z0-9/._-]+)/(?P<kind>blobs/uploads|blobs|manifests)/(?P<reference>[^/?]*)")
CHUNK = 1 << 20


class _Registry(http.server.ThreadingHTTPServer):
    """Digests of blobs and manifests that it was sent, and tags."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.have = set[str]()
        self.uploads = dict[str, Any]()


class _Handler(http.server.BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: _Registry  # pyright: ignore[reportIncompatibleVariableOverride] - only this server makes handlers

    def do_GET(self) -> None:
        """Says that it is a registry of version 2, or whether it has something."""
        self.do_HEAD()

    def do_HEAD(self) -> None:
        """Whether it has something."""
        match = PATH.match(self.path)
        known = match is None or f"{match['name']}@{match['reference']}" in self.server.have
        self._answer(HTTPStatus.OK if known else HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Begins an upload."""
        self._read()
        name = f"{len(self.server.uploads)}"
        self.server.uploads[name] = hashlib.sha256()
        self._answer(HTTPStatus.ACCEPTED, Location=f"{self.path.partition('?')[0]}{name}", Range="0-0")

    def do_PATCH(self) -> None:
        """Continues it."""
        end = self._read(self._upload()) - 1
        self._answer(HTTPStatus.ACCEPTED, Location=self.path, Range=f"0-{end}")

    def do_PUT(self) -> None:
        """Ends an upload, or takes a manifest."""
        match = PATH.match(self.path)
        if match is None:
            self._answer(HTTPStatus.NOT_FOUND)
            return
        is_manifest = match["kind"] == "manifests"
        seen = hashlib.sha256() if is_manifest else self._upload()
        self._read(seen)
        digest = f"sha256:{seen.hexdigest()}"
        wanted = match["reference"] if is_manifest else urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["digest"][0]
        if wanted.startswith("sha256:") and wanted != digest:
            self._answer(HTTPStatus.BAD_REQUEST)
            return
        self.server.have |= {f"{match['name']}@{digest}", f"{match['name']}@{wanted}"}
        self._answer(HTTPStatus.CREATED, **{"Docker-Content-Digest": digest})

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def _upload(self) -> Any:
        return self.server.uploads[self.path.partition("?")[0].rpartition("/")[2]]

    def _read(self, into: Any = None) -> int:
        """Takes the body, which Docker sends in chunks; its length."""
        length = 0
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                length += self._take(size, into)
                self.rfile.readline()
            self.rfile.readline()
            return length
        return self._take(int(self.headers.get("Content-Length") or 0), into)

    def _take(self, size: int, into: Any) -> int:
        left = size
        while left and (data := self.rfile.read(min(left, CHUNK))):
            left -= len(data)
            if into is not None:
                into.update(data)
        return size - left

    def _answer(self, status: HTTPStatus, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Docker-Distribution-Api-Version": "registry/2.0", "Content-Length": "0", **headers}.items():
            self.send_header(name, value)
        self.end_headers()


@contextlib.contextmanager
def running_registry(port: int = PORT) -> Generator[None]:
    """A registry at localhost:`port`. Raises OSError when the port is taken."""
    with _Registry(port) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
