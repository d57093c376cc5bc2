"""Sees every operator and message of a script while it runs."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from . import _layers as _layers  # its formulas
from . import _messages
from ._messages import Exchange, Message
from ._operators import Applied, evaluated, name_of, table
from ._places import Places
from ._shadow import Shadows

_PLAIN = torch._C._disabled_torch_dispatch_impl


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for one in value for tensor in _tensors(one)]
    return []


def _is_plain(tensor: Tensor) -> bool:
    """Whether it has memory of its own that can be read."""
    return tensor.device.type == "cpu" and type(tensor).__torch_dispatch__ is _PLAIN


class Watch(TorchDispatchMode):
    """Calls `message` for each collective or message, and lets `operator` run all else.

    Subclasses of tensors (DTensor and such) take themselves apart first, so that only plain
    tensors are seen.
    """

    def __init__(self) -> None:
        super().__init__()
        self.places = Places()
        self.phase = "forward"
        _messages.watch_reductions()
        _messages.hide_waiting()

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if any(issubclass(one, FakeTensor) for one in types):
            return op(*args, **kwargs)
        if any(one.__torch_dispatch__ is not _PLAIN for one in types):
            return NotImplemented
        message = _messages.message_of(op, args, kwargs)
        if message is not None:
            return self.message(message, op, args, kwargs)
        return self.operator(op, args, kwargs)

    def phase_now(self) -> str:
        return "backward" if torch._C._current_autograd_node() is not None else self.phase

    def message(self, message: Message, op: Any, args: Any, kwargs: Any) -> Any:
        return op(*args, **kwargs)

    def operator(self, op: Any, args: Any, kwargs: Any) -> Any:
        return op(*args, **kwargs)


class FieldWatch(Watch):
    """Runs everything over the field too (_field.py). `unknown`: operators without a rule."""

    def __init__(self) -> None:
        super().__init__()
        self.shadows = Shadows()
        self.exchange = Exchange(self.shadows)
        self.unknown: dict[str, int] = {}
        self.operators = 0

    @contextlib.contextmanager
    def aside(self) -> Any:
        """What is done inside is not looked at."""
        with _disable_current_modes():
            yield

    def seen(self, outputs: list[Tensor], message: Message | None) -> None:
        """For those who want to know what values there are."""

    def message(self, message: Message, op: Any, args: Any, kwargs: Any) -> Any:
        kept = self.exchange.before(message)
        out = op(*args, **kwargs)
        if not message.outputs:
            message.outputs = _tensors(out)
        self.exchange.after(message, kept)
        if message.kind != "receive":
            self.seen([t for t in message.outputs if t.dtype.is_floating_point], message)
        return out

    def operator(self, op: Any, args: Any, kwargs: Any) -> Any:
        if op.namespace in ("profiler", "prim"):
            return op(*args, **kwargs)
        if op._schema.name.startswith("aten::_foreach"):
            return self._each(op, args, kwargs)
        return self._one(op, args, kwargs)

    def _touch(self, values: Any) -> None:
        """Reads numbers off values before an operator changes these."""
        for tensor in _tensors(values):
            if tensor.dtype.is_floating_point and not self.shadows.has(tensor):
                if tensor.device.type == "cpu":
                    self.shadows.of(tensor)

    def _one(self, op: Any, args: Any, kwargs: Any) -> Any:
        inputs = [*_tensors(list(args)), *_tensors(list(kwargs.values()))]
        if not all(_is_plain(one) for one in inputs):
            return op(*args, **kwargs)
        if name_of(op) in ("set", "resize"):
            return op(*args, **kwargs)
        is_value = name_of(op) in table()["values"]
        if not is_value and not op.is_view:
            self._touch(inputs)
        out = op(*args, **kwargs)
        if not all(_is_plain(one) for one in _tensors(out)):
            return out
        if op.is_view and not op._schema.is_mutable:
            self._note_place()
            return out
        self._evaluate(op, args, kwargs, out, inputs, is_value)
        return out

    def _note_place(self) -> None:
        if torch._C._current_autograd_node() is None and torch.is_grad_enabled():
            self.places.note_forward(self.places.here())

    def _evaluate(
        self, op: Any, args: Any, kwargs: Any, out: Any, inputs: list[Tensor], is_value: bool
    ) -> None:
        outputs = _tensors(out)
        written = self._written(op, args, kwargs)
        if not outputs and not written:
            if name_of(op) == "_local_scalar_dense" or is_value:
                return
        self._note_place()
        if is_value:
            for one in outputs or written:
                self.shadows.read_anew(one)
            return
        if not any(t.dtype.is_floating_point or self.shadows.has(t) for t in [*inputs, *outputs]):
            return
        a = Applied(op, args, kwargs, self.shadows)
        a.results = out
        numbers, known = evaluated(a, outputs)
        self.operators += 1
        if not known:
            self.unknown[str(op)] = self.unknown.get(str(op), 0) + 1
        wanted = [one for one in outputs]
        for at, one in enumerate(wanted):
            if at >= len(numbers):
                break
            self._store(one, numbers[at], inputs)
        self.seen([t for t in outputs if t.dtype.is_floating_point], None)

    def _store(self, out: Tensor, numbers: Tensor | None, inputs: list[Tensor]) -> None:
        if numbers is None:
            self.shadows.read_anew(out)
        elif out.dtype.is_floating_point or any(
            self.shadows.has(t) for t in inputs if not t.dtype.is_floating_point
        ):
            self.shadows.of(out).copy_(
                numbers.expand(out.shape) if numbers.dim() == 0 else numbers.reshape(out.shape)
            )

    @staticmethod
    def _written(op: Any, args: Any, kwargs: Any) -> list[Tensor]:
        out: list[Tensor] = []
        for at, argument in enumerate(op._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = args[at] if at < len(args) else kwargs.get(argument.name)
                out += _tensors(value)
        return out

    def _each(self, op: Any, args: Any, kwargs: Any) -> Any:
        """An operator over lists: one after the other."""
        names = {"tensors1": "end", "scalars": "scalar", "weights": "weight"}
        self._touch([list(args), list(kwargs.values())])
        before = Applied(op, args, kwargs, self.shadows)
        out = op(*args, **kwargs)
        if name_of(op) in ("zero", "fill"):
            for one in _tensors(list(args)):
                self.shadows.read_anew(one)
            return out
        lists = {k: v for k, v in before.given.items() if isinstance(v, (list, tuple)) and v}
        count = len(next(iter(lists.values())))
        outputs = _tensors(out) or self._written(op, args, kwargs)
        self.operators += count
        for at in range(count):
            a = Applied(op, (), {}, self.shadows)
            a.given = {
                names.get(k, k): v[at] if k in lists and len(v) == count else v
                for k, v in before.given.items()
            }
            numbers, known = evaluated(a, [outputs[at]])
            if not known:
                self.unknown[str(op)] = self.unknown.get(str(op), 0) + 1
            self._store(outputs[at], numbers[0] if numbers else None, [])
        self.seen([t for t in outputs if t.dtype.is_floating_point], None)
        return out
