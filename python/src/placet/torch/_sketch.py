"""Numbers that stand for tensors: digests of their bits, and sketches that sums and means keep.

Tensors are read in rows of `_ROW` numbers, each beside the same row of random weights, a few rows
at a time, so that either number costs some passes over the tensor and some 100 MB. Weights are
the same on all ranks, whatever their devices.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

_ROW = 1 << 20
_MOST_ROWS = 8  # read at a time: what is made on the way stays small
_WHOLE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def local(tensor: Tensor) -> Tensor:
    """The rank's own part of a tensor."""
    inner = getattr(tensor, "_local_tensor", None)
    return (inner if isinstance(inner, Tensor) else tensor).detach()


def _drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@functools.lru_cache(maxsize=8)
def _odd_numbers(device: torch.device) -> Tensor:
    drawn = torch.randint(-(2**30), 2**30, (_ROW,), generator=_drawn(1), dtype=torch.int32)
    return (2 * drawn + 1).to(device)


@functools.lru_cache(maxsize=8)
def _signs(device: torch.device) -> Tensor:
    return (2.0 * torch.randint(0, 2, (_ROW,), generator=_drawn(2)) - 1.0).to(device)


def _mixed(number: int) -> int:
    """A number of 62 bits that looks like none of its neighbours' (splitmix64)."""
    number = (number + 1) * 0x9E3779B97F4A7C15 % 2**64
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    number = (number ^ number >> 27) * 0x94D049BB133111EB % 2**64
    return (number ^ number >> 31) >> 2


def _stirred(numbers: Tensor) -> Tensor:
    """Each number of 32 bits by another, high bits into low ones and back, in place."""
    for shift, odd in ((16, 0x2C1B3C6D), (15, 0x297A2D39)):
        numbers ^= (numbers >> shift) & ((1 << (32 - shift)) - 1)  # as if they had no sign
        numbers *= odd
    return numbers


def digest(tensor: Tensor) -> Tensor:
    """A number of 64 bits for the bits of a tensor and where they stand. No single entry can
    change without it: each is weighed by an odd number and its bits are stirred, so that changes
    of several do not cancel, and rows are weighed by odd numbers once more."""
    flat = local(tensor).contiguous().view(-1)
    bits = flat.view(_WHOLE[flat.element_size()])
    if bits.dtype == torch.int64:
        bits = bits.view(torch.int32)
    odd = _odd_numbers(bits.device)
    sums = []
    for at in range(0, bits.numel(), _ROW * _MOST_ROWS):
        piece = bits[at : at + _ROW * _MOST_ROWS].to(torch.int32)
        whole = piece.numel() // _ROW * _ROW
        if whole:
            sums.append(_stirred(piece[:whole].view(-1, _ROW) * odd).sum(1))
        if whole < piece.numel():
            sums.append(_stirred(piece[whole:] * odd[: piece.numel() - whole]).sum().view(1))
    if not sums:
        return torch.zeros((), dtype=torch.int64, device=bits.device)
    rows = torch.cat(sums)
    weights = torch.tensor([2 * _mixed(row) + 1 for row in range(rows.numel())], dtype=torch.int64)
    return (rows * weights.to(rows.device)).sum()


def sketch(tensor: Tensor, seed: int, begin: int = 0) -> Tensor:
    """The product of a tensor's numbers with signs, and with themselves: two numbers in fp32.
    `begin` is where the tensor stands in the one that the signs are drawn for."""
    flat = tensor.detach().reshape(-1)
    with torch.autocast(flat.device.type, enabled=False):  # a hook may run inside of one
        return _sketched(flat, seed, begin)


def _sketched(flat: Tensor, seed: int, begin: int) -> Tensor:
    total = torch.zeros(2, device=flat.device)
    at = 0
    while at < flat.numel():
        row, column = divmod(begin + at, _ROW)
        full = flat.numel() - at >= _ROW and column == 0
        rows = min((flat.numel() - at) // _ROW, _MOST_ROWS) if full else 1
        length = rows * _ROW if full else min(flat.numel() - at, _ROW - column)
        piece = flat[at : at + length].float()
        products = piece.view(rows, -1) @ _signs(flat.device)[column : column + length // rows]
        turns = [float(2 * (_mixed((seed << 32) + row + r) & 1) - 1) for r in range(rows)]
        signed = products @ torch.tensor(turns, device=flat.device)
        total = total + torch.stack([signed, piece @ piece])
        at += length
    return total
