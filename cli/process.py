"""What the long-running commands share: options, and a process made of them."""

import argparse
import contextlib
import logging
import os
import random
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from api.operatorconfig import LeaderElection, OperatorConfiguration, without_effect
from api.plan import Key
from cli.configuration import ConfigurationError, load_configuration, with_environment
from controllers.runtime.assembly import Candidacy, Runtime, World, runtime
from controllers.runtime.clock import SystemClock
from controllers.runtime.credentials import load_credentials
from controllers.runtime.identity import CredentialsError
from controllers.runtime.leader import identity
from controllers.runtime.manager import EXIT_LOST, EXIT_STOPPED, Listen, Manager
from controllers.runtime.observability import configure_logging

__all__ = ("INVALID", "Lives", "add_options", "fail", "lease_of", "listen_on", "run_process")

_LOG = logging.getLogger(__name__)

INVALID, UNREACHABLE = 4, 5
MAX_PORT = 65535
TERMINATION_LOG = Path("/dev/termination-log")
"""Where a pod says why its container ended: kubectl describe shows it. Not there outside of pods."""
TERMINATION_LIMIT = 2048


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
    """Runs until stopped.

    Exit codes: 0 stopped in order, 1 crashed, 3 lost the lease while stopping, 4 invalid configuration, 5 no credentials.
    """
    try:
        config = with_environment(load_configuration(options.config), os.environ)
        listen = listen_on(options.bind)
    except (ConfigurationError, ValueError) as error:
        return fail(INVALID, str(error))
    configure_logging(config.log_level, config.log_format)
    if keys := without_effect(config):
        _LOG.warning("configuration keys without effect", extra={"keys": keys})
    try:
        code, reason = anyio.run(_run, options, component, build, config, listen)
    except CredentialsError as error:
        return fail(UNREACHABLE, str(error))
    return fail(code, reason) if code else code


def fail(code: int, reason: str) -> int:
    """Says why the process ends, last of all, in plain text and where a pod's status shows it. Returns the exit code."""
    sys.stderr.write(f"error: {reason}\n")
    with contextlib.suppress(OSError):
        # Never created: outside of a pod there is nobody to read it.
        handle = os.open(TERMINATION_LOG, os.O_WRONLY | os.O_TRUNC)
        with open(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(f"{reason[:TERMINATION_LIMIT]}\n")
    return code


def listen_on(text: str) -> Listen:
    """The address in HOST:PORT, an IPv6 address in brackets. Raises ValueError."""
    given, _, port = text.rpartition(":")
    host = given[1:-1] if given.startswith("[") and given.endswith("]") else given
    if not host or (":" in host and host == given) or not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= MAX_PORT):
        raise ValueError(f"--bind {text}: expected HOST:PORT, for example 127.0.0.1:8080")
    return Listen(host, int(port))


async def _run(
    options: argparse.Namespace, component: str, build: Callable[[Runtime], None], config: OperatorConfiguration, listen: Listen
) -> tuple[int, str]:
    """Exit code, and why if not in order."""
    credentials, rng = load_credentials(options.kubeconfig, options.context), random.Random()  # noqa: S311 - jitter and ids, no secrets
    world = World(credentials, SystemClock(), rng, listen=listen)
    lease = lease_of(options, config, credentials.namespace) if options.leader_elect else None
    lives = Lives(partial(runtime, component, config, world), build, lease, rng)
    code, reason = await lives.run()
    _LOG.info("stopped", extra={"exit_code": code})
    return code, reason


class Lives:
    """One life after the other: who loses the lease competes again with everything made anew, so that nothing of the old term survives.

    Ending instead would leave the return to whoever starts processes, and a kubelet waits longer each time. Signals are heard from the
    first life to the last: one stops in order, another one at once, still releasing the lease.

    `make`: an async context with what `build` puts controllers on. `lease`: None for lives without election.
    """

    def __init__(
        self,
        make: Callable[[Candidacy | None], AbstractAsyncContextManager[Runtime]],
        build: Callable[[Runtime], None],
        lease: Key | None,
        rng: random.Random,
    ) -> None:
        self._make = make
        self._build = build
        self._lease = lease
        self._rng = rng
        self._manager: Manager | None = None
        self._is_stopping = False

    async def run(self) -> tuple[int, str]:
        """Exit code of the last life, and why it ended if not in order."""
        outcome = EXIT_STOPPED, ""
        try:
            async with anyio.create_task_group() as tasks:
                await tasks.start(self._listen)
                outcome = await self._live()
                tasks.cancel_scope.cancel()
        except ExceptionGroup as group:  # listening does not fail, so there is one
            raise group.exceptions[0] from None
        return outcome

    async def _live(self) -> tuple[int, str]:
        epoch = 0
        while True:
            candidacy = Candidacy(self._lease, identity(self._rng), epoch) if self._lease is not None else None
            async with self._make(candidacy) as process:
                self._build(process)
                self._manager = manager = process.manager
                if self._is_stopping:
                    manager.stop()
                code, epoch = await manager.run(), manager.epoch
                self._manager = None
            if code != EXIT_LOST or self._is_stopping:
                return code, manager.reason
            _LOG.warning("beginning anew")

    async def _listen(self, *, task_status: TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
            task_status.started()
            async for number in received:
                _LOG.info("signal", extra={"signal": signal.Signals(number).name})
                self._is_stopping = True
                if self._manager is not None:
                    self._manager.stop()


def lease_of(options: argparse.Namespace, config: OperatorConfiguration, namespace: str) -> Key:
    """The lease to compete for: by flags, else by the configuration, else in `namespace`, the pod's."""
    election = config.leader_election
    name = options.lease_name or election.resource_name or LeaderElection().resource_name
    return Key(options.lease_namespace or election.resource_namespace or namespace, name)
