"""Fills Secrets of type kubernetes.io/service-account-token, as the token controller of kube-controller-manager does.

The tokens are made up: the embedded server knows one token only, its administrator's.
"""

from random import Random

import anyio

from api.plan import Clock
from sim.apiserver.builtin.config import token_secret_data
from sim.apiserver.objects import Object
from sim.apiserver.requests import ADMIN
from sim.apiserver.resources import Context, ObjectKey
from sim.apiserver.storage import Change
from sim.kubelet.host import MERGE, Caller, Host
from sim.kubelet.parts import mapping

__all__ = ("AccountTokens",)

SECRETS, ACCOUNTS = ("", "secrets"), ("", "serviceaccounts")
TYPE = "kubernetes.io/service-account-token"
NAME, UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"


class AccountTokens:
    """Hears changes from the moment it is made; acts while `run` runs. `authority`: PEM text that goes into the secrets."""

    def __init__(self, host: Host, clock: Clock, rng: Random, authority: str = "") -> None:
        self._host = host
        self._clock = clock
        self._rng = rng
        self._authority = authority
        self._calls = Caller(host, "system:kube-controller-manager", ("system:authenticated",), "kube-controller-manager/tokens-controller")
        self._dirty: dict[ObjectKey, None] = {}
        self._wake = anyio.Event()
        for secret in host.lookup.list(*SECRETS):
            self._mark(secret)
        self._unsubscribe = host.subscribe(self._changed)

    def _changed(self, change: Change) -> None:
        if change.new is None:
            return
        if change.resource.place == SECRETS:
            self._mark(change.new.obj)
        elif change.resource.place == ACCOUNTS and change.old is None:
            for secret in self._host.lookup.list(*SECRETS, change.key.namespace):
                self._mark(secret)

    def _mark(self, secret: Object) -> None:
        if secret.get("type") == TYPE and not mapping(secret, "data").get("token"):
            self._dirty[ObjectKey(secret["metadata"]["namespace"], secret["metadata"]["name"])] = None
            self._wake.set()

    async def run(self) -> None:
        """Acts until cancelled."""
        try:
            while True:
                self._wake = anyio.Event()
                while self._dirty:
                    key = next(iter(self._dirty))
                    del self._dirty[key]
                    await self._fill(key)
                await self._wake.wait()
        finally:
            self._unsubscribe()

    async def _fill(self, key: ObjectKey) -> None:
        lookup = self._host.lookup
        secret = lookup.get(*SECRETS, *key)
        if secret is None:
            return
        data = token_secret_data(Context(ADMIN, self._clock.now(), self._rng, lookup), secret, self._authority)
        account = lookup.get(*ACCOUNTS, key.namespace, mapping(secret, "metadata", "annotations").get(NAME, ""))
        if data is None or account is None:
            return  # filled already, or told when the account is made
        metadata = {"uid": secret["metadata"]["uid"], "annotations": {UID: account["metadata"]["uid"]}}
        await self._calls.send(
            "PATCH", f"/api/v1/namespaces/{key.namespace}/secrets/{key.name}", {"metadata": metadata, "data": data}, MERGE
        )
