"""The few settings that pure modules need, cut out of the operator configuration."""

from dataclasses import dataclass
from typing import Literal

from api.operatorconfig import OperatorConfiguration

__all__ = ("Settings", "settings_of")


@dataclass(frozen=True, slots=True)
class Settings:
    """default_scheduler: profile of pods that name no scheduler. token: how the startup waiter gets its credentials
    (`secret` is upstream's shape, `projected` a short-lived bound token)."""

    default_scheduler: str = "default-scheduler"
    topology_enabled: bool = False
    init_container_image: str = "grovekeeper:latest"
    token: Literal["secret", "projected"] = "secret"  # noqa: S105 - the name of a way, not a secret


def settings_of(config: OperatorConfiguration) -> Settings:
    """The settings that a configuration means."""
    return Settings(
        default_scheduler=config.scheduler.default_profile_name,
        topology_enabled=config.topology_aware_scheduling.enabled,
        init_container_image=config.grovekeeper.init_container_image,
        token=config.grovekeeper.token,
    )
