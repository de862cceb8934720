"""The operator's configuration file: Grove's OperatorConfiguration (grove.md §8.2) with a section of our own, `grovekeeper`.

Unknown keys are refused. Defaults are upstream's; what we ship and demonstrate is manifests/config/controllers.yaml.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any, Literal, TypeAlias, cast

import yaml
from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError, field_validator

from api.custom import Items, JsonObject
from api.duration import format_duration, timedelta_of
from api.fielderrors import FieldError, aggregate, duplicate, invalid, not_supported, required
from api.meta import CustomModel
from api.schemaerrors import errors_from_pydantic

__all__ = (
    "DEFAULT_SCHEDULER",
    "GROVEKEEPER_SCHEDULER",
    "NO_EFFECT",
    "SUPPORTED_SCHEDULERS",
    "WRITE_BUDGET",
    "ConfigError",
    "OperatorConfiguration",
    "SchedulerProfile",
    "load_operator_configuration",
    "without_effect",
)

API_VERSION = "operator.config.grove.io/v1alpha1"
KIND = "OperatorConfiguration"
DEFAULT_SCHEDULER = "default-scheduler"
GROVEKEEPER_SCHEDULER = "grovekeeper-scheduler"
SUPPORTED_SCHEDULERS = (GROVEKEEPER_SCHEDULER, "kai-scheduler", DEFAULT_SCHEDULER, "volcano", "lpx-scheduler")
WRITE_BUDGET = timedelta(seconds=5)
"""The longest that a write may take to be stored. The holder of a lease writes nothing in its last seconds, as many as these."""
NO_EFFECT = frozenset(
    f"{section}.{key}"
    for section, keys in {
        "runtimeClientConnection": ("qps", "burst", "contentType", "acceptContentTypes"),
        "leaderElection": ("resourceLock",),
        "server.webhooks": ("bindAddress", "port", "serverCertDir", "secretName", "certProvisionMode"),
        "server.healthProbes": ("bindAddress", "port"),
        "server.metrics": ("bindAddress", "port"),
        "debugging": ("enableProfiling", "pprofBindHost", "pprofBindPort"),
        "authorizer": ("enabled", "exemptServiceAccountUserNames"),
        "scheduler.profiles[]": ("config",),
    }.items()
    for key in keys
)
"""Keys that are read and checked and change nothing."""


class ConfigError(ValueError):
    """The configuration cannot be used. `errors` and the message name each key."""

    def __init__(self, errors: tuple[FieldError, ...]) -> None:
        super().__init__(f"operator configuration: {aggregate(errors)}")
        self.errors = errors


def _span(value: object) -> object:
    return timedelta_of(value) if isinstance(value, str) else value


def _span_text(value: timedelta) -> str:
    return format_duration(value // timedelta(microseconds=1) * 1000)


Span: TypeAlias = Annotated[timedelta, BeforeValidator(_span), PlainSerializer(_span_text, when_used="json")]
"""A duration, such as 15s on the wire."""
Port: TypeAlias = Annotated[int, Field(ge=0, le=65535)]
Workers: TypeAlias = Annotated[int, Field(ge=1)]


class Section(CustomModel):
    """Base of the sections; unknown keys are refused wherever it is read."""

    model_config = ConfigDict(extra="forbid")


class ClientConnection(Section):
    """Limits of requests to the API server, per second."""

    qps: float = 100
    burst: Annotated[int, Field(ge=0)] = 120
    content_type: str = ""
    accept_content_types: str = ""


class LeaderElection(Section):
    """The lease by which one of several processes is the one that acts."""

    enabled: bool = False
    lease_duration: Span = timedelta(seconds=15)
    renew_deadline: Span = timedelta(seconds=10)
    retry_period: Span = timedelta(seconds=2)
    resource_lock: str = "leases"
    resource_name: str = "grove-operator-leader-election"
    resource_namespace: str = ""


class Webhooks(Section):
    """The HTTPS server for admission requests."""

    bind_address: str = ""
    port: Port = 2750
    server_cert_dir: str = "/etc/grove-operator/webhook-certs"
    secret_name: str = "grove-webhook-server-cert"  # noqa: S105 - the name of a Secret, not a secret
    cert_provision_mode: Literal["auto", "manual"] = "auto"


class HealthProbes(Section):
    """Server of /healthz and /readyz."""

    bind_address: str = ""
    port: Port = 2751


class Metrics(Section):
    """Server of /metrics."""

    bind_address: str = ""
    port: Port = 2752


class Server(Section):
    """What the process listens on."""

    webhooks: Webhooks = Webhooks()
    health_probes: HealthProbes = HealthProbes()
    metrics: Metrics = Metrics()


class Debugging(Section):
    """Profiling endpoint."""

    enable_profiling: bool = False
    pprof_bind_host: str = "127.0.0.1"
    pprof_bind_port: Port = 2753


class PodCliqueSetController(Section):
    concurrent_syncs: Workers = 10


class PodCliqueController(Section):
    concurrent_syncs: Workers = 10


class PodCliqueScalingGroupController(Section):
    concurrent_syncs: Workers = 5


class PodGangController(Section):
    concurrent_syncs: Workers = 5


class Controllers(Section):
    """Objects of a kind that are reconciled at the same time."""

    pod_clique_set: PodCliqueSetController = PodCliqueSetController()
    pod_clique: PodCliqueController = PodCliqueController()
    pod_clique_scaling_group: PodCliqueScalingGroupController = PodCliqueScalingGroupController()
    pod_gang: PodGangController = PodGangController()


class Authorizer(Section):
    """Protection of managed objects against everyone but the operator."""

    enabled: bool = False
    exempt_service_account_user_names: Items[str] = ()


class TopologyAwareScheduling(Section):
    enabled: bool = False


class Network(Section):
    auto_mnnvl_enabled: Annotated[bool, Field(alias="autoMNNVLEnabled")] = False


class SchedulerProfile(Section):
    """A scheduler that PodCliqueSets may use, with settings of its own."""

    name: str = ""
    config: JsonObject | None = None


class Scheduler(Section):
    """Schedulers that may be used, and the one of pods that name none. default-scheduler is always among them."""

    profiles: Items[SchedulerProfile] = (SchedulerProfile(name=DEFAULT_SCHEDULER),)
    default_profile_name: str = DEFAULT_SCHEDULER

    @field_validator("profiles")
    @classmethod
    def _with_default(cls, profiles: tuple[SchedulerProfile, ...]) -> tuple[SchedulerProfile, ...]:
        present = any(p.name == DEFAULT_SCHEDULER for p in profiles)
        return profiles if present else (*profiles, SchedulerProfile(name=DEFAULT_SCHEDULER))

    @field_validator("default_profile_name")
    @classmethod
    def _not_empty(cls, name: str) -> str:
        return name or DEFAULT_SCHEDULER

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.profiles)


class Grovekeeper(Section):
    """What upstream has no key for.

    scheduler_names: spec.schedulerName of pods that our scheduler places. init_container_image: image of the startup waiter.
    token: how the waiter gets its credentials, `secret` as upstream does or `projected`, a short-lived bound token.
    """

    scheduler_names: Annotated[Items[str], Field(min_length=1)] = (GROVEKEEPER_SCHEDULER, "kai-scheduler")
    init_container_image: Annotated[str, Field(min_length=1)] = "grovekeeper:latest"
    token: Literal["secret", "projected"] = "secret"  # noqa: S105 - a choice, not a secret


class OperatorConfiguration(Section):
    """The whole file. Without a file, `OperatorConfiguration()` has upstream's defaults."""

    api_version: Literal["operator.config.grove.io/v1alpha1"] = API_VERSION
    kind: Literal["OperatorConfiguration"] = KIND
    runtime_client_connection: ClientConnection = ClientConnection()
    leader_election: LeaderElection = LeaderElection()
    server: Server = Server()
    debugging: Debugging = Debugging()
    controllers: Controllers = Controllers()
    log_level: Literal["debug", "info", "error"] = "info"
    log_format: Literal["json", "text"] = "json"
    authorizer: Authorizer = Authorizer()
    topology_aware_scheduling: TopologyAwareScheduling = TopologyAwareScheduling()
    network: Network = Network()
    scheduler: Scheduler = Scheduler()
    grovekeeper: Grovekeeper = Grovekeeper()


def load_operator_configuration(text: str) -> OperatorConfiguration:
    """Reads YAML or JSON. A section that is absent or null has its defaults. Raises ConfigError."""
    try:
        data: object = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError((invalid("(root)", "", f"not YAML: {' '.join(str(error).split())}"),)) from error
    if not isinstance(data, dict):
        raise ConfigError((required("kind", f"expected an object of kind {KIND}"),))
    document = _without_nulls(data)
    missing = tuple(
        required(key, f"must be {value}") for key, value in (("apiVersion", API_VERSION), ("kind", KIND)) if key not in document
    )
    try:
        config = OperatorConfiguration.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ConfigError((*missing, *errors_from_pydantic(error))) from error
    if errors := (*missing, *_leader_election(config.leader_election), *_scheduler(config.scheduler)):
        raise ConfigError(errors)
    return config


def without_effect(config: OperatorConfiguration) -> tuple[str, ...]:
    """The keys of NO_EFFECT that the file has, sorted."""
    return tuple(sorted(NO_EFFECT.intersection(_given(config, ""))))


def _given(section: Section, prefix: str) -> Iterator[str]:
    for name in section.model_fields_set:
        key, value = f"{prefix}{type(section).model_fields[name].alias or name}", getattr(section, name)
        yield key
        if isinstance(value, Section):
            yield from _given(value, f"{key}.")
        elif isinstance(value, tuple):
            parts = cast("tuple[object, ...]", value)
            yield from (found for part in parts if isinstance(part, Section) for found in _given(part, f"{key}[]."))


def _without_nulls(value: Any) -> Any:
    """An empty section in YAML is null; it means the defaults. Keys become text, a wrong one is named by the model."""
    if isinstance(value, dict):
        fields = cast("dict[object, Any]", value)
        return {str(k): _without_nulls(v) for k, v in fields.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(v) for v in cast("list[Any]", value)]
    return value


def _leader_election(election: LeaderElection) -> Iterator[FieldError]:
    """The spans count whatever `enabled` says: processes elect a leader unless a flag switches that off."""
    spans = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    for key, span in spans.items():
        if span <= timedelta(0):
            yield invalid(f"leaderElection.{key}", _span_text(span), "must be greater than 0")
    if election.lease_duration <= election.renew_deadline:
        yield invalid("leaderElection.leaseDuration", _span_text(election.lease_duration), "must be greater than renewDeadline")
    elif election.lease_duration <= WRITE_BUDGET + election.retry_period:
        detail = f"must be greater than retryPeriod and {_span_text(WRITE_BUDGET)} together: nothing is written in a lease's last seconds"
        yield invalid("leaderElection.leaseDuration", _span_text(election.lease_duration), detail)
    if election.renew_deadline <= election.retry_period:
        yield invalid("leaderElection.renewDeadline", _span_text(election.renew_deadline), "must be greater than retryPeriod")
    if not election.enabled:
        return
    for key, value in (("resourceLock", election.resource_lock), ("resourceName", election.resource_name)):
        if not value:
            yield required(f"leaderElection.{key}", "must be set when leader election is enabled")


def _scheduler(scheduler: Scheduler) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, name in enumerate(scheduler.names):
        path = f"scheduler.profiles[{i}].name"
        if not name:
            yield required(path, "must be set")
        elif name not in SUPPORTED_SCHEDULERS:
            yield not_supported(path, name, SUPPORTED_SCHEDULERS)
        elif name in seen:
            yield duplicate(path, name)
        seen.add(name)
    if scheduler.default_profile_name not in seen:
        yield invalid("scheduler.defaultProfileName", scheduler.default_profile_name, "must be the name of one of scheduler.profiles")
