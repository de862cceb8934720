"""Patterns, literals and keys that are meant to hurt: each gets an answer, and soon."""

import time

import pytest

from sim.apiserver.patches import strategic_patch
from sim.apiserver.schema.builtin import schema_of
from sim.apiserver.schema.cel.syntax import CelSyntaxError, parse
from sim.apiserver.schema.regexes import PatternError, go_regex
from sim.apiserver.status import StatusError

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)+$", "^(.*)*x$", "(a*)*(a*)*(a*)*b"])
def test_no_pattern_takes_longer_than_its_text(pattern: str) -> None:
    started = time.process_time()
    assert go_regex(pattern).search("a" * 50_000 + "!") is None
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "missing closing ): `(`"),
        ("[a", "missing closing ]: `[a`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        (r"\y", r"invalid escape sequence: `\y`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
    ],
)
def test_a_broken_pattern_is_refused_in_the_words_of_go(pattern: str, words: str) -> None:
    with pytest.raises(PatternError) as error:
        go_regex(pattern)
    assert str(error.value) == words


@pytest.mark.parametrize("text", ["9" * 5000, "0x" + "f" * 5000, "9" * 5000 + "u", "18446744073709551616u", "9223372036854775809"])
def test_a_number_that_no_integer_holds_is_a_syntax_error(text: str) -> None:
    with pytest.raises(CelSyntaxError, match=r"invalid u?int literal"):
        parse(f"self.n < {text}")


@pytest.mark.parametrize("name", [{"a": 1}, [1], {}, []])
def test_a_merge_key_that_cannot_be_compared_is_refused(name: object) -> None:
    with pytest.raises(StatusError) as error:
        strategic_patch(POD, {"spec": {"containers": [{"name": name}]}}, schema_of("", "v1", "Pod"))
    assert error.value.code == 422
