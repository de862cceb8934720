"""Log lines: one object a line, fields from calls and from context, whatever is put in."""

import io
import json
import logging
from collections.abc import Generator

import pytest

from controllers.runtime.metrics import Metrics
from controllers.runtime.observability import configure_logging, log_context

LOG = logging.getLogger("grovekeeper.test")


@pytest.fixture
def stream() -> Generator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_json_lines_have_the_fields_of_call_and_context(stream: io.StringIO) -> None:
    configure_logging("info", "json", stream)
    with log_context(controller="c"), log_context(reconcile_id="r"):
        LOG.info("took %d", 3, extra={"key": "ns/a", "ms": 1.5})
    LOG.debug("not shown")
    LOG.info("outside")
    first, second = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "info",
        "logger": "grovekeeper.test",
        "msg": "took 3",
        "controller": "c",
        "reconcile_id": "r",
        "key": "ns/a",
        "ms": 1.5,
    }
    assert "controller" not in second


def test_hostile_values_stay_on_one_line(stream: io.StringIO) -> None:
    configure_logging("info", "json", stream)
    LOG.info("a\nb", extra={"error": "x\n\x1b[31m", "what": object(), "level_": {1, 2}})
    [line] = stream.getvalue().splitlines()
    assert json.loads(line)["error"] == "x\n\x1b[31m"
    assert "\x1b" not in line


def test_a_traceback_is_one_field(stream: io.StringIO) -> None:
    configure_logging("info", "json", stream)
    try:
        raise ValueError("bad")
    except ValueError as error:
        LOG.error("failed", exc_info=error)
    [line] = stream.getvalue().splitlines()
    assert "ValueError: bad" in json.loads(line)["traceback"]


def test_text_for_people(stream: io.StringIO) -> None:
    configure_logging("debug", "text", stream)
    LOG.debug("a\nb", extra={"key": "ns/a"})
    [line] = stream.getvalue().splitlines()
    assert line.endswith('DEBUG   a\\nb key="ns/a"')


def test_requests_are_counted_under_the_names_of_client_go() -> None:
    metrics = Metrics()
    metrics.transport("api:6443").call_done("GET", "200", 0.25)
    labels = {"code": "200", "method": "GET", "host": "api:6443"}
    assert metrics.registry.get_sample_value("rest_client_requests_total", labels) == 1
    labels.pop("code")
    assert metrics.registry.get_sample_value("rest_client_request_duration_seconds_sum", labels) == 0.25
    assert b"rest_client_requests_total" in metrics.text()


def test_error_level_keeps_the_rest_quiet(stream: io.StringIO) -> None:
    configure_logging("error", "text", stream)
    LOG.warning("no")
    LOG.error("yes")
    assert "yes" in stream.getvalue()
    assert "no" not in stream.getvalue().replace("yes", "")
