"""One kubelet for all simulated nodes: hears of every change at once, moves each pod when its time has come, writes what differs.

Time is the event loop's, so that it runs in virtual and in real time. Pods on lost machines stay as they are.
"""

import heapq
import logging
from datetime import datetime, timedelta

import anyio

from api.plan import Clock
from api.timestamps import rfc3339
from sim.apiserver.objects import Object, dig
from sim.apiserver.resources import ObjectKey
from sim.apiserver.storage import Change
from sim.kubelet.addresses import Addresses
from sim.kubelet.behaviour import Behaviour
from sim.kubelet.containers import kill
from sim.kubelet.host import STRATEGIC, Caller, Host, pod_path
from sim.kubelet.lifecycle import NEVER, PodRun, advance, end, is_over, next_at, start, stop, waits
from sim.kubelet.machines import Machine
from sim.kubelet.readiness import Gang, Readiness, gang_of, parents_of
from sim.kubelet.status import patch_of, status_of

__all__ = ("Kubelet",)

_LOG = logging.getLogger(__name__)

PODS, NODES = ("", "pods"), ("", "nodes")
AGENT = "kubelet/simulated"
RETRY_S = 1.0
"""Pause after a write that the API server did not take."""


class Kubelet:
    """Hears changes from the moment it is made; acts while `run` runs. `defaults`: of pods without annotations; `seed`: of delays."""

    def __init__(self, host: Host, clock: Clock, *, defaults: Behaviour | None = None, seed: int = 0) -> None:
        self._calls = Caller(host, "system:node:simulated", ("system:nodes", "system:authenticated"), AGENT)
        self._clock = clock
        self._defaults = defaults or Behaviour()
        self._seed = seed
        self._pods: dict[ObjectKey, Object] = {}
        self._runs: dict[ObjectKey, PodRun] = {}
        self._machines: dict[str, Machine] = {}
        self._addresses = Addresses()
        self._readiness = Readiness()
        self._waiting: dict[Gang, dict[ObjectKey, None]] = {}
        self._waits_in: dict[ObjectKey, Gang] = {}
        self._dirty: dict[ObjectKey, None] = {}
        self._due: list[tuple[float, int, ObjectKey]] = []
        self._due_of: dict[ObjectKey, float] = {}
        self._serial = 0
        self._wake = anyio.Event()
        for node in host.lookup.list(*NODES):
            self._see_node(node["metadata"]["name"], node)
        for pod in host.lookup.list(*PODS):
            self._see_pod(ObjectKey(pod["metadata"].get("namespace", ""), pod["metadata"]["name"]), pod)
        self._unsubscribe = host.subscribe(self._changed)

    # What tests and actions on nodes use.

    def lose(self, node: str) -> None:
        """The machine stops: nothing on it changes any more, and nobody confirms that its pods have ended."""
        self._machine(node).is_alive = False

    def restore(self, node: str) -> None:
        """The machine is back after a restart: pods that are still bound to it start again, pods that are to end do."""
        machine = self._machine(node)
        machine.is_alive = True
        self._restart(machine)

    def is_alive(self, node: str) -> bool:
        """Whether the machine behind a node runs."""
        return self._machine(node).is_alive

    def crash(self, namespace: str, name: str, exit_code: int = 1) -> None:
        """The app containers of a pod die now; what follows is up to its restart policy."""
        key = ObjectKey(namespace, name)
        for container in self._runs[key].main if key in self._runs else ():
            kill(container, anyio.current_time(), exit_code)
        self._mark(key)

    def unready(self, namespace: str, name: str, for_s: float) -> None:
        """The app containers of a pod run on, but are not ready for a while."""
        key, now = ObjectKey(namespace, name), anyio.current_time()
        for container in self._runs[key].main if key in self._runs else ():
            container.ready_at = max(container.ready_at, now + for_s)
        self._mark(key)

    # Hearing.

    def _changed(self, change: Change) -> None:
        if change.resource.place == PODS:
            is_own = change.author.user_agent == AGENT and change.author.subresource == "status"
            self._see_pod(change.key, change.new.obj if change.new is not None else None, is_own=is_own)
        elif change.resource.place == NODES:
            self._see_node(change.key.name, change.new.obj if change.new is not None else None)

    def _see_pod(self, key: ObjectKey, pod: Object | None, *, is_own: bool = False) -> None:
        grown = self._readiness.see(key, pod)
        if grown is not None:
            for waiting in self._waiting.get(grown, {}):
                self._mark(waiting)
        before = self._pods.get(key)
        if pod is None:
            if before is not None:
                self._mark(key)
                del self._pods[key]
            return
        if not pod["spec"].get("nodeName"):
            return
        self._pods[key] = pod
        if not is_own:
            self._mark(key)

    def _see_node(self, name: str, node: Object | None) -> None:
        machine = self._machine(name)
        uid = machine.uid
        machine.set_node(node)
        if machine.uid != uid and node is not None:
            self._restart(machine)

    def _machine(self, name: str) -> Machine:
        machine = self._machines.get(name)
        if machine is None:
            machine = self._machines[name] = Machine(name)
        return machine

    def _restart(self, machine: Machine) -> None:
        """Whatever ran there runs no more; pods that are bound there begin anew."""
        for key in list(machine.pods):
            self._drop(key)
            if key in self._pods:
                self._mark(key)
        for key, pod in self._pods.items():
            if pod["spec"]["nodeName"] == machine.name:
                self._mark(key)

    def _mark(self, key: ObjectKey) -> None:
        self._dirty[key] = None
        self._wake.set()

    # Acting.

    async def run(self) -> None:
        """Acts until cancelled."""
        try:
            while True:
                self._wake = anyio.Event()
                self._collect_due()
                while self._dirty:
                    key = next(iter(self._dirty))
                    del self._dirty[key]
                    await self._settle(key)
                    self._collect_due()
                pause_s = self._due[0][0] - anyio.current_time() if self._due else NEVER
                with anyio.move_on_after(None if pause_s == NEVER else max(0.0, pause_s)):
                    await self._wake.wait()
        finally:
            self._unsubscribe()

    def _collect_due(self) -> None:
        now = anyio.current_time()
        while self._due and self._due[0][0] <= now:
            at, _, key = heapq.heappop(self._due)
            if self._due_of.get(key) == at:
                del self._due_of[key]
                self._dirty[key] = None

    def _look_again(self, key: ObjectKey, at: float) -> None:
        if at == NEVER:
            self._due_of.pop(key, None)
        elif self._due_of.get(key) != at:
            self._due_of[key] = at
            self._serial += 1
            heapq.heappush(self._due, (at, self._serial, key))

    async def _settle(self, key: ObjectKey) -> None:
        """Brings one pod to where it is now."""
        pod, run = self._pods.get(key), self._runs.get(key)
        if run is not None and (pod is None or pod["metadata"]["uid"] != run.uid):
            self._drop(key)
            run = None
        if pod is None:
            return
        machine = self._machine(pod["spec"]["nodeName"])
        if not machine.acts:
            return
        now = anyio.current_time()
        if pod["metadata"].get("deletionTimestamp"):
            await self._end(key, pod, run, now)
            return
        if run is None:
            if dig(pod, "status", "phase") in ("Succeeded", "Failed"):
                return
            run = self._start(key, pod, machine, now)
        advance(run, now, is_released=waits(run) and self._is_released(key, pod))
        if waits(run):
            self._wait(key, pod)
            advance(run, now, is_released=self._is_released(key, pod))
        if is_over(run):
            machine.release(key)
            self._addresses.release(run.ip)
        self._look_again(key, next_at(run, now))
        await self._write(key, pod, run, now)

    def _start(self, key: ObjectKey, pod: Object, machine: Machine, now: float) -> PodRun:
        refusal = machine.admit(key, pod)
        address = machine.address if pod["spec"].get("hostNetwork") else ""
        ip = "" if refusal is not None else address or self._addresses.take()
        run = start(pod, self._defaults, self._seed, ip=ip, host_ip=machine.address, now=now)
        run.refusal = refusal
        machine.pods[key] = None
        self._runs[key] = run
        return run

    def _wait(self, key: ObjectKey, pod: Object) -> None:
        gang = gang_of(pod)
        self._waiting.setdefault(gang, {})[key] = None
        self._waits_in[key] = gang

    def _is_released(self, key: ObjectKey, pod: Object) -> bool:
        gang = gang_of(pod)
        parents = parents_of(pod)
        if parents is None or not self._readiness.may_start(gang, parents):
            return False
        self._wait_no_more(key)
        return True

    def _wait_no_more(self, key: ObjectKey) -> None:
        gang = self._waits_in.pop(key, None)
        if gang is not None:
            del self._waiting[gang][key]
            if not self._waiting[gang]:
                del self._waiting[gang]

    async def _write(self, key: ObjectKey, pod: Object, run: PodRun, now: float) -> None:
        status = status_of(run, pod, now, self._stamp)
        patch = patch_of(run, status)
        if not patch:
            return
        body: Object = {"metadata": {"uid": run.uid}, "status": patch}
        code, _ = await self._calls.send("PATCH", pod_path(key, "status"), body, STRATEGIC)
        if code < 300:
            run.sent = status
        elif code not in (404, 409):  # gone, or another pod of that name: the news is on its way
            _LOG.warning("status not written", extra={"pod": f"{key.namespace}/{key.name}", "code": code})
            self._look_again(key, min(next_at(run, now), now + RETRY_S))

    async def _end(self, key: ObjectKey, pod: Object, run: PodRun | None, now: float) -> None:
        """A pod that is being deleted: stops it, and when it has stopped tells the API server to let it go."""
        if run is not None:
            left_s = _seconds_left(pod, self._clock.now())
            at = stop(run, now, left_s)
            if at > now:
                self._look_again(key, at)
                return
            end(run, now)
            if pod["metadata"].get("finalizers"):
                await self._write(key, pod, run, now)
            self._machine(run.node).release(key)
        body: Object = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": pod["metadata"]["uid"]},
        }
        code, _ = await self._calls.send("DELETE", pod_path(key), body)
        if code >= 300 and code not in (404, 409):
            self._look_again(key, now + RETRY_S)

    def _drop(self, key: ObjectKey) -> None:
        """Forgets a run."""
        run = self._runs.pop(key, None)
        self._look_again(key, NEVER)
        if run is None:
            return
        machine = self._machine(run.node)
        machine.release(key)
        machine.pods.pop(key, None)
        self._addresses.release(run.ip)
        self._wait_no_more(key)

    def _stamp(self, at: float) -> str:
        """RFC 3339 of a moment of the loop's clock."""
        since, now = anyio.current_time(), self._clock.now()
        return rfc3339(now + timedelta(seconds=at - since))


def _seconds_left(pod: Object, now: datetime) -> float:
    """Until the end of the grace period."""
    return (datetime.fromisoformat(pod["metadata"]["deletionTimestamp"]) - now).total_seconds()
