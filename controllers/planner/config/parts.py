"""The nested objects of a planner configuration (planner.md §1.3–1.5): scheduling, plugins, AI Configurator."""

from enum import IntEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt

__all__ = (
    "AicInterpolation",
    "AicPerfModel",
    "EnginePick",
    "ExternalPlugin",
    "Gateway",
    "HoldPolicy",
    "InProcessPlugin",
    "PluginAdmin",
    "PluginAuth",
    "PluginRegistration",
    "PluginStage",
    "PluginTransport",
    "Scheduling",
)

PluginStage: TypeAlias = Literal["predict", "propose", "reconcile", "constrain"]
NonEmpty: TypeAlias = Annotated[str, Field(min_length=1)]


class HoldPolicy(IntEnum):
    """What a plugin contributes between two calls: nothing, or its last override again. Numbers are those of the wire."""

    ACCEPT_WHEN_IDLE = 0
    HOLD_LAST = 1

    @classmethod
    def parse(cls, value: object) -> "HoldPolicy":
        """From a name in any case or the number on the wire; ValueError for all else."""
        if isinstance(value, int) and not isinstance(value, bool) and value in (0, 1):
            return cls(value)
        if isinstance(value, str) and value.upper() in cls.__members__:
            return cls[value.upper()]
        raise ValueError("must be ACCEPT_WHEN_IDLE (or 0) or HOLD_LAST (or 1)")


class Strict(BaseModel):
    """A part in which unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Lenient(BaseModel):
    """A part in which unknown keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Gateway(Strict):
    """Where plugins register themselves over gRPC."""

    enabled: bool = False
    listen: str = "unix:///var/run/dynamo/planner/registry.sock"
    allow_insecure: bool = False


class ExternalPlugin(Strict):
    """A plugin that is called over the network. Intervals and windows in seconds; interval 0: on every tick."""

    plugin_id: NonEmpty
    plugin_type: PluginStage
    priority: int
    endpoint: NonEmpty
    auth_token: str = Field("", repr=False)
    protocol_version: str = "1.0"
    version: str = "v1"
    execution_interval_seconds: NonNegativeFloat = 0.0
    hold_policy: Annotated[HoldPolicy, BeforeValidator(HoldPolicy.parse)] = HoldPolicy.HOLD_LAST
    needs: list[str] = Field(default_factory=list[str])
    requires_produced_fields: list[str] = Field(default_factory=list[str])
    observation_window_seconds: NonNegativeFloat = 0.0


class Scheduling(Strict):
    """Base cadence and limit of ticks, in seconds, and the plugins that are known from the start."""

    tick_max_duration_seconds: PositiveFloat = 30.0
    scale_interval_seconds: PositiveFloat = 5.0
    external_plugins: list[ExternalPlugin] = Field(default_factory=list[ExternalPlugin])
    gateway: Gateway = Field(default_factory=Gateway)


class PluginAuth(Strict):
    """How a plugin proves who it is: secret → subject, or not at all."""

    trusted_sources: list[Literal["static_secret", "allow_unauthenticated"]] = Field(
        default_factory=list[Literal["static_secret", "allow_unauthenticated"]]
    )
    static_secrets: dict[str, str] = Field(default_factory=dict[str, str], repr=False)


class PluginTransport(Strict):
    """How plugins are called."""

    allow_insecure_grpc: bool = False
    request_timeout_seconds: PositiveFloat = 5.0
    keepalive_time_ms: int = 30_000
    max_message_size_bytes: int = 10 * 1024 * 1024


class PluginAdmin(Strict):
    """Read, but without effect in this version."""

    mode: Literal["allow_all", "k8s_rbac"] = "allow_all"


class InProcessPlugin(Strict):
    """A plugin that is imported: `class` of `module`, constructed with `kwargs`."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    module: NonEmpty
    class_name: NonEmpty = Field(alias="class")
    plugin_id: NonEmpty
    plugin_type: PluginStage
    priority: int
    execution_interval_seconds: NonNegativeFloat = 0.0
    hold_policy: str = "ACCEPT_WHEN_IDLE"
    needs: list[str] = Field(default_factory=list[str])
    requires_produced_fields: list[str] = Field(default_factory=list[str])
    observation_window_seconds: NonNegativeFloat = 0.0
    kwargs: dict[str, object] = Field(default_factory=dict[str, object])


class PluginRegistration(Strict):
    """Who may register and how plugins are reached. Heartbeats are read, but evict nothing in this version."""

    auth: PluginAuth = Field(default_factory=PluginAuth)
    transport: PluginTransport = Field(default_factory=PluginTransport)
    protocol_version_min: str = "1.0"
    protocol_version_max: str = "1.0"
    heartbeat_timeout_seconds: float = 15.0
    heartbeat_missed_threshold: int = 2
    admin: PluginAdmin = Field(default_factory=PluginAdmin)
    in_process_plugins: list[InProcessPlugin] = Field(default_factory=list[InProcessPlugin])


class EnginePick(Lenient):
    """How an engine is split over GPUs."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    moe_tp: int = 1
    moe_ep: int = 1

    @property
    def num_gpu(self) -> int:
        """GPUs of one engine."""
        return self.pp * max(self.tp, self.dp, self.moe_tp * self.moe_ep)

    @property
    def kv_head_split(self) -> int:
        """Over how many GPUs the heads of the KV cache are spread."""
        if self.moe_ep > 1:
            return 1
        return self.moe_tp if self.moe_tp > 1 else self.tp

    @property
    def label(self) -> str:
        """Like tp4-pp2; widths of 1 other than tp are left out."""
        widths = (("pp", self.pp), ("dp", self.dp), ("moetp", self.moe_tp), ("moeep", self.moe_ep))
        return f"tp{self.tp}" + "".join(f"-{name}{width}" for name, width in widths if width > 1)


class AicInterpolation(Lenient):
    """What to sweep to get performance data from the AI Configurator. Lengths in tokens."""

    hf_id: str
    system: str
    backend: Literal["trtllm", "vllm", "sglang"]
    isl: PositiveInt
    osl: PositiveInt
    sweep_max_context_length: PositiveInt
    prefill_interpolation_granularity: PositiveInt
    decode_interpolation_granularity: PositiveInt
    prefill_pick: EnginePick
    decode_pick: EnginePick


class AicPerfModel(Lenient):
    """Which performance model of the AI Configurator to ask."""

    hf_id: str
    system: str
    backend: str
    backend_version: str | None = None
    prefill_pick: EnginePick | None = None
    decode_pick: EnginePick | None = None
    model_arch: str | None = None
    weight_dtype: str | None = None
    moe_dtype: str | None = None
    activation_dtype: str | None = None
    kv_cache_dtype: str | None = None
