"""One exception a reason. The docstring of a class is its message; ``about`` names the object or the field.

``MQError.of(reason, about)`` makes the class that belongs to a number, so the client raises what the rules raised.
"""

from __future__ import annotations

from typing import ClassVar

from trigmon.mq.reasons import CompCode, Reason
from trigmon.mq.shortening import shortened


class MQError(Exception):
    """A call failed."""

    reason: ClassVar[Reason] = Reason.UNEXPECTED_ERROR
    comp_code: ClassVar[CompCode] = CompCode.FAILED

    def __init__(self, about: str = "") -> None:
        self.about = shortened(about)
        super().__init__(self.about)

    def __str__(self) -> str:
        said = f"{self.reason.mq_name} ({int(self.reason)})"
        meaning = (type(self).__doc__ or "").strip().rstrip(".")
        return f"{said}: {self.about}" if self.about else f"{said}: {meaning}"

    @staticmethod
    def of(reason: int, about: str = "") -> MQError:
        """The exception of a reason's number; an unknown number becomes :class:`UnexpectedError`."""
        return BY_REASON.get(reason, UnexpectedError)(about)


class AliasBaseQTypeError(MQError):
    """Alias points at something that is not a local/remote/cluster queue."""

    reason = Reason.ALIAS_BASE_Q_TYPE_ERROR


class AlreadyConnected(MQError):
    """Already connected (warning)."""

    reason = Reason.ALREADY_CONNECTED


class BackedOut(MQError):
    """Unit of work was backed out, or must be."""

    reason = Reason.BACKED_OUT


class BufferError(MQError):
    """Bad buffer pointer."""

    reason = Reason.BUFFER_ERROR


class BufferLengthError(MQError):
    """Bad buffer length."""

    reason = Reason.BUFFER_LENGTH_ERROR


class CharAttrLengthError(MQError):
    """CharAttrLength negative or too short for the selectors."""

    reason = Reason.CHAR_ATTR_LENGTH_ERROR


class CharAttrsTooShort(MQError):
    """Inquiry text did not fit (warning)."""

    reason = Reason.CHAR_ATTRS_TOO_SHORT


class ConnectionBroken(MQError):
    """Lost the queue manager."""

    reason = Reason.CONNECTION_BROKEN


class DynamicQNameError(MQError):
    """Bad DynamicQName."""

    reason = Reason.DYNAMIC_Q_NAME_ERROR


class EnvironmentError(MQError):
    """Call not allowed in this environment."""

    reason = Reason.ENVIRONMENT_ERROR


class ExpiryError(MQError):
    """Expiry is zero or otherwise invalid."""

    reason = Reason.EXPIRY_ERROR


class FeedbackError(MQError):
    """Feedback value invalid for the message type."""

    reason = Reason.FEEDBACK_ERROR


class GetInhibited(MQError):
    """Queue is get-disabled."""

    reason = Reason.GET_INHIBITED


class HandleNotAvailable(MQError):
    """MAXHANDS reached."""

    reason = Reason.HANDLE_NOT_AVAILABLE


class HconnError(MQError):
    """Bad connection handle."""

    reason = Reason.HCONN_ERROR


class HobjError(MQError):
    """Bad object handle."""

    reason = Reason.HOBJ_ERROR


class InhibitValueError(MQError):
    """MQSET inhibit value not 0/1."""

    reason = Reason.INHIBIT_VALUE_ERROR


class IntAttrCountError(MQError):
    """Negative count."""

    reason = Reason.INT_ATTR_COUNT_ERROR


class IntAttrCountTooSmall(MQError):
    """Not enough room for integers."""

    reason = Reason.INT_ATTR_COUNT_TOO_SMALL


class SyncpointLimitReached(MQError):
    """MAXUMSGS exceeded."""

    reason = Reason.SYNCPOINT_LIMIT_REACHED


class MaxConnsLimitReached(MQError):
    """Too many connections."""

    reason = Reason.MAX_CONNS_LIMIT_REACHED


class MdError(MQError):
    """Bad MQMD."""

    reason = Reason.MD_ERROR


class MissingReplyToQ(MQError):
    """Request or report asked for without ReplyToQ."""

    reason = Reason.MISSING_REPLY_TO_Q


class MsgTypeError(MQError):
    """Bad MsgType."""

    reason = Reason.MSG_TYPE_ERROR


class MsgTooBigForQ(MQError):
    """Longer than queue MAXMSGL."""

    reason = Reason.MSG_TOO_BIG_FOR_Q


class MsgTooBigForQMgr(MQError):
    """Longer than queue manager MAXMSGL."""

    reason = Reason.MSG_TOO_BIG_FOR_Q_MGR


class NoMsgAvailable(MQError):
    """Nothing matches / wait timed out."""

    reason = Reason.NO_MSG_AVAILABLE


class NoMsgUnderCursor(MQError):
    """Cursor not on a message (gone or expired)."""

    reason = Reason.NO_MSG_UNDER_CURSOR


class NotAuthorized(MQError):
    """No authority."""

    reason = Reason.NOT_AUTHORIZED


class NotOpenForBrowse(MQError):
    """Handle lacks BROWSE."""

    reason = Reason.NOT_OPEN_FOR_BROWSE


class NotOpenForInput(MQError):
    """Handle lacks INPUT."""

    reason = Reason.NOT_OPEN_FOR_INPUT


class NotOpenForInquire(MQError):
    """Handle lacks INQUIRE."""

    reason = Reason.NOT_OPEN_FOR_INQUIRE


class NotOpenForOutput(MQError):
    """Handle lacks OUTPUT."""

    reason = Reason.NOT_OPEN_FOR_OUTPUT


class NotOpenForSet(MQError):
    """Handle lacks SET."""

    reason = Reason.NOT_OPEN_FOR_SET


class ObjectChanged(MQError):
    """Definition changed under an open handle."""

    reason = Reason.OBJECT_CHANGED


class ObjectInUse(MQError):
    """Conflicting open."""

    reason = Reason.OBJECT_IN_USE


class ObjectTypeError(MQError):
    """Bad or unsuited object type."""

    reason = Reason.OBJECT_TYPE_ERROR


class OdError(MQError):
    """Bad MQOD."""

    reason = Reason.OD_ERROR


class OptionNotValidForType(MQError):
    """Option does not suit the object type."""

    reason = Reason.OPTION_NOT_VALID_FOR_TYPE


class OptionsError(MQError):
    """Unknown or conflicting options."""

    reason = Reason.OPTIONS_ERROR


class PersistenceError(MQError):
    """Bad Persistence."""

    reason = Reason.PERSISTENCE_ERROR


class PersistentNotAllowed(MQError):
    """Persistent message to a temporary dynamic queue or a non-recoverable structure."""

    reason = Reason.PERSISTENT_NOT_ALLOWED


class PriorityExceedsMaximum(MQError):
    """Priority above MAXPRTY (warning)."""

    reason = Reason.PRIORITY_EXCEEDS_MAXIMUM


class PriorityError(MQError):
    """Bad Priority."""

    reason = Reason.PRIORITY_ERROR


class PutInhibited(MQError):
    """Queue is put-disabled."""

    reason = Reason.PUT_INHIBITED


class QDeleted(MQError):
    """Queue deleted since open."""

    reason = Reason.Q_DELETED


class QFull(MQError):
    """MAXDEPTH reached."""

    reason = Reason.Q_FULL


class QNotEmpty(MQError):
    """MQCLOSE DELETE of a queue with messages or uncommitted work."""

    reason = Reason.Q_NOT_EMPTY


class QSpaceNotAvailable(MQError):
    """No disk space."""

    reason = Reason.Q_SPACE_NOT_AVAILABLE


class QTypeError(MQError):
    """Wrong queue type (e.g. model used as dynamic target)."""

    reason = Reason.Q_TYPE_ERROR


class QMgrNameError(MQError):
    """Unknown queue manager name."""

    reason = Reason.Q_MGR_NAME_ERROR


class QMgrNotAvailable(MQError):
    """Queue manager not running."""

    reason = Reason.Q_MGR_NOT_AVAILABLE


class ReportOptionsError(MQError):
    """Unsupported report bits in reject mask."""

    reason = Reason.REPORT_OPTIONS_ERROR


class SecondMarkNotAllowed(MQError):
    """Second MARK_SKIP_BACKOUT in one unit of work."""

    reason = Reason.SECOND_MARK_NOT_ALLOWED


class SecurityError(MQError):
    """Security manager failed."""

    reason = Reason.SECURITY_ERROR


class SelectorCountError(MQError):
    """Bad selector count."""

    reason = Reason.SELECTOR_COUNT_ERROR


class SelectorLimitExceeded(MQError):
    """Over 256 selectors."""

    reason = Reason.SELECTOR_LIMIT_EXCEEDED


class SelectorError(MQError):
    """Selector unknown or not settable."""

    reason = Reason.SELECTOR_ERROR


class SelectorNotForType(MQError):
    """Selector does not apply to this queue type (warning on MQINQ)."""

    reason = Reason.SELECTOR_NOT_FOR_TYPE


class StorageNotAvailable(MQError):
    """Out of memory."""

    reason = Reason.STORAGE_NOT_AVAILABLE


class SyncpointNotAvailable(MQError):
    """Syncpoint not possible here."""

    reason = Reason.SYNCPOINT_NOT_AVAILABLE


class TriggerControlError(MQError):
    """MQSET TriggerControl invalid."""

    reason = Reason.TRIGGER_CONTROL_ERROR


class TriggerDepthError(MQError):
    """MQSET TriggerDepth not > 0."""

    reason = Reason.TRIGGER_DEPTH_ERROR


class TriggerMsgPriorityErr(MQError):
    """MQSET TriggerMsgPriority outside 0..MAXPRTY."""

    reason = Reason.TRIGGER_MSG_PRIORITY_ERR


class TriggerTypeError(MQError):
    """MQSET TriggerType invalid."""

    reason = Reason.TRIGGER_TYPE_ERROR


class TruncatedMsgAccepted(MQError):
    """Cut and removed (warning)."""

    reason = Reason.TRUNCATED_MSG_ACCEPTED


class TruncatedMsgFailed(MQError):
    """Did not fit, kept (warning)."""

    reason = Reason.TRUNCATED_MSG_FAILED


class UnknownAliasBaseQ(MQError):
    """Alias target does not exist."""

    reason = Reason.UNKNOWN_ALIAS_BASE_Q


class UnknownObjectName(MQError):
    """No such object."""

    reason = Reason.UNKNOWN_OBJECT_NAME


class UnknownObjectQMgr(MQError):
    """ObjectQMgrName not resolvable."""

    reason = Reason.UNKNOWN_OBJECT_Q_MGR


class UnknownRemoteQMgr(MQError):
    """No route to the remote queue manager."""

    reason = Reason.UNKNOWN_REMOTE_Q_MGR


class WaitIntervalError(MQError):
    """Bad WaitInterval."""

    reason = Reason.WAIT_INTERVAL_ERROR


class XmitQTypeError(MQError):
    """Transmission queue is not local."""

    reason = Reason.XMIT_Q_TYPE_ERROR


class XmitQUsageError(MQError):
    """Its USAGE is not XMITQ."""

    reason = Reason.XMIT_Q_USAGE_ERROR


class NotOpenForPassAll(MQError):
    """Context option not given at open."""

    reason = Reason.NOT_OPEN_FOR_PASS_ALL


class NotOpenForPassIdent(MQError):
    """Context option not given at open."""

    reason = Reason.NOT_OPEN_FOR_PASS_IDENT


class NotOpenForSetAll(MQError):
    """Context option not given at open."""

    reason = Reason.NOT_OPEN_FOR_SET_ALL


class NotOpenForSetIdent(MQError):
    """Context option not given at open."""

    reason = Reason.NOT_OPEN_FOR_SET_IDENT


class ContextHandleError(MQError):
    """Bad handle for passing context."""

    reason = Reason.CONTEXT_HANDLE_ERROR


class ContextNotAvailable(MQError):
    """No context saved."""

    reason = Reason.CONTEXT_NOT_AVAILABLE


class ObjectAlreadyExists(MQError):
    """Dynamic name already used."""

    reason = Reason.OBJECT_ALREADY_EXISTS


class ObjectDamaged(MQError):
    """Object damaged."""

    reason = Reason.OBJECT_DAMAGED


class ResourceProblem(MQError):
    """Out of some resource."""

    reason = Reason.RESOURCE_PROBLEM


class UnknownReportOption(MQError):
    """Unknown report bit in accept mask (warning)."""

    reason = Reason.UNKNOWN_REPORT_OPTION


class FormatError(MQError):
    """Data not in the stated format (conversion)."""

    reason = Reason.FORMAT_ERROR


class NotConverted(MQError):
    """Data conversion failed (warning)."""

    reason = Reason.NOT_CONVERTED


class NoExternalParticipants(MQError):
    """MQBEGIN with no XA partners (warning)."""

    reason = Reason.NO_EXTERNAL_PARTICIPANTS


class OutcomeMixed(MQError):
    """Mixed outcome."""

    reason = Reason.OUTCOME_MIXED


class OutcomePending(MQError):
    """Outcome not known yet."""

    reason = Reason.OUTCOME_PENDING


class UowInProgress(MQError):
    """MQBEGIN while a unit of work is open."""

    reason = Reason.UOW_IN_PROGRESS


class MultipleReasons(MQError):
    """Several (distribution lists)."""

    reason = Reason.MULTIPLE_REASONS


class CnoError(MQError):
    """Bad MQCNO."""

    reason = Reason.CNO_ERROR


class DlhError(MQError):
    """Bad dead-letter header."""

    reason = Reason.DLH_ERROR


class HeaderError(MQError):
    """Bad MQ header."""

    reason = Reason.HEADER_ERROR


class ObjectNameError(MQError):
    """Bad ObjectName."""

    reason = Reason.OBJECT_NAME_ERROR


class ObjectQMgrNameError(MQError):
    """Bad ObjectQMgrName."""

    reason = Reason.OBJECT_Q_MGR_NAME_ERROR


class QMgrQuiescing(MQError):
    """Controlled shutdown and FAIL_IF_QUIESCING."""

    reason = Reason.Q_MGR_QUIESCING


class QMgrStopping(MQError):
    """Immediate shutdown."""

    reason = Reason.Q_MGR_STOPPING


class PmoError(MQError):
    """Bad MQPMO."""

    reason = Reason.PMO_ERROR


class RemoteQNameError(MQError):
    """Bad remote queue name in a definition."""

    reason = Reason.REMOTE_Q_NAME_ERROR


class InconsistentPersistence(MQError):
    """Persistence differs inside a group / logical message."""

    reason = Reason.INCONSISTENT_PERSISTENCE


class GmoError(MQError):
    """Bad MQGMO."""

    reason = Reason.GMO_ERROR


class TmcError(MQError):
    """Bad MQTMC/MQTMC2."""

    reason = Reason.TMC_ERROR


class StorageMediumFull(MQError):
    """Disk/page set/structure full."""

    reason = Reason.STORAGE_MEDIUM_FULL


class NameNotValidForType(MQError):
    """Name given for MQOT_Q_MGR."""

    reason = Reason.NAME_NOT_VALID_FOR_TYPE


class UnexpectedError(MQError):
    """Internal error."""

    reason = Reason.UNEXPECTED_ERROR


class UnknownXmitQ(MQError):
    """Named transmission queue missing."""

    reason = Reason.UNKNOWN_XMIT_Q


class UnknownDefXmitQ(MQError):
    """Default one missing."""

    reason = Reason.UNKNOWN_DEF_XMIT_Q


class DefXmitQTypeError(MQError):
    """Default one is not local / not XMITQ."""

    reason = Reason.DEF_XMIT_Q_TYPE_ERROR


class DefXmitQUsageError(MQError):
    """Default one is not local / not XMITQ."""

    reason = Reason.DEF_XMIT_Q_USAGE_ERROR


class NameInUse(MQError):
    """Name in use."""

    reason = Reason.NAME_IN_USE


class ConnectionQuiescing(MQError):
    """Connection ending."""

    reason = Reason.CONNECTION_QUIESCING


class ConnectionStopping(MQError):
    """Connection ending."""

    reason = Reason.CONNECTION_STOPPING


class MsgIdError(MQError):
    """Bad id combination."""

    reason = Reason.MSG_ID_ERROR


class CorrelIdError(MQError):
    """Bad id combination."""

    reason = Reason.CORREL_ID_ERROR


class NoMsgLocked(MQError):
    """UNLOCK without a lock."""

    reason = Reason.NO_MSG_LOCKED


class ConnectionNotAuthorized(MQError):
    """Not allowed to connect."""

    reason = Reason.CONNECTION_NOT_AUTHORIZED


class CallInProgress(MQError):
    """Hconn in use by another call."""

    reason = Reason.CALL_IN_PROGRESS


class QMgrActive(MQError):
    """Event: started / stopping."""

    reason = Reason.Q_MGR_ACTIVE


class QMgrNotActive(MQError):
    """Event: started / stopping."""

    reason = Reason.Q_MGR_NOT_ACTIVE


class QDepthHigh(MQError):
    """Event codes."""

    reason = Reason.Q_DEPTH_HIGH


class QDepthLow(MQError):
    """Event codes."""

    reason = Reason.Q_DEPTH_LOW


class QServiceIntervalHigh(MQError):
    """Event codes."""

    reason = Reason.Q_SERVICE_INTERVAL_HIGH


class QServiceIntervalOk(MQError):
    """Event codes."""

    reason = Reason.Q_SERVICE_INTERVAL_OK


class UnitOfWorkNotStarted(MQError):
    """MQGMO/PMO syncpoint with no started unit (IBM i and others)."""

    reason = Reason.UNIT_OF_WORK_NOT_STARTED


class IncompleteGroup(MQError):
    """Group unfinished on this handle."""

    reason = Reason.INCOMPLETE_GROUP


class IncompleteMsg(MQError):
    """Logical message unfinished."""

    reason = Reason.INCOMPLETE_MSG


class InconsistentCcsids(MQError):
    """Segments differ, partial reassembly (warning)."""

    reason = Reason.INCONSISTENT_CCSIDS


class InconsistentEncodings(MQError):
    """Segments differ, partial reassembly (warning)."""

    reason = Reason.INCONSISTENT_ENCODINGS


class InconsistentUow(MQError):
    """Syncpoint choice differs inside a group/message."""

    reason = Reason.INCONSISTENT_UOW


class InvalidMsgUnderCursor(MQError):
    """COMPLETE_MSG with an under-cursor get and the cursor is on a segment with Offset > 0."""

    reason = Reason.INVALID_MSG_UNDER_CURSOR


class MatchOptionsError(MQError):
    """Bad MatchOptions."""

    reason = Reason.MATCH_OPTIONS_ERROR


class MdeError(MQError):
    """Bad MQMDE."""

    reason = Reason.MDE_ERROR


class MsgFlagsError(MQError):
    """Bad MsgFlags."""

    reason = Reason.MSG_FLAGS_ERROR


class MsgSeqNumberError(MQError):
    """Not in 1..999 999 999."""

    reason = Reason.MSG_SEQ_NUMBER_ERROR


class OffsetError(MQError):
    """Offset negative or above 999 999 999, now or after this put."""

    reason = Reason.OFFSET_ERROR


class OriginalLengthError(MQError):
    """OriginalLength wrong for a report that is a segment."""

    reason = Reason.ORIGINAL_LENGTH_ERROR


class SegmentLengthZero(MQError):
    """Non-last segment with no data."""

    reason = Reason.SEGMENT_LENGTH_ZERO


class UowNotAvailable(MQError):
    """The call needs a temporary unit of work, and the application has one open."""

    reason = Reason.UOW_NOT_AVAILABLE


class WrongGmoVersion(MQError):
    """Option needs version 2 structure."""

    reason = Reason.WRONG_GMO_VERSION


class WrongMdVersion(MQError):
    """Option needs version 2 structure."""

    reason = Reason.WRONG_MD_VERSION


class GroupIdError(MQError):
    """Distribution list put would give several destinations one GroupId."""

    reason = Reason.GROUP_ID_ERROR


class InconsistentBrowse(MQError):
    """BROWSE_NEXT disagrees with earlier LOGICAL_ORDER choice."""

    reason = Reason.INCONSISTENT_BROWSE


class XqhError(MQError):
    """Bad MQXQH."""

    reason = Reason.XQH_ERROR


class TmError(MQError):
    """Bad MQTM."""

    reason = Reason.TM_ERROR


class ClusterPutInhibited(MQError):
    """All cluster instances put-disabled."""

    reason = Reason.CLUSTER_PUT_INHIBITED


class ConnTagInUse(MQError):
    """Serialising tag taken."""

    reason = Reason.CONN_TAG_IN_USE


class OptionEnvironmentError(MQError):
    """Option not allowed here (skip backout in Db2 stored procedure)."""

    reason = Reason.OPTION_ENVIRONMENT_ERROR


class FunctionNotSupported(MQError):
    """Call not supported."""

    reason = Reason.FUNCTION_NOT_SUPPORTED


class Db2NotAvailable(MQError):
    """Db2 not reachable."""

    reason = Reason.DB2_NOT_AVAILABLE


class ObjectNotUnique(MQError):
    """Same name both private and shared."""

    reason = Reason.OBJECT_NOT_UNIQUE


class CfNotAvailable(MQError):
    """Coupling facility trouble."""

    reason = Reason.CF_NOT_AVAILABLE


class CfStrucInUse(MQError):
    """Coupling facility trouble."""

    reason = Reason.CF_STRUC_IN_USE


class CfStrucError(MQError):
    """Coupling facility trouble."""

    reason = Reason.CF_STRUC_ERROR


class GlobalUowConflict(MQError):
    """Mixed transaction kinds."""

    reason = Reason.GLOBAL_UOW_CONFLICT


class LocalUowConflict(MQError):
    """Mixed transaction kinds."""

    reason = Reason.LOCAL_UOW_CONFLICT


class BackoutThresholdReached(MQError):
    """Only in MQDLH/Feedback, set by JMS."""

    reason = Reason.BACKOUT_THRESHOLD_REACHED


class SegmentsNotSupported(MQError):
    """The queue cannot hold segments."""

    reason = Reason.SEGMENTS_NOT_SUPPORTED


class WrongCfLevel(MQError):
    """CFLEVEL too low for the request."""

    reason = Reason.WRONG_CF_LEVEL


class CfStrucFailed(MQError):
    """Coupling facility trouble."""

    reason = Reason.CF_STRUC_FAILED


class MsgNotAllowedInGroup(MQError):
    """PCF command may not be grouped."""

    reason = Reason.MSG_NOT_ALLOWED_IN_GROUP


class SegmentationNotAllowed(MQError):
    """Segmentation not allowed with this (properties)."""

    reason = Reason.SEGMENTATION_NOT_ALLOWED


class OptionsChanged(MQError):
    """Queue manager changed an option."""

    reason = Reason.OPTIONS_CHANGED


class HconnAsyncActive(MQError):
    """Async consumption running."""

    reason = Reason.HCONN_ASYNC_ACTIVE


class CommandFailed(MQError):
    """The command failed."""

    reason = Reason.COMMAND_FAILED


class ParmSyntaxError(MQError):
    """The command has a syntax error."""

    reason = Reason.PARM_SYNTAX_ERROR


class ParmConflict(MQError):
    """Two parameters contradict each other."""

    reason = Reason.PARM_CONFLICT


class ObjectOpenForce(MQError):
    """The object is open, and the change would need FORCE."""

    reason = Reason.OBJECT_OPEN_FORCE


class AttrValueFixed(MQError):
    """The attribute cannot be changed."""

    reason = Reason.ATTR_VALUE_FIXED


class ParmMissing(MQError):
    """A parameter is missing."""

    reason = Reason.PARM_MISSING


class ParmValueError(MQError):
    """A parameter has a value that is not allowed."""

    reason = Reason.PARM_VALUE_ERROR


class ObjectWrongType(MQError):
    """The object exists with another type."""

    reason = Reason.OBJECT_WRONG_TYPE


class LikeObjectWrongType(MQError):
    """The LIKE object has another type."""

    reason = Reason.LIKE_OBJECT_WRONG_TYPE


class ObjectOpen(MQError):
    """The object is open."""

    reason = Reason.OBJECT_OPEN


class AttrValueError(MQError):
    """An attribute has a value that is not allowed."""

    reason = Reason.ATTR_VALUE_ERROR


class QWrongType(MQError):
    """The queue has another type."""

    reason = Reason.Q_WRONG_TYPE


BY_REASON: dict[int, type[MQError]] = {int(kind.reason): kind for kind in MQError.__subclasses__()}
