"""A connection to a queue manager elsewhere, through IBM's package ``ibmmq``, with growing pauses between tries.

``ibmmq`` is imported when the first connection is made, and nowhere else: a process without a bridge needs neither the
package nor the MQI's library.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

from trigmon.launch import secret_files
from trigmon.launch.launch_plan import LaunchError
from trigmon.setting_sections import BridgeSettings

_T = TypeVar("_T")
TRY_LATER: Final = frozenset(
    {
        2009,  # connection broken
        2018,  # the connection handle is gone with its connection
        2025,  # most connections reached
        2059,  # queue manager not available
        2161,  # queue manager quiescing
        2162,  # queue manager stopping
        2195,  # unexpected error of the other side
        2202,  # connection quiescing
        2203,  # connection stopping
        2219,  # another call of this connection is under way
        2223,  # queue manager not active
        2537,  # channel not available
        2538,  # host not available
        2539,  # channel configuration error
        2540,  # unknown channel name
    }
)
"""The reasons of MQ's after which a connection is made anew, later."""
_NO_TRACES: Final = "MQIPY_NOOTEL"
"""The variable that ibmmq looks at while it is imported."""
NOT_AUTHORIZED, NO_MESSAGE, TRUNCATED = 2035, 2033, 2080
# After these of MQBACK no unit of work is left that MQDISC could commit.
_NOTHING_LEFT: Final = frozenset((2003, 2009, 2018, 2059, 2222))
_LEFT: Final[list[Any]] = []
_LOADING: Final = threading.Lock()
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 30.0


class BridgeError(Exception):
    """A bridge cannot work as it is configured; the text names the bridge, what is wrong and the remedy."""


class RemoteError(Exception):
    """The queue manager elsewhere refused a call: its reason code, and which call it was."""

    def __init__(self, reason: int, doing: str) -> None:
        super().__init__(f"{doing}: {reason_text(reason)}")
        self.reason = reason

    @property
    def may_pass(self) -> bool:
        """Whether the queue manager is away, rather than the call being wrong."""
        return self.reason in TRY_LATER


@cache
def ibmmq() -> ModuleType:
    """Returns IBM's package. Raises BridgeError with the remedy where it, or the MQI's library, is missing."""
    # One thread after another: the environment and the filters of warnings are the process's.
    with _LOADING:
        return _loaded()


def _loaded() -> ModuleType:
    if find_spec("ibmmq") is None:
        raise BridgeError("IBM's package ibmmq is not installed: pip install 'trigmon[bridge]'")
    try:
        with warnings.catch_warnings(), _without_traces():
            warnings.simplefilter("ignore")  # of its own files
            return importlib.import_module("ibmmq")
    except ImportError as error:
        first = error.__context__ if isinstance(error.__context__, ImportError) else error
        raise BridgeError(
            f"ibmmq cannot load the MQI's library ({first}): install IBM's MQ client and name its lib64 in "
            "LD_LIBRARY_PATH before the monitor starts; to reach another trigmon, LD_LIBRARY_PATH=$(trigmon mqi path)"
        ) from None


@contextmanager
def _without_traces() -> Iterator[None]:
    """Keeps ibmmq from OpenTelemetry: else it adds properties to messages, and inquires each queue it opens."""
    before = os.environ.get(_NO_TRACES)
    os.environ[_NO_TRACES] = "1"
    try:
        yield
    finally:
        del os.environ[_NO_TRACES]
        if before is not None:
            os.environ[_NO_TRACES] = before


def reason_text(reason: int) -> str:
    """Returns a reason code with MQ's name for it, as far as ibmmq knows it: ``2085 MQRC_UNKNOWN_OBJECT_NAME``."""
    try:
        name = ibmmq().CMQSTRC.MQRC_DICT.get(reason, "")
    except BridgeError:
        name = ""
    return f"{reason} {name}".rstrip()


class RemoteConnection:
    """One connection to the queue manager of a bridge. One thread uses it at a time.

    ``name`` is the bridge's, ``secrets`` the directory of ``monitor.secrets_directory``.
    """

    def __init__(
        self,
        name: str,
        settings: BridgeSettings,
        secrets: str | Path | None = None,
        *,
        application: str = "trigmon bridge",
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.name = name
        self.settings = settings
        self._secrets = None if secrets is None else Path(secrets)
        self._application = application
        self._environ = environ
        self._manager: Any = None
        self._pause_s = _FIRST_PAUSE_S
        self._retry_at = 0.0
        self._error = RemoteError(2059, "MQCONNX")

    @property
    def pause_s(self) -> float:
        """Seconds until the next try is due; 0 when it is, or when there is a connection."""
        return 0.0 if self._manager is not None else max(0.0, self._retry_at - time.monotonic())

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self._manager is not None

    def manager(self) -> Any:
        """Returns ibmmq's QueueManager, connected now if it was not and a try is due.

        Raises RemoteError where it cannot be reached (``pause_s`` says when to try again), BridgeError.
        """
        if self._manager is None:
            if self.pause_s:
                raise self._error
            self._manager = self._connected()
            self._pause_s = _FIRST_PAUSE_S
        return self._manager

    def call(self, doing: str, function: Callable[[], _T]) -> _T:
        """Calls ibmmq and returns what it returns. ``doing`` names the call in errors.

        Raises RemoteError; after a reason of ``TRY_LATER`` the connection is dropped, and its unit of work with it.
        """
        try:
            return function()
        except ibmmq().MQMIError as error:
            raise self._failed(int(error.reason), doing) from None

    def lose(self, error: RemoteError) -> None:
        """Drops the connection without a commit, and sets when the next try is due."""
        self.drop()
        self._error = error
        self._retry_at = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    def drop(self) -> None:
        """Ends the connection; what was not committed is backed out first."""
        self._discard()

    def _discard(self) -> None:
        """Ends the connection without a commit. MQDISC commits, so it comes only when nothing is left to commit."""
        manager, self._manager = self._manager, None
        if manager is None:
            return
        mq = ibmmq()
        try:
            manager.backout()
        except mq.MQMIError as error:
            if error.reason not in _NOTHING_LEFT:
                _LEFT.append(manager)  # its end, or that of the process, backs out; ibmmq's object would disconnect
                return
        with contextlib.suppress(mq.MQMIError, mq.PYIFError):
            manager.disconnect()

    def _failed(self, reason: int, doing: str) -> RemoteError:
        error = RemoteError(reason, doing)
        if error.may_pass:
            self.lose(error)
        return error

    def _connected(self) -> Any:
        mq = ibmmq()
        manager = mq.QueueManager(None, disconnect_on_exit=False)  # MQDISC commits: an error must not end in one
        try:
            self._connect(mq, manager)
        except mq.MQMIError as error:
            failed = RemoteError(int(error.reason), f"MQCONNX to {self.settings.queue_manager}")
            self.lose(failed)
            raise failed from None
        return manager

    def _connect(self, mq: ModuleType, manager: Any) -> None:
        given = self.settings
        options = mq.CNO(Options=mq.CMQC.MQCNO_HANDLE_SHARE_BLOCK | mq.CMQC.MQCNO_RECONNECT_DISABLED)
        if hasattr(options, "ApplName"):
            options.Version = max(options.Version, 7)
            options.ApplName = self._application.encode()[:28]
        named: dict[str, Any] = {"cno": options}
        if given.ccdt:
            options.Version = max(options.Version, 6)
            options.CCDTUrl = ccdt_url(given.ccdt)
        if given.mqserver:
            named["cd"] = _channel(mq, given)
        if given.key_repository:
            named["sco"] = mq.SCO(KeyRepository=given.key_repository.encode())
        if given.user:
            named |= {"user": given.user, "password": self._password()}
        manager.connect_with_options(given.queue_manager, **named)

    def _password(self) -> str:
        """Returns the password from its file. Raises BridgeError, whose text has no secret in it."""
        try:
            path = secret_files.found(str(self.settings.password_secret), self._secrets, self._environ)
            return next(Path(each).read_text() for each in path.values()).rstrip("\r\n")
        except (LaunchError, OSError, UnicodeDecodeError) as error:
            why = str(error) if isinstance(error, LaunchError) else f"{type(error).__name__} at its file"
            raise BridgeError(f"bridge {self.name}: password_secret: {why}") from None


def ccdt_url(ccdt: str) -> str:
    """Returns the URL of a channel table that the settings name by path or URL."""
    return ccdt if "://" in ccdt else Path(ccdt).absolute().as_uri()


def _channel(mq: ModuleType, given: BridgeSettings) -> Any:
    """Returns the MQCD of MQSERVER's text."""
    channel, _, connection = (given.mqserver or "").split("/", 2)
    descriptor = mq.CD()
    descriptor.ChannelName = channel.encode()
    descriptor.ConnectionName = connection.encode()
    descriptor.ChannelType = mq.CMQXC.MQCHT_CLNTCONN
    descriptor.TransportType = mq.CMQXC.MQXPT_TCP
    if given.cipher_spec:
        descriptor.SSLCipherSpec = given.cipher_spec.encode()
    return descriptor


def environment(settings: BridgeSettings) -> dict[str, str]:
    """Returns the variables by which a program of IBM's MQI finds the queue manager of a bridge. None is a secret."""
    found = {}
    if settings.mqserver:
        found["MQSERVER"] = settings.mqserver
    if settings.ccdt:
        found["MQCCDTURL"] = ccdt_url(settings.ccdt)
    if settings.key_repository:
        found["MQSSLKEYR"] = settings.key_repository
    return found
