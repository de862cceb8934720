"""One cached resource: a store, the reflector that fills it, and what waits for it."""

import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, Never, TypeVar

import anyio
import msgspec

from api.plan import Index, Key, Object
from controllers.runtime.errors import NotFound
from controllers.runtime.reflector import INACTIVITY_S, Reflector, ReflectorMetrics, Told, Unreadable
from controllers.runtime.representation import accept_for
from controllers.runtime.store import Store, version
from controllers.runtime.transport import Transport

__all__ = ("Informer",)

T = TypeVar("T", bound=Object)


class _Items(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


class Informer(Generic[T]):
    """Caches the objects of `model` in one namespace ("" is all of them) that match the selectors.

    `run` has to be running for anything else to happen. `rng`, `sleep`, `inactivity_s`, `unreadable` and `told` are those of the reflector.
    """

    def __init__(
        self,
        transport: Transport,
        model: type[T],
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        indexes: Iterable[Index] = (),
        *,
        metrics: ReflectorMetrics | None = None,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        inactivity_s: float = INACTIVITY_S,
        unreadable: Unreadable | None = None,
        told: Told | None = None,
    ) -> None:
        self.model = model
        self.store: Store[T] = Store(model, indexes)
        self._transport = transport
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._reflector: Reflector[T] = Reflector(
            transport,
            self.store,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            metrics=metrics,
            rng=rng,
            sleep=sleep,
            inactivity_s=inactivity_s,
            unreadable=unreadable,
            told=told,
        )

    @property
    def has_synced(self) -> bool:
        """True once the store has been complete or may be used as empty; it stays true while connections come and go."""
        return self._reflector.synced.is_set()

    @property
    def missing(self) -> bool:
        """True while the API server does not serve this resource (its CRD is not installed)."""
        return self._reflector.missing

    @property
    def trouble(self) -> str:
        """Why it is not synced, as in ReflectorMetrics.round_ended; "" when no round has ended yet."""
        return self._reflector.trouble

    async def run(self) -> Never:
        """Fills the store until cancelled."""
        await self._reflector.run()

    async def wait_synced(self) -> None:
        await self._reflector.synced.wait()

    async def renew(self, since: float) -> None:
        """Returns when the store has been complete and as new as the API server at `since` (anyio.current_time) or later."""
        await self._reflector.renew(since)

    async def wait_rv(self, rv: int | str, timeout_s: float) -> bool:
        """Waits until the watch has come as far as `rv` (as a write returned it); False if it has not within `timeout_s` seconds."""
        reached = self.store.reached(int(rv))
        with anyio.move_on_after(timeout_s):
            await reached.wait()
        return reached.is_set()

    async def live_get(self, key: Key, timeout_s: float = 10.0) -> T | None:
        """Reads one object from the API server (consistent, not from its watch cache) and puts what it says into the store.

        None: it does not exist, or does not match the selectors. Raises as Transport.call, and as `model.decode` for an unreadable one.
        """
        known = self.store.get(key)
        obj = await (self._read_selected if self._label_selector or self._field_selector else self._read)(key, timeout_s)
        if obj is None:
            self.store.forget(key, known)
            return None
        version(obj)
        self.store.put_live(obj)
        return obj

    async def _read(self, key: Key, timeout_s: float) -> T | None:
        kind = self.model.KIND
        try:
            body = await self._transport.call(
                "GET", kind.path(key.namespace, key.name), accept=accept_for(kind.resource), timeout_s=timeout_s
            )
        except NotFound:
            return None
        return self.model.decode(body)

    async def _read_selected(self, key: Key, timeout_s: float) -> T | None:
        """A list of at most one, because a plain GET does not say whether the object matches."""
        kind = self.model.KIND
        fields = ",".join(part for part in (f"metadata.name={key.name}", self._field_selector) if part)
        query = {"fieldSelector": fields} | ({"labelSelector": self._label_selector} if self._label_selector else {})
        body = await self._transport.call(
            "GET", kind.path(key.namespace), query=query, accept=accept_for(kind.resource, "List"), timeout_s=timeout_s
        )
        for raw in msgspec.json.decode(body, type=_Items).items or ():
            return self.model.decode(raw)
        return None
