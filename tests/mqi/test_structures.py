from __future__ import annotations

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trigmon.mq.descriptors import TriggerMessage, pack_dlh, pack_tm, pack_tmc2, unpack_dlh
from trigmon.mq.rfh2 import RFH2
from trigmon.mqi.layout import Field, Structure
from trigmon.mqi.structures import MQDLH, MQMD, MQOD, MQRFH2, MQTM, MQTMC2, STRUCTURES

# As documented for 64-bit machines: the length of each version.
DOCUMENTED = {
    "MQMD": {1: 324, 2: 364},
    "MQOD": {1: 168, 2: 208, 3: 344, 4: 424},
    "MQPMO": {1: 128, 2: 160, 3: 184},
    "MQGMO": {1: 72, 2: 80, 3: 100, 4: 112},
    "MQCNO": {1: 12, 2: 24, 3: 152, 4: 168, 5: 200, 6: 224, 7: 256, 8: 272},
    "MQCSP": {1: 56, 2: 80, 3: 104},
    "MQCD": dict(enumerate((984, 1312, 1480, 1568, 1584, 1688, 1792, 1888, 1912, 1920, 1984, 1992, 2000), start=1)),
    "MQSTS": {1: 224, 2: 280},
    "MQBO": {1: 12},
    "MQCMHO": {1: 12},
    "MQDMHO": {1: 12},
    "MQSMPO": {1: 20},
    "MQIMPO": {1: 64},
    "MQDMPO": {1: 12},
    "MQPD": {1: 24},
    "MQBMHO": {1: 12},
    "MQMHBO": {1: 12},
    "MQCBD": {1: 168},
    "MQCBC": {1: 56, 2: 64},
    "MQCTLO": {1: 24},
    "MQSD": {1: 344},
    "MQSRO": {1: 16},
    "MQTM": {1: 684},
    "MQTMC2": {1: 684, 2: 732},
    "MQDLH": {1: 172},
    "MQRFH2": {2: 36},
}
EVERY = pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)


@EVERY
def test_a_structure_has_its_documented_length_in_each_version(structure):
    assert structure.lengths == DOCUMENTED[structure.name]
    assert structure.size == len(structure.pack())


def test_no_documented_structure_is_missing():
    assert list(STRUCTURES) == list(DOCUMENTED)


@EVERY
def test_a_c_compiler_lays_the_fields_out_where_the_table_does(structure):
    of = {"long": ctypes.c_int32, "int64": ctypes.c_int64, "ptr": ctypes.c_void_p}
    fields = [(f.name, of.get(f.kind) or ctypes.c_char * f.length) for f in structure.fields]
    in_c = type(structure.name, (ctypes.Structure,), {"_fields_": fields})
    assert {name: getattr(in_c, name).offset for name, _ in fields} == {f.name: f.offset for f in structure.fields}
    assert ctypes.sizeof(in_c) == structure.size


@EVERY
def test_what_nobody_set_is_the_default(structure):
    found = structure.unpack(structure.pack({"Version": structure.defaults["Version"]}))
    assert found == structure.defaults


def a_value(field: Field):
    if field.kind in ("long", "int64"):
        bits = 31 if field.kind == "long" else 63
        return st.integers(-(2**bits), 2**bits - 1)
    if field.kind == "ptr":
        return st.integers(0, 2**64 - 1)
    return st.binary(min_size=field.length, max_size=field.length)


def values_of(structure: Structure):
    fixed = {"StrucId": st.just(structure.struc_id), "Version": st.just(structure.current_version)}
    if structure.name == "MQTMC2":
        fixed["Version"] = st.just(b"   2")
    if structure.name == "MQCD":
        del fixed["StrucId"]
    return st.fixed_dictionaries({f.name: fixed.get(f.name, a_value(f)) for f in structure.fields})


@given(st.data())
def test_what_is_packed_is_what_is_unpacked(data):
    structure = data.draw(st.sampled_from(list(STRUCTURES.values())))
    values = data.draw(values_of(structure))
    assert structure.unpack(structure.pack(values)) == values


@given(st.sampled_from(list(STRUCTURES.values())), st.binary(max_size=2100))
def test_any_bytes_are_read_without_an_error(structure, raw):
    found = structure.unpack(raw)
    assert found.keys() == structure.defaults.keys()
    structure.pack(found)
    structure.is_one(raw)


def test_fields_of_a_later_version_are_not_read():
    raw = MQMD.pack({"Version": 1, "MsgSeqNumber": 7, "Priority": 3})
    assert MQMD.unpack(raw)["MsgSeqNumber"] == 1
    assert MQMD.unpack(raw)["Priority"] == 3


def test_a_structure_is_known_by_its_name_its_version_and_its_length():
    assert MQOD.is_one(MQOD.pack())
    assert MQOD.is_one(MQOD.pack()[:168])
    assert not MQOD.is_one(MQOD.pack({"Version": 4})[:168])
    assert not MQOD.is_one(MQOD.pack({"Version": 5}))
    assert not MQOD.is_one(MQMD.pack())


def test_a_name_that_is_no_field_is_refused():
    with pytest.raises(KeyError, match="Colour"):
        MQOD.pack({"Colour": 1})


def test_the_queue_managers_own_structures_are_laid_out_alike():
    trigger = TriggerMessage(q_name="Q", process_name="P", trigger_data="T", appl_type=6, appl_id="A", user_data="U")
    tm = MQTM.unpack(pack_tm(trigger))
    assert (tm["QName"].rstrip(), tm["ApplType"], tm["UserData"].rstrip()) == (b"Q", 6, b"U")
    tmc = MQTMC2.unpack(pack_tmc2(trigger, "QM").encode())
    assert (tmc["TriggerData"].rstrip(), tmc["QMgrName"].rstrip()) == (b"T", b"QM")
    header, _ = unpack_dlh(MQDLH.pack({"Reason": 2053, "DestQName": b"Q", "Format": b"MQSTR"}))
    assert (header.reason, header.dest_q_name, header.format) == (2053, "Q", "MQSTR")
    assert MQDLH.unpack(pack_dlh(header))["Reason"] == 2053
    assert RFH2.size - 4 == MQRFH2.size
