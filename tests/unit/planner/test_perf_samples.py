"""The sample store: bounded, spread over its buckets, the same after the same samples."""

from controllers.planner.perfmodel.samples import SampleStore


def _held(store: SampleStore) -> list[float]:
    return store.columns[1].tolist()


def test_columns_are_ascending_and_carry_targets() -> None:
    store = SampleStore(1, 10, 4)
    for value in (30.0, 10.0, 20.0):
        store.add((value,), value * 2)
    assert store.columns.tolist() == [[1.0] * 3, [10.0, 20.0, 30.0], [20.0, 40.0, 60.0]]


def test_fullest_bucket_gives_its_oldest() -> None:
    store = SampleStore(1, 4, 4)
    for target, value in enumerate((0.0, 100.0, 1.0, 2.0, 3.0)):
        store.add((value,), float(target))
    assert _held(store) == [1.0, 2.0, 3.0, 100.0]


def test_of_equally_full_buckets_the_one_with_the_oldest_sample_gives() -> None:
    store = SampleStore(1, 4, 2)
    for value in (100.0, 0.0, 99.0, 1.0):
        store.add((value,), 1.0)
    store.add((50.0,), 1.0)
    assert _held(store) == [0.0, 1.0, 50.0, 99.0]
    store.add((2.0,), 1.0)
    assert _held(store) == [1.0, 2.0, 50.0, 99.0]


def test_bounds_stay_when_the_sample_that_set_them_went() -> None:
    store = SampleStore(1, 2, 2)
    for value in (0.0, 100.0, 10.0, 11.0, 12.0):
        store.add((value,), 1.0)
    # 0..100 still counts: 10, 11 and 12 share a bucket, so 100 stays.
    assert _held(store) == [12.0, 100.0]


def test_buckets_of_two_features_use_both() -> None:
    store = SampleStore(2, 4, 4)
    for features in ((0.0, 0.0), (0.0, 10.0), (10.0, 0.0), (10.0, 10.0), (9.0, 9.0)):
        store.add(features, 1.0)
    assert sorted(zip(*store.columns[1:3].tolist(), strict=True)) == [(0.0, 0.0), (0.0, 10.0), (9.0, 9.0), (10.0, 0.0)]


def test_grows_only_to_the_bound() -> None:
    store = SampleStore(1, 100, 16)
    for value in range(1000):
        store.add((float(value % 173),), float(value))
    assert len(store) == 100
    assert store.columns.base is not None
    assert store.columns.base.shape[1] == 101
