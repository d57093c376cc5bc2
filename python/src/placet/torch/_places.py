"""Where in the user's own files something is done: lines of a Python stack, also in backward."""

from __future__ import annotations

import os
import sys

import torch

_OURS = os.path.dirname(os.path.abspath(__file__))
_LIBRARIES = (
    f"{os.sep}site-packages{os.sep}",
    f"{os.sep}dist-packages{os.sep}",
    "<frozen",
    "<string",
)


class Places:
    """Lines of files that belong to no library."""

    def __init__(self) -> None:
        self._forward: dict[int, str] = {}
        self._standard = os.path.dirname(os.__file__) + os.sep
        self._known: dict[str, bool] = {}

    def _is_users(self, name: str) -> bool:
        known = self._known.get(name)
        if known is None:
            full = os.path.abspath(name)
            known = not any(one in name for one in _LIBRARIES) and not full.startswith(
                (self._standard, _OURS)
            )
            self._known[name] = known
        return known

    def here(self) -> str:
        """ "train.py:31", of the innermost line of the user; empty where there is none."""
        frame = sys._getframe(1)
        while frame is not None:
            if self._is_users(frame.f_code.co_filename):
                name = os.path.relpath(frame.f_code.co_filename)
                name = name if not name.startswith("..") else frame.f_code.co_filename
                return f"{name}:{frame.f_lineno}"
            frame = frame.f_back  # type: ignore[assignment]
        return ""

    def note_forward(self, place: str) -> None:
        """Backward of what is computed now was asked for on this line."""
        self._forward[torch._C._autograd._get_sequence_nr() - 1] = place

    def in_backward(self) -> str | None:
        """In backward: the line of the forward pass; empty if not known. Else None."""
        node = torch._C._current_autograd_node()
        if node is None:
            return None
        return self._forward.get(node._sequence_nr(), "")
