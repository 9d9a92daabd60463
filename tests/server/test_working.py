"""A thread for what is trips to a database: in order, one thing at a time, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import threading

import pytest

from trigmon.server.executor import InAThread, OnTheLoop

PATIENCE_S = 20


@pytest.fixture
def played():
    """Plays a coroutine function with a worker of the kind it is given, whose failures are kept."""

    def play(story, *arguments):
        async def on_a_loop():
            worker = InAThread(*arguments)
            worker.failures = []
            worker.failed = worker.failures.append
            try:
                await asyncio.wait_for(story(worker), PATIENCE_S)
            finally:
                worker.end()

        asyncio.run(on_a_loop())

    return play


async def done(worker, work):
    """What it makes of this work, when it is done."""
    result = asyncio.get_running_loop().create_future()
    worker.do(work, result.set_result)
    return await result


class TestOnTheLoop:
    def test_what_is_given_is_done_at_once(self):
        worker, found = OnTheLoop(), []
        worker.do(lambda: 6 * 7, found.append)
        assert (found, worker.busy_s) == ([42], 0)

    def test_an_error_is_reported_and_nothing_follows(self):
        worker, found, failures = OnTheLoop(), [], []
        worker.failed = failures.append
        worker.do(lambda: 1 // 0, found.append)
        assert not found
        assert isinstance(failures[0], ZeroDivisionError)


class TestInAThread:
    def test_work_is_done_elsewhere_and_what_follows_on_the_loop(self, played):
        async def story(worker):
            here = threading.get_ident()
            followed = asyncio.get_running_loop().create_future()
            worker.do(threading.get_ident, lambda there: followed.set_result((there, threading.get_ident())))
            there, then = await followed
            assert then == here != there

        played(story)

    def test_it_is_done_one_at_a_time_in_the_order_given(self, played):
        async def story(worker):
            at_once, most, order = 0, 0, []

            def work(number):
                nonlocal at_once, most
                at_once += 1
                most = max(most, at_once)
                order.append(number)
                at_once -= 1

            given = [done(worker, lambda number=number: work(number)) for number in range(50)]
            await asyncio.gather(*given)
            assert (order, most) == ([*range(50)], 1)

        played(story)

    def test_what_comes_again_and_again_keeps_nothing_from_its_turn(self, played):
        async def story(worker):
            rounds = 0

            def again(_):
                nonlocal rounds
                rounds += 1
                worker.do(lambda: None, again)

            again(None)
            again(None)
            await asyncio.sleep(0.01)
            before = rounds
            await done(worker, lambda: None)
            assert rounds - before <= 3

        played(story)

    def test_what_is_to_be_done_may_be_decided_when_its_time_has_come(self, played):
        async def story(worker):
            may_end, found = threading.Event(), []
            waiting = asyncio.ensure_future(done(worker, may_end.wait))
            await asyncio.sleep(0)
            come = ["early"]
            worker.give(lambda: None)
            worker.give(lambda: (lambda: " and ".join(come), found.append))
            come.append("late")
            may_end.set()
            await waiting
            await done(worker, lambda: None)
            assert found == ["early and late"]

        played(story)

    def test_the_last_work_ends_what_is_listened_to_and_nothing_is_done_behind_it(self, played):
        is_there, found = [True], []

        def listen():
            if not is_there:
                raise OSError("it is closed")
            return False

        async def story(worker):
            over = asyncio.get_running_loop().create_future()
            worker.finish(is_there.clear, over.set_result)
            worker.do(lambda: "more", found.append)
            await over
            worker.do(lambda: "later", found.append)
            await asyncio.sleep(0.05)
            assert not found
            assert not worker.failures

        played(story, -1, listen)

    def test_the_loop_goes_on_while_work_waits_and_reports_for_how_long(self, played):
        async def story(worker):
            may_end = threading.Event()
            waiting = asyncio.ensure_future(done(worker, may_end.wait))
            while worker.busy_s < 0.05:
                await asyncio.sleep(0.01)
            may_end.set()
            await waiting
            await asyncio.sleep(0)
            assert worker.busy_s == 0

        played(story)

    def test_an_error_is_the_end_and_what_was_given_before_is_not_done(self, played):
        async def story(worker):
            found = []
            worker.do(lambda: 1 // 0, found.append)
            worker.do(lambda: "more", found.append)
            while not worker.failures:
                await asyncio.sleep(0.01)
            worker.do(lambda: "later", found.append)
            await asyncio.sleep(0.05)
            assert not found
            assert isinstance(worker.failures[0], ZeroDivisionError)

        played(story)

    def test_work_that_was_done_is_answered_though_listening_fails_behind_it(self, played):
        def fails():
            raise OSError

        async def story(worker):
            assert await done(worker, lambda: "done") == "done"
            while not worker.failures:
                await asyncio.sleep(0.01)

        played(story, -1, fails)

    def test_what_it_hears_behind_its_work_and_while_it_rests_is_reported(self, played):
        ear, mouth = os.pipe()
        os.set_blocking(ear, False)
        heard = []

        def listen():
            try:
                return bool(os.read(ear, 100))
            except BlockingIOError:
                return False

        async def story(worker):
            await done(worker, lambda: os.write(mouth, b"behind"))
            while len(heard) < 1:
                await asyncio.sleep(0.01)
            os.write(mouth, b"at rest")
            while len(heard) < 2:
                await asyncio.sleep(0.01)
            await done(worker, lambda: None)
            assert len(heard) == 2

        played(story, ear, listen, lambda: heard.append(True))
        os.close(ear)
        os.close(mouth)

    def test_what_comes_at_its_ear_while_it_works_wakes_nobody(self, played):
        ear, mouth = os.pipe()
        listened = []

        async def story(worker):
            may_end = threading.Event()
            work = asyncio.ensure_future(done(worker, may_end.wait))
            await asyncio.sleep(0.01)
            os.write(mouth, b"its answer")
            await asyncio.sleep(0.05)
            assert not listened
            os.read(ear, 100)
            may_end.set()
            await work

        played(story, ear, lambda: bool(listened.append(True)))
        os.close(ear)
        os.close(mouth)

    def test_a_descriptor_that_somebody_else_has_since_its_session_ended_is_left_to_it(self, played):
        """Who comes at that moment gets the lowest that is free: the session's."""
        ear, mouth = socket.socketpair()

        def lose():
            ear.close()
            raise OSError

        async def story(worker):
            number = ear.fileno()
            worker.do(lose, lambda _: None)
            while not worker.failures:
                await asyncio.sleep(0.01)
            ours, theirs = socket.socketpair()
            beside = fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, number + 1)
            ours.close()
            came = socket.socket(fileno=os.dup2(beside, number))
            os.close(beside)
            reader, writer = await asyncio.open_connection(sock=came)
            worker.end()
            theirs.sendall(b"hello")
            assert await reader.readexactly(5) == b"hello"
            writer.close()
            await writer.wait_closed()
            theirs.close()

        played(story, ear.fileno())
        mouth.close()

    def test_a_fault_in_what_begins_or_follows_is_no_hang(self, played):
        async def story(worker):
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            with pytest.raises(ZeroDivisionError):
                worker.give(lambda: 1 // 0)
            assert worker.busy_s == 0
            worker.do(lambda: 0, lambda zero: 1 // zero)
            assert await done(worker, lambda: "goes on") == "goes on"

        played(story)
