"""What Planner 1.5.1 accepts at start and stumbles over later. `load.load_config` refuses it at once."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from controllers.planner.config.errors import shortened
from controllers.planner.config.parts import EnginePick, ExternalPlugin, Gateway, HoldPolicy, InProcessPlugin, PluginTransport

if TYPE_CHECKING:
    from controllers.planner.config.model import PlannerConfig

__all__ = ("BUILT_IN", "PREDICTORS", "late_errors", "late_notes", "listen_problem")

PREDICTORS = ("arima", "constant", "kalman", "prophet")
BUILT_IN = ("builtin_load_predict", "builtin_throughput_propose", "builtin_load_propose")
PORTS = ("control_api_port", "live_dashboard_port", "metric_reporting_prometheus_port")
FINITE = ("ttft_ms", "itl_ms", "kalman_q_level", "kalman_q_trend", "kalman_r", "metric_pulling_prometheus_request_timeout_seconds")
AT_LEAST_ONE = ("max_num_fpm_samples", "fpm_sample_bucket_size", "prophet_window_size", "prefill_engine_num_gpu", "decode_engine_num_gpu")
VERSION = re.compile(r"\d+(\.\d+)*")
ENDPOINT = re.compile(r"grpc://[^\s/]+:\d{1,5}")
LISTEN = re.compile(r"(?:(?:ipv4|ipv6|dns):)?(?:\[[0-9A-Fa-f:.%]+\]|[^\s:/@\[\]]*):([0-9]{1,5})")
LARGEST, LONGEST_TIMEOUT_S = 2**31 - 1, 1_000_000
LONGEST_SOCKET = 107
"""Bytes of the name of a socket, which Linux sets."""
WINDOW_TOLERANCE = 1e-6
ARIMA_POINTS = 5


def late_errors(config: "PlannerConfig") -> list[str]:
    """What cannot work, each naming the field and what to do; empty if all is well."""
    return [
        *_numbers(config),
        *_names(config),
        *_ports(config),
        *_picks(config),
        *_registration(config),
        *_plugins(config),
    ]


def late_notes(config: "PlannerConfig") -> tuple[str, ...]:
    """What works, but hardly as meant."""
    notes: list[str] = []
    if not config.is_easy and config.itl_ms <= 0:
        notes.append(f"itl_ms {config.itl_ms} can never be met: set it to the milliseconds that a token may take")
    if not 0 <= config.load_scaling_down_sensitivity <= 100:
        notes.append(f"load_scaling_down_sensitivity is a percentage, is {config.load_scaling_down_sensitivity}")
    if 0 <= config.max_gpu_budget < config.min_gpu_budget:
        notes.append(f"min_gpu_budget ({config.min_gpu_budget}) can never be met: max_gpu_budget is {config.max_gpu_budget}")
    if config.load_min_observations > config.max_num_fpm_samples:
        notes.append("load_min_observations exceeds max_num_fpm_samples: performance models never become ready")
    if config.load_predictor == "prophet" and config.prophet_window_size < ARIMA_POINTS:
        notes.append(f"prophet_window_size below {ARIMA_POINTS}: the last value is always the prediction")
    auth = config.plugin_registration.auth
    if config.scheduling.gateway.enabled and "static_secret" not in auth.trusted_sources:
        notes.append("scheduling.gateway lets any plugin register: list static_secret in plugin_registration.auth.trusted_sources")
    if auth.static_secrets and "static_secret" not in auth.trusted_sources:
        notes.append("plugin_registration.auth.static_secrets has no effect: list static_secret in trusted_sources")
    return tuple(notes)


def _numbers(config: "PlannerConfig") -> Iterator[str]:
    for name in FINITE:
        if not math.isfinite(getattr(config, name)):
            yield f"{name}: must be a finite number, is {getattr(config, name)}"
    for name in ("tick_max_duration_seconds", "scale_interval_seconds"):
        if not math.isfinite(getattr(config.scheduling, name)):
            yield f"scheduling.{name}: must be a finite number, is {getattr(config.scheduling, name)}"
    for name in AT_LEAST_ONE:
        value = getattr(config, name)
        if value is not None and value < 1:
            yield f"{name}: must be at least 1, is {value}"
    if config.load_min_observations < 0:
        yield f"load_min_observations: must be at least 0, is {config.load_min_observations}"


def _names(config: "PlannerConfig") -> Iterator[str]:
    if config.load_predictor not in PREDICTORS:
        yield f"load_predictor: must be one of {', '.join(PREDICTORS)}, is {config.load_predictor!r}"
    if config.environment == "virtual" and not config.model_name:
        yield "model_name: environment virtual needs it: set it to the name under which the model is served"
    endpoint = config.metric_pulling_prometheus_endpoint
    if not endpoint.startswith(("http://", "https://")):
        yield "metric_pulling_prometheus_endpoint: must be an http:// or https:// address"


def _ports(config: "PlannerConfig") -> Iterator[str]:
    ports = {name: getattr(config, name) for name in PORTS}
    for name, port in ports.items():
        if not 0 <= port <= 65535:
            yield f"{name}: must be 0 (off) to 65535, is {port}"
    for port, times in Counter(ports.values()).items():
        if port and times > 1:
            yield f"{', '.join(name for name in PORTS if ports[name] == port)}: must differ, all are {port}"


def _picks(config: "PlannerConfig") -> Iterator[str]:
    for part in ("aic_interpolation", "aic_perf_model"):
        for pick in ("prefill_pick", "decode_pick"):
            chosen: EnginePick | None = getattr(getattr(config, part), pick, None)
            for name in EnginePick.model_fields if chosen is not None else ():
                if getattr(chosen, name) < 1:
                    yield f"{part}.{pick}.{name}: must be at least 1, is {getattr(chosen, name)}"


def _registration(config: "PlannerConfig") -> Iterator[str]:
    rules, gateway = config.plugin_registration, config.scheduling.gateway
    for name in ("protocol_version_min", "protocol_version_max"):
        if _version(getattr(rules, name)) is None:
            yield f"plugin_registration.{name}: must be a version such as 1.0, is {getattr(rules, name)!r}"
    if gateway.enabled and (problem := listen_problem(gateway)) is not None:
        yield f"scheduling.gateway.listen: {gateway.listen!r:.200} {problem}"
    secrets = rules.auth.static_secrets
    if "static_secret" in rules.auth.trusted_sources and not secrets:
        yield "plugin_registration.auth.static_secrets: must not be empty when static_secret is trusted"
    if not all(secret and subject for secret, subject in secrets.items()):
        yield "plugin_registration.auth.static_secrets: neither a secret nor its subject may be empty"
    if not (math.isfinite(rules.transport.request_timeout_seconds) and math.isfinite(rules.heartbeat_timeout_seconds)):
        yield "plugin_registration: transport.request_timeout_seconds and heartbeat_timeout_seconds must be finite numbers"
    yield from _transport(rules.transport)


def _transport(settings: PluginTransport) -> Iterator[str]:
    """What gRPC takes: integers of 32 bits, and timeouts that it can add to the time of day."""
    path = "plugin_registration.transport"
    if not 1 <= settings.keepalive_time_ms <= LARGEST:
        yield f"{path}.keepalive_time_ms: must be 1 to {LARGEST}, is {shortened(str(settings.keepalive_time_ms))}"
    size = settings.max_message_size_bytes
    if not 1 <= size <= LARGEST and size != -1:
        yield f"{path}.max_message_size_bytes: must be 1 to {LARGEST}, or -1 for no limit; is {shortened(str(size))}"
    if LONGEST_TIMEOUT_S < settings.request_timeout_seconds < math.inf:
        yield f"{path}.request_timeout_seconds: must be at most {LONGEST_TIMEOUT_S}, is {settings.request_timeout_seconds}"


def listen_problem(gateway: Gateway) -> str | None:
    """Why the gateway cannot or may not listen there. What gRPC would make of such addresses: port 443, a port modulo 65536, a cut name."""
    listen = gateway.listen
    if not listen.isprintable():
        return "holds characters that no address has"
    if listen.startswith("unix:"):
        path = listen.removeprefix("unix:").removeprefix("//")
        if not path:
            return "names no file: use unix:///PATH"
        return None if len(path.encode()) <= LONGEST_SOCKET else f"is too long: the name of a socket has at most {LONGEST_SOCKET} bytes"
    if not gateway.allow_insecure:
        return "is not encrypted: use a unix: address, or set allow_insecure"
    match = LISTEN.fullmatch(listen)
    return None if match is not None and int(match[1]) <= 65535 else "is neither unix:///PATH nor HOST:PORT"


def _plugins(config: "PlannerConfig") -> Iterator[str]:
    external, in_process = config.scheduling.external_plugins, config.plugin_registration.in_process_plugins
    taken: set[str] = set(BUILT_IN)
    for path, plugin in [
        *((f"plugin_registration.in_process_plugins.{i}", plugin) for i, plugin in enumerate(in_process)),
        *((f"scheduling.external_plugins.{i}", plugin) for i, plugin in enumerate(external)),
    ]:
        if plugin.plugin_id in taken:
            yield f"{path}.plugin_id: {plugin.plugin_id!r} is taken: choose another"
        taken.add(plugin.plugin_id)
        yield from _timing(path, plugin, config.scheduling.scale_interval_seconds)
        yield from _external(path, plugin, config) if isinstance(plugin, ExternalPlugin) else _in_process(path, plugin)


def _timing(path: str, plugin: ExternalPlugin | InProcessPlugin, base: float) -> Iterator[str]:
    if not math.isfinite(plugin.execution_interval_seconds):
        yield f"{path}.execution_interval_seconds: must be a finite number, is {plugin.execution_interval_seconds}"
    window = plugin.observation_window_seconds
    ratio = window / base
    if window and not (math.isfinite(ratio) and round(ratio) >= 1 and abs(ratio - round(ratio)) <= WINDOW_TOLERANCE):
        yield f"{path}.observation_window_seconds: must be 0 or a multiple of scheduling.scale_interval_seconds ({base}), is {window}"


def _external(path: str, plugin: ExternalPlugin, config: "PlannerConfig") -> Iterator[str]:
    if not ENDPOINT.fullmatch(plugin.endpoint):
        yield f"{path}.endpoint: must look like grpc://host:port, is {plugin.endpoint!r}"
    elif not config.plugin_registration.transport.allow_insecure_grpc:
        yield f"{path}.endpoint: is not encrypted: set plugin_registration.transport.allow_insecure_grpc to allow that"
    version = _version(plugin.protocol_version)
    least, most = (_version(getattr(config.plugin_registration, f"protocol_version_{end}")) for end in ("min", "max"))
    if version is None:
        yield f"{path}.protocol_version: must be a version such as 1.0, is {plugin.protocol_version!r}"
    elif least is not None and most is not None and not least <= version <= most:
        yield f"{path}.protocol_version: must be within plugin_registration.protocol_version_min and _max, is {plugin.protocol_version}"


def _in_process(path: str, plugin: InProcessPlugin) -> Iterator[str]:
    try:
        HoldPolicy.parse(plugin.hold_policy)
    except ValueError as error:
        yield f"{path}.hold_policy: {error}, is {plugin.hold_policy!r}"


def _version(text: str) -> tuple[int, ...] | None:
    """Numbers to compare, without trailing zeros (1 and 1.0 are the same); None if this is no version."""
    if len(text) > 64 or not VERSION.fullmatch(text):
        return None
    numbers = [int(part) for part in text.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
