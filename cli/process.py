"""What the long-running commands share: options, and the assembly of transport, election, events, metrics and manager."""

import argparse
import contextlib
import logging
import random
import sys
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path

import anyio

from api.operatorconfig import WRITE_BUDGET, LeaderElection, OperatorConfiguration, without_effect
from api.plan import Key, Ref
from api.reasons import Reason
from cli.configuration import ConfigurationError, load_configuration
from controllers.runtime.apply import Recorder
from controllers.runtime.clock import SystemClock
from controllers.runtime.credentials import load_credentials
from controllers.runtime.events import EventRecorder
from controllers.runtime.fence import LeaseFence, OpenFence
from controllers.runtime.identity import CredentialsError
from controllers.runtime.leader import LeaderElector, Timing, identity
from controllers.runtime.manager import Listen, Manager, informer_factory
from controllers.runtime.metrics import Metrics
from controllers.runtime.observability import configure_logging
from controllers.runtime.transport import Transport

__all__ = ("Runtime", "Unreadable", "add_options", "lease_of", "run_process")

_LOG = logging.getLogger(__name__)

INVALID, UNREACHABLE = 4, 5
MAX_PORT = 65535


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a command builds its controllers on."""

    manager: Manager
    transport: Transport
    recorder: EventRecorder
    metrics: Metrics
    clock: SystemClock
    rng: random.Random
    config: OperatorConfiguration


def add_options(parser: argparse.ArgumentParser, bind: str, lease: str) -> None:
    """Options of every long-running command. `bind` and `lease`: defaults; without `lease` the configuration names it."""
    parser.add_argument("--config", metavar="FILE", help="OperatorConfiguration; upstream's defaults without it")
    parser.add_argument("--kubeconfig", type=Path, help="default: $KUBECONFIG, ~/.kube/config, the pod's service account")
    parser.add_argument("--context", default="", help="context of the kubeconfig")
    bind_help = f"address of /healthz, /readyz and /metrics (default {bind}); port 0: a free one"
    parser.add_argument("--bind", default=bind, metavar="HOST:PORT", help=bind_help)
    parser.add_argument("--leader-elect", action=argparse.BooleanOptionalAction, default=True, help="act only while holding the lease")
    name_help = f"default {lease}" if lease else "default: the configuration's leaderElection.resourceName"
    parser.add_argument("--lease-name", default=lease, help=name_help)
    namespace_help = "default: the configuration's leaderElection.resourceNamespace, else the pod's namespace, else default"
    parser.add_argument("--lease-namespace", default="", help=namespace_help)


def run_process(options: argparse.Namespace, component: str, build: Callable[[Runtime], None]) -> int:
    """Runs until stopped. Exit codes: 0 stopped in order, 1 crashed, 3 lost the lease, 4 invalid configuration, 5 no credentials."""
    try:
        config = load_configuration(options.config)
        listen = _listen(options.bind)
    except (ConfigurationError, ValueError) as error:
        sys.stderr.write(f"error: {error}\n")
        return INVALID
    configure_logging(config.log_level, config.log_format)
    if keys := without_effect(config):
        _LOG.warning("configuration keys without effect", extra={"keys": keys})
    try:
        return anyio.run(_run, options, component, build, config, listen)
    except CredentialsError as error:
        sys.stderr.write(f"error: {error}\n")
        return UNREACHABLE


def _listen(text: str) -> Listen:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= MAX_PORT):
        raise ValueError(f"--bind {text}: expected HOST:PORT, for example 127.0.0.1:8080")
    return Listen(host.strip("[]"), int(port))


async def _run(
    options: argparse.Namespace, component: str, build: Callable[[Runtime], None], config: OperatorConfiguration, listen: Listen
) -> int:
    async with _runtime(options, component, config, listen) as runtime:
        build(runtime)
        return await runtime.manager.run()


@contextlib.asynccontextmanager
async def _runtime(options: argparse.Namespace, component: str, config: OperatorConfiguration, listen: Listen) -> AsyncGenerator[Runtime]:
    clock, rng, metrics = SystemClock(), random.Random(), Metrics()  # noqa: S311 - jitter and ids, no secrets
    credentials = load_credentials(options.kubeconfig, options.context)
    timing = _timing(config)
    budget_s = WRITE_BUDGET.total_seconds()
    is_elected = options.leader_elect
    fence = LeaseFence(clock, lease_duration_s=timing.duration_s, request_budget_s=budget_s) if is_elected else OpenFence()
    client = metrics.transport(credentials.server)
    async with contextlib.AsyncExitStack() as stack:
        transport = await stack.enter_async_context(
            Transport(credentials, fence=fence, metrics=client, user_agent=f"grovekeeper-{component}")
        )
        elector, lease = None, lease_of(options, config, credentials.namespace)
        if isinstance(fence, LeaseFence):
            elector = LeaderElector(
                await stack.enter_async_context(transport.sibling()),
                fence,
                clock,
                rng,
                namespace=lease.namespace,
                name=lease.name,
                holder=identity(rng),
                timing=timing,
                metrics=metrics,
            )
        recorder = EventRecorder(transport, f"grovekeeper-{component}", clock, metrics)
        unreadable = Unreadable(recorder)
        informers = informer_factory(transport, metrics, rng, unreadable.tell)
        manager = Manager(transport, informers, recorder, clock, rng, metrics, elector=elector, listen=listen)
        manager.on_term(unreadable.begin)
        yield Runtime(manager, transport, recorder, metrics, clock, rng, config)


def lease_of(options: argparse.Namespace, config: OperatorConfiguration, namespace: str) -> Key:
    """The lease to compete for: by flags, else by the configuration, else in `namespace`, the pod's."""
    election = config.leader_election
    name = options.lease_name or election.resource_name or LeaderElection().resource_name
    return Key(options.lease_namespace or election.resource_namespace or namespace, name)


class Unreadable:
    """An object that was stored before validation existed is left alone, and its owner is told: when a term begins, because followers
    write no events, and the first lists come before that."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._untold: dict[Ref, str] | None = {}

    def tell(self, ref: Ref, why: str) -> None:
        if self._untold is None:
            message = f"Left alone, because it cannot be read: {why}. Correct or delete it."
            self._recorder.emit(ref, Reason.INVALID_SPEC, message, "Warning")
        else:
            self._untold[ref] = why

    def begin(self) -> None:
        untold, self._untold = self._untold or {}, None
        for ref, why in untold.items():
            self.tell(ref, why)


def _timing(config: OperatorConfiguration) -> Timing:
    election = config.leader_election
    return Timing(election.lease_duration.total_seconds(), election.renew_deadline.total_seconds(), election.retry_period.total_seconds())
