"""Ownership that is worked out only when somebody asks, because for most objects nobody does."""

from dataclasses import dataclass, field

from sim.apiserver.fields.fieldset import EMPTY, FieldSet
from sim.apiserver.fields.managed import Managers, updated
from sim.apiserver.objects import Object
from sim.apiserver.schema.model import Schema

__all__ = ("NOBODY", "Ledger")

MAX_PENDING = 8
"""More writes than this are worked out at once, since each keeps an old object in memory."""


@dataclass(frozen=True, slots=True)
class Write:
    """What `updated` has to know of one write."""

    old: Object | None
    new: Object
    manager: str
    subresource: str
    api_version: str
    now: str
    reset: FieldSet


@dataclass(frozen=True, slots=True, eq=False)
class Ledger:
    """Managers of an object, and writes that are not worked out yet. Immutable to its users; one object for each write."""

    base: Managers = ()
    pending: tuple[Write, ...] = ()
    _known: list[Managers] = field(default_factory=list[Managers], repr=False)

    def update(
        self,
        old: Object | None,
        new: Object,
        schema: Schema,
        *,
        manager: str,
        subresource: str = "",
        api_version: str,
        now: str,
        reset: FieldSet = EMPTY,
    ) -> "Ledger":
        """The ledger after a create, update or patch; arguments as of `updated`, neither object may change afterwards."""
        if old is new:
            return self
        write = Write(old, new, manager, subresource, api_version, now, reset)
        if self._known:
            return Ledger(self._known[0], (write,))
        if len(self.pending) >= MAX_PENDING:
            return Ledger(self.managers(schema), (write,))
        return Ledger(self.base, (*self.pending, write))

    def managers(self, schema: Schema) -> Managers:
        """Who owns what now."""
        if not self._known:
            managers = self.base
            for write in self.pending:
                managers = updated(
                    managers,
                    write.old,
                    write.new,
                    schema,
                    manager=write.manager,
                    subresource=write.subresource,
                    api_version=write.api_version,
                    now=write.now,
                    reset=write.reset,
                )
            self._known.append(managers)
        return self._known[0]


NOBODY = Ledger()
"""Of an object that is about to be created."""
