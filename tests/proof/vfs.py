"""SQLite on a :class:`tests.proof.disk.Disk`: the file system's part of apsw, with the promises Linux makes."""

from __future__ import annotations

import ctypes
from pathlib import Path

import apsw

from tests.proof.disk import Disk, Op

# What SQLite's own "unix" says of files on Linux: a write that is torn damages nothing beside it.
CHARACTERISTICS = apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE | apsw.SQLITE_IOCAP_SUBPAGE_READ
SECTOR_SIZE = 4096


class DiskFile:
    """An open file. There is no shared memory: exclusive locking needs none."""

    def __init__(self, disk: Disk, name: str) -> None:
        self._disk = disk
        self._name = name

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._disk.ask("read")
        return bytes(self._disk.files[self._name].seen[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.do(Op("write", self._name, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._disk.do(Op("truncate", self._name, size))

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.do(Op("sync", self._name))

    def xFileSize(self) -> int:  # noqa: N802
        return len(self._disk.files[self._name].seen)

    def xLock(self, level: int) -> None:  # noqa: N802
        pass

    def xUnlock(self, level: int) -> None:  # noqa: N802
        pass

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:  # noqa: N802
        if op == apsw.SQLITE_FCNTL_MMAP_SIZE:
            ctypes.c_int64.from_address(pointer).value = 0  # nothing is mapped, and asking for nothing else is heard
            return True
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return SECTOR_SIZE

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return CHARACTERISTICS

    def xClose(self) -> None:  # noqa: N802
        pass


class DiskVfs(apsw.VFS):
    """The file system of one disk at a time: put another into ``disk`` between two openings."""

    def __init__(self, name: str) -> None:
        super().__init__(name, base="")
        self.name = name
        self.disk = Disk()

    def xOpen(self, path: object, flags: list[int]) -> DiskFile:  # noqa: N802
        name = Path(path if isinstance(path, str) else path.filename()).name
        if name not in self.disk.files:
            self.disk.do(Op("create", name))
        flags[1] = flags[0]
        return DiskFile(self.disk, name)

    def xAccess(self, path: str, flags: int) -> bool:  # noqa: N802
        return Path(path).name in self.disk.files

    def xDelete(self, path: str, sync_directory: bool) -> None:  # noqa: N802
        name = Path(path).name
        if name in self.disk.files:
            self.disk.do(Op("delete", name, int(sync_directory)))

    def xFullPathname(self, path: str) -> str:  # noqa: N802
        return path


# SQLite forgets a file system that nobody in Python holds.
VFS = DiskVfs("trigmon-proof")
