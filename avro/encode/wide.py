"""Whole numbers of up to 256 bits in columns: limbs of 64 bits, lowest first, two's complement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from duolog.avro.encode.buffers import numbers

if TYPE_CHECKING:
    import numpy.typing as npt

    Limbs: TypeAlias = tuple[npt.NDArray[np.uint64], ...]

LIMB_BITS: Final = 64
_LIMB_MASK: Final = (1 << LIMB_BITS) - 1
_LIMB_DIGITS: Final = ((1, 18), (2, 38), (4, 76))  # that any decimal of so many digits fits into
_HALF_BITS: Final = np.uint64(32)
_LOW_HALF: Final = np.uint64((1 << 32) - 1)
_POWER_STEP: Final = 9  # 10**9 times half a limb, and a carry, fit into a limb


def limbs_of(values: pa.Array) -> Limbs:
    """The numbers of a decimal or unsigned column without their point, in as few limbs as do."""
    if pa.types.is_uint64(values.type):
        low = numbers(values, np.uint64)
        return (low, np.zeros_like(low)) if int(low.max()) >> 63 else (low,)
    bits = values.type.bit_width
    if bits <= LIMB_BITS:
        return (numbers(values, f"i{bits // 8}").astype(np.int64).view(np.uint64),)
    count = bits // LIMB_BITS
    start, end = values.offset * count, (values.offset + len(values)) * count
    table = np.frombuffer(values.buffers()[1], np.uint64, end)[start:].reshape(-1, count)
    low = np.ascontiguousarray(table[:, 0])
    if int(low.view(np.int64).min()) > -(1 << 63):  # whose magnitude would need one bit more
        sign = sign_of((low,))
        if all(np.array_equal(table[:, place], sign) for place in range(1, count)):
            return (low,)
    return (low, *(np.ascontiguousarray(table[:, place]) for place in range(1, count)))


def sign_of(limbs: Limbs) -> npt.NDArray[np.uint64]:
    """The limb that would come next: all ones below zero."""
    return (limbs[-1].view(np.int64) >> 63).view(np.uint64)


def beyond(limbs: Limbs, bound: int) -> npt.NDArray[np.bool_] | None:
    """Which numbers are above `bound` or below minus it; None when none is."""
    if bound >> (LIMB_BITS * len(limbs) - 1):
        return None
    outside = _compared(limbs, bound, above=True) | _compared(limbs, -bound, above=False)
    return outside if outside.any() else None


def _compared(limbs: Limbs, bound: int, *, above: bool) -> npt.NDArray[np.bool_]:
    last = len(limbs) - 1
    decided: npt.NDArray[np.bool_] = np.zeros(len(limbs[0]), np.bool_)
    tied = ~decided
    for place in range(last, -1, -1):
        limb = limbs[place].view(np.int64) if place == last else limbs[place]
        whole = bound >> LIMB_BITS * place
        part: Any = np.int64(whole) if place == last else np.uint64(whole & _LIMB_MASK)
        decided |= tied & (limb > part if above else limb < part)
        tied &= limb == part
    return decided


def times_ten(limbs: Limbs, power: int, digits: int) -> Limbs:
    """Each number times ten to this power, which has at most so many digits."""
    if not power:
        return limbs
    wanted = next(count for count, most in _LIMB_DIGITS if digits <= most)
    limbs += (sign_of(limbs),) * (wanted - len(limbs))
    halves = [half for limb in limbs for half in (limb & _LOW_HALF, limb >> _HALF_BITS)]
    for begin in range(0, power, _POWER_STEP):
        factor = np.uint64(10 ** min(_POWER_STEP, power - begin))
        carry: Any = np.uint64(0)
        for place, half in enumerate(halves):
            product = half * factor + carry
            halves[place] = product & _LOW_HALF
            carry = product >> _HALF_BITS
    return tuple(
        low | high << _HALF_BITS for low, high in zip(halves[::2], halves[1::2], strict=True)
    )


def magnitude_bytes(limbs: Limbs) -> npt.NDArray[np.int64]:
    """How many bytes hold the number's magnitude and a sign bit."""
    sizes = np.ones(len(limbs[0]), np.int64)
    larger: npt.NDArray[np.bool_] | None = None
    for limb in reversed(_magnitudes(limbs)):
        own = np.zeros(len(limb), np.int64)
        highest = int(limb.max())
        for bits in range(7, LIMB_BITS, 8):
            if highest >> bits:
                own += limb >= np.uint64(1 << bits)
        if larger is not None:
            own[larger] = LIMB_BITS // 8
        sizes += own
        larger = limb > 0 if larger is None else larger | (limb > 0)
    return sizes


def _magnitudes(limbs: Limbs) -> list[npt.NDArray[np.uint64]]:
    flip = sign_of(limbs)
    carry = flip & np.uint64(1)
    magnitudes = []
    for limb in limbs:
        flipped = (limb ^ flip) + carry
        carry &= (flipped == 0).view(np.uint8)
        magnitudes.append(flipped)
    return magnitudes


def big_endian(limb: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The limb with its highest byte first in memory."""
    return limb.astype(">u8").view("<u8")
