"""The data that names stand for, read once and kept."""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _placet
from ._errors import InputError
from ._results import Listing

Progress = Callable[[Mapping[str, object]], object]
PathLike = str | os.PathLike[str]


def _shipped() -> str:
    named = os.environ.get("PLACET_DATA")
    root = named or os.path.join(os.path.dirname(__file__), "data")
    if os.path.isdir(root):
        return root
    raise InputError(
        {
            "message": f"the catalogue {root} is not a folder",
            "where": "environment variable PLACET_DATA" if named else "catalogue",
            "value": root,
            "problem": "is not a folder",
            "allowed": "the folder of the catalogue",
            "nearest": "",
        }
    )


class Catalogue:
    """Models, devices, clusters, strategies, engines by name.

    data: folders of your own over the shipped data, the strongest last, as ``--data``. What was
    read is kept; after a change of files, ``forget()``.
    """

    def __init__(self, *, data: PathLike | Sequence[PathLike] = ()) -> None:
        folders = [data] if isinstance(data, (str, os.PathLike)) else [*data]
        for folder in folders:
            if not os.path.isdir(folder):
                raise InputError(
                    {
                        "message": f"--data: '{os.fspath(folder)}' is not a folder",
                        "where": "--data",
                        "value": os.fspath(folder),
                        "problem": "is not a folder",
                        "allowed": "a folder with folders such as engines and strategies in it",
                        "nearest": "",
                    }
                )
        overlays = [os.fspath(folder) for folder in reversed(folders)]
        self._native = _placet.Catalogue(_shipped(), overlays)

    def forget(self) -> None:
        """Reads files anew from now on."""
        self._native.forget()

    def list(self, kind: str, name: str | None = None) -> Listing:
        """What there is: kind is models, devices, clusters, engines, strategies or schedules."""
        request = {"subcommand": kind} if name is None else {"subcommand": kind, "name": name}
        return Listing(self.call(request))

    def call(
        self,
        request: Mapping[str, Any],
        *,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """The answer's document to a request document (docs/formats.md)."""
        is_plan = request.get("subcommand") == "plan"
        text = json.dumps(dict(request))
        status, document, said = self._native.call(text, progress, is_plan and _is_main_thread())
        answer: dict[str, Any] = json.loads(document)
        if status == 2:
            raise InputError(answer["error"])
        for warning in said:
            warnings.warn(warning, stacklevel=3)
        return answer


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


_shared: Catalogue | None = None


def catalogue() -> Catalogue:
    """The catalogue that functions use unless they are given one."""
    global _shared
    if _shared is None:
        _shared = Catalogue()
    return _shared
