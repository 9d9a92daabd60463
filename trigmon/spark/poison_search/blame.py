"""Who is to blame for a batch that failed: the sink, messages that the error names, or nobody yet. Pure.

| what the error says | to blame | what follows |
|---|---|---|
| :class:`~trigmon.spark.sinks.sink.SinkError` | the sink | one more try, then the drain gives up |
| no space, quota, read-only, access, in an OSError or a Java cause | the sink | the same |
| connection, login or resources of a database: SQLSTATE 08, 28, 53, 57 | the sink | the same |
| a task does not reach the queue manager, or its ticket does not hold | the sink: no message, at least | the same |
| an object store that is throttled, unavailable, or refuses the key | the sink | the same |
| :data:`MARK` of the reader, with this reservation | these messages | they are set aside at once |
| anything else | not known | the search of :mod:`trigmon.spark.poison_search.bisect` |

The text of a message must not decide: it may be quoted in an error. So texts of the system are looked for where an
exception's name stands before them, of a cause in Java where that is its own class, and the reader's mark has a secret
of the drain.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from trigmon.spark.poison_search.failure_text import JavaCause, chain, java_causes
from trigmon.spark.sinks.sink import SinkError

MARK = "trigmon cannot read messages of reservation"
"""What the reader's error begins with; the reservation's number, the drain's secret and a JSON object follow."""
_MARKED = re.compile(rf"{MARK} (\d+) ([0-9a-f]*): (?=\{{)")
_MOST_REASONS, _LONGEST_REASON = 100, 300
_LONGEST_LINE = 2000
_ERRNOS = frozenset(
    (
        *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ENODEV, errno.ESTALE),
        *(errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ETIMEDOUT, errno.EHOSTUNREACH),
        *(errno.ENETUNREACH, errno.EMFILE, errno.ENFILE, errno.ENOTCONN),
    )
)
_NAMES = (
    # Java's and Hadoop's, by the end of the class's name.
    *("AccessDeniedException", "AccessControlException", "ReadOnlyFileSystemException", "ConnectException"),
    *("SocketException", "SocketTimeoutException", "UnknownHostException", "NoRouteToHostException"),
    *("DiskChecker.DiskErrorException", "DSQuotaExceededException", "QuotaExceededException", "SafeModeException"),
    *("SQLTransientConnectionException", "SQLNonTransientConnectionException", "SQLRecoverableException"),
    *("CommunicationsException", "SQLInvalidAuthorizationSpecException", "SSLException", "SSLHandshakeException"),
    # Python's.
    *("PermissionError", "ConnectionError", "ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError"),
    *("ConnectionAbortedError", "EndpointConnectionError", "NoCredentialsError", "SinkError"),
    # The reader's, of a task that does not reach the queue manager or may not read there.
    *("QMgrNotAvailable", "ConnectionBroken", "SslInitializationError", "NotAuthorized", "MaxConnsLimitReached"),
    *("QMgrStopping", "CfNotAvailable"),
)
_NAMED = re.compile(rf"(?:^|[\s.:$])(?:{'|'.join(map(re.escape, _NAMES))})(?:[:\s]|$)", re.MULTILINE)
_IN_IO = re.compile(
    r"(?:IOException|FileSystemException|OSError|FSError|IOError)\b[^\n]*"
    r"(?i:no space left|quota exceeded|read-only file system|permission denied|input/output error"
    r"|too many open files|connection (?:refused|reset|timed out)|mkdirs failed to create)"
)
_STATES = frozenset(("08", "28", "53", "57"))
"""Classes of SQLSTATE: connection, login, resources, an operator's intervention."""
_CRASHED = re.compile(r"Python worker (?:exited|failed|died|is gone)")
"""A message may have killed the Python worker; then it is the link to that which was reset."""
_SQL = re.compile(r"(?:SQLException|PSQLException|SQLState|SQLSTATE)\b[^\n]*?\b(08|28|53|57)[0-9A-Z]{3}\b")
_DATABASE = re.compile(
    r"(?:SQLException|PSQLException|SQLServerException)\b[^\n]*(?:Connection to \S+ refused|connection attempt failed"
    r"|could not extend file|the database system is|terminating connection|too many clients"
    r"|password authentication failed|This connection has been closed|I/O error occurred|No space left on device"
    r"|connection slots are reserved|read-only transaction|permission denied for|TCP/IP connection to the host)"
    r"|OperationalError\b[^\n]*(?:disk is full|readonly database|disk I/O error|unable to open database)"
)
_STORE = re.compile(
    r"(?:AmazonS3Exception|S3Exception|ClientError|StorageException|AzureException|GoogleJsonResponseException|HttpError)"
    r"\b[^\n]*(?:SlowDown|Slow Down|ServiceUnavailable|503|AccessDenied|403|InvalidAccessKeyId|NoSuchBucket"
    r"|RequestTimeout|InternalError)"
    r"|AWS Error (?:SLOW_DOWN|ACCESS_DENIED|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|NETWORK_CONNECTION|REQUEST_TIMEOUT"
    r"|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|NO_SUCH_BUCKET|THROTTLING)"
)
_PATTERNS = (_NAMED, _IN_IO, _SQL, _DATABASE, _STORE)


class Unreadable(NamedTuple):
    """Messages of a reservation that cannot be read as asked, by their ordinals, each with the reason."""

    reservation: int
    reasons: dict[int, str]


def is_of_sink(error: BaseException) -> bool:
    """Returns whether the sink is to blame, whatever the messages are."""
    for one in chain(error):
        if isinstance(one, SinkError) or (isinstance(one, OSError) and one.errno in _ERRNOS):
            return True
        state = getattr(one, "sqlstate", None) or getattr(one, "pgcode", None)  # a driver of Python's
        if isinstance(state, str) and state[:2] in _STATES:
            return True
    text, causes = _short(_text(error)), java_causes(error)
    if any(_CRASHED.search(each) for each in (text, *(cause.message for cause in causes))):
        return False
    return any(pattern.search(text) for pattern in _PATTERNS) or any(map(_is_of_sink, causes))


def unreadable(error: BaseException, secret: str = "") -> Unreadable | None:
    """Returns the messages that the reader could not read, where that was the error.

    An error may quote a message, whose text is anybody's. So what does not have the drain's secret names nobody.
    """
    text = _text(error)
    found = next((one for one in _MARKED.finditer(text) if one[2] == secret), None)
    if found is None:
        return None
    try:
        reasons, _ = json.JSONDecoder().raw_decode(text, found.end())
    except ValueError:
        return None
    return Unreadable(int(found[1]), {int(ordinal): str(why) for ordinal, why in reasons.items()})


def marked(reservation: int, reasons: Mapping[int, str], secret: str = "") -> str:
    """Returns the text of the reader's error for unreadable messages; from the 101st on all have one reason."""
    short = {
        str(ordinal): why[:_LONGEST_REASON].replace(MARK, "") if at < _MOST_REASONS else "it cannot be read as asked"
        for at, (ordinal, why) in enumerate(reasons.items())
    }
    return f"{MARK} {reservation} {secret}: {json.dumps(short)}"


def _short(text: str) -> str:
    """Returns a text with its lines cut: a message that one of them quotes must not make the search a long one."""
    return "\n".join(line[:_LONGEST_LINE] for line in text.splitlines())


def _is_of_sink(cause: JavaCause) -> bool:
    """Returns whether a cause in Java is the sink's: by its class, and by its text where that class has such texts."""
    name = cause.class_name
    found = (pattern.search(_short(f"{name}: {cause.message}")) for pattern in _PATTERNS)
    return any(one is not None and one.start() < len(name) for one in found)


def _text(error: BaseException) -> str:
    """Returns what the error and its causes say; of an exception of Python with its name before it."""
    return "\n".join(f"{type(one).__name__}: {one}" for one in chain(error))
