"""One exception for each reason that trigmon raises or catches. The docstring of a class is its message.

A class is named after its reason: ``QFull`` has ``Reason.Q_FULL``. ``about`` names the object or the field.
``MQError.of(reason, about)`` makes the class of a number, so the client raises what the rules raised.
"""

from __future__ import annotations

from typing import ClassVar

from trigmon.mq.reasons import CompCode, Reason
from trigmon.mq.shortening import shortened

_BY_NAME = {reason.name.replace("_", "").lower(): reason for reason in Reason}


class MQError(Exception):
    """A call failed."""

    reason: Reason = Reason.UNEXPECTED_ERROR
    comp_code: ClassVar[CompCode] = CompCode.FAILED

    def __init_subclass__(cls) -> None:
        cls.reason = _BY_NAME[cls.__name__.lower()]

    def __init__(self, about: str = "") -> None:
        self.about = shortened(about)
        super().__init__(self.about)

    def __str__(self) -> str:
        meaning = (type(self).__doc__ or "").strip().rstrip(".")
        return f"{self.reason.mq_name} ({int(self.reason)}): {self.about or meaning}"

    @staticmethod
    def of(reason: int, about: str = "") -> MQError:
        """Returns the exception of a reason's number; :class:`UnexpectedError` for a number that MQ has not.

        A reason without a class of its own, which a later trigmon may raise, is an MQError with that reason.
        """
        if (kind := BY_REASON.get(reason)) is not None:
            return kind(about)
        error = MQError(about)
        try:
            error.reason = Reason(reason)
        except ValueError:
            return UnexpectedError(about)
        return error


class AliasBaseQTypeError(MQError):
    """Alias points at something that is not a local/remote/cluster queue."""


class AlreadyConnected(MQError):
    """Already connected (warning)."""


class BackedOut(MQError):
    """Unit of work was backed out, or must be."""


class BufferLengthError(MQError):
    """Bad buffer length."""


class ConnectionBroken(MQError):
    """Lost the queue manager."""


class DynamicQNameError(MQError):
    """Bad DynamicQName."""


class ExpiryError(MQError):
    """Expiry is zero or otherwise invalid."""


class FeedbackError(MQError):
    """Feedback value invalid for the message type."""


class GetInhibited(MQError):
    """Queue is get-disabled."""


class HandleNotAvailable(MQError):
    """MAXHANDS reached."""


class HconnError(MQError):
    """Bad connection handle."""


class HobjError(MQError):
    """Bad object handle."""


class InhibitValueError(MQError):
    """MQSET inhibit value not 0/1."""


class SyncpointLimitReached(MQError):
    """MAXUMSGS exceeded."""


class MaxConnsLimitReached(MQError):
    """Too many connections."""


class MdError(MQError):
    """Bad MQMD."""


class MissingReplyToQ(MQError):
    """Request or report asked for without ReplyToQ."""


class MsgTypeError(MQError):
    """Bad MsgType."""


class MsgTooBigForQ(MQError):
    """Longer than queue MAXMSGL."""


class MsgTooBigForQMgr(MQError):
    """Longer than queue manager MAXMSGL."""


class NoMsgAvailable(MQError):
    """Nothing matches / wait timed out."""


class NoMsgUnderCursor(MQError):
    """Cursor not on a message (gone or expired)."""


class NotAuthorized(MQError):
    """No authority."""


class NotOpenForBrowse(MQError):
    """Handle lacks BROWSE."""


class NotOpenForInput(MQError):
    """Handle lacks INPUT."""


class NotOpenForInquire(MQError):
    """Handle lacks INQUIRE."""


class NotOpenForOutput(MQError):
    """Handle lacks OUTPUT."""


class NotOpenForSet(MQError):
    """Handle lacks SET."""


class ObjectInUse(MQError):
    """Conflicting open."""


class ObjectTypeError(MQError):
    """Bad or unsuited object type."""


class OptionNotValidForType(MQError):
    """Option does not suit the object type."""


class OptionsError(MQError):
    """Unknown or conflicting options."""


class PersistenceError(MQError):
    """Bad Persistence."""


class PersistentNotAllowed(MQError):
    """Persistent message to a temporary dynamic queue or a non-recoverable structure."""


class PriorityError(MQError):
    """Bad Priority."""


class PutInhibited(MQError):
    """Queue is put-disabled."""


class QDeleted(MQError):
    """Queue deleted since open."""


class QFull(MQError):
    """MAXDEPTH reached."""


class QNotEmpty(MQError):
    """MQCLOSE DELETE of a queue with messages or uncommitted work."""


class QTypeError(MQError):
    """Wrong queue type (e.g. model used as dynamic target)."""


class QMgrNameError(MQError):
    """Unknown queue manager name."""


class QMgrNotAvailable(MQError):
    """Queue manager not running."""


class ReportOptionsError(MQError):
    """Unsupported report bits in reject mask."""


class SecondMarkNotAllowed(MQError):
    """Second MARK_SKIP_BACKOUT in one unit of work."""


class SelectorLimitExceeded(MQError):
    """Over 256 selectors."""


class SelectorError(MQError):
    """Selector unknown or not settable."""


class TriggerControlError(MQError):
    """MQSET TriggerControl invalid."""


class TriggerDepthError(MQError):
    """MQSET TriggerDepth not > 0."""


class TriggerMsgPriorityErr(MQError):
    """MQSET TriggerMsgPriority outside 0..MAXPRTY."""


class TriggerTypeError(MQError):
    """MQSET TriggerType invalid."""


class TruncatedMsgFailed(MQError):
    """Did not fit, kept (warning)."""


class UnknownAliasBaseQ(MQError):
    """Alias target does not exist."""


class UnknownObjectName(MQError):
    """No such object."""


class UnknownRemoteQMgr(MQError):
    """No route to the remote queue manager."""


class WaitIntervalError(MQError):
    """Bad WaitInterval."""


class XmitQTypeError(MQError):
    """Transmission queue is not local."""


class XmitQUsageError(MQError):
    """Its USAGE is not XMITQ."""


class NotOpenForPassAll(MQError):
    """Context option not given at open."""


class NotOpenForPassIdent(MQError):
    """Context option not given at open."""


class NotOpenForSetAll(MQError):
    """Context option not given at open."""


class NotOpenForSetIdent(MQError):
    """Context option not given at open."""


class ContextHandleError(MQError):
    """Bad handle for passing context."""


class ContextNotAvailable(MQError):
    """No context saved."""


class ObjectAlreadyExists(MQError):
    """Dynamic name already used."""


class ObjectDamaged(MQError):
    """Object damaged."""


class ResourceProblem(MQError):
    """Out of some resource."""


class FormatError(MQError):
    """Data not in the stated format (conversion)."""


class DlhError(MQError):
    """Bad dead-letter header."""


class ObjectNameError(MQError):
    """Bad ObjectName."""


class QMgrStopping(MQError):
    """Immediate shutdown."""


class RemoteQNameError(MQError):
    """Bad remote queue name in a definition."""


class InconsistentPersistence(MQError):
    """Persistence differs inside a group / logical message."""


class TmcError(MQError):
    """Bad MQTMC/MQTMC2."""


class StorageMediumFull(MQError):
    """Disk/page set/structure full."""


class NameNotValidForType(MQError):
    """Name given for MQOT_Q_MGR."""


class UnexpectedError(MQError):
    """Internal error."""


class UnknownXmitQ(MQError):
    """Named transmission queue missing."""


class UnknownDefXmitQ(MQError):
    """Default one missing."""


class DefXmitQTypeError(MQError):
    """Default one is not local / not XMITQ."""


class DefXmitQUsageError(MQError):
    """Default one is not local / not XMITQ."""


class NameInUse(MQError):
    """Name in use."""


class MsgIdError(MQError):
    """Bad id combination."""


class CorrelIdError(MQError):
    """Bad id combination."""


class CallInProgress(MQError):
    """Hconn in use by another call."""


class UnitOfWorkNotStarted(MQError):
    """MQGMO/PMO syncpoint with no started unit (IBM i and others)."""


class IncompleteGroup(MQError):
    """Group unfinished on this handle."""


class IncompleteMsg(MQError):
    """Logical message unfinished."""


class InconsistentUow(MQError):
    """Syncpoint choice differs inside a group/message."""


class InvalidMsgUnderCursor(MQError):
    """COMPLETE_MSG with an under-cursor get and the cursor is on a segment with Offset > 0."""


class MatchOptionsError(MQError):
    """Bad MatchOptions."""


class MsgFlagsError(MQError):
    """Bad MsgFlags."""


class MsgSeqNumberError(MQError):
    """Not in 1..999 999 999."""


class OffsetError(MQError):
    """Offset negative or above 999 999 999, now or after this put."""


class OriginalLengthError(MQError):
    """OriginalLength wrong for a report that is a segment."""


class SegmentLengthZero(MQError):
    """Non-last segment with no data."""


class UowNotAvailable(MQError):
    """The call needs a temporary unit of work, and the application has one open."""


class GroupIdError(MQError):
    """Distribution list put would give several destinations one GroupId."""


class InconsistentBrowse(MQError):
    """BROWSE_NEXT disagrees with earlier LOGICAL_ORDER choice."""


class XqhError(MQError):
    """Bad MQXQH."""


class TmError(MQError):
    """Bad MQTM."""


class FunctionNotSupported(MQError):
    """Call not supported."""


class ObjectNotUnique(MQError):
    """Same name both private and shared."""


class CfNotAvailable(MQError):
    """Coupling facility trouble."""


class SslInitializationError(MQError):
    """TLS cannot be used, or the server did not prove its name."""


class CommandFailed(MQError):
    """The command failed."""


class ParmSyntaxError(MQError):
    """The command has a syntax error."""


class ParmConflict(MQError):
    """Two parameters contradict each other."""


class AttrValueFixed(MQError):
    """The attribute cannot be changed."""


class ParmMissing(MQError):
    """A parameter is missing."""


class ParmValueError(MQError):
    """A parameter has a value that is not allowed."""


class ObjectWrongType(MQError):
    """The object exists with another type."""


class LikeObjectWrongType(MQError):
    """The LIKE object has another type."""


class AttrValueError(MQError):
    """An attribute has a value that is not allowed."""


class QWrongType(MQError):
    """The queue has another type."""


BY_REASON: dict[int, type[MQError]] = {int(kind.reason): kind for kind in MQError.__subclasses__()}
