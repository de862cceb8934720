"""Who may register, keep alive and remove plugins."""

from typing import Any

import pytest

from controllers.planner.config.parts import ExternalPlugin, HoldPolicy, InProcessPlugin, PluginAuth, PluginRegistration
from controllers.planner.plugins.auth import AllowUnauthenticated, StaticSecrets, authenticator
from controllers.planner.plugins.breaker import CircuitState
from controllers.planner.plugins.configured import register_external, register_in_process, warm
from controllers.planner.plugins.registry import Denial, Registry, parse_version, target_of
from controllers.planner.types import TrafficObservation
from tests.unit.planner.planner_plugins import SECRETS, Scripted, override, registration, registry


def test_accepted_with_a_record_of_all_that_was_said() -> None:
    made = registry()
    asked = registration(interval_s=10.0, needs=["observations.fpm"], requires=["predictions"], window_s=15.0, version="v9")
    answer = made.register(asked, 17.3)
    assert (answer.accepted, answer.reject_reason, answer.negotiated_protocol_version) == (True, "", "1.0")
    plugin = made.plugins[0]
    assert (plugin.registered_at, plugin.subject) == (15.0, "anonymous")
    assert (plugin.enabled, plugin.is_builtin, plugin.in_process) == (True, False, False)
    assert (plugin.needs, plugin.requires, plugin.window_s, plugin.version) == (("observations.fpm",), ("predictions",), 15.0, "v9")
    assert (plugin.last_call_at, plugin.evaluations_total, plugin.breaker.failures) == (None, 0, 0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"protocol_version": ""}, "protocol_version_malformed: "),
        ({"protocol_version": "one"}, "protocol_version_malformed: "),
        ({"protocol_version": "1."}, "protocol_version_malformed: "),
        ({"protocol_version": "1.0\n"}, "protocol_version_malformed: "),
        ({"protocol_version": "9" * 5000}, "protocol_version_malformed: "),
        ({"protocol_version": "1.1"}, "protocol_version_unsupported: requested=1.1, supported=[1.0,1.0]"),
        ({"protocol_version": "0.9"}, "protocol_version_unsupported: requested=0.9, supported=[1.0,1.0]"),
        ({"window_s": 7.0}, "observation_window_misaligned: "),
        ({"window_s": -5.0}, "observation_window_misaligned: "),
        ({"window_s": 0.000001}, "observation_window_misaligned: "),
        ({"window_s": float("nan")}, "observation_window_misaligned: "),
        ({"window_s": float("inf")}, "observation_window_misaligned: "),
        ({"plugin_id": "known"}, "duplicate_plugin_id: must Unregister before re-Register"),
        ({"endpoint": "inproc://p"}, "endpoint_rejected: "),
        ({"endpoint": "http://h:1"}, "transport_build_failed: "),
        ({"endpoint": "grpc://h"}, "transport_build_failed: "),
        ({"endpoint": "grpc://h:0"}, "transport_build_failed: "),
        ({"endpoint": "grpc://h:99999"}, "transport_build_failed: "),
        ({"endpoint": "grpc://unix:///run/x:1"}, "transport_build_failed: "),
        # The first check that fails is named.
        ({"protocol_version": "2", "window_s": 7.0, "plugin_id": "known", "endpoint": "x"}, "protocol_version_unsupported: "),
        ({"window_s": 7.0, "plugin_id": "known", "endpoint": "x"}, "observation_window_misaligned: "),
        ({"plugin_id": "known", "endpoint": "inproc://x"}, "duplicate_plugin_id: "),
    ],
)
def test_refused(changes: dict[str, object], reason: str) -> None:
    made = registry()
    assert made.register(registration(plugin_id="known"), 0.0).accepted
    answer = made.register(registration(**changes), 0.0)
    assert not answer.accepted
    assert answer.reject_reason.startswith(reason)
    assert [plugin.plugin_id for plugin in made.plugins] == ["known"]


def test_plaintext_has_to_be_allowed() -> None:
    assert registry(insecure=False).register(registration(), 0.0).reject_reason.startswith("transport_build_failed: ")


@pytest.mark.parametrize("token", ["", "wrong", "s3cret-on", "s3cret-one ", "sécret", "\ud800"])
def test_an_unknown_token_is_refused_before_all_else(token: str) -> None:
    made = registry(secrets=SECRETS)
    answer = made.register(registration(auth_token=token, protocol_version="x"), 0.0)
    assert (answer.accepted, answer.reject_reason) == (False, "auth_failed")
    assert token == "" or token not in answer.detail


def test_a_known_token_names_its_subject() -> None:
    made = registry(secrets=SECRETS)
    assert made.register(registration(auth_token="s3cret-two"), 0.0).accepted  # noqa: S106
    assert made.plugins[0].subject == "team-b"


def test_tokens_are_in_no_repr() -> None:
    asked = registration(auth_token="s3cret-one")  # noqa: S106
    made = registry(secrets=SECRETS)
    made.register(asked, 0.0)
    entry = ExternalPlugin(plugin_id="p", plugin_type="propose", priority=1, endpoint="grpc://h:1", auth_token="s3cret-one")  # noqa: S106
    auth = PluginAuth(static_secrets=SECRETS)
    texts = [repr(thing) for thing in (asked, made.plugins, made, StaticSecrets(SECRETS), entry, auth, made.settings)]
    assert not [text for text in texts if "s3cret" in text]


@pytest.mark.parametrize(("lower", "higher"), [("1.2", "1.10"), ("1.0", "1.0.1"), ("1", "2"), ("0.9.9", "1.0"), ("1.9999", "2.0")])
def test_versions_compare_by_numbers(lower: str, higher: str) -> None:
    first, second = parse_version(lower), parse_version(higher)
    assert first is not None
    assert second is not None
    assert first < second
    made = Registry(5.0, PluginRegistration.model_validate({"protocol_version_min": lower, "protocol_version_max": higher}))
    # Neither bound is refused for its version, and one beyond is.
    for version in (lower, higher):
        assert made.register(registration(protocol_version=version), 0.0).reject_reason.startswith("transport_build_failed")
    assert made.register(registration(protocol_version="99.1"), 0.0).reject_reason.startswith("protocol_version_unsupported")


def test_trailing_zeros_make_no_other_version() -> None:
    assert parse_version("1.0") == parse_version("1") == parse_version("1.0.0")
    assert registry().register(registration(protocol_version="1.0.0"), 0.0).negotiated_protocol_version == "1.0.0"


@pytest.mark.parametrize("window", [0.0, 5.0, 5.0000001, 180.0])
def test_windows_that_fit(window: float) -> None:
    assert registry().register(registration(window_s=window), 0.0).accepted


def test_targets() -> None:
    assert target_of("grpc://plugin.team-a.svc:9000") == "plugin.team-a.svc:9000"
    assert target_of("grpc://[::1]:9000") == "[::1]:9000"
    assert target_of("plugin:9000") is None


def test_internal_registration() -> None:
    made = registry()
    plugin = made.register_internal("b", "predict", -3, Scripted(None), 12.0, window_s=10.0)
    assert (plugin.endpoint, plugin.version, plugin.protocol_version, plugin.registered_at) == ("inproc://b", "builtin", "1.0", 10.0)
    assert (plugin.hold_policy, plugin.is_builtin, plugin.in_process) == (HoldPolicy.ACCEPT_WHEN_IDLE, True, True)
    with pytest.raises(ValueError, match="'b' is registered already"):
        made.register_internal("b", "predict", 0, None, 0.0)
    with pytest.raises(ValueError, match="'c': observation_window_misaligned"):
        made.register_internal("c", "predict", 0, None, 0.0, window_s=3.0)


def test_builtins_that_never_ran_start_with_the_first_tick() -> None:
    made = registry()
    fresh, ran = (made.register_internal(name, "predict", 0, None, 0.0) for name in "ab")
    ran.last_call_at = 3.0
    user = made.register_internal("u", "predict", 0, None, 0.0, version="user-in-process")
    made.start_builtins(7.5)
    assert [plugin.registered_at for plugin in (fresh, ran, user)] == [7.5, 0.0, 0.0]


def test_heartbeat_and_removal_are_for_the_owner() -> None:
    made = registry(secrets=SECRETS)
    made.register(registration(auth_token="s3cret-one"), 0.0)  # noqa: S106
    made.register_internal("inner", "predict", 0, None, 0.0)
    assert made.heartbeat("p", "s3cret-one", 30.0) is None
    assert made.plugins[0].last_heartbeat_at == 30.0
    assert made.heartbeat("p", "wrong", 31.0) is Denial.UNAUTHENTICATED
    for plugin_id, token in (("p", "s3cret-two"), ("nobody", "s3cret-one"), ("inner", "s3cret-one")):
        assert made.heartbeat(plugin_id, token, 31.0) is Denial.FORBIDDEN
        assert made.unregister(plugin_id, token) is Denial.FORBIDDEN
    removed = made.unregister("p", "s3cret-one")
    assert not isinstance(removed, Denial)
    assert [plugin.plugin_id for plugin in made.plugins] == ["inner"]
    # The id is free again, and nothing of the old plugin is left.
    made.register(registration(auth_token="s3cret-two"), 40.0)  # noqa: S106
    assert made.get("p") is not removed


def test_listing_filters_by_stage_and_by_enabled() -> None:
    made = registry()
    made.register(registration(), 0.0)
    quiet = made.register_internal("quiet", "predict", 2, None, 0.0)
    quiet.enabled = False
    plugin = made.plugins[0]
    plugin.last_call_at, plugin.held, plugin.held_at = 4.0, override(("decode", 1)), 3.0
    for _ in range(5):
        plugin.breaker.failed(5.0)
    (listed,) = made.list_plugins(10.0)
    assert (listed.transport, listed.circuit_state) == ("grpc", CircuitState.OPEN)
    assert (listed.last_call_at_seconds_ago, listed.cache_age_seconds) == (6.0, 7.0)
    assert [info.plugin_id for info in made.list_plugins(10.0, include_disabled=True)] == ["p", "quiet"]
    assert [info.cache_age_seconds for info in made.list_plugins(10.0, "predict", include_disabled=True)] == [None]
    made.invalidate_held()
    assert made.list_plugins(10.0)[0].cache_age_seconds is None


def test_sources_are_tried_in_order() -> None:
    known, warnings = authenticator(PluginAuth(trusted_sources=["static_secret", "allow_unauthenticated"], static_secrets={"k": "me"}))
    assert (known.subject("k"), known.subject("other"), len(warnings)) == ("me", "anonymous", 1)
    known, warnings = authenticator(PluginAuth())
    assert (known.subject(""), len(warnings)) == ("anonymous", 1)
    assert AllowUnauthenticated().subject("") == "anonymous"


def test_a_secret_needs_a_subject_and_the_empty_token_is_none() -> None:
    with pytest.raises(ValueError, match="empty subject"):
        StaticSecrets({"k": ""})
    assert StaticSecrets({"": "me"}).subject("") is None


class Warmed:
    """Constructed by name."""

    def __init__(self, limit: int = 0) -> None:
        if limit < 0:
            raise ValueError("limit")
        self.limit = limit
        self.history: list[TrafficObservation] = []

    def warm_from_observations(self, history: list[TrafficObservation]) -> None:
        if self.limit == 1:
            raise KeyError("history")
        self.history.extend(history)


def entry(**changes: object) -> InProcessPlugin:
    known = {"module": __name__, "class": "Warmed", "plugin_id": "w", "plugin_type": "propose", "priority": 3}
    return InProcessPlugin.model_validate(known | changes)


def test_plugins_of_the_configuration_are_imported_and_warmed() -> None:
    made = registry()
    register_in_process(made, [entry(kwargs={"limit": 4}, hold_policy="hold_last"), entry(plugin_id="x", kwargs={"limit": 1})], 0.0)
    plugin = made.plugins[0]
    instance: Any = plugin.instance
    assert (plugin.version, plugin.is_builtin, plugin.hold_policy) == ("user-in-process", False, HoldPolicy.HOLD_LAST)
    assert instance.limit == 4
    history = [TrafficObservation(5.0, 1.0, 2.0, 3.0)]
    assert warm(made, history) == ["plugin 'x' could not be warmed up: KeyError: 'history'"]
    assert instance.history == history
    assert warm(made, []) == []


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"module": "no.such.module"}, ImportError, "^plugin 'w': cannot import no.such.module: ModuleNotFoundError: "),
        ({"module": ".relative"}, ImportError, "^plugin 'w': cannot import .relative: TypeError: "),
        ({"module": "sys", "class": "exit"}, RuntimeError, "^plugin 'w': cannot construct exit: SystemExit"),
        ({"class": "Nobody"}, AttributeError, "has no class Nobody"),
        ({"kwargs": {"limit": -1}}, RuntimeError, "cannot construct Warmed: ValueError: limit"),
        ({"kwargs": {"other": 1}}, RuntimeError, "cannot construct Warmed: TypeError"),
        ({"hold_policy": "sometimes"}, ValueError, "^plugin 'w': hold_policy: must be ACCEPT_WHEN_IDLE .*, is 'sometimes'"),
        ({"observation_window_seconds": 3.0}, ValueError, "misaligned"),
    ],
)
def test_a_plugin_that_cannot_be_had_ends_startup(changes: dict[str, object], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        register_in_process(registry(), [entry(**changes)], 0.0)


def test_external_plugins_that_are_refused_are_left_out() -> None:
    made = registry()
    entries = [
        ExternalPlugin.model_validate({"plugin_id": name, "plugin_type": "propose", "priority": -1, "endpoint": endpoint})
        for name, endpoint in (("good", "grpc://h:1"), ("bad", "h:1"), ("good", "grpc://h:2"))
    ]
    assert [warning.partition(": ")[2].partition(":")[0] for warning in register_external(made, entries, 0.0)] == [
        "'bad' is left out",
        "'good' is left out",
    ]
    assert [(plugin.plugin_id, plugin.priority, plugin.hold_policy) for plugin in made.plugins] == [("good", -1, HoldPolicy.HOLD_LAST)]
