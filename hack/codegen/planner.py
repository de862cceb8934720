"""The page about the configuration of Planner: its fields come from the model, their meaning from here."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel

from controllers.planner.config.environment import VARIABLES
from controllers.planner.config.load import ALIASES
from controllers.planner.config.model import PlannerConfig
from controllers.planner.config.parts import (
    AicInterpolation,
    AicPerfModel,
    EnginePick,
    ExternalPlugin,
    InProcessPlugin,
    PluginRegistration,
    Scheduling,
)

__all__ = ("MEANINGS", "PARTS", "page", "rows")

Table: TypeAlias = Callable[[Sequence[str], Iterable[Sequence[str]]], Iterator[str]]
PREDICTOR = "of the Kalman predictor"
MIRROR = "the same for decode"

PARTS: Mapping[str, tuple[str, type[BaseModel]]] = {
    "": ("Top level", PlannerConfig),
    "scheduling": ("scheduling", Scheduling),
    "external": ("scheduling.external_plugins[]", ExternalPlugin),
    "plugin_registration": ("plugin_registration", PluginRegistration),
    "in_process": ("plugin_registration.in_process_plugins[]", InProcessPlugin),
    "aic_interpolation": ("aic_interpolation", AicInterpolation),
    "aic_perf_model": ("aic_perf_model", AicPerfModel),
    "pick": ("prefill_pick and decode_pick", EnginePick),
}

MEANINGS: Mapping[str, str] = {
    "pre_deployment_sweeping_mode": "how engines were profiled; only warnings follow from it",
    "environment": "where engines run and how replicas are written",
    "namespace": "Dynamo namespace of the deployment",
    "backend": "engine, for names of components",
    "mode": "roles that are scaled; `agg` counts as decode",
    "optimization_target": "`sla`: by ttft_ms and itl_ms; the others: by fixed thresholds, load only",
    "log_dir": "read, but without effect",
    "throughput_adjustment_interval_seconds": "time between two throughput decisions; a multiple of scheduling.scale_interval_seconds",
    "load_adjustment_interval_seconds": "time between two load decisions; less than the former when both run",
    "max_gpu_budget": "GPUs that all engines may take; negative: no ceiling",
    "min_gpu_budget": "GPUs that engines take at least; negative: no floor",
    "min_endpoint": "fewest replicas of each role",
    "prefill_min_endpoint": "instead of min_endpoint for prefill; not in modes decode and agg",
    "decode_min_endpoint": "instead of min_endpoint for decode; not in modes prefill and agg",
    "control_api_port": "port on 127.0.0.1 for changes of minimums; 0: none",
    "prefill_engine_num_gpu": "GPUs of a prefill engine where they cannot be observed",
    "decode_engine_num_gpu": MIRROR,
    "profile_results_dir": "folder with profiling results",
    "aic_interpolation": "what to sweep with the AI Configurator; see below",
    "aic_perf_model": "performance model of the AI Configurator; see below",
    "ttft_ms": "time to first token that is aimed at",
    "itl_ms": "time between tokens that is aimed at",
    "load_predictor": "`constant`, `arima`, `kalman` or `prophet`",
    "load_predictor_log1p": "predict logarithms",
    "prophet_window_size": "points that the prophet predictor looks back",
    "load_predictor_warmup_trace": "file, glob or folder of past requests to start predictors with",
    "kalman_q_level": f"noise of the level {PREDICTOR}",
    "kalman_q_trend": f"noise of the trend {PREDICTOR}",
    "kalman_r": f"noise of observations {PREDICTOR}",
    "kalman_min_points": f"points before the first prediction {PREDICTOR}",
    "metric_pulling_prometheus_endpoint": "Prometheus that traffic is read from",
    "metric_pulling_prometheus_token": "bearer token for it",
    "metric_pulling_prometheus_token_file": "file with the token, read before each request",
    "metric_pulling_prometheus_ssl_verify": "whether its certificate is checked",
    "metric_pulling_prometheus_extra_query_params": "parameters that every query gets",
    "metric_pulling_prometheus_ca_bundle": "certificates to check with; must exist; switches checking on",
    "metric_pulling_prometheus_request_timeout_seconds": "limit of a request",
    "metric_reporting_prometheus_port": "port for metrics of Planner; 0: none",
    "throughput_metrics_source": "whose request metrics count",
    "model_name": "name under which the model is served; needed by environment virtual",
    "global_planner_namespace": "namespace of the global planner; needed by environment global-planner",
    "enable_throughput_scaling": "scale by predicted traffic; only with optimization_target sla",
    "enable_load_scaling": "scale by load; always on unless optimization_target is sla",
    "max_throughput_scaling_replicas": "most replicas that throughput scaling asks for; null: no cap, as in Planner 1.5.1",
    "pending_aware_scale_down": "do not scale down what has not started yet; false: as in Planner 1.5.1",
    "max_num_fpm_samples": "observations of forward passes that are kept of each kind",
    "fpm_sample_bucket_size": "buckets that they are spread over; a perfect square",
    "load_scaling_down_sensitivity": "percent: the smaller, the more reserve must be left to scale down",
    "load_min_observations": "observations before a performance model is trusted",
    "prefill_scale_up_queue_tokens": "queued tokens from which prefill grows; optimization_target load",
    "prefill_scale_down_queue_tokens": "queued tokens down to which prefill shrinks; less than the former",
    "decode_scale_up_kv_rate": "percent of the KV cache from which decode grows; optimization_target load",
    "decode_scale_down_kv_rate": "percent down to which decode shrinks; less than the former",
    "speculative_nextn": "tokens that are speculated ahead where engines do not tell",
    "advisory": "decide, but write nothing",
    "enable_power_awareness": "keep within total_gpu_power_limit; environment kubernetes only, not in mode agg",
    "total_gpu_power_limit": "watts that all engines may draw",
    "report_interval_hours": "time between two reports; null: none",
    "report_output_dir": "folder for reports",
    "report_filename": "name of the report instead of one with its time",
    "report_write_gzip_log": "also write what the report was made from",
    "live_dashboard_port": "port of the dashboard; 0: none",
    "scheduling": "see below",
    "plugin_registration": "see below",
    "scheduling.tick_max_duration_seconds": "limit of one run of the pipeline",
    "scheduling.scale_interval_seconds": "time between two ticks; unless given, the greatest common divisor of the intervals in use",
    "scheduling.external_plugins": "plugins that are called over the network",
    "scheduling.gateway": "`enabled`, `listen`, `allow_insecure`: where plugins register themselves",
    "plugin_registration.auth": "`trusted_sources` (`static_secret`, `allow_unauthenticated`), `static_secrets` (secret: subject)",
    "plugin_registration.transport": (
        "`allow_insecure_grpc`, `request_timeout_seconds`, `keepalive_time_ms`, `max_message_size_bytes`: how plugins are called"
    ),
    "plugin_registration.protocol_version_min": "oldest version of the protocol that is spoken",
    "plugin_registration.protocol_version_max": "newest version",
    "plugin_registration.heartbeat_timeout_seconds": "read, but without effect",
    "plugin_registration.heartbeat_missed_threshold": "as above",
    "plugin_registration.admin": "`mode`: `allow_all` or `k8s_rbac`; read, but without effect",
    "plugin_registration.in_process_plugins": "plugins that are imported",
}
PLUGIN: Mapping[str, str] = {
    "plugin_id": "its name, taken only once",
    "plugin_type": "stage that it takes part in",
    "priority": "the smaller, the stronger",
    "endpoint": "`grpc://host:port`",
    "auth_token": "what it proves itself with",
    "protocol_version": "version of the protocol that it speaks",
    "version": "its own version, for display",
    "execution_interval_seconds": "time between two calls; 0: every tick",
    "hold_policy": "`HOLD_LAST`: its last override counts between two calls; `ACCEPT_WHEN_IDLE`: nothing does",
    "needs": "paths of the context that it reads",
    "requires_produced_fields": "paths that must be set, else it is left out",
    "observation_window_seconds": "traffic that it looks at; 0 or a multiple of scheduling.scale_interval_seconds",
    "module": "what to import",
    "class": "class in it",
    "kwargs": "what it is constructed with",
}
AIC: Mapping[str, str] = {
    "hf_id": "model on Hugging Face",
    "system": "hardware, as the AI Configurator calls it",
    "backend": "engine",
    "backend_version": "its version",
    "isl": "input length in tokens",
    "osl": "output length in tokens",
    "sweep_max_context_length": "longest context to look at",
    "prefill_interpolation_granularity": "points of the prefill sweep",
    "decode_interpolation_granularity": "points of the decode sweep",
    "prefill_pick": "how a prefill engine is split; see below",
    "decode_pick": MIRROR,
    "model_arch": "architecture, unless derived from the model",
    "weight_dtype": "type of weights",
    "moe_dtype": "type of expert weights",
    "activation_dtype": "type of activations",
    "kv_cache_dtype": "type of the KV cache",
    "tp": "tensor parallel width",
    "pp": "pipeline parallel width",
    "dp": "data parallel width of attention",
    "moe_tp": "tensor parallel width of experts",
    "moe_ep": "expert parallel width",
}


def page(table: Table) -> Iterator[str]:
    """Lines of the page."""
    yield from (
        "# Configuration of Planner",
        "",
        "A file (`.yaml`, `.yml`, `.json`; others are tried as both) or the text itself. Unknown keys of the top level are ignored with a",
        "warning, in `scheduling` and `plugin_registration` they are errors. What could only fail later is refused at start, too.",
    )
    for key, (title, model) in PARTS.items():
        yield from ("", f"## {title}", "")
        yield from table(("key", "values", "default", "meaning"), rows(key, model))


def rows(part: str, model: type[BaseModel]) -> Iterator[tuple[str, str, str, str]]:
    """Key, values, default and meaning of each field of a part. KeyError where a meaning is missing."""
    schema = model.model_json_schema()
    short = {primary: alias for alias, primary in ALIASES.items()}
    for name, field in model.model_fields.items():
        key = field.alias or name
        alias = f" (or `{short[name]}`)" if not part and name in short else ""
        variable = f"; environment variable `{VARIABLES[name].name}`" if not part and name in VARIABLES else ""
        values = _values(schema["properties"][key], schema.get("$defs", {}))
        default = "required" if field.is_required() else _default(schema["properties"][key].get("default"))
        yield f"`{key}`{alias}", values, default, meaning(part, key) + variable


def meaning(part: str, key: str) -> str:
    """What a key does."""
    if part in ("external", "in_process"):
        return PLUGIN[key]
    if part in ("aic_interpolation", "aic_perf_model", "pick"):
        return AIC[key]
    return MEANINGS[f"{part}.{key}" if part else key]


def _default(value: Any) -> str:
    match value:
        case None | "" | [] | {}:
            return ""
        case bool():
            return f"`{str(value).lower()}`"
        case _:
            return f"`{value}`"


def _values(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    """Type and range, or the values themselves."""
    if "anyOf" in schema:
        return " or ".join(_values(option, parts) for option in schema["anyOf"])
    if "$ref" in schema:
        return _values(parts[schema["$ref"].rsplit("/", 1)[-1]], parts)
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    bounds = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤"}
    limits = [f"{sign} {schema[name]:g}" for name, sign in bounds.items() if name in schema]
    kind = str(schema.get("type", "any"))
    return f"{kind} {' and '.join(limits)}" if limits else kind
