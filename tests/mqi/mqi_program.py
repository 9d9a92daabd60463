"""What the tests of trigmon.mqi call: the functions of the C module, with structures by their fields."""

from __future__ import annotations

from trigmon.mqi import ibmmqc
from trigmon.mqi.structures import (
    MQCBD,
    MQCMHO,
    MQCNO,
    MQCTLO,
    MQDMHO,
    MQDMPO,
    MQGMO,
    MQIMPO,
    MQMD,
    MQOD,
    MQPD,
    MQPMO,
    MQSMPO,
)

INPUT, BROWSE, OUTPUT, INQUIRE, SET = 0x1, 0x8, 0x10, 0x20, 0x40
SYNCPOINT, WAIT, CONVERT, ACCEPT = 0x2, 0x1, 0x4000, 0x40
BROWSE_FIRST, BROWSE_NEXT, UNDER_CURSOR, LOCK = 0x10, 0x20, 0x100, 0x200
NO_PROPERTIES, IN_HANDLE = 0x400_0000, 0x800_0000
ASYNC = 0x1_0000
SHARE_NONE, SHARE_BLOCK, SHARE_NO_BLOCK = 0x20, 0x40, 0x80
Q, NAMELIST, PROCESS, Q_MGR, TOPIC = 1, 2, 3, 5, 8


class Failed(Exception):  # noqa: N818 - as the MQI says it
    def __init__(self, comp_code, reason, results):
        super().__init__(f"{comp_code} {reason}")
        self.comp_code, self.reason, self.results = comp_code, reason, results


def done(answer):
    """Returns what a call gives, without its completion code and reason. Raises Failed."""
    *results, comp_code, reason = answer
    if comp_code:
        raise Failed(comp_code, reason, results)
    return results[0] if len(results) == 1 else results


class Program:
    """A program that is connected to a queue manager."""

    def __init__(self, name=b"QM1", options=SHARE_BLOCK, **parts):
        self.hconn = done(ibmmqc.MQCONNX(name, cno(options), parts.get("cd"), None, None, None))

    def open(self, name, options, **fields):
        return done(ibmmqc.MQOPEN(self.hconn, od(name, **fields), options))[0]

    def close(self, hobj, options=0):
        return done(ibmmqc.MQCLOSE(self.hconn, hobj, options))

    def put(self, hobj, data=b"one", options=0, pmo=None, **fields):
        md, _ = done(ibmmqc.MQPUT(self.hconn, hobj, md_with(fields), pmo_with(options, pmo), data))
        return MQMD.unpack(md)

    def get(self, hobj, options=0, length=1000, wait_ms=0, gmo=None, **fields):
        """Returns the data and the fields of MQMD and MQGMO."""
        given = gmo_with(options, wait_ms, gmo)
        data, md, gmo, _ = done(ibmmqc.MQGET(self.hconn, hobj, md_with(fields), given, length))
        return data, MQMD.unpack(md), MQGMO.unpack(gmo)

    def data(self, hobj, options=0, **given):
        return self.get(hobj, options, **given)[0]

    def inquire(self, hobj, *selectors):
        """Returns the integers, and the characters as one."""
        integers = sum(selector <= 2000 for selector in selectors)
        return done(ibmmqc.MQINQ(self.hconn, hobj, list(selectors), [], integers, len(selectors) - integers, 1000))

    def message(self):
        return done(ibmmqc.MQCRTMH(self.hconn, MQCMHO.pack()))

    def set_property(self, hmsg, name, kind, value, options=0):
        smpo = MQSMPO.pack({"Options": options})
        return done(ibmmqc.MQSETMP(self.hconn, hmsg, smpo, name, MQPD.pack(), kind, value, -1))

    def property(self, hmsg, name, options=0, kind=0, length=1000):
        impo = MQIMPO.pack({"Options": options})
        return done(ibmmqc.MQINQMP(self.hconn, hmsg, impo, name, MQPD.pack(), kind, length))

    def delete_property(self, hmsg, name, options=0):
        return done(ibmmqc.MQDLTMP(self.hconn, hmsg, MQDMPO.pack({"Options": options}), name))

    def delete_message(self, hmsg):
        return done(ibmmqc.MQDLTMH(self.hconn, hmsg, MQDMHO.pack()))

    def callback(self, operation, hobj=0, **given):
        kind = {"CallbackType": 1 if hobj else 2} | given.pop("cbd", {})
        gmo = gmo_with(given.pop("options", 0), given.pop("wait_ms", 0))
        return done(ibmmqc.MQCB(self.hconn, operation, MQCBD.pack(kind), hobj, md_with(given), gmo))

    def control(self, operation):
        return done(ibmmqc.MQCTL(self.hconn, operation, MQCTLO.pack()))

    def commit(self):
        return done(ibmmqc.MQCMIT(self.hconn))

    def backout(self):
        return done(ibmmqc.MQBACK(self.hconn))

    def disconnect(self):
        return done(ibmmqc.MQDISC(self.hconn))


def cno(options=0, **fields):
    return MQCNO.pack({"Version": 8, "Options": options, **fields})


def od(name, **fields):
    return MQOD.pack({"Version": 4, "ObjectName": name.encode(), **fields})


def md_with(fields):
    return MQMD.pack({"Version": 2, **fields})


def pmo_with(options, fields=None):
    return MQPMO.pack({"Version": 3, "Options": options, **(fields or {})})


def gmo_with(options, wait_ms=0, fields=None):
    return MQGMO.pack({"Version": 4, "Options": options, "WaitInterval": wait_ms, **(fields or {})})
