"""Messages that rows are made of, however they came. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import accumulate

import pyarrow as pa

from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.packed_messages import bodies_of, descriptors_of
from trigmon.mq.replies import ReservedRows, WasGot
from trigmon.mq.rfh2 import Properties, without_properties


class Messages:
    """Messages with their ordinals. Data and descriptors are made when a column, or an error, needs them."""

    def __init__(
        self,
        ordinals: Sequence[int],
        bodies: Callable[[], Sequence[bytes]],
        descriptors: Callable[[], Sequence[MessageDescriptor]],
    ) -> None:
        self.ordinals = ordinals
        self._make_bodies = bodies
        self._make_descriptors = descriptors

    @classmethod
    def of_got(cls, got: Sequence[WasGot], ordinals: Sequence[int]) -> Messages:
        """Returns messages that came a struct each."""
        return cls(ordinals, lambda: [one.data for one in got], lambda: [one.descriptor for one in got])

    def __len__(self) -> int:
        return len(self.ordinals)

    @cached_property
    def bodies(self) -> Sequence[bytes]:
        """The data of each."""
        return self._make_bodies()

    @cached_property
    def descriptors(self) -> Sequence[MessageDescriptor]:
        """The descriptor of each."""
        return self._make_descriptors()

    def data(self, kind: pa.DataType) -> pa.Array:
        """Returns the data as a column."""
        return pa.array(self.bodies, kind)

    @cached_property
    def parted(self) -> tuple[Messages, list[Properties]]:
        """The messages behind their headers, and the properties of each."""
        parts = list(map(without_properties, self.descriptors, self.bodies))
        inner = Messages(self.ordinals, lambda: [data for _, data, _ in parts], lambda: [each for each, *_ in parts])
        return inner, [properties for *_, properties in parts]

    def take(self, places: Sequence[int]) -> Messages:
        """Returns the messages at these places."""
        return Messages(
            [self.ordinals[at] for at in places],
            lambda: [self.bodies[at] for at in places],
            lambda: [self.descriptors[at] for at in places],
        )


class PackedMessages(Messages):
    """Messages that came in buffers, of which ``data`` becomes a column as it is."""

    def __init__(self, rows: ReservedRows) -> None:
        """Raises ValueError where the data is not that of as many messages; descriptors are counted when decoded."""
        super().__init__(rows.ordinals, partial(bodies_of, rows), partial(descriptors_of, rows))
        lengths = rows.lengths
        if len(lengths) != len(rows.ordinals) or sum(lengths) != len(rows.data) or min(lengths, default=0) < 0:
            raise ValueError(f"{len(rows.ordinals)} messages have {len(lengths)} lengths, or other data")
        self._rows = rows

    def data(self, kind: pa.DataType) -> pa.Array:
        """Returns the data as a column: as Arrow's binary it has the buffer itself."""
        if kind != pa.binary():
            return super().data(kind)
        ends = pa.array(list(accumulate(self._rows.lengths, initial=0)), pa.int32())
        return pa.Array.from_buffers(kind, len(self), [None, ends.buffers()[1], pa.py_buffer(self._rows.data)])
