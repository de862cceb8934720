"""Fills Secrets of type kubernetes.io/service-account-token, as the token controller of kube-controller-manager does.

The tokens mean nothing to anybody.
"""

from random import Random

from sim.apiserver.builtin.config import token_secret_data
from sim.apiserver.care.client import Client, path_of
from sim.apiserver.care.collector import Host
from sim.apiserver.care.queue import Queue
from sim.apiserver.objects import Object, dig
from sim.apiserver.requests import ADMIN
from sim.apiserver.resources import Context, Lookup, ObjectKey
from sim.apiserver.storage import Change

__all__ = ("TokenController",)

SECRETS, ACCOUNTS = ("", "secrets"), ("", "serviceaccounts")
TYPE = "kubernetes.io/service-account-token"
NAME, UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"


class TokenController:
    """Watches all changes from the moment it is made; acts while `run` runs. `authority`: PEM text that goes into the secrets.

    Secrets of accounts that are gone, or were replaced by others of the same name, are deleted.
    """

    def __init__(self, host: Host, lookup: Lookup, authority: str = "", rng: Random | None = None) -> None:
        self._storage = host.storage
        self._now = host.now
        self._lookup = lookup
        self._authority = authority
        self._rng = rng or Random(0)  # noqa: S311 - tokens that open nothing
        self._client = Client(host.handle, "system:kube-controller-manager")
        self._queue = Queue[ObjectKey]()
        for secret in lookup.list(*SECRETS):
            self._look_at(secret)
        self._cancel = self._storage.subscribe(self._on_change)

    async def run(self) -> None:
        """Acts until cancelled."""
        try:
            await self._queue.run(self._settle)
        finally:
            self._cancel()

    def _on_change(self, change: Change) -> None:
        place = change.resource.place
        if place == SECRETS and change.new is not None:
            self._look_at(change.new.obj)
        elif place == ACCOUNTS and (change.old is None or change.new is None):
            for secret in self._lookup.list(*SECRETS, change.key.namespace):
                if _account_of(secret) == change.key.name:
                    self._look_at(secret)

    def _look_at(self, secret: Object) -> None:
        if secret.get("type") == TYPE:
            self._queue.add(ObjectKey(secret["metadata"]["namespace"], secret["metadata"]["name"]))

    async def _settle(self, key: ObjectKey) -> bool:
        """Brings one secret to where it should be; False to look again later."""
        table = self._storage.find(*SECRETS)
        secret = self._lookup.get(*SECRETS, *key)
        if table is None or secret is None or secret.get("type") != TYPE:
            return True
        path, metadata = path_of(table.resource, key), secret["metadata"]
        account = self._lookup.get(*ACCOUNTS, key.namespace, _account_of(secret))
        uid = account["metadata"]["uid"] if account is not None else ""
        if uid != (dig(metadata, "annotations", UID) or uid) or not uid:
            status, _ = await self._client.send("DELETE", path, {"preconditions": {"uid": metadata["uid"]}})
            return status < 300 or status in (404, 409)
        data = token_secret_data(Context(ADMIN, self._now(), self._rng, self._lookup), secret, self._authority)
        if data is None and dig(metadata, "annotations", UID):
            return True
        guard = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        patch: Object = {"metadata": {**guard, "annotations": {UID: uid}}, **({"data": data} if data is not None else {})}
        status = await self._client.merge(path, patch)
        return status < 300 or status == 404


def _account_of(secret: Object) -> str:
    return dig(secret, "metadata", "annotations", NAME) or ""
