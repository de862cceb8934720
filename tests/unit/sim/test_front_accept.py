"""Content negotiation; every expectation was read off kube-apiserver 1.36.3."""

import pytest

from sim.apiserver.front.accept import negotiate
from sim.apiserver.status import StatusError

JSON, YAML = "application/json", "application/yaml"
META = "v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "content_type", "kind"),
    [
        ("", JSON, ""),
        ("*/*", JSON, ""),
        ("application/*", JSON, ""),
        ("application/json; charset=utf-8", JSON, ""),
        ("application/json;stream=watch", JSON, ""),
        ("application/json;q=0", JSON, ""),
        ("text/html,application/json;q=abc", JSON, ""),
        ("application/json;q=0.1,application/yaml", YAML, ""),
        ("application/vnd.kubernetes.protobuf,application/json", JSON, ""),
        (f"application/json;as=Table;{META}", JSON, "Table"),
        (f"application/yaml;as=Table;{META}", YAML, "Table"),
        (f"*/*;as=Table;{META}", JSON, "Table"),
        (f"application/json;as=Nope;{META},application/json", JSON, ""),
        (f"application/json;as=Table;{META},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", JSON, "Table"),
        (f"application/json;as=PartialObjectMetadataList;{META},application/json", JSON, "PartialObjectMetadataList"),
    ],
)
def test_the_best_acceptable_clause_wins(accept: str, content_type: str, kind: str) -> None:
    accepted = negotiate(accept)
    assert (accepted.content_type, accepted.kind) == (content_type, kind)
    assert accepted.version == ("v1" if kind else "")


def test_the_old_version_of_a_transformation_is_remembered() -> None:
    assert negotiate("application/json;as=Table;v=v1beta1;g=meta.k8s.io").version == "v1beta1"


OFFERED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
STREAMS = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
ROUTE = f"406: Not Acceptable\n\nAvailable representations: {OFFERED}"
LIST_ROUTE = f"{ROUTE}, {STREAMS}"


@pytest.mark.parametrize(
    ("accept", "is_custom", "is_watch", "message"),
    [
        ("text/plain", True, False, f"only the following media types are accepted: {OFFERED}"),
        ("text/plain", True, True, f"only the following media types are accepted: {OFFERED}"),
        ("gibberish", True, False, f"only the following media types are accepted: {OFFERED}"),
        ("application/json;as=Table;v=v2;g=meta.k8s.io", False, False, f"only the following media types are accepted: {OFFERED}"),
        (META.join(("application/json;", "")), True, False, f"only the following media types are accepted: {OFFERED}"),
        ("application/vnd.kubernetes.protobuf", False, False, f"only the following media types are accepted: {OFFERED}"),
        ("text/plain", False, False, ROUTE),
        ("text/plain", False, True, LIST_ROUTE),
        ("application/yaml", False, True, f"only the following media types are accepted: {STREAMS}"),
    ],
)
def test_refusals_name_what_is_offered(accept: str, is_custom: bool, is_watch: bool, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        negotiate(accept, is_custom=is_custom, is_watch=is_watch, is_list=is_watch)
    assert (caught.value.code, caught.value.reason, caught.value.message) == (406, "NotAcceptable", message)
