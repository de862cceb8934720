"""The read side of all informers, as observers use it."""

from typing import Any, TypeVar

from api.plan import Index, Key, Object
from controllers.runtime.informer import Informer

__all__ = ("Caches",)

T = TypeVar("T", bound=Object)


class Caches:
    """A CacheView over informers, one per model. Reading never waits, so reads without an await between them are one consistent cut."""

    def __init__(self) -> None:
        self._informers: dict[type[Any], Informer[Any]] = {}

    def add(self, informer: Informer[T]) -> Informer[T]:
        """Adds the informer of a model; raises ValueError if the model has one already."""
        if informer.model in self._informers:
            raise ValueError(f"{informer.model.__name__} already has an informer")
        self._informers[informer.model] = informer
        return informer

    def informer(self, model: type[T]) -> Informer[T]:
        """The informer of a model; raises KeyError if there is none."""
        try:
            return self._informers[model]
        except KeyError:
            known = ", ".join(sorted(m.__name__ for m in self._informers)) or "none"
            raise KeyError(f"no informer for {model.__name__}; add one before its controller runs (known: {known})") from None

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        return tuple(self._informers.values())

    def get(self, model: type[T], namespace: str, name: str) -> T | None:
        return self.informer(model).store.get(Key(namespace, name))

    def list(self, model: type[T], namespace: str = "") -> tuple[T, ...]:
        return self.informer(model).store.list(namespace)

    def by_index(self, model: type[T], index: Index, value: str) -> tuple[T, ...]:
        return self.informer(model).store.by_index(index, value)
