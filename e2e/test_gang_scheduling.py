"""Gang scheduling on real objects: upstream's scenarios GS1 to GS12 (grove.md §9.2), with our binder as the scheduler.

`placed` pods are Ready; every pending pod either waits behind its gate for its Anchor gang or says why it is unschedulable.
"""

from collections import Counter

import pytest

from e2e.cluster import Pool, Scene
from e2e.workloads import wl1, wl2

pytestmark = pytest.mark.timeout(180)

ONE = "workload1-0-sg-x"
TWO = "workload2-0-sg-x"
ANCHOR_MINIMUM = Counter({"workload2-0-pc-a": 1, f"{TWO}-0-pc-b": 1, f"{TWO}-0-pc-c": 1})


def tail_minimum(group: str, replica: int) -> Counter[str]:
    return Counter({f"{group}-{replica}-pc-b": 1, f"{group}-{replica}-pc-c": 1})


def of_replica(minimum: Counter[str], replica: int) -> Counter[str]:
    """The same pods of another PodCliqueSet replica."""
    return Counter({name.replace("workload2-0-", f"workload2-{replica}-", 1): count for name, count in minimum.items()})


def assert_on_distinct_nodes(scene: Scene) -> None:
    nodes = Counter(pod.node for pod in scene.pods() if pod.node)
    assert [node for node, count in nodes.items() if count > 1] == []


def test_gs1_all_or_nothing(scene: Scene, pool: Pool) -> None:
    pool.open(9)
    scene.apply(wl1())
    scene.wait_counts(0, 10)
    pool.uncordon(1)
    scene.wait_counts(10, 0)
    assert_on_distinct_nodes(scene)


def test_gs2_scaling_group_waits_whole(scene: Scene, pool: Pool) -> None:
    pool.open(9)
    scene.apply(wl1())
    scene.wait_counts(0, 10)
    pool.uncordon(1)
    scene.wait_counts(10, 0)
    scene.scale(f"pcsg/{ONE}", 3)
    scene.wait_counts(10, 4)
    pool.uncordon(4)
    scene.wait_counts(14, 0)


def test_gs3_second_replica_waits_whole(scene: Scene, pool: Pool) -> None:
    pool.open(9)
    scene.apply(wl1())
    scene.wait_counts(0, 10)
    pool.uncordon(1)
    scene.wait_counts(10, 0)
    scene.scale("pcs/workload1", 2)
    scene.wait_counts(10, 10)
    pool.uncordon(10)
    scene.wait_counts(20, 0)


def test_gs4_groups_and_replicas_wait_whole(scene: Scene, pool: Pool) -> None:
    pool.open(9)
    scene.apply(wl1())
    scene.wait_counts(0, 10)
    pool.uncordon(1)
    scene.wait_counts(10, 0)
    scene.scale(f"pcsg/{ONE}", 3)
    scene.wait_counts(10, 4)
    pool.uncordon(4)
    scene.wait_counts(14, 0)
    scene.scale("pcs/workload1", 2)
    scene.wait_counts(14, 10)
    pool.uncordon(10)
    scene.wait_counts(24, 0)
    scene.scale("pcsg/workload1-1-sg-x", 3)
    scene.wait_counts(24, 4)
    pool.uncordon(4)
    scene.wait_counts(28, 0)
    assert_on_distinct_nodes(scene)


def start_wl2(scene: Scene, pool: Pool) -> None:
    """GS5's beginning: nothing on two nodes, exactly the Anchor gang's minimum on three."""
    pool.open(2)
    scene.apply(wl2())
    scene.wait_counts(0, 10)
    pool.uncordon(1)
    scene.wait_counts(3, 7)
    assert scene.placed() == ANCHOR_MINIMUM


def test_gs5_minimum_first(scene: Scene, pool: Pool) -> None:
    start_wl2(scene, pool)
    pool.uncordon(7)
    scene.wait_counts(10, 0)
    assert_on_distinct_nodes(scene)


def test_gs6_minimum_of_a_scaled_out_group(scene: Scene, pool: Pool) -> None:
    start_wl2(scene, pool)
    pool.uncordon(7)
    scene.wait_counts(10, 0)
    before = scene.placed()
    scene.scale(f"pcsg/{TWO}", 3)
    scene.wait_counts(10, 4)
    pool.uncordon(2)
    scene.wait_counts(12, 2)
    assert scene.placed() - before == tail_minimum(TWO, 2)
    pool.uncordon(2)
    scene.wait_counts(14, 0)


def test_gs7_tail_minimum_before_surplus(scene: Scene, pool: Pool) -> None:
    start_wl2(scene, pool)
    pool.uncordon(2)
    scene.wait_counts(5, 5)
    assert scene.placed() == ANCHOR_MINIMUM + tail_minimum(TWO, 1)
    pool.uncordon(5)
    scene.wait_counts(10, 0)
    before = scene.placed()
    scene.scale(f"pcsg/{TWO}", 3)
    scene.wait_counts(10, 4)
    pool.uncordon(2)
    scene.wait_counts(12, 2)
    assert scene.placed() - before == tail_minimum(TWO, 2)
    pool.uncordon(2)
    scene.wait_counts(14, 0)


def test_gs8_two_tail_minimums_before_surplus(scene: Scene, pool: Pool) -> None:
    pool.open(2)
    scene.apply(wl2())
    scene.wait_counts(0, 10)
    scene.scale(f"pcsg/{TWO}", 3)
    scene.wait_counts(0, 14)
    pool.uncordon(1)
    scene.wait_counts(3, 11)
    assert scene.placed() == ANCHOR_MINIMUM
    pool.uncordon(4)
    scene.wait_counts(7, 7)
    assert scene.placed() == ANCHOR_MINIMUM + tail_minimum(TWO, 1) + tail_minimum(TWO, 2)
    pool.uncordon(7)
    scene.wait_counts(14, 0)


def test_gs9_minimum_of_a_second_replica(scene: Scene, pool: Pool) -> None:
    start_wl2(scene, pool)
    pool.uncordon(7)
    scene.wait_counts(10, 0)
    before = scene.placed()
    scene.scale("pcs/workload2", 2)
    scene.wait_counts(10, 10)
    pool.uncordon(3)
    scene.wait_counts(13, 7)
    assert scene.placed() - before == of_replica(ANCHOR_MINIMUM, 1)
    pool.uncordon(7)
    scene.wait_counts(20, 0)


def test_gs10_both_anchor_minimums_first(scene: Scene, pool: Pool) -> None:
    pool.open(2)
    scene.apply(wl2())
    scene.wait_counts(0, 10)
    scene.scale("pcs/workload2", 2)
    scene.wait_counts(0, 20)
    pool.uncordon(4)
    scene.wait_counts(6, 14)
    assert scene.placed() == ANCHOR_MINIMUM + of_replica(ANCHOR_MINIMUM, 1)
    pool.uncordon(4)
    scene.wait_counts(10, 10)
    pool.uncordon(10)
    scene.wait_counts(20, 0)


def test_gs11_step_by_step(scene: Scene, pool: Pool) -> None:
    start_wl2(scene, pool)
    pool.uncordon(7)
    scene.wait_counts(10, 0)
    scene.scale(f"pcsg/{TWO}", 3)
    scene.wait_counts(10, 4)
    pool.uncordon(2)
    scene.wait_counts(12, 2)
    pool.uncordon(2)
    scene.wait_counts(14, 0)
    before = scene.placed()
    scene.scale("pcs/workload2", 2)
    scene.wait_counts(14, 10)
    pool.uncordon(3)
    scene.wait_counts(17, 7)
    assert scene.placed() - before == of_replica(ANCHOR_MINIMUM, 1)
    pool.uncordon(7)
    scene.wait_counts(24, 0)
    before = scene.placed()
    scene.scale("pcsg/workload2-1-sg-x", 3)
    scene.wait_counts(24, 4)
    pool.uncordon(2)
    scene.wait_counts(26, 2)
    assert scene.placed() - before == tail_minimum("workload2-1-sg-x", 2)
    pool.uncordon(2)
    scene.wait_counts(28, 0)
    assert_on_distinct_nodes(scene)


def test_gs12_anchors_then_tails_then_surplus(scene: Scene, pool: Pool) -> None:
    pool.open(2)
    scene.apply(wl2())
    scene.wait_counts(0, 10)
    scene.scale("pcs/workload2", 2)
    scene.wait_counts(0, 20)
    for replica in (0, 1):
        scene.scale(f"pcsg/workload2-{replica}-sg-x", 3)
    scene.wait_counts(0, 28)
    pool.uncordon(4)
    scene.wait_counts(6, 22)
    anchors = ANCHOR_MINIMUM + of_replica(ANCHOR_MINIMUM, 1)
    assert scene.placed() == anchors
    pool.uncordon(8)
    scene.wait_counts(14, 14)
    tails = tail_minimum(TWO, 1) + tail_minimum(TWO, 2)
    assert scene.placed() == anchors + tails + of_replica(tails, 1)
    pool.uncordon(14)
    scene.wait_counts(28, 0)
    assert_on_distinct_nodes(scene)
