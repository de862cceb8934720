"""The keys of the operator configuration: what each means and whether it has an effect today."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import yaml

from api.duration import format_duration
from api.operatorconfig import OperatorConfiguration, Section

__all__ = ("KEYS", "NONE", "Key", "defaults")

NONE = "no"
YES = "yes"


class Key(NamedTuple):
    """effect: `yes`, `no`, or what exactly."""

    effect: str
    text: str


OTHER_RATE = "requests follow the API server's own throttling"
BIND = "`--bind` says where each process listens"

KEYS: dict[str, Key] = {
    "apiVersion": Key(YES, "must be as shown"),
    "kind": Key(YES, "must be as shown"),
    "runtimeClientConnection.qps": Key(NONE, f"requests per second; {OTHER_RATE}"),
    "runtimeClientConnection.burst": Key(NONE, f"requests at once; {OTHER_RATE}"),
    "runtimeClientConnection.contentType": Key(NONE, "always JSON"),
    "runtimeClientConnection.acceptContentTypes": Key(NONE, "always JSON"),
    "leaderElection.enabled": Key(
        "checks only", "when true, resourceLock and resourceName must be set; `--no-leader-elect` is what switches the lease off"
    ),
    "leaderElection.leaseDuration": Key(
        YES, "how long a lease lasts that nobody renews; more than renewDeadline, and than retryPeriod and 5s together"
    ),
    "leaderElection.renewDeadline": Key(YES, "how long the holder tries to renew before it stops"),
    "leaderElection.retryPeriod": Key(YES, "time between two tries"),
    "leaderElection.resourceLock": Key(NONE, "always a Lease"),
    "leaderElection.resourceName": Key("yes, for `grovekeeper controllers`", "name of the lease, unless `--lease-name` is given"),
    "leaderElection.resourceNamespace": Key(YES, "namespace of the lease, unless `--lease-namespace` is given; else the pod's"),
    "server.webhooks.bindAddress": Key(NONE, "webhooks are not served yet"),
    "server.webhooks.port": Key(NONE, "as above"),
    "server.webhooks.serverCertDir": Key(NONE, "as above"),
    "server.webhooks.secretName": Key(NONE, "as above"),
    "server.webhooks.certProvisionMode": Key(NONE, "as above"),
    "server.healthProbes.bindAddress": Key(NONE, BIND),
    "server.healthProbes.port": Key(NONE, BIND),
    "server.metrics.bindAddress": Key(NONE, BIND),
    "server.metrics.port": Key(NONE, BIND),
    "debugging.enableProfiling": Key(NONE, "there is no profiling endpoint"),
    "debugging.pprofBindHost": Key(NONE, "as above"),
    "debugging.pprofBindPort": Key(NONE, "as above"),
    "controllers.podCliqueSet.concurrentSyncs": Key(YES, "PodCliqueSets that are worked on at the same time"),
    "controllers.podClique.concurrentSyncs": Key(YES, "the same for PodCliques"),
    "controllers.podCliqueScalingGroup.concurrentSyncs": Key(YES, "the same for PodCliqueScalingGroups"),
    "controllers.podGang.concurrentSyncs": Key(YES, "the same for PodGangs"),
    "logLevel": Key(YES, "`debug`, `info` or `error`"),
    "logFormat": Key(YES, "`json` or `text`, on standard error"),
    "authorizer.enabled": Key(NONE, "the authorizer is a webhook"),
    "authorizer.exemptServiceAccountUserNames": Key(NONE, "as above"),
    "topologyAwareScheduling.enabled": Key(YES, "whether topology constraints are allowed and reach the PodGangs"),
    "network.autoMNNVLEnabled": Key("checks only", "whether `grove.io/mnnvl-group` may name a group; nothing is made for it yet"),
    "scheduler.profiles[].name": Key(YES, "schedulers that a PodCliqueSet may name; `default-scheduler` is always among them"),
    "scheduler.profiles[].config": Key(NONE, "settings of that scheduler"),
    "scheduler.defaultProfileName": Key(YES, "the scheduler of sets that name none"),
    "grovekeeper.schedulerNames": Key(YES, "`spec.schedulerName` of the pods that `grovekeeper scheduler` places"),
    "grovekeeper.initContainerImage": Key(
        YES, "image of the startup waiter; without this key `$GROVE_INIT_CONTAINER_IMAGE` if set: the manifests name their own image there"
    ),
    "grovekeeper.token": Key(
        YES, "credentials of the startup waiter: `secret` as upstream, or `projected`, short-lived and bound to the pod"
    ),
}


def defaults() -> Iterator[tuple[str, str]]:
    """(key, default as YAML) of every key, in the order of the model. Keys of list entries have `[]` in their path."""
    return _walk(OperatorConfiguration(), "")


def _walk(section: Section, prefix: str) -> Iterator[tuple[str, str]]:
    for name, field in type(section).model_fields.items():
        key = f"{prefix}{field.alias or name}"
        value = getattr(section, name)
        if isinstance(value, Section):
            yield from _walk(value, f"{key}.")
        elif isinstance(value, tuple) and value and isinstance(value[0], Section):
            yield from _walk(value[0], f"{key}[].")
        else:
            yield key, _text(value)


def _text(value: Any) -> str:
    """The default as one would write it; "" when nothing is set."""
    if isinstance(value, timedelta):
        return format_duration(value // timedelta(microseconds=1) * 1000)
    if value is None or value in ("", ()):
        return ""
    plain = list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - a default of any type
    text: str = yaml.safe_dump(plain, default_flow_style=True, width=1000)
    return text.removesuffix("\n").removesuffix("\n...")
