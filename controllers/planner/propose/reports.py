"""Whether the metrics of a role can be decided upon."""

from collections import Counter

from controllers.planner.fpm import FpmMap

__all__ = ("are_trusted", "reports_match")


def reports_match(fpms: FpmMap, ready: int | None) -> bool:
    """Whether exactly so many workers report, all with the same number of ranks. Source: planner.md §12."""
    ranks = Counter(worker for worker, _ in fpms)
    return len(ranks) == ready and len(set(ranks.values())) <= 1


def are_trusted(fpms: FpmMap) -> bool:
    """Whether all metrics are in the known version and say of whom they are. Numbers are looked at where they are used."""
    return all(worker and fpm.version == 1 for (worker, _), fpm in fpms.items())
