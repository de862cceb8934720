"""The configuration of Planner: planner.md §1.

Validation of a mapping accepts and refuses exactly what Planner 1.5.1 does. `load.load_config` adds what 1.5.1 would stumble over later.
"""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from controllers.planner.config import checks
from controllers.planner.config.errors import ConfigError, explain
from controllers.planner.config.parts import AicInterpolation, AicPerfModel, PluginRegistration, Scheduling
from controllers.planner.types import Mode, Role

__all__ = ("PROMETHEUS", "PlannerConfig", "SweepingMode")

PROMETHEUS = "http://prometheus-kube-prometheus-prometheus.monitoring.svc.cluster.local:9090"
AtLeastOne: TypeAlias = Annotated[int, Field(ge=1)]
Port: TypeAlias = Annotated[int, Field(ge=0, le=65535)]
Percent: TypeAlias = Annotated[float, Field(ge=0, le=100)]


class SweepingMode(StrEnum):
    """How engines were profiled before deployment. Decides nothing; only warnings follow from it."""

    NONE = "none"
    RAPID = "rapid"
    THOROUGH = "thorough"


def _existing_file(value: str | None) -> str | None:
    try:
        exists = value is None or Path(value).is_file()
    except OSError:  # Too long for a name.
        exists = False
    if not exists:
        raise ValueError("must name a file that exists")
    return value


class PlannerConfig(BaseModel):
    """All settings, immutable. Field names are those of files; durations, lengths and powers carry their unit in the name.

    `max_throughput_scaling_replicas` and `pending_aware_scale_down` are not in Planner 1.5.1: null and false give its behaviour.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=False, protected_namespaces=())

    pre_deployment_sweeping_mode: SweepingMode | None = SweepingMode.RAPID
    environment: Literal["kubernetes", "virtual", "global-planner"] = "kubernetes"
    namespace: str = Field("dynamo", exclude=True)
    backend: Literal["vllm", "sglang", "trtllm", "mocker"] = "vllm"
    mode: Literal[Mode.DISAGG, Mode.PREFILL, Mode.DECODE, Mode.AGG] = Mode.DISAGG
    optimization_target: Literal["throughput", "latency", "load", "sla"] = "throughput"
    log_dir: str | None = None
    throughput_adjustment_interval_seconds: int = Field(
        180, validation_alias=AliasChoices("throughput_adjustment_interval_seconds", "throughput_adjustment_interval")
    )
    load_adjustment_interval_seconds: PositiveInt = Field(
        5, validation_alias=AliasChoices("load_adjustment_interval_seconds", "load_adjustment_interval")
    )
    max_gpu_budget: int = 8
    min_gpu_budget: int = -1
    min_endpoint: NonNegativeInt = 1
    prefill_min_endpoint: AtLeastOne | None = None
    decode_min_endpoint: AtLeastOne | None = None
    control_api_port: Port = 9086
    prefill_engine_num_gpu: int | None = None
    decode_engine_num_gpu: int | None = None
    profile_results_dir: str = "profiling_results"
    aic_interpolation: AicInterpolation | None = None
    aic_perf_model: AicPerfModel | None = None
    ttft_ms: float = Field(500.0, validation_alias=AliasChoices("ttft_ms", "ttft"))
    itl_ms: float = Field(50.0, validation_alias=AliasChoices("itl_ms", "itl"))
    load_predictor: str = "arima"
    load_predictor_log1p: bool = False
    prophet_window_size: int = 50
    load_predictor_warmup_trace: str | None = None
    kalman_q_level: float = 1.0
    kalman_q_trend: float = 0.1
    kalman_r: float = 10.0
    kalman_min_points: int = 5
    metric_pulling_prometheus_endpoint: str = Field(PROMETHEUS, exclude=True)
    metric_pulling_prometheus_token: str | None = Field(None, exclude=True, repr=False)
    metric_pulling_prometheus_token_file: str | None = Field(None, exclude=True)
    metric_pulling_prometheus_ssl_verify: bool = Field(False, exclude=True)
    metric_pulling_prometheus_extra_query_params: dict[str, str] | None = Field(None, exclude=True, repr=False)
    metric_pulling_prometheus_ca_bundle: Annotated[str | None, AfterValidator(_existing_file)] = Field(None, exclude=True)
    metric_pulling_prometheus_request_timeout_seconds: PositiveFloat = Field(10.0, exclude=True)
    metric_reporting_prometheus_port: int = 0
    throughput_metrics_source: Literal["frontend", "router"] = "frontend"
    model_name: str | None = None
    global_planner_namespace: str | None = None
    enable_throughput_scaling: bool = True
    enable_load_scaling: bool = False
    max_throughput_scaling_replicas: AtLeastOne | None = 8
    pending_aware_scale_down: bool = True
    max_num_fpm_samples: int = 64
    fpm_sample_bucket_size: int = 16
    load_scaling_down_sensitivity: int = 80
    load_min_observations: int = 5
    prefill_scale_up_queue_tokens: NonNegativeInt | None = None
    prefill_scale_down_queue_tokens: NonNegativeInt | None = None
    decode_scale_up_kv_rate: Percent | None = None
    decode_scale_down_kv_rate: Percent | None = None
    speculative_nextn: NonNegativeInt = 0
    advisory: bool = False
    enable_power_awareness: bool = False
    total_gpu_power_limit: AtLeastOne | None = None
    report_interval_hours: float | None = 24.0
    report_output_dir: str = "./planner_reports"
    report_filename: str | None = None
    report_write_gzip_log: bool = True
    live_dashboard_port: int = 8080
    scheduling: Scheduling = Field(default_factory=Scheduling)
    plugin_registration: PluginRegistration = Field(default_factory=PluginRegistration)

    _notes: tuple[str, ...] = PrivateAttr(())

    @model_validator(mode="before")
    @classmethod
    def _derive_tick_base(cls, data: Any) -> Any:
        return checks.with_tick_base(data) if isinstance(data, dict) else data  # pyright: ignore[reportUnknownArgumentType] - any mapping

    @model_validator(mode="after")
    def _check(self) -> Self:
        checks.check_before_target(self)
        notes = checks.target_notes(self)
        if self.optimization_target != "sla":
            # Frozen from here on; only what the target implies is still put in.
            object.__setattr__(self, "enable_load_scaling", True)
            object.__setattr__(self, "enable_throughput_scaling", False)
        checks.check_after_target(self)
        self._notes = (*notes, *checks.sweeping_notes(self))
        return self

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings: settings that are accepted but have no effect, or another one than it seems."""
        return self._notes

    @property
    def is_easy(self) -> bool:
        """Whether fixed thresholds decide, not a service-level target."""
        return self.optimization_target != "sla"

    @property
    def roles(self) -> tuple[Role, ...]:
        """Roles that are scaled."""
        return self.mode.roles

    def effective_min(self, role: Role) -> int:
        """Fewest replicas of a role: its own field, else `min_endpoint`. Aggregated engines count as decode."""
        own = self.prefill_min_endpoint if role == "prefill" else self.decode_min_endpoint
        return self.min_endpoint if own is None else own

    def active_minimums(self) -> dict[Role, int]:
        """The minimum of each role that is scaled."""
        return {role: self.effective_min(role) for role in self.roles}

    def gpu_fallback(self, role: Role) -> int | None:
        """GPUs of an engine, to be used where they cannot be observed."""
        return self.prefill_engine_num_gpu if role == "prefill" else self.decode_engine_num_gpu

    def with_changes(self, **changes: Any) -> "PlannerConfig":
        """A configuration with other values of some fields, given by their names and checked as a whole. ConfigError."""
        if unknown := sorted(changes.keys() - type(self).model_fields.keys()):
            raise ConfigError(f"there is no field {', '.join(unknown)}")
        try:
            changed = PlannerConfig.model_validate({name: getattr(self, name) for name in type(self).model_fields} | changes)
        except ValidationError as error:
            raise explain(error) from None
        return changed.with_notes(self._notes)

    def with_notes(self, notes: Sequence[str]) -> "PlannerConfig":
        """The same with further warnings, each once."""
        noted = self.model_copy()
        noted._notes = tuple(dict.fromkeys((*self._notes, *notes)))
        return noted
