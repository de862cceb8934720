"""The queue against a model that is too simple to be wrong: sets of keys and a sorted search."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from controllers.runtime.workqueue import WorkQueue
from tests.runtime_fakes import HandClock, seeded

KEYS = st.sampled_from("abcd")
PRIORITIES = st.sampled_from([0, -10, -100])


class QueueMachine(RuleBasedStateMachine):
    """The model: pending[key] = priority, later[key] = (time, priority), active keys. Order of arrival decides among equals."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = HandClock()
        self.queue: WorkQueue[str] = WorkQueue(self.clock, seeded(0))
        self.pending: dict[str, int] = {}
        self.later: dict[str, tuple[float, int]] = {}
        self.active: set[str] = set()

    def _ready(self, key: str, priority: int) -> None:
        _, delayed = self.later.pop(key, (0.0, priority))
        self.pending[key] = max(priority, delayed, self.pending.get(key, priority))

    def _mature(self) -> None:
        for key, (at, priority) in list(self.later.items()):
            if at <= self.clock.t:
                self._ready(key, priority)

    @rule(key=KEYS, priority=PRIORITIES)
    def add(self, key: str, priority: int) -> None:
        self.queue.add(key, priority)
        self._ready(key, priority)

    @rule(key=KEYS, priority=PRIORITIES, delay=st.integers(0, 5))
    def add_after(self, key: str, priority: int, delay: int) -> None:
        self.queue.add_after(key, delay, priority)
        if delay == 0 or key in self.pending:
            self._ready(key, priority)
        else:
            at, other = self.later.get(key, (self.clock.t + delay, priority))
            self.later[key] = (min(at, self.clock.t + delay), max(other, priority))

    @rule(seconds=st.integers(1, 4))
    def advance(self, seconds: int) -> None:
        # A worker looks at every tick, as a waiting `get` would.
        for _ in range(seconds):
            self.clock.advance(1)
            self._mature()

    @rule()
    def get(self) -> None:
        self._mature()
        free = {key: priority for key, priority in self.pending.items() if key not in self.active}
        key = self.queue.get_nowait()
        if not free:
            assert key is None
            return
        assert key in free
        assert free[key] == max(free.values())
        del self.pending[key]
        self.active.add(key)

    @precondition(lambda self: self.active)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.active)))
        self.queue.done(key)
        self.active.remove(key)

    @invariant()
    def counts_no_more_than_the_model(self) -> None:
        free = [key for key in self.pending if key not in self.active]
        assert len(self.queue) <= len(free)


QueueMachine.TestCase.settings = settings(stateful_step_count=40)
TestQueueModel = QueueMachine.TestCase
