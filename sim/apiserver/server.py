"""The embedded API server: takes requests, answers as kube-apiserver would, and keeps everything in memory.

`handle` waits only for webhooks. Everything else happens between two turns of the event loop, so requests never interleave.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from random import Random
from typing import Protocol

from api.plan import Clock
from sim.apiserver.builtin.registry import builtin_resources
from sim.apiserver.custom import DefinitionStrategy
from sim.apiserver.definitions import Definitions
from sim.apiserver.deletes import Deleter
from sim.apiserver.front.accept import JSON, form_of_failure
from sim.apiserver.front.discovery import Discovery
from sim.apiserver.front.openapi import OpenApi
from sim.apiserver.objects import Object
from sim.apiserver.patching import Patcher
from sim.apiserver.reading import Reader, answer, warned
from sim.apiserver.requests import Answer, Request, Stream
from sim.apiserver.resources import Context, Lookup, ObjectKey, Resource, Version
from sim.apiserver.routes import Target, target_of
from sim.apiserver.status import StatusError
from sim.apiserver.storage import HISTORY, Change, Entry, Storage
from sim.apiserver.verbs import Verbs
from sim.apiserver.versions import ConversionWebhook, Converter
from sim.apiserver.watching import Watches
from sim.apiserver.writes import Admission, Attributes, Writer

__all__ = ("ApiServer",)

STRATEGIES = {("apiextensions.k8s.io", "customresourcedefinitions"): DefinitionStrategy()}
_LOG = logging.getLogger(__name__)


class Webhooks(Admission, ConversionWebhook, Protocol):
    """Calls admission and conversion webhooks."""


class NoWebhooks:
    """A server without webhooks: configurations are stored and do nothing."""

    is_active = False

    def __init__(self, lookup: Lookup) -> None:
        del lookup

    async def mutate(self, attributes: Attributes, warnings: list[str]) -> Object:
        raise NotImplementedError

    async def validate(self, attributes: Attributes, warnings: list[str]) -> None:
        raise NotImplementedError

    async def convert(self, resource: Resource, objects: Sequence[Object], api_version: str) -> Sequence[Object]:
        raise StatusError(500, "InternalError", f"conversion of {resource.plural} needs a webhook, and this server calls none")


class ApiServer:
    """`clock` and `rng` are its only sources of time and chance: with the same ones it answers the same requests with the same bytes."""

    def __init__(
        self,
        clock: Clock,
        rng: Random,
        *,
        resources: Iterable[Resource] | None = None,
        webhooks: Callable[[Lookup], Webhooks] = NoWebhooks,
        history: int = HISTORY,
    ) -> None:
        self.storage = Storage(history=history)
        self._clock = clock
        self._rng = rng
        self._served: dict[tuple[str, str, str], tuple[Resource, Version]] = {}
        self._resources: dict[tuple[str, str], Resource] = {}
        self._documents: tuple[Discovery, OpenApi] | None = None
        self.lookup = StorageLookup(self.storage)
        hooks = webhooks(self.lookup)
        converter = Converter(hooks)
        writer = Writer(self.storage, converter, hooks)
        self.watches = Watches(self.storage, converter, clock.now)
        reader = Reader(self.storage, converter, clock.now)
        patcher = Patcher(self.storage, writer, converter)
        deleter = Deleter(self.storage, writer, hooks)
        self.verbs = Verbs(self.storage, reader, writer, patcher, deleter, self.watches, self._context)
        self._definitions = Definitions(self.storage, self, clock.now, self.watches.end)
        for resource in builtin_resources(STRATEGIES) if resources is None else resources:
            self.serve(resource)

    def serve(self, resource: Resource) -> None:
        """Begins to serve a resource, or serves it as it is now."""
        self.withdraw(resource.group, resource.plural)
        self._resources[resource.group, resource.plural] = resource
        for version in resource.versions:
            if version.is_served:
                self._served[resource.group, version.name, resource.plural] = resource, version
        self.storage.table(resource).resource = resource
        self._documents = None

    def withdraw(self, group: str, plural: str) -> None:
        """Stops serving a resource; its objects stay."""
        resource = self._resources.pop((group, plural), None)
        for version in resource.versions if resource is not None else ():
            self._served.pop((group, version.name, plural), None)
        self._documents = None

    @property
    def resources(self) -> Sequence[Resource]:
        """All that is served."""
        return list(self._resources.values())

    def resource(self, group: str, plural: str) -> Resource | None:
        """A served resource by name."""
        return self._resources.get((group, plural))

    def now(self) -> datetime:
        """The server's time."""
        return self._clock.now()

    def subscribe(self, callback: Callable[[Change], None]) -> Callable[[], None]:
        """Calls back at every change, synchronously; returns how to end that."""
        return self.storage.subscribe(callback)

    async def handle(self, request: Request) -> Answer | Stream:
        """Answers any request; never raises for what a client did."""
        try:
            return await self._route(request)
        except StatusError as error:
            return refusal(error, request.accept)
        except RecursionError:
            return refusal(StatusError(400, "BadRequest", "the object is nested too deeply"))
        except Exception as error:
            _LOG.exception("request failed", extra={"method": request.method, "path": request.path})
            return refusal(StatusError(500, "InternalError", f"Internal error occurred: {type(error).__name__}"))

    async def _route(self, request: Request) -> Answer | Stream:
        target = target_of(request.path)
        if target is not None:
            found = self._served.get((target.group, target.version, target.plural))
            if found is not None and _is_possible(request.method, target, found[0]):
                answered = await self.verbs.run(request, target, *found)
                text = found[1].deprecation
                return warned(answered, text) if text and isinstance(answered, Answer) else answered
        discovery, openapi = self._documents_now()
        document = openapi.answer(request) or discovery.answer(request)
        return document if document is not None else discovery.missing(request.path)

    def _documents_now(self) -> tuple[Discovery, OpenApi]:
        if self._documents is None:
            self._documents = Discovery(self.resources), OpenApi(self.resources)
        return self._documents

    def _context(self, request: Request, is_dry_run: bool) -> Context:
        return Context(request.user, self._clock.now(), self._rng, self.lookup, is_dry_run)


def _is_possible(method: str, target: Target, resource: Resource) -> bool:
    """Cluster-scoped resources have no paths in namespaces; objects of others have no paths outside of them.

    Nor have collections of custom resources, except to be read.
    """
    if not resource.is_namespaced:
        return not target.namespace
    if resource.is_custom and method not in ("GET", "HEAD", "OPTIONS"):
        return bool(target.namespace)
    return bool(target.namespace) or not target.name


def refusal(error: StatusError, accept: str = "") -> Answer:
    """The answer to a refused request."""
    headers = {"Retry-After": str(error.retry_after_s)} if error.retry_after_s else {}
    plain = answer(error.body(), form_of_failure(accept) if accept else JSON, error.code)
    return Answer(plain.status, plain.body, plain.content_type, headers)


class StorageLookup:
    """resources.Lookup over a storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def get(self, group: str, plural: str, namespace: str, name: str) -> Object | None:
        table = self._storage.find(group, plural)
        entry = table.entries.get(ObjectKey(namespace, name)) if table is not None else None
        return entry.obj if entry is not None else None

    def list(self, group: str, plural: str, namespace: str = "") -> Sequence[Object]:
        table = self._storage.find(group, plural)
        if table is None:
            return ()
        entries: Iterable[Entry] = table.by_namespace.get(namespace, {}).values() if namespace else table.entries.values()
        return [entry.obj for entry in entries]
