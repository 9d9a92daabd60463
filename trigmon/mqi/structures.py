"""The structures of the MQI that are here: names, layouts, versions and defaults, as documented.

Each is a table (:mod:`trigmon.mqi.layout` says how to read one): the version that has the fields, their type, their
names. It is the one list of them: the Python functions pack by it, and the C header is held to it.
"""

from __future__ import annotations

from trigmon.mqi.layout import Structure

MQMD = Structure(
    "MQMD",
    """
    1 char4  StrucId='MD  '
    1 long   Version=1 Report MsgType=8 Expiry=-1 Feedback Encoding=546 CodedCharSetId
    1 char8  Format
    1 long   Priority=-1 Persistence=2
    1 byte24 MsgId CorrelId
    1 long   BackoutCount
    1 char48 ReplyToQ ReplyToQMgr
    1 char12 UserIdentifier
    1 byte32 AccountingToken
    1 char32 ApplIdentityData
    1 long   PutApplType
    1 char28 PutApplName
    1 char8  PutDate PutTime
    1 char4  ApplOriginData
    2 byte24 GroupId
    2 long   MsgSeqNumber=1 Offset MsgFlags OriginalLength=-1
    """,
)
MQOD = Structure(
    "MQOD",
    """
    1 char4  StrucId='OD  '
    1 long   Version=1 ObjectType=1
    1 char48 ObjectName ObjectQMgrName DynamicQName='AMQ.*'
    1 char12 AlternateUserId
    2 long   RecsPresent KnownDestCount UnknownDestCount InvalidDestCount ObjectRecOffset ResponseRecOffset
    2 ptr    ObjectRecPtr ResponseRecPtr
    3 byte40 AlternateSecurityId
    3 char48 ResolvedQName ResolvedQMgrName
    4 charv  ObjectString SelectionString ResObjectString
    4 long   ResolvedType
    """,
)
MQPMO = Structure(
    "MQPMO",
    """
    1 char4  StrucId='PMO '
    1 long   Version=1 Options Timeout=-1 Context KnownDestCount UnknownDestCount InvalidDestCount
    1 char48 ResolvedQName ResolvedQMgrName
    2 long   RecsPresent PutMsgRecFields PutMsgRecOffset ResponseRecOffset
    2 ptr    PutMsgRecPtr ResponseRecPtr
    3 int64  OriginalMsgHandle NewMsgHandle
    3 long   Action PubLevel=9
    """,
)
MQGMO = Structure(
    "MQGMO",
    """
    1 char4  StrucId='GMO '
    1 long   Version=1 Options WaitInterval Signal1 Signal2
    1 char48 ResolvedQName
    2 long   MatchOptions=3
    2 char1  GroupStatus SegmentStatus Segmentation Reserved1
    3 byte16 MsgToken
    3 long   ReturnedLength=-1
    4 long   Reserved2
    4 int64  MsgHandle
    """,
)
MQCNO = Structure(
    "MQCNO",
    """
    1 char4   StrucId='CNO '
    1 long    Version=1 Options
    2 long    ClientConnOffset
    2 ptr     ClientConnPtr
    3 byte128 ConnTag
    4 ptr     SSLConfigPtr
    4 long    SSLConfigOffset
    5 byte24  ConnectionId
    5 long    SecurityParmsOffset
    5 ptr     SecurityParmsPtr
    6 ptr     CCDTUrlPtr
    6 long    CCDTUrlOffset CCDTUrlLength
    6 byte8   Reserved
    7 char28  ApplName
    7 byte4   Reserved2
    8 ptr     BalanceParmsPtr
    8 long    BalanceParmsOffset
    8 byte4   Reserved3
    """,
)
MQCSP = Structure(
    "MQCSP",
    """
    1 char4 StrucId='CSP '
    1 long  Version=1 AuthenticationType
    1 byte4 Reserved1
    1 ptr   CSPUserIdPtr
    1 long  CSPUserIdOffset CSPUserIdLength
    1 byte8 Reserved2
    1 ptr   CSPPasswordPtr
    1 long  CSPPasswordOffset CSPPasswordLength
    2 byte8 Reserved3
    2 ptr   InitialKeyPtr
    2 long  InitialKeyOffset InitialKeyLength
    3 byte8 Reserved4
    3 ptr   TokenPtr
    3 long  TokenOffset TokenLength
    """,
)
MQCD = Structure(
    "MQCD",
    """
    1 char20  ChannelName
    1 long    Version=6 ChannelType=6 TransportType=2
    1 char64  Desc
    1 char48  QMgrName XmitQName
    1 char20  ShortConnectionName MCAName
    1 char8   ModeName
    1 char64  TpName
    1 long    BatchSize=50 DiscInterval=6000
    1 long    ShortRetryCount=10 ShortRetryInterval=60 LongRetryCount=999999999 LongRetryInterval=1200
    1 char128 SecurityExit MsgExit SendExit ReceiveExit
    1 long    SeqNumberWrap=999999999 MaxMsgLength=4194304 PutAuthority=1 DataConversion
    1 char32  SecurityUserData MsgUserData SendUserData ReceiveUserData
    2 char12  UserIdentifier Password MCAUserIdentifier
    2 long    MCAType=1
    2 char264 ConnectionName
    2 char12  RemoteUserIdentifier RemotePassword
    3 char128 MsgRetryExit
    3 char32  MsgRetryUserData
    3 long    MsgRetryCount=10 MsgRetryInterval=1000
    4 long    HeartbeatInterval=300 BatchInterval NonPersistentMsgSpeed=2
    4 long    StrucLength ExitNameLength=128 ExitDataLength=32 MsgExitsDefined SendExitsDefined ReceiveExitsDefined
    4 ptr     MsgExitPtr MsgUserDataPtr SendExitPtr SendUserDataPtr ReceiveExitPtr ReceiveUserDataPtr
    5 ptr     ClusterPtr
    5 long    ClustersDefined NetworkPriority
    6 long    LongMCAUserIdLength LongRemoteUserIdLength
    6 ptr     LongMCAUserIdPtr LongRemoteUserIdPtr
    6 byte40  MCASecurityId RemoteSecurityId
    7 char32  SSLCipherSpec
    7 ptr     SSLPeerNamePtr
    7 long    SSLPeerNameLength SSLClientAuth KeepAliveInterval=-1
    7 char48  LocalAddress
    7 long    BatchHeartbeat
    8 long2   HdrCompList=-1
    8 long16  MsgCompList=-1
    8 long    CLWLChannelRank CLWLChannelPriority CLWLChannelWeight=50 ChannelMonitoring ChannelStatistics
    9 long    SharingConversations=10 PropertyControl MaxInstances=999999999 MaxInstancesPerClient=999999999
    9 long    ClientChannelWeight ConnectionAffinity=1
    10 long   BatchDataLimit=5000 UseDLQ=2 DefReconnect
    11 char64 CertificateLabel
    12 long   SPLProtection
    13 long   QuantumSafeAlgorithm QuantumSafeRequired
    """,
)
MQSTS = Structure(
    "MQSTS",
    """
    1 char4  StrucId='STAT'
    1 long   Version=1 CompCode Reason PutSuccessCount PutWarningCount PutFailureCount ObjectType=1
    1 char48 ObjectName ObjectQMgrName ResolvedObjectName ResolvedQMgrName
    2 charv  ObjectString SubName
    2 long   OpenOptions SubOptions
    """,
)
MQBO = Structure(
    "MQBO",
    """
    1 char4 StrucId='BO  '
    1 long  Version=1 Options
    """,
)
MQCMHO = Structure(
    "MQCMHO",
    """
    1 char4 StrucId='CMHO'
    1 long  Version=1 Options
    """,
)
MQDMHO = Structure(
    "MQDMHO",
    """
    1 char4 StrucId='DMHO'
    1 long  Version=1 Options
    """,
)
MQSMPO = Structure(
    "MQSMPO",
    """
    1 char4 StrucId='SMPO'
    1 long  Version=1 Options ValueEncoding=546 ValueCCSID=-3
    """,
)
MQIMPO = Structure(
    "MQIMPO",
    """
    1 char4 StrucId='IMPO'
    1 long  Version=1 Options RequestedEncoding=546 RequestedCCSID=-3 ReturnedEncoding=546 ReturnedCCSID Reserved1
    1 charv ReturnedName
    1 char8 TypeString
    """,
)
MQDMPO = Structure(
    "MQDMPO",
    """
    1 char4 StrucId='DMPO'
    1 long  Version=1 Options
    """,
)
MQPD = Structure(
    "MQPD",
    """
    1 char4 StrucId='PD  '
    1 long  Version=1 Options Support=1 Context CopyOptions=22
    """,
)
MQBMHO = Structure(
    "MQBMHO",
    """
    1 char4 StrucId='BMHO'
    1 long  Version=1 Options=1
    """,
)
MQMHBO = Structure(
    "MQMHBO",
    """
    1 char4 StrucId='MHBO'
    1 long  Version=1 Options=1
    """,
)
MQCBD = Structure(
    "MQCBD",
    """
    1 char4   StrucId='CBD '
    1 long    Version=1 CallbackType=1 Options
    1 ptr     CallbackArea CallbackFunction
    1 char128 CallbackName
    1 long    MaxMsgLength=-1
    """,
)
MQCBC = Structure(
    "MQCBC",
    """
    1 char4 StrucId='CBC '
    1 long  Version=1 CallType Hobj
    1 ptr   CallbackArea ConnectionArea
    1 long  CompCode Reason State DataLength BufferLength Flags
    2 long  ReconnectDelay
    """,
)
MQCTLO = Structure(
    "MQCTLO",
    """
    1 char4 StrucId='CTLO'
    1 long  Version=1 Options Reserved=-1
    1 ptr   ConnectionArea
    """,
)
MQSD = Structure(
    "MQSD",
    """
    1 char4  StrucId='SD  '
    1 long   Version=1 Options
    1 char48 ObjectName
    1 char12 AlternateUserId
    1 byte40 AlternateSecurityId
    1 long   SubExpiry=-1
    1 charv  ObjectString SubName SubUserData
    1 byte24 SubCorrelId
    1 long   PubPriority=-3
    1 byte32 PubAccountingToken
    1 char32 PubApplIdentityData
    1 charv  SelectionString
    1 long   SubLevel=1
    1 charv  ResObjectString
    """,
)
MQSRO = Structure(
    "MQSRO",
    """
    1 char4 StrucId='SRO '
    1 long  Version=1 Options NumPubs
    """,
)
MQTM = Structure(
    "MQTM",
    """
    1 char4   StrucId='TM  '
    1 long    Version=1
    1 char48  QName ProcessName
    1 char64  TriggerData
    1 long    ApplType
    1 char256 ApplId
    1 char128 EnvData UserData
    """,
)
MQTMC2 = Structure(
    "MQTMC2",
    """
    1 char4   StrucId='TMC ' Version='   2'
    1 char48  QName ProcessName
    1 char64  TriggerData
    1 char4   ApplType
    1 char256 ApplId
    1 char128 EnvData UserData
    2 char48  QMgrName
    """,
)
MQDLH = Structure(
    "MQDLH",
    """
    1 char4  StrucId='DLH '
    1 long   Version=1 Reason
    1 char48 DestQName DestQMgrName
    1 long   Encoding CodedCharSetId
    1 char8  Format
    1 long   PutApplType
    1 char28 PutApplName
    1 char8  PutDate PutTime
    """,
)
MQRFH2 = Structure(
    "MQRFH2",
    """
    2 char4 StrucId='RFH '
    2 long  Version=2 StrucLength=36 Encoding=546 CodedCharSetId=-2
    2 char8 Format
    2 long  Flags NameValueCCSID=1208
    """,
)
STRUCTURES: dict[str, Structure] = {
    one.name: one
    for one in (
        *(MQMD, MQOD, MQPMO, MQGMO, MQCNO, MQCSP, MQCD, MQSTS, MQBO, MQCMHO, MQDMHO, MQSMPO, MQIMPO, MQDMPO, MQPD),
        *(MQBMHO, MQMHBO, MQCBD, MQCBC, MQCTLO, MQSD, MQSRO, MQTM, MQTMC2, MQDLH, MQRFH2),
    )
}
