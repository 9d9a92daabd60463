"""Who is to blame for a batch that failed, by what errors of sinks, of Spark and of the reader look like."""

from __future__ import annotations

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.captured_errors import captured
from trigmon.spark.poison_search.blame import MARK, is_of_sink, marked, unreadable
from trigmon.spark.sinks.sink import SinkError

OF_SINKS = [
    "Py4JJavaError: An error occurred while calling o1.parquet.\n: org.apache.spark.SparkException: Job aborted.\n"
    "Caused by: java.io.IOException: No space left on device\n\tat java.base/java.io.FileOutputStream.writeBytes",
    "Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device",
    "Caused by: java.io.IOException: Mkdirs failed to create file:/ro/t (exists=false, cwd=file:/)",
    "Caused by: java.nio.file.FileSystemException: /t/part-0: Read-only file system",
    "Caused by: java.nio.file.AccessDeniedException: /t/part-0",
    "Caused by: org.apache.hadoop.security.AccessControlException: Permission denied: user=x",
    "Caused by: org.apache.hadoop.hdfs.protocol.DSQuotaExceededException: The DiskSpace quota is exceeded",
    "Caused by: java.net.ConnectException: Connection refused",
    "Caused by: java.net.UnknownHostException: db.example.com",
    "Caused by: org.postgresql.util.PSQLException: Connection to db:5432 refused. Check that the hostname",
    'Caused by: org.postgresql.util.PSQLException: ERROR: could not extend file "base/1/2": No space left on device',
    'Caused by: org.postgresql.util.PSQLException: FATAL: password authentication failed for user "x"',
    "Caused by: java.sql.SQLException: it went away, SQLState: 08006",
    "Caused by: java.sql.SQLTransientConnectionException: no connection in the pool",
    "Caused by: com.mysql.cj.jdbc.exceptions.CommunicationsException: Communications link failure",
    "Caused by: com.microsoft.sqlserver.jdbc.SQLServerException: The TCP/IP connection to the host db has failed.",
    "Caused by: org.postgresql.util.PSQLException: ERROR: cannot execute INSERT in a read-only transaction",
    "Caused by: org.postgresql.util.PSQLException: FATAL: remaining connection slots are reserved for superuser",
    "sqlite3.OperationalError: database or disk is full",
    "OSError: When completing multiple part upload: AWS Error SLOW_DOWN during PutObject: please reduce",
    "Caused by: com.amazonaws.services.s3.model.AmazonS3Exception: Slow Down (Service: Amazon S3; Status Code: 503)",
    "botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the PutObject operation",
    "PythonException: Traceback (most recent call last):\nOSError: [Errno 28] No space left on device: '/t/x'",
    "PythonException: Traceback (most recent call last):\nPermissionError: [Errno 13] Permission denied: '/t/x'",
    "PythonException: Traceback (most recent call last):\ntrigmon.mq.errors.NotAuthorized: MQRC_NOT_AUTHORIZED (2035)",
    "PythonException: Traceback (most recent call last):\ntrigmon.mq.errors.MaxConnsLimitReached: MQRC_MAX_CONNS: ",
    "PythonException: Traceback (most recent call last):\ntrigmon.mq.errors.QMgrStopping: MQRC_Q_MGR_STOPPING: QM1",
    "PythonException: Traceback (most recent call last):\ntrigmon.mq.errors.ConnectionBroken: MQRC_CONNECTION_BROKEN: ",
    "PythonException: Traceback (most recent call last):\ntrigmon.mq.errors.SslInitializationError: MQRC_SSL: ",
]
OF_NOBODY_YET = [
    "PythonException: Traceback (most recent call last):\nValueError: no price in message 7",
    "Caused by: org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.",
    'Caused by: org.postgresql.util.PSQLException: ERROR: duplicate key value violates unique constraint "x"',
    'Caused by: org.postgresql.util.PSQLException: ERROR: null value in column "id" violates not-null constraint',
    "ValueError: the text is 'No space left on device'",
    "Python worker exited unexpectedly (crashed)\nCaused by: java.net.SocketException: Connection reset",
    "KeyError: 'permission denied'",
]


FAILED = ("org.apache.spark.SparkException", "[TASK_WRITE_FAILED] Task failed while writing rows to file:/t")


@pytest.mark.parametrize(
    "root",
    [
        ("java.io.IOException", "No space left on device"),
        ("org.apache.hadoop.fs.FSError", "java.io.IOException: No space left on device"),
        ("java.nio.file.AccessDeniedException", "/t/part-0"),
        ("java.net.ConnectException", None),
        ("org.postgresql.util.PSQLException", "Connection to db:5432 refused. Check that the hostname"),
    ],
)
def test_an_error_of_a_stream_s_sink_is_known_by_its_cause_in_java(root):
    assert is_of_sink(captured("[STREAM_FAILED] Query terminated", FAILED, root))


@pytest.mark.parametrize(
    "root",
    [
        (
            "org.apache.spark.SparkDateTimeException",
            "[CAST_INVALID_INPUT] 'java.net.ConnectException: refused'",
        ),
        ("java.lang.NumberFormatException", 'For input string: "java.io.IOException: No space left on device"'),
        ("a.BadRecordException", "x\nCaused by: java.io.IOException: No space left on device"),
        ("org.apache.spark.SparkException", "Python worker exited unexpectedly (crashed)"),
    ],
)
def test_what_a_stream_s_error_quotes_is_not_taken_for_the_sink_s(root):
    assert not is_of_sink(captured("[STREAM_FAILED] Query terminated", FAILED, root))
    crashed = ("org.apache.spark.SparkException", "Python worker exited unexpectedly (crashed)")
    assert not is_of_sink(captured("[STREAM_FAILED] x", crashed, ("java.net.SocketException", "Connection reset")))


@pytest.mark.timeout(60)
def test_a_long_text_that_an_error_quotes_is_searched_in_no_time():
    """Without the cut of lines it does not end within a minute."""
    quoted = "OSError SQLException SQLSTATE " * 10_000
    assert not is_of_sink(RuntimeError(quoted))
    assert not is_of_sink(captured("[STREAM_FAILED] x", FAILED, ("java.lang.NumberFormatException", quoted)))


@pytest.mark.parametrize("text", OF_SINKS)
def test_an_error_of_the_sink_is_known_by_what_java_and_python_say(text):
    assert is_of_sink(RuntimeError(text))


@pytest.mark.parametrize("text", OF_NOBODY_YET)
def test_an_error_that_a_message_may_have_caused_is_not_the_sink_s(text):
    assert not is_of_sink(RuntimeError(text))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ECONNREFUSED])
def test_an_error_of_the_system_is_the_sink_s_also_as_the_cause_of_another(number):
    try:
        try:
            raise OSError(number, os.strerror(number))
        except OSError as cause:
            raise RuntimeError("the write failed") from cause
    except RuntimeError as error:
        assert is_of_sink(error)
    assert not is_of_sink(FileNotFoundError(errno.ENOENT, "no such file"))


def test_a_sink_says_so_itself():
    assert is_of_sink(SinkError("the table is locked"))


@given(st.integers(1, 10**9), st.dictionaries(st.integers(0, 10**6), st.text(), min_size=1, max_size=200))
def test_the_reader_s_error_names_each_message_behind_whatever_spark_writes_around_it(number, reasons):
    error = RuntimeError(f"Job aborted\nTraceback\nUnfitRowError: {marked(number, reasons)}\n\tat java.Thing")
    found = unreadable(error)
    assert found.reservation == number
    assert found.reasons.keys() == reasons.keys()


def test_the_text_of_a_message_names_no_other_message():
    claim = f'{MARK} 5: {{"9": "mine"}}'
    found = unreadable(RuntimeError(marked(5, {3: f"what is {claim}?"})))
    assert found.reasons.keys() == {3}
    assert unreadable(RuntimeError(f"{MARK} 5: no JSON")) is None
    assert unreadable(RuntimeError("else")) is None


def test_a_mark_without_the_drain_s_secret_names_nobody():
    forged = f"cannot parse {marked(5, {0: 'x'}, 'ab')}"
    assert unreadable(ValueError(forged), "cd") is None
    assert unreadable(ValueError(f"{forged}\n{marked(5, {7: 'y'}, 'cd')}"), "cd").reasons.keys() == {7}


def test_the_state_of_a_python_driver_s_error_is_looked_at():
    error = ValueError("it is full")
    error.sqlstate = "53100"
    assert is_of_sink(error)
    error.sqlstate = "23505"
    assert not is_of_sink(error)


def test_what_an_error_was_raised_from_none_for_is_no_cause():
    try:
        try:
            raise PermissionError(errno.EACCES, "no")
        except PermissionError:
            raise ValueError("the message names a file that there is not") from None
    except ValueError as error:
        assert not is_of_sink(error)
