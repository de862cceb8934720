"""Reading configurations: where from, what is refused, and that the text says which field and what to do."""

import json
from pathlib import Path
from typing import Any

import pytest

from controllers.planner.config.errors import ConfigError
from controllers.planner.config.load import load_config

EXTERNAL = {"plugin_id": "a", "plugin_type": "propose", "priority": 1, "endpoint": "grpc://a:1"}
IN_PROCESS = {"module": "m", "class": "C", "plugin_id": "b", "plugin_type": "constrain", "priority": 1}
PLAINTEXT = {"transport": {"allow_insecure_grpc": True}}


def refused(settings: dict[str, Any] | str, env: dict[str, str] | None = None) -> str:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    with pytest.raises(ConfigError) as caught:
        load_config(text, env or {})
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [("c.yaml", "mode: agg\n"), ("c.yml", "mode: agg"), ("c.json", '{"mode": "agg"}'), ("c.conf", '{"mode": "agg"}'), ("c", "mode: agg")],
)
def test_suffix_says_the_form(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert load_config(str(tmp_path / name), {}).mode == "agg"


def test_inline_text() -> None:
    assert load_config('{"mode": "agg"}', {}).mode == "agg"
    assert load_config("mode: agg\nmin_endpoint: 2\n", {}).min_endpoint == 2


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("c.yaml", "mode: agg\nx: [\n", "line 3"),
        ("c.json", '{"mode": "agg",\n}', "line 2"),
        ("c.json", "mode: agg", "line 1"),
        ("c.conf", '{"mode":\n}}', "line 2"),
        ("c.conf", "a: b\nc: [", "line 2"),
        ("c.yaml", "- 1", "must be a mapping"),
        ("c.yaml", "", "must be a mapping"),
    ],
)
def test_malformed_file_names_file_and_line(tmp_path: Path, name: str, text: str, where: str) -> None:
    (tmp_path / name).write_text(text)
    told = refused(str(tmp_path / name))
    assert name in told
    assert where in told


def test_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in refused(str(tmp_path / "c.yaml"))


@pytest.mark.parametrize("text", ["gone.yaml", "", "\0", "x" * 5000, "{" * 100_000, "[1]", '{"a":', '{"min_endpoint":' + "9" * 5000 + "}"])
def test_nonsense_inline_is_refused_briefly(text: str) -> None:
    assert 0 < len(refused(text)) < 500


def test_all_errors_of_fields_are_told_at_once() -> None:
    lines = refused({"mode": "x", "min_endpoint": "many", "scheduling": {"bogus": 1}}).splitlines()
    assert lines == [
        "mode: must be 'disagg', 'prefill', 'decode' or 'agg', is 'x'",
        "min_endpoint: must be a valid integer, unable to parse string as an integer, is 'many'",
        "scheduling.bogus: there is no such key: remove it or correct its name",
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"plugin_registration": {"auth": {"static_secrets": {"s3cret": 1}}}},
        {"plugin_registration": {"auth": {"static_secrets": "s3cret"}}},
        {"plugin_registration": {"auth": "s3cret"}},
        {"metric_pulling_prometheus_extra_query_params": {"s3cret": 1}},
        {"metric_pulling_prometheus_token": ["s3cret"]},
        {"metric_pulling_prometheus_endpoint": "me:s3cret@prometheus"},
    ],
)
def test_secrets_are_not_repeated_wherever_they_stand(settings: dict[str, Any]) -> None:
    told = refused(settings)
    assert "s3cret" not in told
    assert told.startswith(("plugin_registration.auth", "metric_pulling_prometheus_"))


def test_an_object_is_asked_for_in_plain_words() -> None:
    assert refused({"scheduling": 5}) == "scheduling: must be an object"


def test_secrets_are_not_repeated() -> None:
    assert "4711" not in refused({"metric_pulling_prometheus_token": 4711})
    assert "4711" not in refused({"plugin_registration": {"auth": {"static_secrets": {"s": 4711}}}})
    assert "4711" not in refused({"scheduling": {"external_plugins": [{**EXTERNAL, "auth_token": 4711}]}})
    assert "4711" not in repr(load_config('{"metric_pulling_prometheus_token": "4711"}', {}))


def test_environment_gives_defaults() -> None:
    env = {
        "DYN_NAMESPACE": "ns",
        "PROMETHEUS_ENDPOINT": "http://p",
        "PROMETHEUS_TOKEN": "t",
        "PROMETHEUS_TOKEN_FILE": "f",
        "PROMETHEUS_SSL_VERIFY": "YES",
        "PROMETHEUS_EXTRA_QUERY_PARAMS": "a=1&b=x%20y",
        "DYN_PLANNER_PROMETHEUS_REQUEST_TIMEOUT_SECONDS": "2.5",
        "PLANNER_PROMETHEUS_PORT": "9091",
    }
    config = load_config("{}", env)
    assert config.namespace == "ns"
    assert config.metric_pulling_prometheus_endpoint == "http://p"
    assert (config.metric_pulling_prometheus_token, config.metric_pulling_prometheus_token_file) == ("t", "f")
    assert config.metric_pulling_prometheus_ssl_verify is True
    assert config.metric_pulling_prometheus_extra_query_params == {"a": "1", "b": "x y"}
    assert config.metric_pulling_prometheus_request_timeout_seconds == 2.5
    assert config.metric_reporting_prometheus_port == 9091
    assert load_config('{"namespace": "mine"}', env).namespace == "mine"
    assert load_config("{}", {"PROMETHEUS_SSL_VERIFY": "on", "PROMETHEUS_EXTRA_QUERY_PARAMS": ""}) == load_config("{}", {})


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PROMETHEUS_EXTRA_QUERY_PARAMS", "a"),
        ("PLANNER_PROMETHEUS_PORT", "http"),
        ("DYN_PLANNER_PROMETHEUS_REQUEST_TIMEOUT_SECONDS", "soon"),
        ("DYN_PLANNER_PROMETHEUS_REQUEST_TIMEOUT_SECONDS", "-1"),
        ("PROMETHEUS_CA_BUNDLE", "/nowhere/ca.pem"),
    ],
)
def test_bad_environment_names_the_variable(variable: str, value: str) -> None:
    assert variable in refused("{}", {variable: value})


def test_ca_bundle_that_exists(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("")
    assert load_config("{}", {"PROMETHEUS_CA_BUNDLE": str(tmp_path / "ca")}).metric_pulling_prometheus_ca_bundle == str(tmp_path / "ca")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"load_predictor": "magic"}, "load_predictor: must be one of arima, constant, kalman, prophet"),
        ({"ttft_ms": float("nan")}, "ttft_ms: must be a finite number"),
        ({"itl": float("inf")}, "itl_ms: must be a finite number"),
        ({"kalman_r": float("nan")}, "kalman_r"),
        ({"metric_pulling_prometheus_request_timeout_seconds": float("inf")}, "metric_pulling_prometheus_request_timeout_seconds"),
        ({"scheduling": {"tick_max_duration_seconds": float("inf")}}, "scheduling.tick_max_duration_seconds"),
        ({"max_num_fpm_samples": 0}, "max_num_fpm_samples: must be at least 1"),
        ({"fpm_sample_bucket_size": 0}, "fpm_sample_bucket_size"),
        ({"decode_engine_num_gpu": 0}, "decode_engine_num_gpu"),
        ({"load_min_observations": -1}, "load_min_observations"),
        ({"environment": "virtual"}, "model_name"),
        ({"metric_pulling_prometheus_endpoint": "prometheus:9090"}, "metric_pulling_prometheus_endpoint"),
        ({"live_dashboard_port": 65536}, "live_dashboard_port"),
        ({"live_dashboard_port": 9086}, "control_api_port, live_dashboard_port: must differ"),
        (
            {"aic_perf_model": {"hf_id": "m", "system": "s", "backend": "b", "prefill_pick": {"tp": 0}, "decode_pick": {}}},
            "aic_perf_model.prefill_pick.tp",
        ),
        ({"plugin_registration": {"protocol_version_min": "one"}}, "plugin_registration.protocol_version_min"),
        ({"scheduling": {"gateway": {"enabled": True, "listen": "0.0.0.0:1"}}}, "scheduling.gateway.listen"),
        ({"plugin_registration": {"auth": {"trusted_sources": ["static_secret"]}}}, "plugin_registration.auth.static_secrets"),
        ({"plugin_registration": {"auth": {"static_secrets": {"s": ""}}}}, "plugin_registration.auth.static_secrets"),
        ({"plugin_registration": {"transport": {"keepalive_time_ms": 0}}}, "keepalive_time_ms"),
        ({"plugin_registration": {"transport": {"max_message_size_bytes": 0}}}, "max_message_size_bytes"),
        ({"plugin_registration": {"transport": {"keepalive_time_ms": 2**31}}}, "keepalive_time_ms: must be 1 to 2147483647"),
        ({"plugin_registration": {"transport": {"max_message_size_bytes": 10**400}}}, "max_message_size_bytes: must be 1 to"),
        ({"plugin_registration": {"transport": {"request_timeout_seconds": 1e12}}}, "request_timeout_seconds: must be at most"),
        ({"metric_pulling_prometheus_ca_bundle": "x" * 5000}, "metric_pulling_prometheus_ca_bundle: must name a file that exists"),
        ({"scheduling": {"external_plugins": [EXTERNAL]}}, "allow_insecure_grpc"),
    ],
)
def test_what_would_fail_later_is_refused(settings: dict[str, Any], text: str) -> None:
    told = refused(settings)
    assert text in told
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize(
    ("external", "in_process", "field"),
    [
        ({"endpoint": "http://a:1"}, {}, "external_plugins.0.endpoint"),
        ({"protocol_version": "1.x"}, {}, "external_plugins.0.protocol_version"),
        ({"protocol_version": "1.10"}, {}, "external_plugins.0.protocol_version"),
        ({"observation_window_seconds": 7}, {}, "external_plugins.0.observation_window_seconds"),
        ({"execution_interval_seconds": float("inf")}, {}, "external_plugins.0.execution_interval_seconds"),
        ({"plugin_id": "b"}, {}, "external_plugins.0.plugin_id"),
        ({}, {"plugin_id": "builtin_load_propose"}, "in_process_plugins.0.plugin_id"),
        ({}, {"hold_policy": "maybe"}, "in_process_plugins.0.hold_policy"),
    ],
)
def test_plugins_that_could_not_be_used(external: dict[str, Any], in_process: dict[str, Any], field: str) -> None:
    settings = {
        "scheduling": {"external_plugins": [{**EXTERNAL, **external}]},
        "plugin_registration": {**PLAINTEXT, "in_process_plugins": [{**IN_PROCESS, **in_process}]},
    }
    assert field in refused(settings)


def test_plugins_that_can_be_used() -> None:
    external = {**EXTERNAL, "protocol_version": "1", "observation_window_seconds": 10}
    settings = {
        "scheduling": {"external_plugins": [external]},
        "plugin_registration": {**PLAINTEXT, "in_process_plugins": [{**IN_PROCESS, "hold_policy": "hold_last"}]},
    }
    assert load_config(json.dumps(settings), {}).notes == ()


def test_notes_about_keys_and_values() -> None:
    config = load_config('{"min_endpont": 1, "ttft": 1, "ttft_ms": 500, "min_gpu_budget": 9}', {})
    assert [note.split(":")[0] for note in config.notes] == [
        "min_endpont is ignored",
        "ttft is ignored",
        "min_gpu_budget (9) can never be met",
    ]
    assert "is min_endpoint meant?" in config.notes[0]


def test_itl_is_not_checked_but_noted() -> None:
    config = load_config('{"itl_ms": -5, "optimization_target": "sla", "pre_deployment_sweeping_mode": null}', {})
    assert config.itl_ms == -5
    assert "itl_ms" in config.notes[0]
