"""Whatever a program gives in its structures: a call ends with its completion code and reason, and never otherwise."""

from __future__ import annotations

import random

import pytest

from tests.mqi.mqi_program import Program
from trigmon.mqi import ibmmqc
from trigmon.mqi import structures as s

MOST_WAIT_MS = 5


class Mutations:
    """Structures and numbers that are wrong in a few places, from a seed."""

    def __init__(self, seed, queue):
        self._chance = random.Random(seed)
        self._queue = queue.encode()

    def structure(self, kind):
        known = {"ObjectName": self._queue} if kind is s.MQOD else {}
        raw = bytearray(kind.pack({"Version": self._chance.choice([1, kind.current_version]), **known}))
        for _ in range(self._chance.choice([0, 1, 1, 2, 8, 64])):
            at = self._chance.randrange(len(raw))
            raw[at : at + 4] = self._chance.choice(
                [bytes(4), b"\xff" * 4, b"\x7f" + bytes(3), self._chance.randbytes(4), b"\0\0\1\0"]
            )[: len(raw) - at]
        return bytes(raw)

    def get_options(self):
        fields = s.MQGMO.unpack(self.structure(s.MQGMO))
        fields["WaitInterval"] = min(fields["WaitInterval"], MOST_WAIT_MS) if fields["WaitInterval"] > 0 else 0
        return s.MQGMO.pack(fields)

    def number(self):
        return self._chance.choice([0, 1, 2, 3, -1, 17, 0x8000, 0x10000, 2**31 - 1, -(2**31), 2**40])

    def data(self):
        return self._chance.randbytes(self._chance.choice([0, 1, 36, 300]))


def calls(mutate, hconn, hobj, hmsg):
    """Yields each function with arguments."""
    of, number, data = mutate.structure, mutate.number, mutate.data
    yield "MQOPEN", (hconn, of(s.MQOD), number())
    yield "MQPUT", (hconn, hobj, of(s.MQMD), of(s.MQPMO), data())
    yield "MQPUT1", (hconn, of(s.MQOD), of(s.MQMD), of(s.MQPMO), data())
    yield "MQGET", (hconn, hobj, of(s.MQMD), mutate.get_options(), number())
    yield "MQINQ", (hconn, hobj, [number(), 3, number()], [], number(), 1, 100)
    yield "MQSET", (hconn, hobj, [number(), 24], [number()], data())
    yield "MQSUB", (hconn, of(s.MQSD), number())
    yield "MQSUBRQ", (hconn, number(), number(), of(s.MQSRO))
    yield "MQSTAT", (hconn, number(), of(s.MQSTS))
    yield "MQCB", (hconn, number(), of(s.MQCBD), number(), of(s.MQMD), mutate.get_options())
    yield "MQCTL", (hconn, 77, of(s.MQCTLO))
    yield "MQCRTMH", (hconn, of(s.MQCMHO))
    yield "MQSETMP", (hconn, hmsg, of(s.MQSMPO), data(), of(s.MQPD), number(), data(), number())
    yield "MQINQMP", (hconn, hmsg, of(s.MQIMPO), data() + b"%", of(s.MQPD), number(), number())
    yield "MQDLTMP", (hconn, hmsg, of(s.MQDMPO), data())
    yield "MQDLTMH", (hconn, number(), of(s.MQDMHO))
    yield "MQCMIT", (hconn,)
    yield "MQBACK", (number(),)
    yield "MQCLOSE", (hconn, number(), number())
    yield "MQCONNX", (b"QM1", of(s.MQCNO), None, None, None, None)
    yield "MQCONNX", (data(), of(s.MQCNO), of(s.MQCD), data(), None, None)


def play(seed, queue):
    mutate = Mutations(seed, queue)
    program = Program()
    hmsg = program.message()
    hobj = program.open(queue, 0x1 | 0x8 | 0x10 | 0x20 | 0x40)
    for function, arguments in calls(mutate, program.hconn, hobj, hmsg):
        answer = getattr(ibmmqc, function)(*arguments)
        comp_code, reason = answer[-2:]
        assert comp_code in (0, 1, 2), (function, answer)
        assert (reason == 0) == (comp_code == 0), (function, answer)
        if function == "MQCONNX" and comp_code == 0:
            ibmmqc.MQDISC(answer[0])
    ibmmqc.MQDISC(program.hconn)


def test_mutated_structures_end_with_a_reason(here, queue):
    for seed in range(60):
        play(seed, queue(max_q_depth=50))


@pytest.mark.slow
def test_many_mutated_structures_end_with_a_reason(here, queue):
    name = queue(max_q_depth=50)
    for seed in range(1000, 4000):
        play(seed, name)
