"""Placet beside PyTorch: check a script, record what it sends, guard a run.

PyTorch is read when something is used that needs it.
"""

from __future__ import annotations

from typing import Any

_FROM = {
    "Guard": "_guard",
    "GuardError": "_guard",
    "Options": "_session",
    "Recorder": "_recorder",
    "audit": "_audit",
    "check": "_check",
    "fit": "_fit",
    "guard": "_guard",
}
__all__ = [*_FROM]


def __getattr__(name: str) -> Any:
    if name in _FROM:
        import importlib

        return getattr(importlib.import_module(f".{_FROM[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
