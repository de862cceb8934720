"""Results that are remembered by the identity of what they are about."""

from api.recent import recent


class Subject:
    def __init__(self, value: int) -> None:
        self.value = value


def test_a_result_is_computed_once_for_an_object_and_its_arguments() -> None:
    calls: list[tuple[int, int]] = []

    @recent(8)
    def doubled(subject: Subject, times: int) -> int:
        calls.append((subject.value, times))
        return subject.value * times

    one, two = Subject(1), Subject(1)
    assert [doubled(one, 2), doubled(one, 2), doubled(one, 3), doubled(two, 2)] == [2, 2, 3, 2]
    assert calls == [(1, 2), (1, 3), (1, 2)]


def test_an_equal_id_of_another_object_is_not_mistaken() -> None:
    @recent(1000)
    def value(subject: Subject) -> int:
        return subject.value

    # Objects that nobody keeps get the same address again and again.
    assert [value(Subject(n)) for n in range(500)] == list(range(500))


def test_only_so_many_are_kept() -> None:
    calls: list[int] = []

    @recent(2)
    def value(subject: Subject) -> int:
        calls.append(subject.value)
        return subject.value

    subjects = [Subject(n) for n in range(3)]
    for subject in (*subjects, subjects[2], subjects[0]):
        value(subject)
    assert calls == [0, 1, 2, 0]
