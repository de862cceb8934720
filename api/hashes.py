"""Hashes of pod templates, by which updates are recognised (grove.md §5.1).

The bytes that are hashed are JSON with sorted keys, nulls left out and whole floats written as integers, so that neither key order, hash
seeds, nor a round trip through another encoder changes them. They must never change between versions: that would roll every workload.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache

from api.grove import PodCliqueSet, PodCliqueTemplate
from api.recent import recent

__all__ = ("canonical", "generation_hash", "pod_template_hash", "safe_encode", "safe_suffix", "stable_hash")

FNV_OFFSET = 14695981039346656037
FNV_PRIME = 1099511628211
UINT64 = (1 << 64) - 1
SAFE_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and none of 0, 1, 3: no words and no look-alikes in names."""


@lru_cache(maxsize=1024)
def stable_hash(data: bytes) -> int:
    """FNV-1a, 64 bit. Remembered, because reconciles ask for the same few templates again and again."""
    value = FNV_OFFSET
    for byte in data:
        value = ((value ^ byte) * FNV_PRIME) & UINT64
    return value


def safe_encode(text: str) -> str:
    """Kubernetes' SafeEncodeString: each character mapped into an alphabet that is safe in names and spells no words."""
    return "".join(SAFE_ALPHABET[ord(c) % len(SAFE_ALPHABET)] for c in text)


def safe_suffix(value: int, length: int = 5) -> str:
    """The last `length` digits of a number in the safe alphabet: 27^5 = 14 million suffixes where decimal digits would give 100,000."""
    digits: list[str] = []
    for _ in range(length):
        value, digit = divmod(value, len(SAFE_ALPHABET))
        digits.append(SAFE_ALPHABET[digit])
    return "".join(digits)


def canonical(value: object) -> bytes:
    """JSON data as the bytes that are hashed."""
    return json.dumps(_normal(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str).encode("ascii")


def _normal(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(k): _normal(v) for k, v in value.items() if v is not None}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_normal(v) for v in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


@recent(256)
def pod_template_hash(template: PodCliqueTemplate, priority_class_name: str) -> str:
    """Hash of the pods that a clique template describes. Replicas, minAvailable, startsAfter, topology and sharing are not part of it.

    `priority_class_name`: that of the PodCliqueSet's template, which replaces the pod spec's own.
    """
    return safe_encode(str(stable_hash(_template_bytes(template, priority_class_name))))


@recent(64)
def generation_hash(pcs: PodCliqueSet) -> str:
    """Hash of all clique templates in list order, as upstream has it: reordering the cliques is an update."""
    priority = pcs.spec.template.priority_class_name or ""
    parts = (_template_bytes(c, priority) for c in pcs.spec.template.cliques)
    return safe_encode(str(stable_hash(b"\n".join(parts))))


def _template_bytes(template: PodCliqueTemplate, priority_class_name: str) -> bytes:
    spec = {**template.spec.pod_spec, "priorityClassName": priority_class_name or None}
    return canonical({"labels": template.labels or {}, "annotations": template.annotations or {}, "spec": spec})
