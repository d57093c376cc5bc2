"""Numbers of the field F_p, p = 2**31 - 1, kept as int64 tensors: what a step is judged over.

A training step is run a second time over this field, beside its floating-point run. Sums, products
and quotients are exact there, so that values that are equal over the reals are equal to the bit,
in whatever order and on however many ranks they were added up. Of any other function only this is
used: equal arguments give equal values. It is replaced by a hash of its arguments, so a step that
is equal here is equal whatever those functions are, but for the probability that two different
polynomials meet at a random point (at most degree / p for each entry).
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from fractions import Fraction

import torch
from torch import Tensor

P = 2**31 - 1
_LOW = 1 << 16
_A, _B, _C = 0x2545F4914F6CDD1D, 0x1CE4E5B9BF58476D, 0x133111EB94D049BB
SEED = int(os.environ.get("PLACET_TORCH_SEED", "1"))


def salt_of(*words: object) -> int:
    """A number for a function: equal for equal names and options."""
    text = repr((SEED, *words)).encode()
    return (zlib.crc32(text) << 31) ^ zlib.crc32(text[::-1])


def scramble(x: Tensor, salt: int) -> Tensor:
    """A hash of each number, in the field."""
    h = x * _A + salt
    h = (h ^ ((h >> 31) & 0x1FFFFFFFF)) * _B
    h = (h ^ ((h >> 29) & 0x7FFFFFFFF)) * _C
    h = h ^ ((h >> 32) & 0xFFFFFFFF)
    return (h & 0x7FFFFFFFFFFFFFFF) % P


def function(salt: int, *arguments: Tensor) -> Tensor:
    """An unknown function of the arguments, entry by entry (they are broadcast)."""
    h: Tensor = torch.zeros((), dtype=torch.int64)
    for argument in arguments:
        h = scramble(h * 0x10001 + argument, salt)
    return h if arguments else scramble(h, salt)


def digest(x: Tensor) -> Tensor:
    """One number for all entries and their places."""
    flat = x.reshape(-1)
    at = scramble(torch.arange(flat.numel()), 77)
    total: Tensor = (scramble(flat + at * 3, 99)).sum() % P
    return total


def inverse(x: Tensor) -> Tensor:
    """x**(p - 2): 1/x, and 0 for 0."""
    out = torch.ones_like(x)
    power, left = x % P, P - 2
    while left:
        if left & 1:
            out = out * power % P
        power = power * power % P
        left >>= 1
    return out


def power(x: Tensor, n: int) -> Tensor:
    if n < 0:
        return inverse(power(x, -n))
    out = torch.ones_like(x)
    for _ in range(n):
        out = out * x % P
    return out


def bilinear(f: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor) -> Tensor:
    """f(a, b) for an f that is linear in both, from four products of halves, exact in doubles as
    long as f adds up fewer than 2**21 products."""
    a0, a1 = (a % _LOW).double(), (a // _LOW).double()
    b0, b1 = (b % _LOW).double(), (b // _LOW).double()
    high = f(a1, b1).long() % P
    middle = (f(a1, b0) + f(a0, b1)).long() % P
    low = f(a0, b0).long() % P
    return ((high * _LOW % P + middle) * _LOW + low) % P


def matmul(a: Tensor, b: Tensor) -> Tensor:
    return bilinear(torch.matmul, a, b)


def small_fraction(x: float) -> Fraction | None:
    """The fraction that a person meant by x: of at most 10**5 parts, or of at most 9 digits."""
    if x == int(x):
        return Fraction(int(x))
    near = Fraction(x).limit_denominator(10**5)
    if float(near) == x:
        return near
    text = repr(x)
    digits = text.split("e")[0].replace(".", "").replace("-", "").lstrip("0")
    return Fraction(text) if len(digits) <= 9 else None


def number(x: float | int | bool) -> int:
    """A number of the program's text, or one that no tensor of the field belongs to."""
    if isinstance(x, (bool, int)):
        return int(x) % P
    if x != x or x in (float("inf"), float("-inf")):
        return salt_of("not finite", repr(x)) % P
    exact = small_fraction(x)
    if exact is not None:
        return exact.numerator * pow(exact.denominator, P - 2, P) % P
    bits = struct.unpack("<i", struct.pack("<f", x))[0] if abs(x) < 3e38 else 7
    return int(scramble(torch.tensor(bits), salt_of("bits")))


def numbers(x: Tensor) -> Tensor:
    """The same of a tensor: whole numbers and multiples of 1/1024 as they are, of others a hash of
    their bits in single precision, so that what is equal everywhere stays equal."""
    if x.dim() == 0 and x.dtype.is_floating_point:
        return torch.tensor(number(float(x)))
    if not x.dtype.is_floating_point:
        return x.long() % P
    wide = x.double() * 1024
    exact = (wide == wide.round()) & (wide.abs() < 2**53)
    whole = torch.where(exact, wide, torch.zeros_like(wide)).long() % P * pow(1024, P - 2, P) % P
    bits = x.float().contiguous().view(torch.int32).long()
    return torch.where(exact, whole, scramble(bits, salt_of("bits")))


def fraction_of(x: int, limit: int = 20000) -> Fraction | None:
    """The fraction of small parts that a number of the field is, if there is one."""
    r0, r1, t0, t1 = P, x % P, 0, 1
    while r1 > limit:
        q = r0 // r1
        r0, r1, t0, t1 = r1, r0 - q * r1, t1, t0 - q * t1
    if t1 == 0 or abs(t1) > limit:
        return None
    return Fraction(r1, t1) if t1 > 0 else Fraction(-r1, -t1)
