"""Messages in a few buffers in place of a struct each: what is made of them, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import msgspec

from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.replies import ReservedRows, WasGot

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[MessageDescriptor]).decode


def pack(
    descriptors: Sequence[MessageDescriptor],
    bodies: Sequence[bytes],
    ordinals: Sequence[int],
    ordinal: int,
    *,
    more: bool,
) -> ReservedRows:
    """Returns these messages, which have these ordinals; what is ``more`` begins at ``ordinal``."""
    return ReservedRows(
        ordinals=list(ordinals),
        descriptors=_encode(descriptors),
        lengths=[len(body) for body in bodies],
        data=b"".join(bodies),
        ordinal=ordinal,
        more=more,
    )


def descriptors_of(rows: ReservedRows) -> list[MessageDescriptor]:
    """Returns the descriptors. Raises msgspec.MsgspecError where they are none."""
    return _decode(rows.descriptors)


def bodies_of(rows: ReservedRows) -> list[bytes]:
    """Returns the data of each message."""
    return [rows.data[first:end] for first, end in pairwise(accumulate(rows.lengths, initial=0))]


def unpacked(rows: ReservedRows) -> list[WasGot]:
    """Returns a struct for each message."""
    return [
        WasGot(descriptor=descriptor, data=data, data_length=len(data))
        for descriptor, data in zip(descriptors_of(rows), bodies_of(rows), strict=True)
    ]
