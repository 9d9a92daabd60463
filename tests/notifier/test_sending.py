"""Events go out by a real mail server, a real web hook and a real command; what is not sent stays on the queue."""

import json
import socket
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

import pytest

from tests.daemons import define
from tests.mail import mail_server
from trigmon.mq.calls import Display
from trigmon.notifier.channels import Command, Mail, SendError, WebHook
from trigmon.notifier.notification import Notification, grouped
from trigmon.notifier.notifier import LONGEST_S, notify

numbers = count(1)


@pytest.fixture
def events(qm):
    """A queue of the test's own with three events on it, two of them alike."""
    name = f"EVENTS.{next(numbers)}"
    define(qm, name)
    for at_ms, event in ((1000, "run_failed"), (2000, "run_failed"), (3000, "queue_held")):
        qm.put(name, json.dumps({"event": event, "at_ms": at_ms, "q_name": "ORDERS", "text": f"{event}!"}))
    return name


def depth(qm, name):
    return qm.call(Display(object_type="QLOCAL", name=name)).rows[0]["current_q_depth"]


@pytest.fixture
def mailbox():
    with mail_server() as box:
        yield box


@contextmanager
def web_server(status=200, headers=()):
    """Yields its address and the requests that it got."""
    requests = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            requests.append((dict(self.headers), json.loads(body)))
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()

        do_GET = do_POST  # noqa: N815 - the server's name

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_mail_has_a_line_for_each_group_and_the_queue_is_empty(qm, events, mailbox):
    mail = Mail("127.0.0.1", mailbox.port, "trigmon@example.org", ("ops@example.org", "dev@example.org"))
    assert notify(qm, events, mail, collect_s=0) == 1
    (message,) = mailbox.mails
    assert mailbox.envelopes[0].rcpt_tos == ["ops@example.org", "dev@example.org"]
    assert message["Subject"] == "trigmon QM1: run_failed ORDERS (2 times), and 1 more"
    failed, held = message.get_content().splitlines()
    assert failed.endswith(", 2 times  run_failed: run_failed!")
    assert held.endswith("  queue_held: queue_held!")
    assert depth(qm, events) == 0


def test_a_mail_that_is_refused_stays_and_is_sent_with_the_same_id_later(qm, events, mailbox):
    mail = Mail("127.0.0.1", mailbox.port, "trigmon@example.org", ("ops@example.org",))
    mailbox.refuses = "451 try again later"
    with pytest.raises(SendError, match="451"):
        notify(qm, events, mail, collect_s=0)
    assert depth(qm, events) == 3
    first = qm.open(events, "browse")
    key = next(first.browse()).msg_id.hex()
    first.close()
    mailbox.refuses = ""
    assert notify(qm, events, mail, collect_s=0) == 1
    assert mailbox.mails[0]["Message-ID"] == f"<{key}@trigmon.invalid>"


def test_one_unknown_recipient_is_an_error_and_the_others_get_the_mail_once(qm, events, mailbox):
    mail = Mail("127.0.0.1", mailbox.port, "trigmon@example.org", ("ops@example.org", "gone@example.org"))
    mailbox.unknown = "gone@example.org"
    with pytest.raises(SendError, match=r"refused gone@example\.org"):
        notify(qm, events, mail, collect_s=0)
    assert notify(qm, events, mail, collect_s=0) == 0
    assert [envelope.rcpt_tos for envelope in mailbox.envelopes] == [["ops@example.org"]]


def test_it_ends_also_while_events_come_all_the_time(qm, events):
    class Stream:
        sent = 0

        def send(self, notification):
            self.sent += 1
            assert self.sent < 10
            qm.put(events, json.dumps({"event": "run_failed", "at_ms": 1, "q_name": "ORDERS", "text": "!"}))

    clock = count(0, LONGEST_S / 10)
    assert 0 < notify(qm, events, Stream(), collect_s=0, timer=clock.__next__) < 10
    assert depth(qm, events) == 1


def test_a_password_is_not_sent_over_a_connection_that_is_not_encrypted(qm, events, mailbox):
    mail = Mail("127.0.0.1", mailbox.port, "a@example.org", ("b@example.org",), "user", "password")
    with pytest.raises(SendError, match="STARTTLS"):
        notify(qm, events, mail, collect_s=0)
    assert mailbox.mails == []


def test_a_mail_server_that_is_not_there_is_an_error(qm, events, mailbox):
    with pytest.raises(SendError, match=r"mail server 127\.0\.0\.1:1:"):
        notify(qm, events, Mail("127.0.0.1", 1, "a@example.org", ("b@example.org",)), collect_s=0)
    assert depth(qm, events) == 3


def test_a_web_hook_gets_one_json_object_with_a_token_and_a_key(qm, events):
    with web_server() as (url, requests):
        assert notify(qm, events, WebHook(url, "s3cret"), collect_s=0) == 1
    ((headers, body),) = requests
    assert (headers["Authorization"], headers["Content-Type"]) == ("Bearer s3cret", "application/json")
    assert headers["Idempotency-Key"] == body["key"]
    assert [(group["event"], group["count"]) for group in body["groups"]] == [("run_failed", 2), ("queue_held", 1)]


@pytest.mark.parametrize("status", [301, 404, 500])
def test_a_web_hook_that_does_not_take_it_leaves_it_on_the_queue(qm, events, status):
    with web_server() as (other, elsewhere), web_server(status, [("Location", other)]) as (url, requests):
        with pytest.raises(SendError, match=f"status {status}"):
            notify(qm, events, WebHook(url), collect_s=0)
        assert (len(requests), elsewhere) == (1, [])
    assert depth(qm, events) == 3


def test_an_answer_that_is_not_http_leaves_it_on_the_queue(qm, events):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            connection, _ = listener.accept()
            with connection:
                connection.recv(1)
                connection.sendall(b"220 a mail server\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(SendError, match=r"web hook at 127\.0\.0\.1"):
            notify(qm, events, WebHook(f"http://127.0.0.1:{listener.getsockname()[1]}/"), collect_s=0)
        thread.join()
    assert depth(qm, events) == 3


def test_a_web_hook_is_no_file(qm, events):
    with pytest.raises(SendError, match="http://"):
        notify(qm, events, WebHook("file:///etc/passwd"), collect_s=0)


def test_a_command_gets_the_text_and_the_subject(qm, events, tmp_path):
    script = "import sys; open(sys.argv[1], 'w').write(sys.argv[2] + chr(10) + sys.stdin.read())"
    command = Command((sys.executable, "-c", script, str(tmp_path / "out"), "{subject}"))
    assert notify(qm, events, command, collect_s=0) == 1
    subject, *lines = (tmp_path / "out").read_text().splitlines()
    assert subject.startswith("trigmon QM1: run_failed")
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((sys.executable, "-c", "import sys; sys.exit('no mail today')"), "no mail today"),
        (("/no/such/one",), "No such file"),
    ],
)
def test_a_command_that_fails_leaves_the_events(qm, events, words, said):
    with pytest.raises(SendError, match=said):
        notify(qm, events, Command(words), collect_s=0)
    assert depth(qm, events) == 3


class Sent:
    def __init__(self):
        self.notifications = []

    def send(self, notification):
        self.notifications.append(notification)


def test_what_comes_while_events_are_collected_is_in_the_same_notification(qm, events, shared_daemon):
    late = threading.Timer(0.2, lambda: _put(shared_daemon, events))
    late.start()
    sent = Sent()
    notify(qm, events, sent, collect_s=2)
    late.join()
    assert [group.count for group in sent.notifications[0].groups] == [2, 2]


def _put(daemon, name):
    with daemon.connect() as qm:
        qm.put(name, json.dumps({"event": "queue_held", "at_ms": 4000, "q_name": "ORDERS", "text": "again"}))


def test_many_events_are_several_notifications_and_one_about_itself_is_none(qm):
    name = f"EVENTS.{next(numbers)}"
    define(qm, name)
    qm.put_many(name, [json.dumps({"event": "run_failed", "at_ms": 1, "q_name": "A", "text": "t"})] * 1500)
    sent = Sent()
    assert notify(qm, name, sent, collect_s=0) == 2
    assert [notification.groups[0].count for notification in sent.notifications] == [1000, 500]
    qm.put(name, json.dumps({"event": "run_failed", "at_ms": 1, "q_name": name, "text": "t"}))
    assert notify(qm, name, sent, collect_s=0) == 0
    assert depth(qm, name) == 0


def test_a_subject_of_several_lines_is_one_header(mailbox):
    groups = grouped([{"event": "run_failed", "at_ms": 1, "q_name": "A\r\nBcc: x@example.org", "text": "t"}], "E", "N")
    Mail("127.0.0.1", mailbox.port, "a@example.org", ("b@example.org",)).send(Notification("QM1", "00", groups))
    assert mailbox.envelopes[0].rcpt_tos == ["b@example.org"]
    assert mailbox.mails[0]["Subject"] == "trigmon QM1: run_failed A Bcc: x@example.org"
