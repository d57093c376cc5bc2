"""The one exception for wrong input."""

from __future__ import annotations

from collections.abc import Mapping


class InputError(ValueError):
    """Something that was given cannot mean anything.

    where: the flag or the file and key; value: what was given; allowed: what would be right;
    nearest: the nearest right spelling. Parts that do not apply are empty.
    """

    where: str
    value: str
    problem: str
    allowed: str
    nearest: str

    def __init__(self, fault: Mapping[str, str]) -> None:
        super().__init__(fault["message"])
        self.where = fault["where"]
        self.value = fault["value"]
        self.problem = fault["problem"]
        self.allowed = fault["allowed"]
        self.nearest = fault["nearest"]
