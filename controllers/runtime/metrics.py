"""All metrics of a process, registered in one place. Names follow client-go and controller-runtime, so that existing dashboards work.

No label ever carries the name of an object.
"""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ("ClientMetrics", "Metrics", "QueueMetrics")

_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class QueueMetrics:
    """The metrics of one queue."""

    def __init__(self, metrics: "Metrics", name: str) -> None:
        self.depth = metrics.queue_depth.labels(name)
        self.adds = metrics.queue_adds.labels(name)
        self.retries = metrics.queue_retries.labels(name)
        self.queue_duration = metrics.queue_duration.labels(name)
        self.work_duration = metrics.work_duration.labels(name)
        self._unfinished = metrics.unfinished_work.labels(name)
        self._longest = metrics.longest_running.labels(name)

    def report_running(self, unfinished: Callable[[], float], longest: Callable[[], float]) -> None:
        """Functions that are asked at scrape time: sum and maximum of the seconds that keys have been worked on."""
        self._unfinished.set_function(unfinished)
        self._longest.set_function(longest)


class ClientMetrics:
    """What a Transport counts, under client-go's names."""

    def __init__(self, metrics: "Metrics", host: str) -> None:
        self._metrics = metrics
        self._host = host

    def call_done(self, method: str, code: str, seconds: float) -> None:
        """A call ended with an HTTP status, or with "unknown" or "error"."""
        self._metrics.rest_requests.labels(code, method, self._host).inc()
        self._metrics.rest_duration.labels(method, self._host).observe(seconds)

    def gate_closed(self, seconds: float) -> None:
        """The server asked all calls to wait."""
        self._metrics.throttled.labels(self._host).inc(seconds)


class Metrics:
    """Owns a registry; one instance per process (or per simulated process). Is what a reflector counts with, too."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._queues()
        self._controllers()
        self._client()
        self._leader()

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(name, text, labels, registry=self.registry, buckets=_SECONDS)

    def _queues(self) -> None:
        self.queue_depth = self._gauge("workqueue_depth", "Keys that are ready and not yet worked on", "name")
        self.queue_adds = self._counter("workqueue_adds_total", "Keys added", "name")
        self.queue_retries = self._counter("workqueue_retries_total", "Keys that workers gave back to be tried again", "name")
        self.queue_duration = self._histogram("workqueue_queue_duration_seconds", "Time from ready to work", "name")
        self.work_duration = self._histogram("workqueue_work_duration_seconds", "Time of work on a key", "name")
        self.unfinished_work = self._gauge("workqueue_unfinished_work_seconds", "Seconds of work in progress, summed", "name")
        self.longest_running = self._gauge("workqueue_longest_running_processor_seconds", "Seconds of the longest work in progress", "name")

    def _controllers(self) -> None:
        self.reconcile_total = self._counter("controller_runtime_reconcile_total", "Reconciles by outcome", "controller", "result")
        self.reconcile_errors = self._counter("controller_runtime_reconcile_errors_total", "Reconciles that raised", "controller")
        self.reconcile_time = self._histogram("controller_runtime_reconcile_time_seconds", "Time of a reconcile", "controller")
        self.active_workers = self._gauge("controller_runtime_active_workers", "Workers that are busy", "controller")
        self.operations = self._counter("grovekeeper_operations_total", "Operations of plans by result", "operation", "result")
        self.expectation_live_reads = self._counter(
            "grovekeeper_expectation_live_reads_total", "Live reads because the cache did not show an own write", "kind", "cause"
        )
        self.expectations_wait = self._histogram("grovekeeper_expectations_wait_seconds", "Time until the cache showed own writes")
        self.events_dropped = self._counter("grovekeeper_events_dropped_total", "Kubernetes events not written", "cause")
        self.events_written = self._counter("grovekeeper_events_written_total", "Kubernetes events written", "verb")

    def _client(self) -> None:
        self.rest_requests = self._counter("rest_client_requests_total", "Requests to the API server", "code", "method", "host")
        self.rest_duration = self._histogram("rest_client_request_duration_seconds", "Time of a request", "method", "host")
        self.throttled = self._counter("grovekeeper_api_throttled_seconds_total", "Seconds the server asked all calls to wait", "host")
        self.lists = self._counter("grovekeeper_reflector_lists_total", "Complete lists taken in", "resource")
        self.listed_objects = self._gauge("grovekeeper_reflector_listed_objects", "Objects in the latest complete list", "resource")
        self.rounds = self._counter("grovekeeper_reflector_rounds_total", "Streams and lists that ended", "resource", "reason")
        self.skipped_objects = self._counter("grovekeeper_reflector_skipped_total", "Events and objects left out", "resource", "reason")

    def _leader(self) -> None:
        self.leader_status = self._gauge("leader_election_master_status", "1 while this process leads", "name")
        self.leader_transitions = self._counter("grovekeeper_leader_transitions_total", "Terms begun or lost here", "name", "transition")
        self.fence_rejections = self._counter("grovekeeper_fence_rejected_writes_total", "Writes refused by the fence")

    def queue(self, name: str) -> QueueMetrics:
        """Metrics of the queue `name`."""
        return QueueMetrics(self, name)

    def transport(self, host: str) -> "ClientMetrics":
        """Where a Transport to `host` counts."""
        return ClientMetrics(self, host)

    def round_ended(self, resource: str, reason: str) -> None:
        """A reflector's stream or list ended."""
        self.rounds.labels(resource, reason).inc()

    def listed(self, resource: str, objects: int) -> None:
        """A reflector took in a complete list."""
        self.lists.labels(resource).inc()
        self.listed_objects.labels(resource).set(objects)

    def skipped(self, resource: str, reason: str) -> None:
        """A reflector left an event or object out."""
        self.skipped_objects.labels(resource, reason).inc()

    def text(self) -> bytes:
        """Everything in the Prometheus text format."""
        return generate_latest(self.registry)
