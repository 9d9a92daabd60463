"""The C library's files against what they are made from, and against the rules of style."""

from __future__ import annotations

import re
import subprocess

import pytest

from trigmon.mqi import attribute_header, library
from trigmon.mqi.structures import STRUCTURES

FILES = sorted(library.SOURCES.glob("*.[ch]"))
FUNCTION = re.compile(r"^[a-zA-Z][^;{}#]*\)\s*\{$", re.MULTILINE)
# MQCD is read as far as the connection's name; the rest of it is about channels.
READ_IN_PART = {"MQCD"}


def test_the_header_of_attributes_is_made_from_the_one_table():
    assert (library.SOURCES / "attributes.h").read_text() == attribute_header.attribute_header()


def test_each_structure_of_the_header_has_the_fields_of_the_tables_at_their_places(tmp_path):
    if (compiler := library.compiler()) is None:
        pytest.skip("there is no C compiler")
    declared = set(re.findall(r"^\} (MQ\w+);", (library.SOURCES / "mqi.h").read_text(), re.MULTILINE)) - {"MQCHARV"}
    assert declared <= set(STRUCTURES)
    lines = ['#include "mqi.h"', "#include <stddef.h>"]
    for name in sorted(declared):
        layout = STRUCTURES[name]
        if name not in READ_IN_PART:
            lines.append(f'_Static_assert(sizeof({name}) == {layout.size}, "{name}");')
        last = READ_IN_PART & {name} and "ConnectionName"
        for field in layout.fields:
            path = re.sub(r"(?<=.)(VS\w+)$", r".\1", field.name)
            lines.append(f'_Static_assert(offsetof({name}, {path}) == {field.offset}, "{name}.{path}");')
            if field.name == last:
                break
    source = tmp_path / "layout.c"
    source.write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [compiler, "-fsyntax-only", f"-I{library.SOURCES}", str(source)], capture_output=True, text=True
    )
    assert done.stderr == ""


def test_the_library_shows_the_calls_of_the_mqi_and_nothing_else(loaded, library_directory):
    promised = set(re.findall(r"MQENTRY void (MQ\w+)\(", (library.SOURCES / "mqi_calls.h").read_text()))
    done = subprocess.run(["nm", "-D", "--defined-only", str(library_directory / "libmqm_r.so")], capture_output=True)
    assert {line.split()[-1].decode() for line in done.stdout.splitlines()} == promised
    assert all(hasattr(loaded, name) for name in promised)


def test_the_library_needs_the_c_library_alone(library_directory):
    done = subprocess.run(["readelf", "-d", str(library_directory / "libmqic_r.so")], capture_output=True, text=True)
    needed = re.findall(r"NEEDED.*\[(.*)\]", done.stdout)
    assert {name.partition(".")[0] for name in needed} <= {"libc", "libpthread", "libdl"}
    assert "BIND_NOW" in done.stdout


def test_files_and_functions_of_c_are_small():
    longest = {path.name: path.read_text().count("\n") for path in FILES if path.name != "attributes.h"}
    assert {name: lines for name, lines in longest.items() if lines > 400} == {}
    long_functions = {}
    for path in FILES:
        text = path.read_text()
        for found in FUNCTION.finditer(text):
            end = text.find("\n}", found.end())
            lines = text[found.start() : end].count("\n") + 2
            if lines > 45:
                long_functions[f"{path.name}:{found[0].splitlines()[0]}"] = lines
    assert long_functions == {}


def test_ebcdic_is_what_python_has_for_it():
    text = (library.SOURCES / "ebcdic.h").read_text()
    tables = {
        name: bytes(int(value, 16) for value in re.findall(r"0x([0-9a-f]{2})", body))
        for name, body in re.findall(r"(ebcdic_\d+)\[256\] = \{(.*?)\}", text, re.DOTALL)
    }
    of_37 = bytes(range(256)).decode("cp037").encode("latin-1")
    swapped = bytearray(of_37)
    for one, other in ((0x5F, 0xB0), (0xAD, 0xBA), (0xBD, 0xBB)):
        swapped[one], swapped[other] = of_37[other], of_37[one]
    assert tables["ebcdic_37"] == of_37
    assert tables["ebcdic_500"] == bytes(range(256)).decode("cp500").encode("latin-1")
    assert tables["ebcdic_1047"] == bytes(swapped)
