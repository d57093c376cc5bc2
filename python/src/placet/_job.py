"""What is trained, and how."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, TypeAlias

from ._module import config_of, is_module


class Config(Protocol):
    """A configuration object such as those of transformers."""

    def to_dict(self) -> dict[str, Any]: ...


class Module(Protocol):
    """A torch.nn.Module, on the meta device or another."""

    def named_parameters(self) -> Any: ...

    def modules(self) -> Any: ...


Word: TypeAlias = str | int | float
Words: TypeAlias = Word | Sequence[Word]
ModelLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | Config | Module | Model"


def _plain(value: Any) -> Any:
    """A configuration's value as JSON has it; None where it has no such form."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


class Model:
    """A model: a name, a path, a count such as 70B, a configuration, what has ``to_dict()``, or a
    torch.nn.Module: by its ``config`` where it has one, as those of transformers do, else by names
    and shapes of its parameters (decoders of the Llama family)."""

    word: str | dict[str, Any]

    def __init__(self, what: ModelLike) -> None:
        if isinstance(what, Model):
            self.word = what.word
        elif isinstance(what, str):
            self.word = what
        elif isinstance(what, os.PathLike):
            self.word = os.fspath(what)
        elif isinstance(what, Mapping):
            self.word = _plain(what)
        elif callable(config := getattr(what, "to_dict", None)):
            self.word = _plain(config())
        elif is_module(what):
            config = getattr(getattr(what, "config", None), "to_dict", None)
            self.word = _plain(config() if callable(config) else config_of(what))
        else:
            raise TypeError(
                "a model is a name, a path, a dict, a configuration with to_dict() or a module, "
                "not " + type(what).__name__
            )

    def __repr__(self) -> str:
        return f"Model({self.word!r})"


@dataclass(kw_only=True)
class Job:
    """The words of a job, as flags and job files have them."""

    model: ModelLike | None = None
    job: str | os.PathLike[str] | None = None
    cluster: str | None = None
    placement: str | Sequence[str] | None = None
    seq: Word | None = None
    lengths: str | None = None
    global_batch: Word | None = None
    micro_batch: Word | None = None
    recompute: str | None = None
    precision: str | None = None
    optimizer: str | None = None
    freeze: str | Sequence[str] | None = None
    ignore_key: str | Sequence[str] | None = None
    lora: Word | None = None
    loss: str | None = None
    clip: Word | None = None
    routing: str | None = None
    balance_loss: str | None = None
    engine: str | None = None

    def request(self) -> dict[str, Any]:
        """The words that were said, under the names of the flags."""
        out: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            if field.name == "model":
                value = Model(value).word
            elif isinstance(value, os.PathLike):
                value = os.fspath(value)
            out[field.name.replace("_", "-")] = value
        return out
