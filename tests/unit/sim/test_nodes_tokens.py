"""Secrets of service accounts get their tokens, whichever comes first."""

import base64
from random import Random
from typing import Any

import anyio

from sim.nodes.tokens import AccountTokens
from tests.unit.sim.nodeworld import LoopClock, World, simulate

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "type": "kubernetes.io/service-account-token",
    "metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": "a"}},
}
ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}


def filled(world: World) -> tuple[bool, bool]:
    """Whether the secret has a token and the uid of its account."""
    secret = world.server.lookup.get("", "secrets", "default", "s")
    account = world.server.lookup.get("", "serviceaccounts", "default", "a")
    assert secret is not None
    token = base64.b64decode((secret.get("data") or {}).get("token", ""))
    uid = secret["metadata"]["annotations"].get("kubernetes.io/service-account.uid")
    return bool(token), account is not None and uid == account["metadata"]["uid"]


async def create(world: World, plural: str, body: dict[str, Any]) -> None:
    await world.call("POST", f"/api/v1/namespaces/default/{plural}", body)


def with_tokens(order: list[tuple[str, dict[str, Any]]], expected: list[tuple[bool, bool]]) -> None:
    async def scenario(world: World) -> None:
        tokens = AccountTokens(world.server, LoopClock(), Random(1))  # noqa: S311 - simulation
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tokens.run)
            for i, (plural, body) in enumerate(order):
                await create(world, plural, body)
                await world.at(i + 1)
                if plural == "secrets" or i:
                    assert filled(world) == expected.pop(0)
            tasks.cancel_scope.cancel()

    simulate(scenario)


def test_a_secret_for_an_account_that_exists() -> None:
    with_tokens([("serviceaccounts", ACCOUNT), ("secrets", SECRET)], [(True, True)])


def test_a_secret_that_comes_before_its_account() -> None:
    with_tokens([("secrets", SECRET), ("serviceaccounts", ACCOUNT)], [(False, False), (True, True)])


def test_other_secrets_are_left_alone() -> None:
    plain = {**SECRET, "type": "Opaque"}
    with_tokens([("serviceaccounts", ACCOUNT), ("secrets", plain)], [(False, False)])
