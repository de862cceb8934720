"""Each rule between fields: refused with a text that names the field, and accepted on the near side of the rule."""

from typing import Any

import pytest

from controllers.planner.config.errors import ConfigError
from controllers.planner.config.load import parse_config
from controllers.planner.config.model import PlannerConfig
from controllers.planner.config.parts import EnginePick, HoldPolicy

SLA = {"optimization_target": "sla"}
LOAD = {
    "optimization_target": "load",
    "prefill_scale_up_queue_tokens": 10,
    "prefill_scale_down_queue_tokens": 1,
    "decode_scale_up_kv_rate": 90,
    "decode_scale_down_kv_rate": 10,
}
AIC = {"hf_id": "m", "system": "s", "backend": "vllm"}


def parse(**settings: Any) -> PlannerConfig:
    return parse_config(settings, {})


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"ttft": 0}, "ttft_ms must be greater than 0"),
        ({"ttft_ms": -1, "mode": "agg", "prefill_min_endpoint": 2}, "ttft_ms"),
        ({"mode": "prefill", "decode_min_endpoint": 1}, "decode_min_endpoint has no meaning in mode prefill"),
        ({"mode": "decode", "prefill_min_endpoint": 1}, "set decode_min_endpoint instead"),
        ({"mode": "agg", "decode_min_endpoint": 1}, "set min_endpoint instead"),
        ({"report_interval_hours": 0}, "report_interval_hours"),
        ({"report_interval_hours": float("nan")}, "report_interval_hours"),
        ({"fpm_sample_bucket_size": 17}, "perfect square"),
        ({"fpm_sample_bucket_size": -4}, "perfect square"),
        ({"enable_power_awareness": True}, "total_gpu_power_limit"),
        ({"enable_power_awareness": True, "total_gpu_power_limit": 9, "environment": "virtual"}, "environment kubernetes"),
        ({"enable_power_awareness": True, "total_gpu_power_limit": 9, "mode": "agg"}, "mode agg"),
        ({"environment": "global-planner"}, "global_planner_namespace"),
        ({"environment": "global-planner", "global_planner_namespace": ""}, "global_planner_namespace"),
        ({**LOAD, "prefill_scale_up_queue_tokens": None, "decode_scale_up_kv_rate": None}, "prefill_scale_up_queue_tokens"),
        ({**LOAD, "prefill_scale_up_queue_tokens": 1}, "must be greater than prefill_scale_down_queue_tokens"),
        ({**LOAD, "mode": "agg", "decode_scale_down_kv_rate": 90}, "must be greater than decode_scale_down_kv_rate"),
        ({**SLA, "enable_throughput_scaling": False}, "enable_load_scaling"),
        ({"aic_perf_model": AIC, "mode": "agg"}, "aic_perf_model.decode_pick"),
        ({"aic_perf_model": {**AIC, "decode_pick": {}}}, "aic_perf_model.prefill_pick"),
        ({**SLA, "throughput_adjustment_interval": -5}, "throughput_adjustment_interval_seconds must be greater than 0"),
        ({"scheduling": {"scale_interval_seconds": 2}}, "load_adjustment_interval_seconds (5) must be a multiple"),
        ({**SLA, "scheduling": {"scale_interval_seconds": 1000}}, "load_adjustment_interval_seconds (5) must be a multiple"),
        ({**SLA, "enable_load_scaling": True, "load_adjustment_interval": 180}, "must be less than throughput_adjustment_interval_seconds"),
    ],
)
def test_rule_refuses(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(**settings)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value), "the first failure wins"


@pytest.mark.parametrize(
    "settings",
    [
        {"mode": "prefill", "prefill_min_endpoint": 2},
        {"fpm_sample_bucket_size": 25},
        {"report_interval_hours": 0.001},
        {**LOAD, "mode": "prefill", "decode_scale_up_kv_rate": None, "decode_scale_down_kv_rate": None},
        {"throughput_adjustment_interval": -5},
        {**SLA, "enable_load_scaling": True, "load_adjustment_interval": 60},
        {**SLA, "scheduling": {"scale_interval_seconds": 0.1}},
        {"aic_perf_model": {**AIC, "prefill_pick": {}}, "mode": "prefill"},
        {"fpm_sample_bucket_size": "16", "min_endpoint": "2"},
    ],
)
def test_rule_accepts(settings: dict[str, Any]) -> None:
    assert parse(**settings).scheduling.scale_interval_seconds > 0


@pytest.mark.parametrize(
    ("settings", "base"),
    [
        ({}, 5.0),
        ({"throughput_adjustment_interval": 7}, 5.0),
        ({**SLA, "throughput_adjustment_interval": 7}, 1.0),
        ({**SLA, "enable_load_scaling": "yes", "load_adjustment_interval": 10, "throughput_adjustment_interval_seconds": 15}, 5.0),
        ({**SLA, "enable_load_scaling": True, "enable_throughput_scaling": "off", "load_adjustment_interval_seconds": 12}, 12.0),
        ({"scheduling": {"tick_max_duration_seconds": 1}, "load_adjustment_interval": 9}, 9.0),
        ({"load_adjustment_interval_seconds": 6, "load_adjustment_interval": 4}, 6.0),
    ],
)
def test_tick_base_is_the_greatest_common_divisor(settings: dict[str, Any], base: float) -> None:
    assert parse(**settings).scheduling.scale_interval_seconds == base


def test_given_settings_are_not_changed() -> None:
    settings: dict[str, Any] = {"scheduling": {"tick_max_duration_seconds": 1}}
    parse_config(settings, {})
    assert settings == {"scheduling": {"tick_max_duration_seconds": 1}}


def test_a_target_other_than_sla_decides_which_loops_run_and_says_so() -> None:
    config = parse(**LOAD, ttft_ms=200, enable_load_scaling=False)
    assert (config.enable_load_scaling, config.enable_throughput_scaling) == (True, False)
    assert [note.split()[0] for note in config.notes] == ["enable_throughput_scaling", "ttft_ms"]
    assert parse(**SLA, pre_deployment_sweeping_mode="thorough", ttft_ms=200).notes == ()


@pytest.mark.parametrize(("sweeping", "noted"), [("none", True), ("rapid", True), ("thorough", False), (None, False)])
def test_throughput_scaling_without_data_is_noted(sweeping: str | None, noted: bool) -> None:
    assert bool(parse(**SLA, pre_deployment_sweeping_mode=sweeping).notes) is noted


def test_minimums_per_mode() -> None:
    assert parse(min_endpoint=2, decode_min_endpoint=5).active_minimums() == {"prefill": 2, "decode": 5}
    assert parse(mode="prefill", min_endpoint=2).active_minimums() == {"prefill": 2}
    assert parse(mode="agg", min_endpoint=0).active_minimums() == {"decode": 0}


def test_a_configuration_cannot_be_assigned_to() -> None:
    with pytest.raises(ValueError, match="frozen"):
        parse().min_endpoint = 3


def test_with_changes_keeps_what_a_dump_leaves_out_and_checks_the_whole() -> None:
    config = parse_config({"prefill_min_endpoint": 2, "max_gpu_budget": 4}, {"DYN_NAMESPACE": "ns", "PROMETHEUS_TOKEN": "t"})
    changed = config.with_changes(min_endpoint=3)
    assert (changed.namespace, changed.metric_pulling_prometheus_token, changed.max_gpu_budget) == ("ns", "t", 4)
    assert changed.active_minimums() == {"prefill": 2, "decode": 3}
    assert config.min_endpoint == 1
    with pytest.raises(ConfigError, match="min_endpoint: must be greater than or equal to 0, is -1"):
        config.with_changes(min_endpoint=-1)
    with pytest.raises(ConfigError, match="mode agg"):
        config.with_changes(mode="agg")
    with pytest.raises(ConfigError, match="there is no field min_endpont"):
        config.with_changes(min_endpont=1)


def test_hold_policy_by_name_and_number() -> None:
    assert [HoldPolicy.parse(value) for value in ("hold_last", "Accept_When_Idle", 0, 1)] == [1, 0, 0, 1]
    for value in (2, True, "", None, 1.0):
        with pytest.raises(ValueError, match="HOLD_LAST"):
            HoldPolicy.parse(value)


def test_engine_pick_counts_gpus_and_names_itself() -> None:
    pick = EnginePick(tp=4, pp=2, dp=8, moe_tp=2, moe_ep=3)
    assert (pick.num_gpu, pick.label, pick.kv_head_split) == (16, "tp4-pp2-dp8-moetp2-moeep3", 1)
    assert (EnginePick(tp=2, moe_tp=4).kv_head_split, EnginePick(tp=2).kv_head_split, EnginePick().label) == (4, 2, "tp1")


def test_in_process_plugin_survives_a_dump() -> None:
    plugin = {"module": "m", "class": "C", "plugin_id": "i", "plugin_type": "predict", "priority": 1}
    config = parse(plugin_registration={"in_process_plugins": [plugin]})
    again = PlannerConfig.model_validate(config.model_dump(mode="json"))
    assert again.plugin_registration.in_process_plugins[0].class_name == "C"
