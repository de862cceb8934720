"""The line splitter: same lines however the bytes are cut."""

import pytest

from controllers.runtime.lines import LineSplitter, LineTooLong

TEXT = b'{"a":1}\n\n{"b":"' + "ü".encode() * 40 + b'"}\n\r\n{"c":3}\n'
LINES = [b'{"a":1}', b'{"b":"' + "ü".encode() * 40 + b'"}', b'{"c":3}']


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 8, 9, 50, 1000])
def test_cut_anywhere(size: int) -> None:
    splitter = LineSplitter()
    got = [line for i in range(0, len(TEXT), size) for line in splitter.feed(TEXT[i : i + size])]
    assert got == LINES
    assert not splitter.partial


def test_partial_line_is_kept_back() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"one\ntw") == [b"one"]
    assert splitter.partial
    assert splitter.feed(b"o\n") == [b"two"]
    assert not splitter.partial


def test_limit_of_a_line_is_exact_and_counts_across_chunks() -> None:
    splitter = LineSplitter(limit=10)
    assert splitter.feed(b"01234") == []
    assert splitter.feed(b"56789\n0123456789") == [b"0123456789"]
    with pytest.raises(LineTooLong):
        splitter.feed(b"x")


def test_long_line_inside_one_chunk() -> None:
    with pytest.raises(LineTooLong):
        LineSplitter(limit=10).feed(b"a\n01234567890\nb\n")
