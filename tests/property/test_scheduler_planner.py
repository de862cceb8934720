"""Properties of the gang planner, against exhaustive search where clusters are small."""

import random
from collections.abc import Iterator

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.attempt import Budget, attempt
from scheduler.board import Board
from scheduler.feasibility import chain_fits, is_chain
from scheduler.model import Gang, Group, Plan, Scope
from scheduler.planner import plan_round
from scheduler.snapshot import Snapshot
from scheduler.solver import solve
from scheduler.tasks import minimum_task
from tests.sched_builders import (
    NOW,
    TREE,
    best_touches,
    cluster,
    homes_of,
    leaf,
    make_gang,
    make_group,
    make_node,
    racks,
    running_pods,
    touches,
)

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
CHAINS = ([1, 2, 4, 8], [1, 3, 6], [2, 4, 8], [1, 4, 8])


def _fits(pods: list[int], free: list[int]) -> bool:
    if not pods:
        return True
    tried: set[int] = set()
    for i, room in enumerate(free):
        if room >= pods[0] and room not in tried:
            tried.add(room)
            if _fits(pods[1:], [*free[:i], room - pods[0], *free[i + 1 :]]):
                return True
    return False


@given(st.sampled_from(CHAINS), st.data())
@QUICK
def test_chain_formula_is_exact(chain: list[int], data: st.DataObject) -> None:
    pods = data.draw(st.lists(st.sampled_from(chain), max_size=7))
    free = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=4))
    assert is_chain(chain)
    assert chain_fits({s: pods.count(s) for s in set(pods)}, free) == _fits(sorted(pods, reverse=True), free)


@st.composite
def small_gangs(draw: st.DrawFn, sizes: tuple[int, ...] = (1, 2, 3, 4)) -> Gang:
    n = draw(st.integers(1, 3))
    groups = [make_group("g", f"x{i}", draw(st.sampled_from(sizes)), draw(st.integers(1, 3 if n < 3 else 2))) for i in range(n)]
    level = st.sampled_from((None, None, 0, 1))
    scopes: list[Scope] = []
    for group in groups:
        required, preferred = draw(level), draw(level)
        scopes.append(leaf(group.name, required, preferred if required is None or (preferred or 0) > required else None))
    required, preferred = draw(level), draw(level)
    if required is not None and (preferred is None or preferred <= required):
        preferred = None
    k = draw(st.integers(1, n)) if draw(st.booleans()) else n
    return make_gang("g", groups, Scope("g", "root", TREE, required, preferred, k, tuple(scopes)))


def _snapshots(gpus: list[int], per_rack: int) -> Snapshot:
    return cluster(racks(gpus, per_rack=per_rack)).snapshot(NOW)


NODES = st.lists(st.integers(0, 6), min_size=1, max_size=5)


@given(small_gangs(), NODES, st.integers(1, 2))
@QUICK
def test_planner_agrees_with_enumeration(gang: Gang, gpus: list[int], per_rack: int) -> None:
    snapshot = _snapshots(gpus, per_rack)
    best = best_touches(snapshot, gang)
    ((_, result),) = plan_round(snapshot, [gang])
    assert isinstance(result, Plan) == (best is not None), result
    if isinstance(result, Plan) and best is not None and gang.root.min_children == len(gang.root.children):
        found = touches(snapshot, gang, homes_of(snapshot, result))
        assert found >= best
        if result.bound == result.score:
            assert found == best


@st.composite
def gangs_in_use(draw: st.DrawFn, n_nodes: int = 5) -> Gang:
    """Gangs with two resources, host anti-affinity and, for one group, a pod that runs already."""
    n = draw(st.integers(1, 3))
    home = draw(st.integers(0, n_nodes - 1))
    groups = [
        make_group(
            "g",
            f"x{i}",
            draw(st.integers(1, 3)),
            draw(st.integers(1, 3 if n < 3 else 2)),
            nodes=[f"n{home}"] if i == 0 and draw(st.booleans()) else [],
            cpu=draw(st.sampled_from((0, 1000, 2000))),
            single=draw(st.booleans()),
        )
        for i in range(n)
    ]
    level = st.sampled_from((None, None, 0, 1))
    scopes = tuple(leaf(g.name, draw(level)) for g in groups)
    return make_gang("g", groups, Scope("g", "root", TREE, draw(level), None, n, scopes))


@given(gangs_in_use(), st.lists(st.integers(0, 5), min_size=5, max_size=5), st.integers(2, 8))
@QUICK
def test_planner_agrees_with_enumeration_for_gangs_in_use(gang: Gang, gpus: list[int], cpu: int) -> None:
    nodes = [
        make_node(n.metadata.name, g, {k: n.metadata.labels[k] for k in TREE}, cpu=cpu)
        for n, g in zip(racks(gpus, per_rack=2), gpus, strict=True)
    ]
    snapshot = cluster(nodes, running_pods(gang)).snapshot(NOW)
    best = best_touches(snapshot, gang)
    ((_, result),) = plan_round(snapshot, [gang])
    is_complete = all(sum(bool(m.node) for m in g.members) >= g.min for g in gang.groups)
    if not is_complete and not (
        isinstance(result, Plan) and len(result.assignments) < sum(not m.node for g in gang.groups for m in g.members)
    ):
        assert isinstance(result, Plan) == (best is not None), result


@given(small_gangs(), NODES, st.integers(1, 2))
@QUICK
def test_cp_sat_agrees_with_enumeration(gang: Gang, gpus: list[int], per_rack: int) -> None:
    whole = make_gang("g", gang.groups, Scope("g", "root", TREE, gang.root.required, gang.root.preferred, 3, gang.root.children))
    whole = make_gang("g", gang.groups, Scope("g", "root", TREE, *_levels(whole), len(whole.root.children), whole.root.children))
    snapshot = _snapshots(gpus, per_rack)
    task = minimum_task(whole, {})
    assert task is not None
    shapes = [m.shape for g in whole.groups for m in g.members]
    board = Board(snapshot.fork(), {g.name: g for g in whole.groups}, shapes, with_soon=False)
    rows = board.rows()
    best = best_touches(snapshot, whole)
    if not len(rows):
        assert best is None
        return
    answer = solve(board, task, rows, limit=2.0)
    assert answer.status == ("impossible" if best is None else "placed")
    if best is not None:
        assert answer.is_best
        assert touches(snapshot, whole, {m.uid: row for m, row in answer.placements}) == best
    assert not board.log


def _levels(gang: Gang) -> tuple[int | None, int | None]:
    return gang.root.required, gang.root.preferred


@given(small_gangs(), NODES, st.integers(0, 4), st.integers(1, 6))
@QUICK
def test_more_room_never_hurts(gang: Gang, gpus: list[int], where: int, more: int) -> None:
    ((_, before),) = plan_round(_snapshots(gpus, 2), [gang])
    richer = [g + more if i == where % len(gpus) else g for i, g in enumerate(gpus)]
    ((_, after),) = plan_round(_snapshots(richer, 2), [gang])
    assert isinstance(after, Plan) or not isinstance(before, Plan)


def _mixed(seed: int) -> Iterator[Gang]:
    rng = random.Random(seed)  # noqa: S311
    for i in range(6):
        groups = [make_group(f"g{i}", f"x{j}", rng.choice((1, 2, 4)), rng.randint(1, 4), rng.randint(0, 2)) for j in range(2)]
        groups = [Group(g.name, g.namespace, min(g.min, len(g.members)), g.members, g.listed) for g in groups]
        required = rng.choice((None, 0, 1))
        root = Scope(f"g{i}", "root", TREE, required, 1 if required == 0 else None, 2, tuple(leaf(g.name) for g in groups))
        yield make_gang(f"g{i}", groups, root, priority=rng.choice((0, 5)), base="g0" if i == 5 else "", created=str(rng.randint(0, 2)))


@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
@QUICK
def test_plan_depends_on_neither_input_order_nor_row_numbers(seed: int, rng: random.Random) -> None:
    nodes = racks([(seed * 7 + i * 5) % 9 for i in range(12)], per_rack=2)
    gangs = list(_mixed(seed))
    shuffled_nodes, shuffled_gangs = rng.sample(nodes, len(nodes)), rng.sample(gangs, len(gangs))
    one = plan_round(cluster(nodes).snapshot(NOW), gangs)
    state = cluster([make_node("gone", 8, {"rack": "r0", "block": "b9"}), *shuffled_nodes])
    state.remove_node("gone")
    two = plan_round(state.snapshot(NOW), shuffled_gangs)

    def outcome(decisions: list[tuple[Gang, object]]) -> list[object]:
        return [(g.name, r.assignments if isinstance(r, Plan) else r) for g, r in decisions]

    assert outcome(list(one)) == outcome(list(two))


@given(st.integers(0, 10_000), st.permutations(range(12)))
@QUICK
def test_renaming_nodes_keeps_feasibility_of_a_single_gang(seed: int, names: list[int]) -> None:
    gpus = [(seed * 7 + i * 5) % 9 for i in range(12)]
    gang = next(_mixed(seed))
    labels = [n.metadata.labels for n in racks(gpus, per_rack=2)]
    renamed = [make_node(f"n{names[i]:02}", g, {k: v for k, v in labels[i].items() if k in TREE}) for i, g in enumerate(gpus)]
    ((_, one),) = plan_round(cluster(racks(gpus, per_rack=2)).snapshot(NOW), [gang])
    ((_, two),) = plan_round(cluster(renamed).snapshot(NOW), [gang])
    assert isinstance(one, Plan) == isinstance(two, Plan)
    if isinstance(one, Plan) and isinstance(two, Plan):
        assert len(one.assignments) == len(two.assignments)


@given(small_gangs(), NODES)
@QUICK
def test_attempt_leaves_the_snapshot_alone(gang: Gang, gpus: list[int]) -> None:
    snapshot = _snapshots(gpus, 2)
    before = snapshot.free.copy()
    task = minimum_task(gang, {})
    assert task is not None
    attempt(snapshot, {g.name: g for g in gang.groups}, task, Budget())
    assert (snapshot.free == before).all()
