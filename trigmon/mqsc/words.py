"""The words of MQSC: verbs, nouns and their short forms, and what MQ knows that is not, or not yet, of use here."""

from __future__ import annotations

from difflib import get_close_matches

from trigmon.mq.attributes import ATTRIBUTES, QUEUE_KINDS, STATUS
from trigmon.mq.enums import ObjectType

# The full word, and the fewest letters that mean it (the manual's synonyms: DEF, ALT, DEL, DIS, QL, QA, PRO, QS).
VERBS = {"ALTER": 3, "CLEAR": 3, "DEFINE": 3, "DELETE": 3, "DISPLAY": 3, "END": 3, "PING": 4}
ENDINGS = ("END", "EXIT", "QUIT")
NOUNS = {"QLOCAL": 2, "QALIAS": 2, "QREMOTE": 2, "QMODEL": 2, "PROCESS": 3, "QMGR": 4, "QUEUE": 1, "QSTATUS": 2}

NOUNS_OF = {
    "ALTER": ("QLOCAL", "QALIAS", "QREMOTE", "QMODEL", "PROCESS", "QMGR"),
    "CLEAR": ("QLOCAL",),
    "DEFINE": ("QLOCAL", "QALIAS", "QREMOTE", "QMODEL", "PROCESS"),
    "DELETE": ("QLOCAL", "QALIAS", "QREMOTE", "QMODEL", "PROCESS"),
    "DISPLAY": ("QLOCAL", "QALIAS", "QREMOTE", "QMODEL", "PROCESS", "QMGR", "QUEUE", "QSTATUS"),
    "PING": ("QMGR",),
}

LATER_VERBS = ("REFRESH",)
OTHER_VERBS = (
    *("ARCHIVE", "BACKUP", "MOVE", "PURGE", "RECOVER", "RESET", "RESOLVE", "RESUME"),
    *("RVERIFY", "SET", "START", "STOP", "SUSPEND"),
)
LATER_NOUNS: dict[str, int] = {}


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


OTHER_NOUNS = dict.fromkeys(
    sorted(
        _set("""
        CHANNEL CHL LISTENER LSTR TOPIC SUB NAMELIST SERVICE AUTHINFO AUTHREC AUTHSERV ENTAUTH CHLAUTH COMMINFO POLICY
        CFSTRUCT STGCLASS BUFFPOOL PSID CONN CHS CHSTATUS LSSTATUS SVSTATUS TPSTATUS SBSTATUS QMSTATUS CLUSQMGR
        APSTATUS GROUP USAGE THREAD LOG ARCHIVE SYSTEM TRACE SMDS
        """)
    ),
    3,
)
LATER_WORDS = _set("""
    WHERE QSGDISP CMDSCOPE CFSTRUCT INDXTYPE CAPEXPRY EXPRYINT TARGTYPE FORCE
    REARM BACKSTOP MAXWAIT QDEPTHHI QDEPTHLO QDPMAXEV QDPHIEV QDPLOEV QSVCIEV QSVCINT COALESCE OPENTYPE
    LGETDATE LGETTIME LPUTDATE LPUTTIME MSGAGE QTIME MONQ ASTATE
    """)
OTHER_WORDS = _set("""
    ACCTQ CLCHNAME CLUSNL CLUSTER CLWLPRTY CLWLRANK CLWLUSEQ CUSTOM DEFBIND DEFPRESP DEFREADA DISTL IMGRCOVQ
    MAXFSIZE NPMCLASS PROPCTL RETINTVL SCOPE STATQ STGCLASS STREAMQ STRMQOS MEDIALOG CURFSIZE CURMAXFS
    ACCTCONO ACCTINT ACCTMQI ACTCHL ACTIVREC ACTVCONO ACTVTRC ADVCAP ADOPTCHK ADOPTMCA AUTHOREV BRIDGEEV
    CCSID CERTLABL CERTVPOL CHAD CHADEV CHADEXIT CHLAUTH CHLEV CLWLDATA CLWLEXIT CLWLLEN CLWLMRUC CMDEV
    CMDLEVEL COMMANDQ CONFIGEV CONNAUTH CPILEVEL DEFCLXQ INHIBTEV IPADDRV LOCALEV LOGGEREV MARKINT
    MAXCHL MAXPROPL MONACLS MONCHL PARENT PERFMEV PLATFORM PSCLUS PSMODE PSNPMSG PSNPRES PSRTYCNT
    PSSYNCPT QMID REMOTEEV REPOS REPOSNL REVDNS ROUTEREC SCHINIT SCMDSERV SPLCAP SSLCRLNL SSLCRYP SSLEV
    SSLFIPS SSLKEYR SSLRKEYC STATACLS STATCHL STATINT STATMQI STRSTPEV SUITEB SYNCPT TREELIFE XRCAP
    HSTATE TID URID URTYPE APPLDESC CONNAME ASID TRAXSTR PORT CHANNEL
    """)

STATUS_WORDS = ("CURDEPTH", "IPPROCS", "OPPROCS", "UNCOM")
HANDLE_WORDS = ("APPLTAG", "BROWSE", "INPUT", "INQUIRE", "OUTPUT", "PID", "SET", "USERID")
TIME_WORDS = ("ALTDATE", "ALTTIME", "CRDATE", "CRTIME")


def words_shown(noun: str) -> frozenset[str]:
    """Every word that DISPLAY of a noun may be asked for."""
    if noun == "QSTATUS":
        return frozenset((*STATUS_WORDS, *HANDLE_WORDS))
    kinds = QUEUE_KINDS if noun == "QUEUE" else (ObjectType[noun],)
    shown = {a.mqsc for kind in kinds for a in ATTRIBUTES[kind].values()} | set(TIME_WORDS)
    if noun in ("QUEUE", "QLOCAL"):
        shown |= {a.mqsc for a in STATUS.values()} - {"UNCOM"}
    if noun == "QUEUE" or noun in (kind.name for kind in QUEUE_KINDS):
        shown |= {"TYPE"}
    return frozenset(shown)


def full_word(said: str, table: dict[str, int]) -> str | None:
    """The word of ``table`` that ``said`` is, or is a long enough beginning of."""
    return next((word for word, fewest in table.items() if len(said) >= fewest and word.startswith(said)), None)


def nearest(said: str, allowed: list[str] | frozenset[str] | tuple[str, ...]) -> str:
    """``; did you mean X?`` for the nearest allowed word, or nothing."""
    near = get_close_matches(said.upper(), sorted(allowed), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""
