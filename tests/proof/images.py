"""What a crash leaves of a disk: its files as a restart finds them.

``kept`` is what the death of a process alone leaves, the others are power cuts.
"""

from __future__ import annotations

import random

from tests.proof.disk import SECTOR, Disk, Op, written

Files = dict[str, bytes]


def kept(disk: Disk) -> Files:
    """Everything that was written, synced or not: what a process leaves that was killed."""
    return {name: bytes(file.seen) for name, file in disk.files.items()}


def dropped(disk: Disk, chance: random.Random) -> Files:
    """Nothing that was not synced."""
    return _image(disk, chance, lambda op: [])


def some_kept(disk: Disk, chance: random.Random) -> Files:
    """Each write kept or dropped, whatever became of the others."""
    odds = chance.random()
    return _image(disk, chance, lambda op: [op] if chance.random() < odds else [])


def cut_short(disk: Disk, chance: random.Random) -> Files:
    """The first writes of each file kept, the rest dropped."""
    left = chance.randint(0, max((len(file.pending) for file in disk.files.values()), default=0))
    kept_of: dict[str, int] = {}

    def choose(op: Op) -> list[Op]:
        kept_of[op.name] = kept_of.get(op.name, 0) + 1
        return [op] if kept_of[op.name] <= left else []

    return _image(disk, chance, choose)


def torn(disk: Disk, chance: random.Random) -> Files:
    """Each sector of each write kept or dropped by itself."""
    odds = chance.random()

    def choose(op: Op) -> list[Op]:
        if op.kind == "truncate":
            return [op] if chance.random() < odds else []
        return [piece for piece in _sectors(op) if chance.random() < odds]

    return _image(disk, chance, choose)


POWER_CUTS = (dropped, some_kept, cut_short, torn)


def _image(disk: Disk, chance: random.Random, choose) -> Files:
    names = [*disk.deleted.items(), *((name, file) for name, file in disk.files.items() if not file.lasts)]
    there = {name: file for name, file in names if chance.random() < 0.5}
    there |= {name: file for name, file in disk.files.items() if file.lasts}
    files = {}
    for name, file in there.items():
        data = bytearray(file.synced)
        for op in file.pending:
            for piece in choose(op):
                written(data, piece)
        files[name] = bytes(data)
    return files


def _sectors(op: Op) -> list[Op]:
    """A write as the disk's sectors see it."""
    pieces = []
    start, end = op.offset, op.offset + len(op.data)
    while start < end:
        stop = min(end, (start // SECTOR + 1) * SECTOR)
        pieces.append(Op("write", op.name, start, op.data[start - op.offset : stop - op.offset]))
        start = stop
    return pieces
