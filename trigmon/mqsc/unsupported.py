"""What MQ has and trigmon has not: objects, commands and attributes that a script of MQ's may name.

A script that MQ's own tool wrote must load, so these are no errors; nor are they dropped in silence: each is skipped
by its name, with the reason. An attribute that stands at MQ's default says nothing, and differs from one that
asks for something. Sources: the manual's lists of commands, and the defaults that MQ's own dumps show.
"""

from __future__ import annotations

from dataclasses import dataclass

from trigmon.mq.attributes import OUR_KINDS
from trigmon.mq.enums import ObjectType

LATER = "comes with a later release of trigmon"


@dataclass(frozen=True)
class Elsewhere:
    """An attribute without meaning here: why, and MQ's default as MQSC writes it (None: there is no one default)."""

    why: str
    default: str | None


_CLUSTERS = "there are no clusters here"
_CHANNELS = "there are no channels here"
_EVENTS = "there are no events of this kind here"
_FIGURES = "there are no statistics, accounting or monitoring messages here"
_PUBLISH = "there is no publish and subscribe here"
_STORAGE = "how messages are stored is the store's own affair here"
_SECURITY = "the settings and authority records say who may do what"
_MESSAGES = "the client decides this here, not the object"
_NOTHING = "nothing here depends on it"
_STREAMS = "there are no streaming queues here"
_INSIDE = "trigmon status tells how the queue manager is"
_LISTENERS = "where the queue manager listens is in its settings"
_SERVICES = "programs beside the queue manager are systemd's, and trigmon run starts the monitor"

NOUNS = {
    noun: why
    for why, nouns in {
        _CHANNELS: "CHANNEL CHL CHLAUTH CHSTATUS CHS CHINIT CHI COMMINFO",
        _LISTENERS: "LISTENER LSTR LSSTATUS CMDSERV",
        _PUBLISH: "TOPIC TOPICSTR SUB SBSTATUS TPSTATUS TCLUSTER PUBSUB",
        _CLUSTERS: "CLUSTER CLUSQMGR QCLUSTER QC",
        _SECURITY: "AUTHINFO AUTHSERV ENTAUTH POLICY SECURITY",
        _SERVICES: "SERVICE SVSTATUS",
        f"CFSTRUCT {LATER}": "CFSTRUCT CFSTATUS SMDS SMDSCONN GROUP",
        _STORAGE: "STGCLASS STC BUFFPOOL PSID BSDS USAGE LOG ARCHIVE MAXSMSGS",
        _INSIDE: "SYSTEM TRACE THREAD INDOUBT TPIPE IMSBRIDGE APSTATUS NHASTATUS",
    }.items()
    for noun in nouns.split()
}
"""Nouns by their words and short forms, with the reason why there is nothing of that kind here."""

VERBS = frozenset(("ARCHIVE", "BACKUP", "RECOVER", "RESOLVE", "RESUME", "RVERIFY", "START", "STOP", "SUSPEND"))
"""Verbs that are only ever about what is not here."""

OURS_BUT_NOT_AS_MQSC = {
    "MOVE": "trigmon queue move FROM TO moves messages",
    "PURGE": "CLEAR QLOCAL deletes messages",
    "START QMGR": "trigmon run, or systemctl start, starts a queue manager",
    "STOP CONN": "trigmon connections end NUMBER ends a connection",
    "STOP QMGR": "systemctl stop, or SIGTERM, stops a queue manager",
}
"""What trigmon does in another way: refused with the way, since skipping it would leave it undone."""

HANDLES = "DISPLAY QSTATUS(*) TYPE(HANDLE) shows who has what open"
STATISTICS = "there are no statistics messages that it could write; RESET QSTATS(*) answers with counts"
QMGR_ACTS = {"ARCHIVE": _STORAGE, "RESET": _NOTHING, "RESUME": _CLUSTERS, "SUSPEND": _CLUSTERS, "REFRESH": _EVENTS}
"""Acts upon the queue manager that change nothing here."""


def _table(groups: dict[str, str]) -> dict[str, Elsewhere]:
    """Returns ``WORD=default`` pairs by reason; ``WORD=?`` has no default, ``WORD=`` a blank one."""
    table = {}
    for why, pairs in groups.items():
        for word, _, default in (pair.partition("=") for pair in pairs.split()):
            table[word] = Elsewhere(why, None if default == "?" else default)
    return table


_QUEUE = _table(
    {
        _CLUSTERS: "CLCHNAME= CLUSNL= CLUSTER= CLWLPRTY=0 CLWLRANK=0 CLWLUSEQ=QMGR DEFBIND=OPEN CLUSDATE=? CLUSINFO=?"
        " CLUSQMGR=? CLUSQT=? CLUSTIME=? QMID=?",
        _FIGURES: "ACCTQ=QMGR MONQ=QMGR STATQ=QMGR",
        _STORAGE: "IMGRCOVQ=QMGR MAXFSIZE=DEFAULT NPMCLASS=NORMAL STGCLASS=DEFAULT PSID=? TPIPE=?",
        _MESSAGES: "DEFPRESP=SYNC DEFREADA=NO PROPCTL=COMPAT DISTL=NO",
        _PUBLISH: "TARGTYPE=QUEUE",
        _SECURITY: "AUTHREC=YES",
        _STREAMS: "STREAMQ= STRMQOS=BESTEF",
        _NOTHING: "CUSTOM= RETINTVL=999999999 SCOPE=QMGR CMDSCOPE= OTELPCTL=? OTELPROP=QMGR OTELTRAC=QMGR",
        LATER: "INDXTYPE=NONE",
    }
)
_QMGR = _table(
    {
        _CLUSTERS: "CLUSTER=? CLWLDATA= CLWLEXIT= CLWLLEN=100 CLWLMRUC=999999999 CLWLUSEQ=LOCAL DEFCLXQ=SCTQ"
        " REPOS= REPOSNL=",
        _CHANNELS: "CHINIT=? ACTCHL=? ADOPTCHK=? ADOPTMCA=? CHAD=DISABLED CHADEXIT= CHIADAPS=? CHIDISPS=? CHISERVP=?"
        " CHLAUTH=? LSTRTMR=? LU62ARM=? LU62CHL=? LUGROUP=? LUNAME=? MAXCHL=? MONACLS=QMGR MONCHL=OFF OPORTMAX=?"
        " OPORTMIN=? RCVTIME=? RCVTMIN=? RCVTTYPE=? REVDNS=ENABLED SCHINIT=QMGR TCPCHL=? TCPKEEP=? TCPNAME=? TCPSTACK=?"
        " TRAXSTR=? TRAXTBL=? XRCAP=? DNSGROUP=? DNSWLM=? IPADDRV=IPV4",
        _EVENTS: "EVENT=? AUTHEVSC=? AUTHOREV=DISABLED BRIDGEEV=DISABLED CHADEV=DISABLED CHLEV=DISABLED CMDEV=DISABLED"
        " CONFIGEV=DISABLED INHIBTEV=DISABLED LOCALEV=DISABLED LOGGEREV=DISABLED REMOTEEV=DISABLED"
        " SSLEV=DISABLED STRSTPEV=ENABLED",
        _FIGURES: "ACCTCONO=DISABLED ACCTINT=1800 ACCTMQI=OFF ACCTQ=OFF ACTIVREC=MSG ACTVCONO=DISABLED ACTVTRC=OFF"
        " MONQ=OFF ROUTEREC=MSG STATACLS=QMGR STATCHL=OFF STATINT=1800 STATMQI=OFF STATQ=OFF OTELPCTL=? OTELPROP=?"
        " OTELTRAC=?",
        _PUBLISH: "PUBSUB=? PARENT= PSCLUS=ENABLED PSMODE=ENABLED PSNPMSG=DISCARD PSNPRES=NORMAL PSRTYCNT=5 "
        "PSSYNCPT=IFPER TREELIFE=1800",
        _SECURITY: "ADVCAP=? CERTLABL=? CERTQSGL=? CERTVPOL=ANY CONNAUTH=? INITKEY=? KEYRPWD=? SPLCAP=? SSLCRLNL="
        " SSLCRYP= SSLFIPS=NO SSLKEYR=? SSLKEYRPWD=? SSLRKEYC=0 SSLTASKS=? SUITEB=NONE",
        _STORAGE: "IMGINTVL=60 IMGLOGLN=OFF IMGRCOVO=YES IMGRCOVQ=YES IMGSCHED=MANUAL",
        _NOTHING: "SYSTEM=? AMQPCAP=? CPILEVEL=? CUSTOM= DISTL=? IGQ=? IGQAUT=?"
        " IGQUSER=? MARKINT=5000 MAXPROPL=NOLIMIT SCYCASE=? SQQMNAME=? STANDBY=? SYNCPT=?"
        " CMDSCOPE= QSGDISP=QMGR QSGNAME=? QSGCERT=? GROUPUR=? CFCONLOS=?",
    }
)
FIXED = {("QMGR", "CCSID"): Elsewhere("the queue manager's own text is UTF-8, and each message has its own", "1208")}
"""Attributes that MQ lets a command change and that are what they are here: an ALTER of them is skipped."""
_NAMELIST = _table({_CLUSTERS: "CLUSTER= CLUSNL= CLUSDATE=? CLUSTIME=?", _NOTHING: "CMDSCOPE= NLTYPE=NONE"})
_PROCESS = _table({_NOTHING: "CMDSCOPE=", LATER: "QSGDISP=QMGR"})
_OURS = frozenset(kind.name for kind in OUR_KINDS)
_NOT_OF_OURS = _table({_NOTHING: "CMDSCOPE="})
_STATUS = _table(
    {
        _CHANNELS: "CHANNEL=? CONNAME=?",
        _NOTHING: "APPLDESC=? ASID=? HSTATE=? PSBNAME=? PSTID=? QMURID=? TASKNO=? TID=? TRANSID=? URID=? URTYPE=?"
        " CMDSCOPE= QSGDISP=?",
    }
)
_Q_MGR_STATUS = _table(
    {
        _STORAGE: "ARCHLOG=? ARCHLSZ=? CURRLOG=? DATFSSZ=? DATFSUSE=? DATPATH=? LOGEXTSZ=? LOGFSSZ=? LOGFSUSE=?"
        " LOGINUSE=? LOGPATH=? LOGSTRDA=? LOGSTRL=? LOGSTRTI=? LOGUTIL=? MEDIALOG=? MEDIALSZ=? QMFSENC=? QMFSSZ=?"
        " QMFSUSE=? RECLOG=? RECSZ=? REUSELOG=? REUSESZ=? ARCHSZ=? CHKPTCNT=? CHKPTOPS=? CHKPTSZ=? LOGPRIM=? LOGSEC=?"
        " LOGTYPE=? MEDIASZ=?",
        _CHANNELS: "CHINIT=? LDAPCONN=?",
        _CLUSTERS: "AUTOCLUS=? UNICLUS=?",
        _NOTHING: "AUTOCFG=? CMDSERV=? HOSTNAME=? INSTDESC=? INSTNAME=? INSTPATH=? STANDBY=? TYPE=? LOG=?",
    }
)
_CONNECTION = _table(
    {
        _CHANNELS: "CHANNEL=? CONNAME=? CLIENTID=?",
        _PUBLISH: "DEST=? DESTQMGR=? SUBID=? SUBNAME=? TOPICSTR=?",
        HANDLES: "HSTATE=? OBJNAME=? OBJTYPE=? OPENOPTS=? READA=?",
        _NOTHING: "CMDSCOPE= QSGDISP=? APPLDESC=? ASID=? ASTATE=? CONNOPTS=? CONNTAG=? EXTCONN=? EXTURID=?"
        " MONITOR=? NID=? PSBNAME=?"
        " PSTID=? QMURID=? RESTART=? TASKNO=? TID=? TRANSID=? UOWLOG=? UOWLOGDA=? UOWLOGTI=? UOWSTDA=? UOWSTTI=?"
        " URDISP=? URTYPE=?",
    }
)
_WORDS_OF = {
    "QMGR": _QMGR,
    "PROCESS": _PROCESS,
    "NAMELIST": _NAMELIST,
    "QSTATUS": _STATUS,
    "QMSTATUS": _Q_MGR_STATUS,
    "CONN": _CONNECTION,
    **dict.fromkeys(_OURS, _NOT_OF_OURS),
}


def attribute(noun: str, word: str) -> Elsewhere | None:
    """Returns what MQ means by a word of an object's, if it is one that has no meaning here."""
    if noun in _WORDS_OF:
        return _WORDS_OF[noun].get(word)
    return _QUEUE.get(word) if noun == "QUEUE" or noun in ObjectType.__members__ else None
