"""The MQI as a C program calls it, by ctypes; structures are packed by the tables of trigmon.mqi.structures."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

from trigmon.mqi.structures import STRUCTURES

OK, WARNING, FAILED = 0, 1, 2
OUTPUT, INPUT, BROWSE, INQUIRE, SET = 0x10, 0x2, 0x8, 0x20, 0x40
SYNCPOINT, WAIT, ACCEPT, CONVERT = 0x2, 0x1, 0x40, 0x4000
CALLBACK = ctypes.CFUNCTYPE(
    None, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char)
)


class MqiError(Exception):
    """A call that did not complete with 0."""

    def __init__(self, call, comp_code, reason):
        super().__init__(f"{call}: {comp_code} {reason}")
        self.comp_code = comp_code
        self.reason = reason


class Block:
    """A structure in memory that a call reads and writes: exactly as long as its version says."""

    def __init__(self, name, version=None, **values):
        self.layout = STRUCTURES[name]
        version = version or self.layout.current_version
        values = {key: value.encode() if isinstance(value, str) else value for key, value in values.items()}
        raw = self.layout.pack({**({"Version": version} if "Version" in self.layout.defaults else {}), **values})
        self.length = self.layout.length_of(version)
        self.memory = ctypes.create_string_buffer(raw[: self.length], self.length)

    def __getattr__(self, field):
        value = self.layout.unpack(self.memory.raw)[field]
        return (
            value.rstrip(b" \0").decode() if isinstance(value, bytes) and not field.endswith(("Id", "Token")) else value
        )


class Charv:
    """An MQCHARV with a text, or with bytes that may be none."""

    def __init__(self, text):
        raw = text if isinstance(text, bytes) else text.encode()
        self.text = ctypes.create_string_buffer(raw)
        self.memory = ctypes.create_string_buffer(24)
        ctypes.c_uint64.from_buffer(self.memory, 0).value = ctypes.addressof(self.text)
        for at, value in ((16, len(raw)), (20, 1208)):
            ctypes.c_int32.from_buffer(self.memory, at).value = value


class Mqi:
    """The calls, each raising MqiError for a warning and a failure."""

    def __init__(self, loaded):
        self.loaded = loaded

    def call(self, name, *arguments):
        """Calls and returns (comp_code, reason)."""
        comp_code, reason = ctypes.c_int32(-1), ctypes.c_int32(-1)
        given = [a.memory if isinstance(a, Block | Charv) else a for a in arguments]
        getattr(self.loaded, name)(*given, ctypes.byref(comp_code), ctypes.byref(reason))
        return comp_code.value, reason.value

    def ask(self, name, *arguments):
        """Calls, and raises where it did not end with 0."""
        ended = self.call(name, *arguments)
        if ended != (OK, 0):
            raise MqiError(name, *ended)

    def connect(self, name="QM1", options=None):
        hconn = ctypes.c_int32()
        self.ask("MQCONNX", name.encode().ljust(48), options, ctypes.byref(hconn))
        return hconn.value

    def shared(self):
        return self.connect(options=Block("MQCNO", 1, Options=0x40))

    def disconnect(self, hconn):
        self.ask("MQDISC", ctypes.byref(ctypes.c_int32(hconn)))

    def open(self, hconn, name, options, **od):
        hobj = ctypes.c_int32()
        block = od.pop("block", None) or Block("MQOD", ObjectName=name, **od)
        self.ask("MQOPEN", hconn, block, options, ctypes.byref(hobj))
        return hobj.value

    def close(self, hconn, hobj, options=0):
        self.ask("MQCLOSE", hconn, ctypes.byref(ctypes.c_int32(hobj)), options)

    def put(self, hconn, hobj, data, options=0, md=None, pmo=None):
        md = md or Block("MQMD")
        pmo = pmo or Block("MQPMO", Options=options)
        self.ask("MQPUT", hconn, hobj, md, pmo, len(data), data)
        return md

    def get(self, hconn, hobj, options=0, room=1000, md=None, gmo=None, **of_gmo):
        """Returns what came, with its reason; raises where it failed."""
        md = md or Block("MQMD")
        gmo = gmo or Block("MQGMO", Options=options, **of_gmo)
        buffer, length = ctypes.create_string_buffer(max(room, 1)), ctypes.c_int32(-1)
        comp_code, reason = self.call("MQGET", hconn, hobj, md, gmo, room, buffer, ctypes.byref(length))
        if comp_code == FAILED:
            raise MqiError("MQGET", comp_code, reason)
        data = buffer.raw[: min(room, length.value)]
        return SimpleNamespace(data=data, length=length.value, reason=reason, comp_code=comp_code, md=md, gmo=gmo)

    def inquire(self, hconn, hobj, selectors, numbers=0, text=0):
        asked = (ctypes.c_int32 * len(selectors))(*selectors)
        found, chars = (ctypes.c_int32 * max(1, numbers))(), ctypes.create_string_buffer(max(1, text))
        self.ask("MQINQ", hconn, hobj, len(selectors), asked, numbers, found, text, chars)
        return list(found)[:numbers], chars.raw[:text]

    def set(self, hconn, hobj, values):
        selectors = (ctypes.c_int32 * len(values))(*values)
        numbers = (ctypes.c_int32 * len(values))(*values.values())
        self.ask("MQSET", hconn, hobj, len(values), selectors, len(values), numbers, 0, None)
