"""The few settings that pure modules need, cut out of the operator configuration."""

from dataclasses import dataclass
from typing import Literal

__all__ = ("Settings",)


@dataclass(frozen=True, slots=True)
class Settings:
    """default_scheduler: profile of pods that name no scheduler. token: how the startup waiter gets its credentials
    (`secret` is upstream's shape, `projected` a short-lived bound token)."""

    default_scheduler: str = "default-scheduler"
    topology_enabled: bool = False
    init_container_image: str = "grovekeeper:latest"
    token: Literal["secret", "projected"] = "secret"
