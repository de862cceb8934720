"""Admission webhooks, called in process. What is expected was seen at kube-apiserver."""

import base64
import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from sim.apiserver.care.calls import CallFailed, Serve
from tests.unit.sim.careworld import Obj, World, simulate

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
Answer = Callable[[Obj], Obj]


class Hooks:
    """Answers at https://<name>, and what they were asked."""

    def __init__(self, **answers: Answer) -> None:
        self.asked: list[tuple[str, Obj]] = []
        self.served: dict[str, Serve] = {f"https://{name}": self._serve(name, answer) for name, answer in answers.items()}

    def _serve(self, name: str, answer: Answer) -> Serve:
        async def serve(review: Obj) -> Obj:
            self.asked.append((name, review["request"]))
            response = {"uid": review["request"]["uid"], **answer(review["request"])}
            return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}

        return serve

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.asked]


def allow(request: Obj) -> Obj:
    return {"allowed": True}


def deny(text: str = "no", **status: Any) -> Answer:
    return lambda request: {"allowed": False, "status": {"message": text, **status}}


def put(key: str) -> Answer:
    patch = base64.b64encode(json.dumps([{"op": "add", "path": f"/data/{key}", "value": "1"}]).encode()).decode()
    return lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": patch}


async def install(world: World, plural: str, *hooks: tuple[str, Obj], name: str = "h", rule: Obj | None = None) -> None:
    """`hooks`: name of the answer, and fields of the webhook."""
    base = {"rules": [rule or RULE], "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    webhooks = [{"name": f"{n}.x.y", "clientConfig": {"url": f"https://{n}"}, **base, **fields} for n, fields in hooks]
    await world.made(f"{ADMISSION}/{plural}webhookconfigurations", {"metadata": {"name": name}, "webhooks": webhooks})


async def create(world: World, **metadata: Any) -> tuple[int, Obj]:
    return await world.call("POST", "configmaps", {"metadata": {"name": "c", **metadata}, "data": {"key": "value"}})


def test_nothing_is_active_without_configurations() -> None:
    async def scenario(world: World) -> None:
        active = vars(world.server.verbs)["_deleter"]
        hooks: Any = vars(active)["_admission"]
        assert not hooks.is_active
        await install(world, "validating", ("a", {}))
        assert hooks.is_active
        await world.call("DELETE", f"{ADMISSION}/validatingwebhookconfigurations/h")
        assert not hooks.is_active

    simulate(scenario, Hooks(a=deny()).served)


def test_mutations_follow_each_other_and_are_seen_by_validation() -> None:
    hooks = Hooks(first=put("first"), second=put("second"), last=allow)

    async def scenario(world: World) -> None:
        await install(world, "validating", ("last", {}))
        await install(world, "mutating", ("second", {}), name="b")
        await install(world, "mutating", ("first", {}), name="a")
        status, made = await create(world)
        assert (status, made["data"]) == (201, {"key": "value", "first": "1", "second": "1"})
        assert hooks.names == ["first", "second", "last"]
        assert hooks.asked[2][1]["object"]["data"] == made["data"]

    simulate(scenario, hooks.served)


def test_fields_of_the_server_are_not_the_clients_to_set() -> None:
    hooks = Hooks(a=allow)

    async def scenario(world: World) -> None:
        await install(world, "mutating", ("a", {}))
        assert (await create(world, uid="x", creationTimestamp="2020-01-01T00:00:00Z", labels={"l": "m"}))[0] == 201
        assert hooks.asked[0][1]["object"]["metadata"] == {"name": "c", "namespace": "default", "labels": {"l": "m"}}

    simulate(scenario, hooks.served)


def test_pods_that_leave_already_are_not_asked_about_again() -> None:
    hooks = Hooks(a=allow)

    async def scenario(world: World) -> None:
        await world.made("pods", {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "a", "image": "i"}]}})
        await install(world, "validating", ("a", {}), rule={**RULE, "operations": ["DELETE"], "resources": ["pods"]})
        for options in ({}, {}, {"gracePeriodSeconds": 40}, {"gracePeriodSeconds": 5}):
            assert (await world.call("DELETE", "pods/p", options))[0] == 200
        assert [request["options"].get("gracePeriodSeconds") for _, request in hooks.asked] == [None, 5]

    simulate(scenario, hooks.served)


def test_reinvocation_where_a_later_webhook_changed_the_object() -> None:
    hooks = Hooks(plain=allow, eager=allow, changes=put("x"), late=allow)

    async def scenario(world: World) -> None:
        again = {"reinvocationPolicy": "IfNeeded"}
        await install(world, "mutating", ("plain", {}), ("eager", again), ("changes", {}), ("late", again))
        assert (await create(world))[0] == 201
        assert hooks.names == ["plain", "eager", "changes", "late", "eager"]

    simulate(scenario, hooks.served)


def test_the_first_denial_in_order_decides_whoever_answers_first() -> None:
    hooks = Hooks(b=deny("second", code=409, reason="Conflict"))

    async def slow(review: Obj) -> Obj:
        await anyio.sleep(1)
        response = {"uid": review["request"]["uid"], "allowed": False, "warnings": ["careful"], "status": {"message": "first"}}
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}

    async def scenario(world: World) -> None:
        await install(world, "validating", ("a", {}), ("b", {}))
        status, answer = await create(world)
        assert (status, answer["message"]) == (400, 'admission webhook "a.x.y" denied the request: first')
        assert "reason" not in answer

    simulate(scenario, {**hooks.served, "https://a": slow})


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({}, True),
        ({"objectSelector": {"matchLabels": {"l": "m"}}}, True),
        ({"objectSelector": {"matchLabels": {"l": "n"}}}, False),
        ({"objectSelector": {"matchExpressions": [{"key": "k", "operator": "DoesNotExist"}]}}, True),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        (
            {
                "namespaceSelector": {
                    "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"]}]
                }
            },
            False,
        ),
        ({"rules": [{**RULE, "operations": ["UPDATE"]}]}, False),
        ({"rules": [{**RULE, "operations": ["UPDATE"]}, RULE]}, True),
        ({"rules": [{**RULE, "apiGroups": ["apps"]}]}, False),
        ({"rules": [{**RULE, "apiVersions": ["v2"]}]}, False),
        ({"rules": [{**RULE, "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]}, True),
        ({"rules": [{**RULE, "resources": ["*/*"]}]}, True),
        ({"rules": [{**RULE, "resources": ["configmaps/status"]}]}, False),
        ({"rules": [{**RULE, "scope": "Namespaced"}]}, True),
        ({"rules": [{**RULE, "scope": "Cluster"}]}, False),
        ({"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'c' && oldObject == null"}]}, True),
        ({"matchConditions": [{"name": "c", "expression": "request.operation == 'DELETE'"}]}, False),
        ({"matchConditions": [{"name": "c", "expression": "object.metadata.name in ['c', 'd'].filter(n, n > 'b')"}]}, True),
        ({"matchConditions": [{"name": "c", "expression": "object.data.none == 'x'"}, {"name": "d", "expression": "false"}]}, False),
        ({"matchConditions": [{"name": "c", "expression": "object.data.none == 'x'"}], "failurePolicy": "Ignore"}, False),
    ],
)
def test_which_requests_go_to_a_webhook(fields: Obj, asked: bool) -> None:
    hooks = Hooks(a=allow)

    async def scenario(world: World) -> None:
        await install(world, "validating", ("a", fields))
        assert (await create(world, labels={"l": "m"}))[0] == 201
        assert hooks.names == (["a"] if asked else [])

    simulate(scenario, hooks.served)


def test_conditions_that_fail_refuse_the_request() -> None:
    async def scenario(world: World) -> None:
        await install(world, "validating", ("a", {"matchConditions": [{"name": "c", "expression": "object.data.none == 'x'"}]}))
        status, answer = await create(world)
        text = "expression 'object.data.none == 'x'' resulted in error: no such key: none"
        assert (status, answer["reason"], answer["message"]) == (403, "Forbidden", f'configmaps "c" is forbidden: {text}')

    simulate(scenario, Hooks(a=allow).served)


def test_other_versions_of_a_resource_are_converted_for_a_webhook_that_takes_equivalents() -> None:
    hooks = Hooks(both=allow, exact=deny())
    rule = {"apiGroups": ["autoscaling"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["horizontalpodautoscalers"]}
    scaler = {
        "metadata": {"name": "s"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "ReplicaSet", "name": "r", "apiVersion": "apps/v1"}},
    }

    async def scenario(world: World) -> None:
        await install(world, "validating", ("both", {}), ("exact", {"matchPolicy": "Exact"}), rule=rule)
        await world.made("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", scaler)
        [(name, request)] = hooks.asked
        assert name == "both"
        assert (request["kind"]["version"], request["requestKind"]["version"], request["object"]["apiVersion"]) == (
            "v1",
            "v2",
            "autoscaling/v1",
        )

    simulate(scenario, hooks.served)


def test_configurations_of_webhooks_are_sent_to_none() -> None:
    hooks = Hooks(a=deny(), b=deny())

    async def scenario(world: World) -> None:
        rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
        await install(world, "validating", ("a", {}), rule=rule)
        await install(world, "mutating", ("b", {}), rule=rule)
        assert (await world.call("DELETE", f"{ADMISSION}/validatingwebhookconfigurations/h"))[0] == 200
        assert hooks.asked == []

    simulate(scenario, hooks.served)


def test_a_review_of_an_update() -> None:
    hooks = Hooks(a=allow)

    async def scenario(world: World) -> None:
        _, made = await create(world)
        await install(world, "validating", ("a", {}))
        await world.call("PATCH", "configmaps/c", {"data": {"key": "new"}}, dryRun="All")
        [(_, request)] = hooks.asked
        assert (request["operation"], request["dryRun"], request["name"], request["namespace"]) == ("UPDATE", True, "c", "default")
        assert (request["object"]["data"], request["oldObject"]["data"]) == ({"key": "new"}, {"key": "value"})
        assert request["object"]["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        assert request["options"] == {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}

    simulate(scenario, hooks.served)


def test_scale_and_binding_are_reviewed_as_what_they_are() -> None:
    hooks = Hooks(a=allow)
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/scale", "pods/binding"]}
    labels = {"a": "b"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "i"}]}}

    async def scenario(world: World) -> None:
        await install(world, "validating", ("a", {}), rule=rule)
        sets = "/apis/apps/v1/namespaces/default/replicasets"
        await world.made(
            sets, {"metadata": {"name": "r"}, "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}}
        )
        assert (await world.call("PATCH", f"{sets}/r/scale", {"spec": {"replicas": 2}}))[0] == 200
        await world.made("pods", {"metadata": {"name": "p"}, "spec": template["spec"]})
        await world.made("pods/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}})
        (_, scale), (_, binding) = hooks.asked
        assert (scale["kind"], scale["subResource"]) == ({"group": "autoscaling", "version": "v1", "kind": "Scale"}, "scale")
        assert (scale["object"]["spec"], scale["oldObject"]["spec"]) == ({"replicas": 2}, {"replicas": 1})
        assert (binding["operation"], binding["kind"]["kind"], binding["object"]["kind"]) == ("CREATE", "Binding", "Binding")
        assert (binding["object"]["target"], binding["oldObject"]) == ({"name": "n"}, None)

    simulate(scenario, hooks.served)


def test_a_mutated_scale_scales() -> None:
    patch = base64.b64encode(json.dumps([{"op": "replace", "path": "/spec/replicas", "value": 5}]).encode()).decode()
    hooks = Hooks(a=lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": patch})
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/scale"]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "i"}]}}

    async def scenario(world: World) -> None:
        await install(world, "mutating", ("a", {}), rule=rule)
        sets = "/apis/apps/v1/namespaces/default/replicasets"
        spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        await world.made(sets, {"metadata": {"name": "r"}, "spec": spec})
        assert (await world.call("PATCH", f"{sets}/r/scale", {"spec": {"replicas": 2}}))[1]["spec"] == {"replicas": 5}
        assert (await world.call("GET", f"{sets}/r"))[1]["spec"]["replicas"] == 5

    simulate(scenario, hooks.served)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"uid": "x", "allowed": True}, 'received invalid webhook response: expected response.uid="UID", got "x"'),
        (
            {"allowed": True, "patch": "W10=", "patchType": "JSONPatch"},
            "received invalid webhook response: validating webhook may not return response.patch",
        ),
        (
            {"allowed": "yes"},
            "failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
        ),
    ],
)
def test_bad_answers_fail_the_request(answer: Obj, message: str) -> None:
    hooks = Hooks(a=lambda request: answer)

    async def scenario(world: World) -> None:
        await install(world, "validating", ("a", {}))
        status, reply = await create(world)
        said = reply["message"].replace(hooks.asked[0][1]["uid"], "UID")
        assert (status, reply["reason"]) == (500, "InternalError")
        assert said == f'Internal error occurred: failed calling webhook "a.x.y": {message}'
        await world.call("PATCH", f"{ADMISSION}/validatingwebhookconfigurations/h", {"webhooks": None})
        assert (await create(world))[0] == 201

    simulate(scenario, hooks.served)


def test_failures_to_call_are_waited_for_and_may_be_ignored() -> None:
    async def never(review: Obj) -> Obj:
        await anyio.sleep(100)
        raise CallFailed

    async def scenario(world: World) -> None:
        await install(world, "validating", ("never", {"timeoutSeconds": 3}))
        began = anyio.current_time()
        status, reply = await create(world)
        why = 'failed to call webhook: Post "https://never?timeout=3s": context deadline exceeded'
        assert (status, reply["message"]) == (500, f'Internal error occurred: failed calling webhook "never.x.y": {why}')
        assert anyio.current_time() - began == pytest.approx(3)
        path = f"{ADMISSION}/validatingwebhookconfigurations/h"
        patch = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]
        await world.call("PATCH", path, patch, "application/json-patch+json")
        assert (await create(world))[0] == 201

    simulate(scenario, {"https://never": never})


def test_a_write_that_another_one_overtook_conflicts() -> None:
    async def slow(review: Obj) -> Obj:
        await anyio.sleep(1)
        response = {"uid": review["request"]["uid"], "allowed": True}
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}

    async def scenario(world: World) -> None:
        await install(world, "validating", ("slow", {}), rule={**RULE, "operations": ["UPDATE"]})
        _, made = await create(world)
        answers: list[int] = []

        async def write(value: str) -> None:
            body = {**made, "data": {"key": value}}
            answers.append((await world.call("PUT", "configmaps/c", body))[0])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write, "a")
            tasks.start_soon(write, "b")
        assert sorted(answers) == [200, 409]

    simulate(scenario, {"https://slow": slow})
