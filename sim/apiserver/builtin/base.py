"""What strategies of built-in kinds share."""

from api.quantity import QuantityError
from sim.apiserver.objects import Object
from sim.apiserver.resources import Context, Strategy
from sim.apiserver.status import bad_request

__all__ = ("Builtin", "Generational")

_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class Builtin(Strategy):
    """A kind without metadata.generation. Flags say how the pipeline treats it; subclasses add behaviour."""

    generation = False

    def __init__(
        self, *, may_create_on_update: bool = False, may_update_unconditionally: bool = True, returns_deleted: bool = False
    ) -> None:
        self.may_create_on_update = may_create_on_update
        self.may_update_unconditionally = may_update_unconditionally
        self.returns_deleted = returns_deleted

    def default(self, obj: Object) -> None:
        try:
            self.fill(obj)
        except QuantityError:
            kind, version = obj["kind"], obj["apiVersion"].rpartition("/")[2]
            raise bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {_QUANTITY}') from None

    def fill(self, obj: Object) -> None:
        """The kind's own defaults, and the printed form of what has several. May raise QuantityError."""

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        obj.pop("status", None)


class Generational(Builtin):
    """A kind whose changes are counted."""

    generation = True
