"""Who owns which field of an object: field sets, server-side apply and managedFields."""

from sim.apiserver.fields.applying import applied
from sim.apiserver.fields.comparing import set_of
from sim.apiserver.fields.fieldset import EMPTY, FieldSet, from_v1, to_v1
from sim.apiserver.fields.lazy import NOBODY, Ledger
from sim.apiserver.fields.managed import Manager, Managers, claimed, decode, encode, settled, updated
from sim.apiserver.fields.shapes import zero_of

__all__ = (
    "EMPTY",
    "NOBODY",
    "FieldSet",
    "Ledger",
    "Manager",
    "Managers",
    "applied",
    "claimed",
    "decode",
    "encode",
    "from_v1",
    "set_of",
    "settled",
    "to_v1",
    "updated",
    "zero_of",
)
