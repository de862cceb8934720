"""The page about the configuration explains every key that there is, and no other."""

from controllers.planner.config.model import PlannerConfig
from controllers.planner.config.parts import PluginRegistration, Scheduling
from hack.codegen.planner import AIC, MEANINGS, PARTS, PLUGIN, rows
from hack.codegen.reference import files


def test_every_key_is_explained_and_no_other() -> None:
    parts = {"": PlannerConfig, "scheduling.": Scheduling, "plugin_registration.": PluginRegistration}
    assert {f"{prefix}{name}" for prefix, model in parts.items() for name in model.model_fields} == set(MEANINGS)
    explained = {
        row[0].strip("`") for part in PARTS if part not in ("", "scheduling", "plugin_registration") for row in rows(part, PARTS[part][1])
    }
    assert explained == set(PLUGIN) | set(AIC)


def test_page_tells_values_defaults_and_variables() -> None:
    (page,) = (text for path, text in files().items() if path.name == "planner-configuration.md")
    assert "| `ttft_ms` (or `ttft`) | number | `500.0` | time to first token that is aimed at |" in page
    assert "| `mode` | `disagg`, `prefill`, `decode`, `agg` | `disagg` |" in page
    assert "| `total_gpu_power_limit` | integer ≥ 1 or null |  |" in page
    assert "environment variable `DYN_NAMESPACE`" in page
