"""What strategies of built-in kinds share."""

from sim.apiserver.objects import Object
from sim.apiserver.resources import Context, Strategy

__all__ = ("Builtin", "Generational")


class Builtin(Strategy):
    """A kind without metadata.generation. Flags say how the pipeline treats it; subclasses add behaviour."""

    generation = False

    def __init__(
        self, *, may_create_on_update: bool = False, may_update_unconditionally: bool = True, returns_deleted: bool = False
    ) -> None:
        self.may_create_on_update = may_create_on_update
        self.may_update_unconditionally = may_update_unconditionally
        self.returns_deleted = returns_deleted

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        obj.pop("status", None)


class Generational(Builtin):
    """A kind whose changes are counted."""

    generation = True
