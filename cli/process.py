"""What the long-running commands share: options, and the assembly of transport, election, events, metrics and manager."""

import argparse
import contextlib
import random
import sys
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from api.operatorconfig import OperatorConfiguration
from api.plan import Ref
from api.reasons import Reason
from cli.configuration import ConfigurationError, load_configuration
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

__all__ = ("Runtime", "add_options", "run_process")

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
    """Options of every long-running command. `bind` and `lease`: defaults."""
    parser.add_argument("--config", metavar="FILE", help="OperatorConfiguration; upstream's defaults without it")
    parser.add_argument("--kubeconfig", type=Path, help="default: $KUBECONFIG, ~/.kube/config, the pod's service account")
    parser.add_argument("--context", default="", help="context of the kubeconfig")
    bind_help = f"address of /healthz, /readyz and /metrics (default {bind}); port 0: a free one"
    parser.add_argument("--bind", default=bind, metavar="HOST:PORT", help=bind_help)
    parser.add_argument("--leader-elect", action=argparse.BooleanOptionalAction, default=True, help="act only while holding the lease")
    parser.add_argument("--lease-name", default=lease, help=f"default {lease}")
    parser.add_argument("--lease-namespace", default="", help="default: the pod's namespace, else default")


def run_process(options: argparse.Namespace, component: str, build: Callable[[Runtime], None]) -> int:
    """Runs until stopped. Exit codes: 0 stopped in order, 1 crashed, 3 lost the lease, 4 invalid configuration, 5 no credentials."""
    try:
        config = load_configuration(options.config)
        listen = _listen(options.bind)
    except (ConfigurationError, ValueError) as error:
        sys.stderr.write(f"error: {error}\n")
        return INVALID
    configure_logging("debug" if config.log_level == "debug" else "info", config.log_format)
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
    fence = LeaseFence(clock, lease_duration_s=timing.duration_s) if options.leader_elect else OpenFence()
    client = metrics.transport(credentials.server)
    async with contextlib.AsyncExitStack() as stack:
        transport = await stack.enter_async_context(
            Transport(credentials, fence=fence, metrics=client, user_agent=f"grovekeeper-{component}")
        )
        elector = None
        if isinstance(fence, LeaseFence):
            elector = LeaderElector(
                await stack.enter_async_context(transport.sibling()),
                fence,
                clock,
                rng,
                namespace=options.lease_namespace or credentials.namespace,
                name=options.lease_name,
                holder=identity(rng),
                timing=timing,
                metrics=metrics,
            )
        recorder = EventRecorder(transport, f"grovekeeper-{component}", clock, metrics)
        informers = informer_factory(transport, metrics, rng, partial(_announce_unreadable, recorder))
        manager = Manager(transport, informers, recorder, clock, rng, metrics, elector=elector, listen=listen)
        yield Runtime(manager, transport, recorder, metrics, clock, rng, config)


def _announce_unreadable(recorder: EventRecorder, ref: Ref, why: str) -> None:
    """An object that was stored before validation existed is left alone, and its owner is told."""
    recorder.emit(ref, Reason.INVALID_SPEC, f"Left alone, because it cannot be read: {why}. Correct or delete it.", "Warning")


def _timing(config: OperatorConfiguration) -> Timing:
    election = config.leader_election
    return Timing(election.lease_duration.total_seconds(), election.renew_deadline.total_seconds(), election.retry_period.total_seconds())
