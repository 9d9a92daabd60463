"""Mail on failure, by the shipped files: a run fails, and a mail server has a mail.

The notifier's own failures lead to no mail and to no loop.
"""

import sys
from pathlib import Path

import pytest

from tests.daemons import define
from tests.mail import mail_server
from tests.waiting import until
from trigmon.mq.calls import Alter, Display, Runs
from trigmon.mq.event_kinds import EVENT_QUEUE

ROOT = Path(__file__).parents[2]
INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"


@pytest.fixture
def notified(daemon, tmp_path):
    """A queue manager with the shipped files, whose way to send is the test's mail server; and a program that fails."""
    with mail_server() as box:
        one = daemon(with_monitor=True)
        done = one.trigmon("apply", str(ROOT / "config" / "notify.yaml"), str(ROOT / "process_defs" / "NOTIFY.yaml"))
        assert done.returncode == 0, done.stderr
        done = one.trigmon("mqsc", input="ALTER QMGR TRIGEV(ENABLED)\n")
        assert done.returncode == 0, done.stderr
        job = tmp_path / "job"
        job.write_text("#!/bin/sh\necho no such table: fares >&2\nexit 3\n")
        job.chmod(0o755)
        with one.connect() as qm:
            send = f"{sys.executable} -m trigmon notify --smtp 127.0.0.1:{box.port} --to ops@example.org --collect 0"
            alter(qm, "PROCESS", "NOTIFY", appl_id=send, retry_wait_s=1)
            define(qm, "FAILS", "PROCESS", appl_id=str(job), retry=0)
            trigger = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": INITQ}
            define(qm, "ORDERS", process_name="FAILS", **trigger)
            yield qm, box


def alter(qm, object_type, name, **attributes):
    qm.call(Alter(object_type=object_type, name=name, attributes=attributes))


def depth(qm):
    return qm.call(Display(object_type="QLOCAL", name=EVENT_QUEUE)).rows[0]["current_q_depth"]


def ended(qm, process_name):
    return [run for run in qm.call(Runs(where={"process_name": process_name})).rows if run["end_ms"]]


def test_a_run_that_fails_is_a_mail(notified):
    qm, box = notified
    qm.put("ORDERS", b"x")
    until(lambda: any("run_failed ORDERS" in mail["Subject"] for mail in box.mails))
    (mail,) = [mail for mail in box.mails if "run_failed" in mail["Subject"]]
    assert mail["To"] == "ops@example.org"
    assert "of FAILS for queue ORDERS failed: ended with status 3: no such table: fares" in mail.get_content()
    until(lambda: depth(qm) == 0)


def test_a_mail_server_that_refuses_leads_to_tries_and_no_event_and_the_mail_comes_when_it_takes_mails(notified):
    qm, box = notified
    box.refuses = "451 not now"
    qm.put("ORDERS", b"x")
    until(lambda: len(ended(qm, "NOTIFY")) >= 2)
    assert all("451" in run["stderr_tail"] for run in ended(qm, "NOTIFY"))
    assert depth(qm) == len(ended(qm, "FAILS")) == 1
    box.refuses = ""
    until(lambda: box.mails)
    assert len([mail for mail in box.mails if "ORDERS" in mail["Subject"]]) == 1
    assert all("NOTIFY" not in mail.get_content() for mail in box.mails)
