"""Numbers on the command line, with bounds: what is outside of them is a wrong argument."""

import argparse
from collections.abc import Callable

__all__ = ("seconds", "whole_number")


def whole_number(most: int, least: int = 1) -> Callable[[str], int]:
    """A type for arguments of argparse: whole numbers from `least` to `most`."""

    def number(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return number


def seconds(most: int) -> Callable[[str], float]:
    """A type for arguments of argparse: durations above 0 and up to `most` seconds."""

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 < value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0 and up to {most}")
        return value

    return number
