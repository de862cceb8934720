"""The same object in another version of its kind."""

from collections.abc import Sequence
from typing import Protocol

from sim.apiserver.objects import Object
from sim.apiserver.resources import Resource

__all__ = ("ConversionWebhook", "Converter")


class ConversionWebhook(Protocol):
    """Asks the webhook of a CRD. Raises StatusError when it does not answer or answers badly."""

    async def convert(self, resource: Resource, objects: Sequence[Object], api_version: str) -> Sequence[Object]: ...


class Converter:
    """Converts by the kind's own rule or by its webhook. Objects that are in the right version already are returned as they are."""

    def __init__(self, webhook: ConversionWebhook) -> None:
        self._webhook = webhook

    async def convert(self, resource: Resource, obj: Object, api_version: str) -> Object:
        """One object; never changes it."""
        if obj["apiVersion"] == api_version:
            return obj
        if resource.conversion is not None:
            return (await self._webhook.convert(resource, [obj], api_version))[0]
        return resource.strategy.convert(obj, api_version)

    async def convert_all(self, resource: Resource, objects: Sequence[Object], api_version: str) -> Sequence[Object]:
        """Many objects, with one call of the webhook."""
        if resource.conversion is None:
            return [o if o["apiVersion"] == api_version else resource.strategy.convert(o, api_version) for o in objects]
        foreign = [o for o in objects if o["apiVersion"] != api_version]
        converted = iter(await self._webhook.convert(resource, foreign, api_version)) if foreign else iter(())
        return [o if o["apiVersion"] == api_version else next(converted) for o in objects]
