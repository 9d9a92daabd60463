"""Work that is trips to a database: in order, one thing at a time, and the loop goes on while it waits."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import socket
import threading

import pytest

from trigmon.server.executor import OnTheLoop
from trigmon.server.greenlet_executor import InGreenlets
from trigmon.store.postgres.socket_wait import wait

PATIENCE_S = 20


@pytest.fixture
def played():
    """Plays a coroutine function with a worker of the kind it is given, whose failures are kept."""

    def play(story, *arguments):
        async def on_a_loop():
            worker = InGreenlets(*arguments)
            worker.failures = []
            worker.failed = worker.failures.append
            try:
                await asyncio.wait_for(story(worker), PATIENCE_S)
            finally:
                worker.end()

        asyncio.run(on_a_loop())

    return play


class Database:
    """A session of which each answer is waited for. ``answer`` sends one; ``close`` ends it."""

    def __init__(self):
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)

    def wait(self):
        """Waits for an answer, as work does; returns it."""
        while True:
            wait(self._ours.fileno())
            try:
                return self._ours.recv(100)
            except BlockingIOError:
                continue

    def answer(self):
        self._theirs.send(b"answer")

    def fileno(self):
        return self._ours.fileno()

    def close(self):
        self._ours.close()
        self._theirs.close()


@pytest.fixture
def database():
    one = Database()
    yield one
    one.close()


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


class TestInGreenlets:
    def test_work_and_what_follows_are_done_in_the_thread_of_the_loop(self, played, database):
        async def story(worker):
            here = threading.get_ident()
            asyncio.get_running_loop().call_later(0.01, database.answer)
            there = await done(worker, lambda: (database.wait(), threading.get_ident()))
            assert there == (b"answer", here)

        played(story)

    def test_work_that_waits_for_nothing_is_done_at_once(self, played):
        async def story(worker):
            found = []
            worker.do(lambda: 6 * 7, found.append)
            assert (found, worker.busy_s) == ([42], 0)

        played(story)

    def test_work_elsewhere_waits_for_its_session_alone(self, database):
        threading.Timer(0.02, database.answer).start()
        assert database.wait() == b"answer"

    @pytest.mark.parametrize("is_notified", [False, True])
    def test_work_may_wait_for_room_to_write_and_for_sessions_of_others(self, played, database, is_notified):
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)

        def write():
            left, waits = 5_000_000, 0
            while left:
                try:
                    left -= ours.send(bytes(left))
                except BlockingIOError:
                    waits += 1
                    wait(ours.fileno(), writes=True)
            return waits

        def read():
            with contextlib.suppress(BlockingIOError):
                while theirs.recv(1 << 20):
                    pass

        async def story(worker):
            loop = asyncio.get_running_loop()
            loop.add_reader(theirs, read)
            assert await done(worker, write) > 0
            loop.call_later(0.01, database.answer)
            assert await done(worker, database.wait) == b"answer"
            assert await done(worker, write) > 0
            loop.remove_reader(theirs)
            assert ours.fileno() not in loop._selector.get_map()
            assert worker._watched == worker._descriptor

        played(story, *([database.fileno(), lambda: False] if is_notified else []))
        ours.close()
        theirs.close()

    def test_it_is_done_one_at_a_time_in_the_order_given(self, played, database):
        async def story(worker):
            at_once, most, order = 0, 0, []

            def work(number):
                nonlocal at_once, most
                at_once += 1
                most = max(most, at_once)
                order.append(number)
                if number % 3:
                    asyncio.get_running_loop().call_soon(database.answer)
                    database.wait()
                at_once -= 1

            given = [done(worker, lambda number=number: work(number)) for number in range(50)]
            await asyncio.gather(*given)
            assert (order, most) == ([*range(50)], 1)

        played(story)

    def test_what_is_given_next_is_done_before_all_that_waits(self, played, database):
        async def story(worker):
            order = []
            worker.do(database.wait, lambda _: worker.give_next(lambda: (lambda: None, lambda _: order.append("next"))))
            last = asyncio.ensure_future(done(worker, lambda: order.append("last")))
            await asyncio.sleep(0)
            database.answer()
            await last
            assert order == ["next", "last"]

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
            assert rounds - before <= 5

        played(story)

    def test_what_is_to_be_done_may_be_decided_when_its_time_has_come(self, played, database):
        async def story(worker):
            found = []
            waiting = asyncio.ensure_future(done(worker, database.wait))
            await asyncio.sleep(0)
            come = ["early"]
            worker.give(lambda: None)
            worker.give(lambda: (lambda: " and ".join(come), found.append))
            come.append("late")
            database.answer()
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

    def test_the_loop_goes_on_while_work_waits_and_reports_for_how_long(self, played, database):
        async def story(worker):
            waiting = asyncio.ensure_future(done(worker, database.wait))
            while worker.busy_s < 0.05:
                await asyncio.sleep(0.01)
            database.answer()
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

    def test_what_comes_at_its_ear_while_it_waits_for_another_wakes_nobody(self, played, database):
        ear, mouth = os.pipe()
        listened, looks = [], []

        async def story(worker):
            work = asyncio.ensure_future(done(worker, lambda: (looks.append(1), database.wait())))
            await asyncio.sleep(0.01)
            os.write(mouth, b"for later")
            await asyncio.sleep(0.05)
            assert (listened, worker._watched) == ([], database.fileno())
            database.answer()
            await work
            assert listened
            assert worker._watched == ear
            os.read(ear, 100)

        played(story, ear, lambda: bool(listened.append(True)))
        os.close(ear)
        os.close(mouth)

    def test_work_that_is_given_up_while_it_waits_is_not_gone_on_with(self, played, database):
        async def story(worker):
            found = []
            worker.do(database.wait, found.append)
            worker.end()
            assert worker.busy_s == 0
            database.answer()
            await asyncio.sleep(0.02)
            assert (found, worker.failures) == ([], [])

        played(story)

    def test_nothing_follows_from_work_within_which_the_end_came(self, played, database):
        async def story(worker):
            found = []
            worker.do(worker.end, found.append)
            assert not found

        async def story_of_a_wait(worker):
            found = []
            worker.do(lambda: (worker.end(), database.wait()), found.append)
            database.answer()
            await asyncio.sleep(0.02)
            assert (found, worker._watched) == ([], -1)

        played(story)
        played(story_of_a_wait)

    def test_a_session_that_cannot_be_watched_is_an_error(self, played):
        async def story(worker):
            worker.do(lambda: wait(1_000_000), print)
            assert isinstance(worker.failures[0], OSError)

        played(story)

    def test_what_is_no_error_ends_it_and_goes_on(self, played):
        def interrupt():
            raise KeyboardInterrupt

        async def story(worker):
            found = []
            with pytest.raises(KeyboardInterrupt):
                worker.do(interrupt, print)
            worker.do(lambda: "more", found.append)
            assert (found, worker.failures) == ([], [])

        played(story)

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

    def test_a_fault_in_what_begins_or_follows_is_no_hang(self, played, database):
        async def story(worker):
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            with pytest.raises(ZeroDivisionError):
                worker.give(lambda: 1 // 0)
            assert worker.busy_s == 0
            with pytest.raises(ZeroDivisionError):
                worker.do(lambda: 0, lambda zero: 1 // zero)
            worker.do(lambda: database.wait() and 0, lambda zero: 1 // zero)
            behind = asyncio.ensure_future(done(worker, lambda: "goes on"))
            await asyncio.sleep(0)
            database.answer()
            assert await behind == "goes on"

        played(story)
