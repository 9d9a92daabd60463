"""Messages in a few buffers in place of a struct each: what is made of them, and the way back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

import msgspec

from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.replies import ReservedRows

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[MessageDescriptor]).decode


def encoded(descriptors: Iterable[MessageDescriptor]) -> list[bytes]:
    """Returns each descriptor as MessagePack, as stores have it."""
    return [_encode(descriptor) for descriptor in descriptors]


def pack(
    descriptors: Sequence[bytes], bodies: Sequence[bytes], ordinals: list[int], ordinal: int, *, more: bool
) -> ReservedRows:
    """Returns these messages, which have these ordinals; what is ``more`` begins at ``ordinal``."""
    return ReservedRows(
        ordinals=ordinals,
        descriptors=b"".join((_head_of_array(len(descriptors)), *descriptors)),
        lengths=[len(body) for body in bodies],
        data=b"".join(bodies),
        ordinal=ordinal,
        more=more,
    )


def _head_of_array(count: int) -> bytes:
    """Returns what MessagePack writes before the members of an array."""
    if count < 16:
        return bytes((0x90 | count,))
    return b"\xdc" + count.to_bytes(2, "big") if count < 1 << 16 else b"\xdd" + count.to_bytes(4, "big")


def descriptors_of(rows: ReservedRows) -> list[MessageDescriptor]:
    """Returns the descriptors. Raises msgspec.MsgspecError where they are none, ValueError for another number."""
    descriptors = _decode(rows.descriptors)
    if len(descriptors) != len(rows.ordinals):
        raise ValueError(f"{len(rows.ordinals)} messages have {len(descriptors)} descriptors")
    return descriptors


def bodies_of(rows: ReservedRows) -> list[bytes]:
    """Returns the data of each message."""
    return [rows.data[first:end] for first, end in pairwise(accumulate(rows.lengths, initial=0))]
