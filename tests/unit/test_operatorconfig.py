"""The operator's configuration: defaults, strictness, and every check with the key that it names."""

from datetime import timedelta
from pathlib import Path

import pytest

from api.operatorconfig import NO_EFFECT, ConfigError, OperatorConfiguration, load_operator_configuration, without_effect
from hack.codegen.configuration import KEYS, NONE

HEAD = "apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\n"
SHIPPED = Path(__file__).parents[2] / "manifests" / "config" / "controllers.yaml"


def test_defaults_are_upstreams() -> None:
    config = load_operator_configuration(HEAD)
    assert config == OperatorConfiguration()
    assert (config.runtime_client_connection.qps, config.runtime_client_connection.burst) == (100, 120)
    election = config.leader_election
    assert (election.lease_duration, election.renew_deadline, election.retry_period) == tuple(timedelta(seconds=s) for s in (15, 10, 2))
    assert (election.resource_lock, election.resource_name) == ("leases", "grove-operator-leader-election")
    assert (config.server.webhooks.port, config.server.health_probes.port, config.server.metrics.port) == (2750, 2751, 2752)
    assert (config.server.webhooks.server_cert_dir, config.server.webhooks.cert_provision_mode) == (
        "/etc/grove-operator/webhook-certs",
        "auto",
    )
    assert (config.debugging.enable_profiling, config.debugging.pprof_bind_host, config.debugging.pprof_bind_port) == (
        False,
        "127.0.0.1",
        2753,
    )
    workers = config.controllers
    assert (workers.pod_clique_set.concurrent_syncs, workers.pod_clique.concurrent_syncs) == (10, 10)
    assert (workers.pod_clique_scaling_group.concurrent_syncs, workers.pod_gang.concurrent_syncs) == (5, 5)
    assert (config.log_level, config.log_format) == ("info", "json")
    assert (config.authorizer.enabled, config.topology_aware_scheduling.enabled, config.network.auto_mnnvl_enabled) == (False, False, False)
    assert (config.scheduler.names, config.scheduler.default_profile_name) == (("default-scheduler",), "default-scheduler")


def test_empty_sections_have_their_defaults() -> None:
    assert load_operator_configuration(HEAD + "server:\n  webhooks:\nscheduler:\n") == OperatorConfiguration()


def test_default_scheduler_is_always_among_the_profiles() -> None:
    config = load_operator_configuration(
        HEAD + "scheduler: {profiles: [{name: kai-scheduler, config: {any: thing}}], defaultProfileName: ''}"
    )
    assert config.scheduler.names == ("kai-scheduler", "default-scheduler")
    assert config.scheduler.profiles[0].config == {"any": "thing"}
    assert config.scheduler.default_profile_name == "default-scheduler"
    assert load_operator_configuration(HEAD + "scheduler: {profiles: []}").scheduler.names == ("default-scheduler",)


def test_what_is_written_is_read() -> None:
    text = (
        HEAD + "leaderElection: {enabled: true, leaseDuration: 1m, renewDeadline: 30s}\nnetwork: {autoMNNVLEnabled: true}\nlogLevel: debug"
    )
    config = load_operator_configuration(text)
    assert config.leader_election.lease_duration == timedelta(minutes=1)
    assert config.network.auto_mnnvl_enabled
    assert config.to_manifest()["leaderElection"] == {"enabled": True, "leaseDuration": "1m0s", "renewDeadline": "30s"}
    assert config.to_manifest()["network"] == {"autoMNNVLEnabled": True}


def test_the_shipped_configuration_selects_our_scheduler() -> None:
    config = load_operator_configuration(SHIPPED.read_text())
    assert config.scheduler.default_profile_name == "grovekeeper-scheduler"
    assert config.grovekeeper.scheduler_names == ("grovekeeper-scheduler", "kai-scheduler")
    assert config.topology_aware_scheduling.enabled


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "kind: Required value: expected an object of kind OperatorConfiguration", id="empty file"),
        pytest.param("[]", "kind: Required value: expected an object of kind OperatorConfiguration", id="a list"),
        pytest.param("a: [", "(root): Invalid value", id="not YAML"),
        pytest.param("kind: OperatorConfiguration", "apiVersion: Required value", id="no apiVersion"),
        pytest.param("apiVersion: operator.config.grove.io/v1alpha1", "kind: Required value", id="no kind"),
        pytest.param(HEAD + "surprise: 1", "surprise: Forbidden: unknown field", id="unknown key"),
        pytest.param(HEAD + "log_level: info", "log_level: Forbidden: unknown field", id="snake case is not the key's name"),
        pytest.param(HEAD + "server: {metrics: {prt: 1}}", "server.metrics.prt: Forbidden: unknown field", id="unknown key inside"),
        pytest.param(HEAD + "1: 2", "[1]: Forbidden: unknown field", id="a number as key"),
        pytest.param(
            HEAD + "logLevel: warn", 'logLevel: Unsupported value: "warn": supported values: "debug", "info", "error"', id="log level"
        ),
        pytest.param(HEAD + "logFormat: xml", 'logFormat: Unsupported value: "xml"', id="log format"),
        pytest.param(HEAD + "runtimeClientConnection: {burst: -1}", "runtimeClientConnection.burst: Invalid value: -1", id="burst"),
        pytest.param(HEAD + "runtimeClientConnection: {qps: many}", "runtimeClientConnection.qps: Invalid value", id="qps"),
        pytest.param(
            HEAD + "controllers: {podClique: {concurrentSyncs: 0}}",
            "controllers.podClique.concurrentSyncs: Invalid value: 0: must be at least 1",
            id="no workers",
        ),
        pytest.param(
            HEAD + "server: {webhooks: {certProvisionMode: never}}", "server.webhooks.certProvisionMode: Unsupported value", id="cert mode"
        ),
        pytest.param(HEAD + "server: {webhooks: {port: 70000}}", "server.webhooks.port: Invalid value: 70000", id="port"),
        pytest.param(
            HEAD + "leaderElection: {enabled: true, retryPeriod: soon}", "leaderElection.retryPeriod: Invalid value", id="no duration"
        ),
        pytest.param(
            HEAD + "leaderElection: {enabled: true, retryPeriod: 0s}",
            'leaderElection.retryPeriod: Invalid value: "0s": must be greater than 0',
            id="no retry period",
        ),
        pytest.param(
            HEAD + "leaderElection: {enabled: true, leaseDuration: 10s}",
            'leaderElection.leaseDuration: Invalid value: "10s": must be greater than renewDeadline',
            id="lease not longer than the deadline",
        ),
        pytest.param(
            HEAD + "leaderElection: {leaseDuration: 5s, renewDeadline: 3s}",
            'leaderElection.leaseDuration: Invalid value: "5s": must be greater than retryPeriod and 5s together',
            id="lease too short to write anything",
        ),
        pytest.param(
            HEAD + "leaderElection: {renewDeadline: 2s}",
            'leaderElection.renewDeadline: Invalid value: "2s": must be greater than retryPeriod',
            id="no time for a second try",
        ),
        pytest.param(
            HEAD + "leaderElection: {enabled: true, resourceLock: ''}", "leaderElection.resourceLock: Required value", id="no lock"
        ),
        pytest.param(
            HEAD + "leaderElection: {enabled: true, resourceName: ''}", "leaderElection.resourceName: Required value", id="no name"
        ),
        pytest.param(HEAD + "scheduler: {profiles: [{}]}", "scheduler.profiles[0].name: Required value", id="profile without a name"),
        pytest.param(
            HEAD + "scheduler: {profiles: [{name: other}]}",
            'scheduler.profiles[0].name: Unsupported value: "other"',
            id="unknown scheduler",
        ),
        pytest.param(
            HEAD + "scheduler: {profiles: [{name: volcano}, {name: volcano}]}",
            'scheduler.profiles[1].name: Duplicate value: "volcano"',
            id="the same profile twice",
        ),
        pytest.param(
            HEAD + "scheduler: {defaultProfileName: volcano}",
            'scheduler.defaultProfileName: Invalid value: "volcano": must be the name of one of scheduler.profiles',
            id="default without a profile",
        ),
        pytest.param(HEAD + "grovekeeper: {token: none}", 'grovekeeper.token: Unsupported value: "none"', id="token"),
        pytest.param(HEAD + "grovekeeper: {schedulerNames: []}", "grovekeeper.schedulerNames: Invalid value", id="no scheduler names"),
    ],
)
def test_refused_by_key(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_operator_configuration(text)
    assert str(caught.value).removeprefix("operator configuration: ").startswith(message)
    assert len(caught.value.errors) == 1


def test_spans_are_checked_although_leader_election_is_off_because_flags_decide_that() -> None:
    load_operator_configuration(HEAD + "leaderElection: {enabled: false, resourceName: ''}")
    with pytest.raises(ConfigError, match=r'leaderElection.leaseDuration: Invalid value: "0s"'):
        load_operator_configuration(HEAD + "leaderElection: {enabled: false, leaseDuration: 0s}")


def test_given_keys_without_effect_are_named() -> None:
    text = "runtimeClientConnection: {qps: 5}\nserver: {metrics: {port: 1}}\nlogLevel: error\n"
    text += "scheduler: {profiles: [{name: volcano, config: {}}]}"
    config = load_operator_configuration(HEAD + text)
    assert without_effect(config) == ("runtimeClientConnection.qps", "scheduler.profiles[].config", "server.metrics.port")
    assert without_effect(OperatorConfiguration()) == ()
    assert {key for key, value in KEYS.items() if value.effect == NONE} == NO_EFFECT


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"logLevel.*logFormat"):
        load_operator_configuration(HEAD + "logLevel: x\nlogFormat: y")
