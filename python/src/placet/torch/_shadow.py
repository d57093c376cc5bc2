"""Where the numbers of the field are kept: beside each storage, one for each of its bytes, so that
every view of a storage finds its own, whatever type it looks at the bytes with."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from . import _field as field

try:
    import numpy as np
except ImportError:  # PyTorch does without
    np = None  # type: ignore[assignment]

_PIECE = 1 << 20  # elements that are read at a time


def _zeros(count: int) -> Tensor:
    """So many zeros, which take memory once they are written to where NumPy is there."""
    if np is None:
        return torch.zeros(count, dtype=torch.int64)
    return torch.from_numpy(np.zeros(count, dtype=np.int64))


class Shadows:
    def __init__(self) -> None:
        self._of: dict[int, tuple[StorageWeakRef, Tensor]] = {}
        self._pending: dict[int, list[Callable[[], None]]] = {}
        self._calls = 0

    @staticmethod
    def _is_plain(tensor: Tensor) -> bool:
        return tensor.device.type == "cpu" and tensor.layout == torch.strided

    def sweep(self) -> None:
        """Forgets storages that are gone; their addresses may be given to others."""
        self._of = {key: kept for key, kept in self._of.items() if not kept[0].expired()}

    def has(self, tensor: Tensor) -> bool:
        return self._is_plain(tensor) and self._find(tensor.untyped_storage()) is not None

    def _find(self, storage: torch.UntypedStorage) -> Tensor | None:
        kept = self._of.get(storage._cdata)
        if kept is None:
            return None
        if kept[0].expired():
            del self._of[storage._cdata]
            return None
        numbers = kept[1]
        if numbers.numel() < storage.nbytes():  # it was made larger
            wider = _zeros(storage.nbytes())
            wider[: numbers.numel()] = numbers
            self._of[storage._cdata] = (kept[0], wider)
            return wider
        return numbers

    def _make(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        numbers = _zeros(storage.nbytes())
        size = tensor.element_size()
        if tensor.dtype.is_floating_point and storage.nbytes():
            whole = torch.empty(0, dtype=tensor.dtype)
            whole.set_(storage, 0, (storage.nbytes() // size,))  # type: ignore[call-overload]
            for begin in range(0, whole.numel(), _PIECE):
                piece = whole[begin : begin + _PIECE]
                if piece.any():  # what an engine reserved and did not use takes no memory here
                    end = begin + piece.numel()
                    numbers[begin * size : end * size : size] = field.numbers(piece)
        self._of[storage._cdata] = (StorageWeakRef(storage), numbers)
        self._calls += 1
        if self._calls % 256 == 0:
            self.sweep()
        return numbers

    def later(self, tensor: Tensor, finish: Callable[[], None]) -> None:
        """What a message brings is waited for when somebody asks for it."""
        self._pending.setdefault(tensor.untyped_storage()._cdata, []).append(finish)

    def of(self, tensor: Tensor) -> Tensor:
        """The numbers of a tensor as a view: what is written there is kept."""
        storage = tensor.untyped_storage()
        for finish in self._pending.pop(storage._cdata, []):
            finish()
        numbers = self._find(storage)
        if numbers is None:
            numbers = self._make(tensor)
        size = tensor.element_size()
        return numbers.as_strided(
            tensor.shape, [s * size for s in tensor.stride()], tensor.storage_offset() * size
        )

    def write(self, tensor: Tensor, numbers: Tensor) -> None:
        self.of(tensor).copy_(
            numbers.reshape(tensor.shape) if numbers.numel() == tensor.numel() else numbers
        )

    def read_anew(self, tensor: Tensor) -> None:
        """The tensor was filled with what no rule says: its numbers are those of its values."""
        if self.has(tensor):
            self.of(tensor).copy_(field.numbers(tensor))
