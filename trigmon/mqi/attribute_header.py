"""The C library's table of attributes, made from the one table there is: ``python -m trigmon.mqi.attribute_header``.

It prints ``trigmon/mqi/c/attributes.h``; a test holds the file to it.
"""

from __future__ import annotations

import sys
from enum import IntEnum

from trigmon.mq.attributes import ATTRIBUTES, STATUS, Attribute
from trigmon.mq.enums import word
from trigmon.mq.names import NAME_LENGTH

_HEAD = """\
/* Made from trigmon/mq/attributes.py by `python -m trigmon.mqi.attribute_header`; not to be changed by hand. */
#ifndef TRIGMON_ATTRIBUTES_H
#define TRIGMON_ATTRIBUTES_H

#include <stddef.h>
#include <stdint.h>

struct word {
    const char *text;
    int32_t number;
};

/* ``length`` is of text, 0 for numbers; ``is_name`` is the attribute that names the object itself. */
struct attribute {
    int32_t selector;
    int32_t length;
    const char *name;
    int is_name;
    const struct word *words;
};

"""
_OF_NAMES = ((2012, "process_name", True), (2015, "q_mgr_name", True), (2016, "q_name", True))
"""Selectors of an object's own name. 2012 is the process's name of a queue as well."""


def attribute_header() -> str:
    """Returns the header: a table of words for each enumeration, then one row for each selector."""
    found: dict[int, Attribute] = {}
    for table in (*ATTRIBUTES.values(), STATUS):
        for attribute in table.values():
            if attribute.selector:
                found.setdefault(attribute.selector, attribute)
    words = {a.name: _words(a) for a in found.values() if isinstance(a.default, IntEnum)}
    lines = [f"static const struct word words_of_{name}[] = {{{text}{{NULL, 0}}}};\n" for name, text in words.items()]
    rows = [_row(number, attribute, attribute.name in words) for number, attribute in found.items()]
    rows += [f'{{{number}, {NAME_LENGTH}, "{name}", 1, NULL}}' for number, name, _ in _OF_NAMES if number not in found]
    body = "".join(f"    {row},\n" for row in sorted(rows, key=lambda row: int(row[1:].partition(",")[0])))
    end = "#define ATTRIBUTE_COUNT (sizeof attributes / sizeof attributes[0])\n\n#endif\n"
    return _HEAD + "".join(lines) + f"\nstatic const struct attribute attributes[] = {{\n{body}}};\n" + end


def _words(attribute: Attribute) -> str:
    members = type(attribute.default).__members__.values()
    return "".join(f'{{"{word(member)}", {int(member)}}}, ' for member in members)


def _row(selector: int, attribute: Attribute, has_words: bool) -> str:
    length = (attribute.length or NAME_LENGTH) if attribute.is_text else 0
    is_name = any(selector == number for number, _, _ in _OF_NAMES)
    words = f"words_of_{attribute.name}" if has_words else "NULL"
    return f'{{{selector}, {length}, "{attribute.name}", {int(is_name)}, {words}}}'


if __name__ == "__main__":
    sys.stdout.write(attribute_header())
