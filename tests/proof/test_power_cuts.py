"""Whatever a power cut keeps, drops or tears: what was acknowledged is there, and nothing else."""

import pytest

from tests.proof.amounts import NORMAL, SLOW
from tests.proof.disk import Disk, Op
from tests.proof.images import POWER_CUTS, dropped, kept
from tests.proof.power_cuts import cut_power
from trigmon.store.sql.leftovers import Leftovers

SLICES = 5


def test_2000_images_of_power_cuts_show_no_violation(tmp_path):
    found = cut_power(tmp_path, 1, NORMAL.images)
    assert not found.violations, found.violations[:20]
    assert found.count == NORMAL.images == 2000


def test_500_images_of_power_cuts_between_slices_show_no_violation(tmp_path, monkeypatch):
    monkeypatch.setattr(Leftovers, "at_once", 1)
    left: list[object] = []
    remove = Leftovers.remove
    monkeypatch.setattr(Leftovers, "remove", lambda self: (left.append(dict(self.available)), remove(self))[1])
    found = cut_power(tmp_path, 5000, 500)
    assert not found.violations, found.violations[:20]
    assert sum(map(bool, left)) > 20


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLICES))
def test_20000_images_of_power_cuts_show_no_violation(tmp_path, part):
    found = cut_power(tmp_path, 100_000 * (part + 1), SLOW.images // SLICES)
    assert not found.violations, found.violations[:20]
    assert found.count * SLICES == SLOW.images == 20_000


class TestADisk:
    def test_keeps_what_was_synced_whatever_is_cut(self, chance):
        disk = self.with_synced(b"a" * 2000)
        disk.do(Op("write", "f-wal", 500, b"b" * 1500))
        for cut in POWER_CUTS:
            assert cut(disk, chance)["f-wal"][:500] == b"a" * 500
        assert dropped(disk, chance) == {"f-wal": b"a" * 2000}
        assert kept(disk) == {"f-wal": b"a" * 500 + b"b" * 1500}

    def test_tears_a_write_only_between_sectors(self, chance):
        seen = set()
        for _ in range(200):
            disk = self.with_synced(b"a" * 2048)
            disk.do(Op("write", "f-wal", 100, b"b" * 1500))
            image = POWER_CUTS[-1](disk, chance)["f-wal"]
            sectors = [image[start : start + 512] for start in range(0, 2048, 512)]
            whole = ({b"a" * 512, b"a" * 100 + b"b" * 412}, *[{b"a" * 512, b"b" * 512}] * 2)
            assert all(sector in may_be for sector, may_be in zip(sectors[:3], whole, strict=True))
            seen.add(image)
        assert len(seen) == 16

    def test_may_forget_a_file_whose_directory_was_not_synced_and_bring_a_deleted_one_back(self, chance):
        disk = self.with_synced(b"a")
        disk.do(Op("create", "new"))
        disk.do(Op("delete", "f-wal"))
        found = {frozenset(dropped(disk, chance)) for _ in range(100)}
        assert found == {frozenset(names) for names in ((), ("new",), ("f-wal",), ("new", "f-wal"))}

    def with_synced(self, data):
        disk = Disk()
        disk.do(Op("create", "f-wal"))
        disk.do(Op("write", "f-wal", 0, data))
        disk.do(Op("sync", "f-wal"))
        return disk
