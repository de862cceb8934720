"""The cluster: made, repaired, looked at, removed."""

import contextlib
import json
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hack.kind import daemon, nodeimage, nodes
from hack.kind.docker import docker, inspect, run
from hack.kind.failures import KindFailed
from hack.kind.host import SYS_RESOURCE, withheld_here
from hack.kind.settings import AUDIT_FOLDER, CLUSTER, NODES, Settings, audit_policy, kind_configuration, settings_digest
from hack.kube.cache import BinariesMissing, Report, cache_folder, locked, silent
from hack.kube.programs import find_program

__all__ = ("DEFAULT_DIRECTORY", "KindCluster")

DEFAULT_DIRECTORY = Path(__file__).resolve().parents[2] / ".grovekeeper" / "kind"
MARK = "/kind/grovekeeper-settings"
"""On the control-plane node: digest of the settings, written when all of the cluster was made."""
POLL_S = 0.25


class KindCluster:
    """The one cluster `grovekeeper` of this machine. Any number of objects may stand for it, one at a time changes it.

    Every method raises KindFailed where Docker, a program or the cluster does not do its part.
    """

    def __init__(self, directory: Path = DEFAULT_DIRECTORY, report: Report = silent) -> None:
        self.directory = directory
        self._report = report

    @property
    def kubeconfig(self) -> Path:
        """Written by `up`; context kind-grovekeeper, cluster administrator."""
        return self.directory / "kubeconfig"

    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes, which are those of the containers; the control plane first. Empty without a cluster."""
        existing = self._containers() if daemon.answers() else {}
        return tuple(name for name in NODES if name in existing)

    def up(self) -> None:
        """Make the cluster, or mend what is missing of it: Docker daemon, node image, stopped or half-made nodes, network, labels, GPUs."""
        with _binaries_as_failures(), locked(cache_folder("kind"), self._report):
            daemon.ensure(self._report)
            with self._timed("node image"):
                image = nodeimage.choose(self._image_in_use(), self._report)
            settings = self._settings(image)
            configuration = kind_configuration(settings)
            digest = settings_digest(configuration, image.identity)
            if not self._revive(digest):
                with self._timed("cluster"):
                    self._create(configuration, image)
            with self._timed("network and nodes"):
                nodes.wait_answers()
                if not image.has_network:
                    nodes.connect()
                nodes.equip()
                nodes.wait_ready()
            # Last: with the mark, everything before it was done at least once.
            docker("exec", "-i", NODES[0], "cp", "/dev/stdin", MARK, stdin=digest)
            self._write_kubeconfig()

    def down(self) -> None:
        """Remove the cluster and stop the Docker daemon, if it was started for this. Nothing to remove is fine."""
        with _binaries_as_failures(), locked(cache_folder("kind"), self._report):
            if daemon.answers():
                self._remove()
                daemon.stop_own(self._report)
            self.kubeconfig.unlink(missing_ok=True)

    def load(self, image: str) -> None:
        """Make an image of the Docker daemon available on all nodes, under the same name; seconds if they have it."""
        if inspect("image", image) is None:
            raise KindFailed(f"the Docker daemon has no image {image}: build it with `make image`")
        self._require()
        with _binaries_as_failures():
            self._kind("load", "docker-image", image, "--name", CLUSTER)

    def exec(self, node: str, *argv: str) -> str:
        """Standard output of a program on a node."""
        return docker("exec", node, *argv, timeout_s=120)

    def faults(self) -> tuple[str, ...]:
        """What keeps the cluster from being whole, in words; empty when it is."""
        if not daemon.answers():
            return ("no Docker daemon answers",)
        states = self._containers()
        if not states:
            return ("there is no cluster",)
        stopped = [f"container {name} is {states.get(name, 'missing')}" for name in NODES if states.get(name) != "running"]
        return tuple(stopped) or nodes.faults()

    def audit(self) -> Iterator[dict[str, Any]]:
        """Events of the API server's audit log so far, oldest first, across renamed files and restarts of the server."""
        # Renamed files are called audit-<time>.log, which sorts by age and before audit.log. A line being written is left for next time.
        text = self.exec(NODES[0], "sh", "-c", f"cat {AUDIT_FOLDER}/audit-*.log {AUDIT_FOLDER}/audit.log 2>/dev/null || true")
        for line in text.splitlines(keepends=True):
            if line.endswith("\n"):
                yield json.loads(line)

    def restart_api_server(self, timeout_s: float = 90.0) -> None:
        """Stop the API server's container and wait until the one that the kubelet starts instead is ready."""
        before = self._api_server()
        if not before:
            raise KindFailed("no API server runs")
        self.exec(NODES[0], "crictl", "stop", "--timeout", "5", before)
        deadline = time.monotonic() + timeout_s
        while self._api_server() in ("", before):
            if time.monotonic() > deadline:
                raise KindFailed(f"the kubelet started no new API server within {timeout_s:.0f} s")
            time.sleep(POLL_S)
        nodes.wait_answers(timeout_s)

    def _api_server(self) -> str:
        """Id of the running container, or an empty text."""
        return self.exec(NODES[0], "crictl", "ps", "-q", "--name", "^kube-apiserver$", "--state", "Running").strip()

    def _settings(self, image: nodeimage.NodeImage) -> Settings:
        # Outside the checkout: the file is mounted for as long as the cluster lives.
        policy = cache_folder("kind") / "audit-policy.yaml"
        _publish(policy, audit_policy())
        return Settings(
            image=image.name,
            policy=policy,
            has_network=image.has_network,
            cgroup_v1=docker("info", "--format", "{{.CgroupVersion}}").strip() == "1",
            keeps_oom_score=SYS_RESOURCE in withheld_here(),
        )

    def _containers(self) -> dict[str, str]:
        """State of each node's container by name."""
        listed = docker("ps", "-a", "--filter", f"label=io.x-k8s.kind.cluster={CLUSTER}", "--format", "{{.Names}} {{.State}}")
        return dict(line.split() for line in listed.splitlines())

    def _image_in_use(self) -> str | None:
        container = inspect("container", NODES[0])
        return str(container["Config"]["Image"]) if container else None

    def _require(self) -> None:
        missing = [name for name in NODES if self._containers().get(name) != "running"]
        if missing:
            raise KindFailed(f"{', '.join(missing)} does not run: `make kind-up`")

    def _revive(self, digest: str) -> bool:
        """Start what is stopped; False, with nothing left of it, when the cluster has to be made."""
        states = self._containers()
        if set(states) == set(NODES):
            for name in (n for n in NODES if states[n] != "running"):
                self._report(f"starting {name}, which is {states[name]}")
                docker("start", name)
            mark = docker("exec", NODES[0], "sh", "-c", f"cat {MARK} 2>/dev/null || true")
            if mark == digest and self._answers():
                return True
            if mark != digest:
                self._report("the cluster was made with other settings" if mark else "the cluster was left half-made")
        elif states:
            self._report(f"the cluster lacks {', '.join(name for name in NODES if name not in states)}")
        self._remove()
        return False

    def _answers(self) -> bool:
        try:
            nodes.wait_answers()
        except KindFailed as error:
            # etcd does not wait for the disk: a machine that lost its power may have lost the cluster.
            self._report(f"the cluster cannot be kept: {error}")
            return False
        return True

    def _create(self, configuration: str, image: nodeimage.NodeImage) -> None:
        nodeimage.try_privileged(image)
        file = self.directory / "cluster.yaml"
        _publish(file, configuration)
        self._kind("create", "cluster", "--config", str(file), "--kubeconfig", str(self.kubeconfig), "--wait", "0s")

    def _remove(self) -> None:
        if containers := sorted(self._containers()):
            # At once, because Docker waits long for each to be gone.
            with self._timed("removing the cluster"), ThreadPoolExecutor(len(containers)) as pool:
                list(pool.map(_remove_container, containers))

    def _write_kubeconfig(self) -> None:
        _publish(self.kubeconfig, self._kind("get", "kubeconfig", "--name", CLUSTER), mode=0o600)

    def _kind(self, *argv: str) -> str:
        return run([str(find_program("kind", self._report)), *argv], timeout_s=600)

    @contextlib.contextmanager
    def _timed(self, what: str) -> Generator[None]:
        began = time.monotonic()
        yield
        self._report(f"{what}: {time.monotonic() - began:.1f} s")


def _remove_container(name: str) -> None:
    docker("rm", "-f", "-v", name)


@contextlib.contextmanager
def _binaries_as_failures() -> Generator[None]:
    try:
        yield
    except BinariesMissing as error:
        raise KindFailed(str(error)) from error


def _publish(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file in one step, so that an interruption leaves the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.touch(mode=mode)
    part.write_text(text)
    part.replace(path)
