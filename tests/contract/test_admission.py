"""Admission webhooks."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from aiohttp import web

from tests.contract.client import Api
from tests.contract.kinds import CONFIGMAPS, NAMESPACES, PODS, Kind, Obj, configmap, pod
from tests.contract.rows import RESOURCES, serve
from tests.contract.webhooks import Hooks, hooks

MUTATING, VALIDATING = RESOURCES["mutatingwebhookconfigurations"], RESOURCES["validatingwebhookconfigurations"]
CREATE = ("CREATE",)


@pytest_asyncio.fixture
async def hook() -> AsyncIterator[Hooks]:
    async with hooks() as running:
        yield running


def allow(request: Obj) -> Obj:
    return {"allowed": True}


def deny(message: str = "no", **status: Any) -> Any:
    return lambda request: {"allowed": False, "status": {"message": message, **status}}


def patching(*operations: Obj) -> Any:
    text = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": text}


def webhook(
    api: Api, hook: Hooks, path: str, operations: tuple[str, ...] = CREATE, resources: tuple[str, ...] = ("configmaps",), **more: Any
) -> Obj:
    """One webhook for this test's namespace."""
    return {
        "name": f"{path}.contract.example.com",
        "clientConfig": {"url": hook.url(path), "caBundle": hook.bundle},
        "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": list(operations), "resources": list(resources)}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": api.ns}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }


async def install(api: Api, hook: Hooks, kind: Kind, *webhooks: Obj) -> str:
    """Create the configuration, and wait until it is asked for a probe that it admits."""
    ready = webhook(api, hook, "ready", ("DELETE",), ("leases",))
    hook.on("ready", allow)
    made = await api.made(kind, {"metadata": {"name": api.unique("hooks")}, "webhooks": [*webhooks, ready]})
    leases = RESOURCES["leases"]

    async def asked() -> bool:
        await api.create(leases, leases.new("probe"))
        await api.delete(leases, "probe")
        return any(path == "ready" for path, _ in hook.asked)

    await api.poll(asked)
    hook.asked.clear()
    return made["metadata"]["name"]


def paths(hook: Hooks) -> list[str]:
    return [path for path, _ in hook.asked]


async def test_a_mutating_webhook_patches(api: Api, hook: Hooks) -> None:
    hook.on("mutate", patching({"op": "add", "path": "/data/added", "value": "1"}))
    await install(api, hook, MUTATING, webhook(api, hook, "mutate"))
    made = await api.made(CONFIGMAPS, configmap("a"))
    assert made["data"] == {"key": "value", "added": "1"}
    assert (await api.read(CONFIGMAPS, "a"))["data"] == made["data"]


async def test_a_mutating_webhook_may_change_the_name(api: Api, hook: Hooks) -> None:
    hook.on("mutate", patching({"op": "replace", "path": "/metadata/name", "value": "b"}))
    await install(api, hook, MUTATING, webhook(api, hook, "mutate"))
    assert (await api.made(CONFIGMAPS, configmap("a")))["metadata"]["name"] == "b"
    assert not await api.gone(CONFIGMAPS, "b")
    assert await api.gone(CONFIGMAPS, "a")


async def test_a_mutation_that_makes_the_object_invalid(api: Api, hook: Hooks) -> None:
    hook.on("mutate", patching({"op": "add", "path": "/data/a b", "value": "1"}))
    await install(api, hook, MUTATING, webhook(api, hook, "mutate"))
    (await api.create(CONFIGMAPS, configmap("a"))).expect(422, "Invalid")


async def test_what_a_webhook_adds_to_an_apply_is_nobodys(api: Api, hook: Hooks) -> None:
    hook.on("mutate", patching({"op": "add", "path": "/data/added", "value": "1"}))
    await install(api, hook, MUTATING, webhook(api, hook, "mutate"))
    made = (await api.apply(CONFIGMAPS, configmap("a"), "me")).expect(201).body
    assert [(e["manager"], e["operation"], e["fieldsV1"]["f:data"]) for e in made["metadata"]["managedFields"]] == [
        ("me", "Apply", {"f:key": {}}),
    ]


async def test_a_bad_patch(api: Api, hook: Hooks) -> None:
    hook.on("mutate", patching({"op": "remove", "path": "/data/missing"}))
    await install(api, hook, MUTATING, webhook(api, hook, "mutate"))
    reply = await api.create(CONFIGMAPS, configmap("a"))
    assert (reply.status, reply.message) == (
        500,
        "Internal error occurred: error in remove for path: '/data/missing': Unable to remove nonexistent key: missing: missing value",
    )


async def test_webhooks_are_asked_in_order_of_names_and_again_if_needed(api: Api, hook: Hooks) -> None:
    hook.on(
        "first",
        lambda request: (
            {"allowed": True}
            if "second" not in request["object"]["data"]
            else patching({"op": "add", "path": "/data/again", "value": "1"})(request)
        ),
    )
    hook.on("second", patching({"op": "add", "path": "/data/second", "value": "1"}))
    await install(api, hook, MUTATING, webhook(api, hook, "first", reinvocationPolicy="IfNeeded"), webhook(api, hook, "second"))
    made = await api.made(CONFIGMAPS, configmap("a"))
    assert made["data"] == {"key": "value", "second": "1", "again": "1"}
    assert paths(hook) == ["first", "second", "first"]


async def test_never_reinvoked_by_default(api: Api, hook: Hooks) -> None:
    hook.on("first", allow)
    hook.on("second", patching({"op": "add", "path": "/data/second", "value": "1"}))
    await install(api, hook, MUTATING, webhook(api, hook, "first"), webhook(api, hook, "second"))
    await api.made(CONFIGMAPS, configmap("a"))
    assert paths(hook) == ["first", "second"]


async def test_a_denial(api: Api, hook: Hooks) -> None:
    hook.on("check", deny("not today"))
    await install(api, hook, VALIDATING, webhook(api, hook, "check"))
    reply = await api.create(CONFIGMAPS, configmap("a"))
    reply.expect(400, "", 'admission webhook "check.contract.example.com" denied the request: not today')
    assert await api.gone(CONFIGMAPS, "a")


async def test_a_denial_with_code_and_reason(api: Api, hook: Hooks) -> None:
    causes = [{"field": "data.key", "reason": "FieldValueInvalid", "message": "m"}]
    hook.on("check", deny("bad", code=422, reason="Invalid", details={"causes": causes}))
    await install(api, hook, VALIDATING, webhook(api, hook, "check"))
    reply = await api.create(CONFIGMAPS, configmap("a"))
    reply.expect(422, "Invalid", 'admission webhook "check.contract.example.com" denied the request: bad')
    assert reply.causes == [("data.key", "FieldValueInvalid")]


async def test_a_denial_without_a_message(api: Api, hook: Hooks) -> None:
    hook.on("check", lambda request: {"allowed": False})
    await install(api, hook, VALIDATING, webhook(api, hook, "check"))
    (await api.create(CONFIGMAPS, configmap("a"))).expect(
        400, "", 'admission webhook "check.contract.example.com" denied the request without explanation'
    )


async def test_a_denial_with_a_reason_only(api: Api, hook: Hooks) -> None:
    hook.on("check", lambda request: {"allowed": False, "status": {"reason": "Quota"}})
    await install(api, hook, VALIDATING, webhook(api, hook, "check"))
    reply = await api.create(CONFIGMAPS, configmap("a"))
    assert (reply.status, reply.reason, reply.message) == (
        400,
        "Quota",
        'admission webhook "check.contract.example.com" denied the request: Quota',
    )


async def test_warnings_reach_the_client(api: Api, hook: Hooks) -> None:
    hook.on("check", lambda request: {"allowed": True, "warnings": ["take care", "and more"]})
    await install(api, hook, VALIDATING, webhook(api, hook, "check"))
    reply = (await api.create(CONFIGMAPS, configmap("a"))).expect(201)
    assert reply.warnings == ('299 - "take care"', '299 - "and more"')


async def test_what_a_review_of_a_creation_holds(api: Api, hook: Hooks) -> None:
    hook.on("check", allow)
    await install(api, hook, VALIDATING, webhook(api, hook, "check"))
    made = await api.made(CONFIGMAPS, configmap("a"), fieldManager="me")
    [(_, review)] = hook.asked
    request = review["request"]
    assert (review["kind"], review["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
    kind, resource = {"group": "", "version": "v1", "kind": "ConfigMap"}, {"group": "", "version": "v1", "resource": "configmaps"}
    assert {k: v for k, v in request.items() if k not in ("uid", "object", "userInfo")} == {
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": "a",
        "namespace": api.ns,
        "operation": "CREATE",
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"},
    }
    assert request["userInfo"]["username"] == "admin"
    assert request["userInfo"]["groups"] == ["system:masters", "system:authenticated"]
    assert request["object"]["data"] == made["data"]
    assert request["object"]["metadata"]["uid"] == made["metadata"]["uid"]
    assert "resourceVersion" not in request["object"]["metadata"]


async def test_reviews_of_an_update_and_of_a_deletion(api: Api, hook: Hooks) -> None:
    hook.on("check", allow)
    await install(api, hook, VALIDATING, webhook(api, hook, "check", ("UPDATE", "DELETE")))
    await api.made(CONFIGMAPS, configmap("a"))
    (await api.patch(CONFIGMAPS, "a", {"data": {"key": "new"}})).expect(200)
    (await api.delete(CONFIGMAPS, "a", {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})).expect(200)
    update, deletion = (review["request"] for _, review in hook.asked)
    assert (update["operation"], update["object"]["data"], update["oldObject"]["data"]) == ("UPDATE", {"key": "new"}, {"key": "value"})
    assert update["options"]["kind"] == "UpdateOptions"
    assert (deletion["operation"], deletion["object"], deletion["oldObject"]["data"]) == ("DELETE", None, {"key": "new"})
    assert deletion["options"] == {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/v1",
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Background",
    }


async def test_subresources_are_matched_by_name(api: Api, hook: Hooks) -> None:
    hook.on("check", allow)
    hook.on("status", allow)
    await install(api, hook, VALIDATING, webhook(api, hook, "check", ("*",), ("pods",)), webhook(api, hook, "status", ("*",), ("pods/*",)))
    await api.made(PODS, pod("p"))
    (await api.patch(PODS, "p", {"status": {"phase": "Running"}}, sub="status")).expect(200)
    (await api.create(PODS, {"metadata": {"name": "p"}, "target": {"name": "n"}}, "p", "binding")).expect(201)
    # "pods/*" is the pods themselves too; webhooks that validate are asked at the same time.
    assert sorted((path, r["request"]["operation"], r["request"].get("subResource", "")) for path, r in hook.asked) == [
        ("check", "CREATE", ""),
        ("status", "CREATE", ""),
        ("status", "CREATE", "binding"),
        ("status", "UPDATE", "status"),
    ]


async def test_custom_objects_are_reviewed(api: Api, hook: Hooks) -> None:
    await serve(api, "podcliques")
    hook.on("check", deny("no cliques"))
    await install(api, hook, VALIDATING, webhook(api, hook, "check", CREATE, ("podcliques",)))
    cliques = RESOURCES["podcliques"]
    spec = {"roleName": "r", "replicas": 1, "minAvailable": 1, "podSpec": {"containers": [{"name": "a", "image": "i"}]}}
    reply = await api.create(cliques, cliques.new("c", spec=spec))
    reply.expect(400, "", 'admission webhook "check.contract.example.com" denied the request: no cliques')
    # Schemas come before webhooks that validate.
    hook.asked.clear()
    (await api.create(cliques, cliques.new("c", spec={}))).expect(422, "Invalid")
    assert hook.asked == []


async def test_object_selectors_see_old_and_new(api: Api, hook: Hooks) -> None:
    hook.on("check", allow)
    await install(api, hook, VALIDATING, webhook(api, hook, "check", ("CREATE", "UPDATE"), objectSelector={"matchLabels": {"l": "m"}}))
    await api.made(CONFIGMAPS, configmap("a"))
    assert hook.asked == []
    (await api.patch(CONFIGMAPS, "a", {"metadata": {"labels": {"l": "m"}}})).expect(200)
    (await api.patch(CONFIGMAPS, "a", {"metadata": {"labels": None}})).expect(200)
    assert paths(hook) == ["check", "check"]


async def test_other_namespaces_are_left_alone(api: Api, hook: Hooks) -> None:
    hook.on("check", deny())
    await install(api, hook, VALIDATING, webhook(api, hook, "check"))
    other = api.unique("other")
    await api.made(NAMESPACES, NAMESPACES.new(other))
    (await api.create(CONFIGMAPS, configmap("a"), ns=other)).expect(201)
    (await api.create(CONFIGMAPS, configmap("a"))).expect(400)


async def test_match_conditions(api: Api, hook: Hooks) -> None:
    hook.on("check", deny())
    conditions = [
        {"name": "big", "expression": "object.metadata.name.startsWith('big')"},
        {"name": "not-me", "expression": "request.userInfo.username != 'me'"},
    ]
    await install(api, hook, VALIDATING, webhook(api, hook, "check", matchConditions=conditions))
    (await api.create(CONFIGMAPS, configmap("small"))).expect(201)
    (await api.create(CONFIGMAPS, configmap("big"))).expect(400)


async def test_a_webhook_that_cannot_be_reached(api: Api, hook: Hooks) -> None:
    dead = webhook(api, hook, "dead")
    dead["clientConfig"] = {"url": "https://127.0.0.1:1/dead"}
    name = await install(api, hook, VALIDATING, dead)
    reply = await api.create(CONFIGMAPS, configmap("a"))
    reply.expect(500, "InternalError")
    assert reply.message.startswith(
        'Internal error occurred: failed calling webhook "dead.contract.example.com": failed to call webhook: Post "https://127.0.0.1:1/dead?timeout=10s": dial tcp 127.0.0.1:1'
    )
    (await api.patch(VALIDATING, name, [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}], "json")).expect(200)

    async def created() -> bool:
        return (await api.create(CONFIGMAPS, configmap("a"))).status == 201

    await api.poll(created)


async def test_a_webhook_that_answers_500(api: Api, hook: Hooks) -> None:
    hook.on("check", lambda request: web.Response(status=500, text="broken"))
    await install(api, hook, VALIDATING, webhook(api, hook, "check"))
    reply = await api.create(CONFIGMAPS, configmap("a"))
    assert (reply.status, reply.message) == (
        500,
        'Internal error occurred: failed calling webhook "check.contract.example.com": failed to call webhook: an error on the server ("broken") has prevented the request from succeeding',
    )


async def test_a_webhook_that_answers_nonsense(api: Api, hook: Hooks) -> None:
    hook.on("check", lambda request: {"uid": "other", "allowed": True})
    await install(api, hook, VALIDATING, webhook(api, hook, "check"))
    reply = await api.create(CONFIGMAPS, configmap("a"))
    assert (reply.status, reply.message.replace(hook.asked[0][1]["request"]["uid"], "UID")) == (
        500,
        'Internal error occurred: failed calling webhook "check.contract.example.com": received invalid webhook response: expected response.uid="UID", got "other"',
    )


async def test_a_webhook_that_is_too_slow(api: Api, hook: Hooks) -> None:
    async def slow(request: Obj) -> Obj:
        await asyncio.sleep(3)
        return allow(request)

    hook.on("check", slow)
    await install(api, hook, VALIDATING, webhook(api, hook, "check", timeoutSeconds=1))
    reply = await api.create(CONFIGMAPS, configmap("a"))
    reply.expect(500, "InternalError")
    assert reply.message.startswith(
        'Internal error occurred: failed calling webhook "check.contract.example.com": failed to call webhook: Post "https://127.0.0.1:'
    )
    assert reply.message.endswith("context deadline exceeded")


async def test_a_dry_run_is_said(api: Api, hook: Hooks) -> None:
    hook.on("check", allow)
    await install(api, hook, VALIDATING, webhook(api, hook, "check"))
    (await api.create(CONFIGMAPS, configmap("a"), dryRun="All")).expect(201)
    assert hook.asked[0][1]["request"]["dryRun"] is True


async def test_a_dry_run_meets_a_webhook_with_side_effects(api: Api, hook: Hooks) -> None:
    hook.on("check", allow)
    await install(api, hook, VALIDATING, webhook(api, hook, "check", sideEffects="NoneOnDryRun"))
    (await api.create(CONFIGMAPS, configmap("a"), dryRun="All")).expect(201)
    assert paths(hook) == ["check"]


async def test_configurations_are_checked(api: Api, hook: Hooks) -> None:
    bad = webhook(api, hook, "check", sideEffects="Some")
    reply = await api.create(VALIDATING, {"metadata": {"name": api.unique()}, "webhooks": [bad]})
    reply.expect(422, "Invalid")
    assert reply.causes == [("webhooks[0].sideEffects", "FieldValueNotSupported")]
    plain = {k: v for k, v in webhook(api, hook, "check").items() if k != "namespaceSelector"}
    plain["rules"][0]["resources"] = ["frobs"]
    made = (await api.made(VALIDATING, {"metadata": {"name": api.unique()}, "webhooks": [plain]}))["webhooks"][0]
    assert {k: made[k] for k in ("failurePolicy", "matchPolicy", "namespaceSelector", "objectSelector", "timeoutSeconds")} == {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "timeoutSeconds": 10,
    }
    assert made["rules"][0]["scope"] == "*"
