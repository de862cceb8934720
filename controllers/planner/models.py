"""The performance models that a configuration asks for. Source: planner.md §14.1."""

from collections.abc import Sequence

from controllers.planner.config.model import PlannerConfig
from controllers.planner.fpm import Fpm
from controllers.planner.perfmodel import AicIdentity, ModelOptions, PerformanceModel
from controllers.planner.perfmodel.aic import core_factory
from controllers.planner.perfmodel.options import WorkerKind
from controllers.planner.propose import Models
from controllers.planner.types import Capabilities, FpmObservations, Mode, Role

__all__ = ("bootstrap", "describe", "feed", "models_of")


def models_of(config: PlannerConfig) -> Models:
    """One model for each role that is scaled, none for the easy targets."""
    if config.is_easy:
        return Models()
    made = {role: PerformanceModel(_kind(config, role), _options(config), _identity(config, role), core_factory()) for role in config.roles}
    return Models(made.get("prefill"), made.get("decode"))


def describe(models: Models, capabilities: Capabilities) -> list[str]:
    """Tells models what engines are like; returns warnings."""
    return [
        warning
        for model, facts in ((models.prefill, capabilities.prefill), (models.decode, capabilities.decode))
        if model is not None
        for warning in model.update_capabilities(facts)
    ]


def bootstrap(models: Models, role: Role, fpms: Sequence[Fpm]) -> Sequence[str]:
    """Iterations measured before the first tick; returns warnings."""
    model = models.of(role)
    return () if model is None else model.bootstrap(fpms)


def feed(models: Models, observed: FpmObservations) -> list[str]:
    """What engines report now; returns warnings. Done whether or not load scaling is on."""
    return [
        warning
        for model, fpms in ((models.prefill, observed.prefill), (models.decode, observed.decode))
        if model is not None and fpms
        for warning in model.observe(fpms)
    ]


def _kind(config: PlannerConfig, role: Role) -> WorkerKind:
    return "aggregated" if config.mode is Mode.AGG else role


def _options(config: PlannerConfig) -> ModelOptions:
    return ModelOptions(config.max_num_fpm_samples, config.load_min_observations, config.fpm_sample_bucket_size)


def _identity(config: PlannerConfig, role: Role) -> AicIdentity | None:
    named = config.aic_perf_model
    if named is None:
        return None
    pick = named.prefill_pick if role == "prefill" else named.decode_pick
    if pick is None:
        return None
    return AicIdentity(
        hf_id=named.hf_id,
        system=named.system,
        backend=named.backend,
        backend_version=named.backend_version,
        model_arch=named.model_arch,
        weight_dtype=named.weight_dtype,
        moe_dtype=named.moe_dtype,
        activation_dtype=named.activation_dtype,
        kv_cache_dtype=named.kv_cache_dtype,
        tp=pick.tp,
        pp=pick.pp,
        dp=pick.dp,
        moe_tp=pick.moe_tp,
        moe_ep=pick.moe_ep,
    )
