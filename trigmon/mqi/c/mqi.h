/* The MQI in C, as trigmon's library offers it: names, numbers and layouts as documented for IBM MQ.

   A program that includes <cmqc.h> compiles with -I on this directory, and links with -lmqm_r. One field a line, so that a
   test can hold these layouts to trigmon/mqi/structures.py. */
#ifndef TRIGMON_MQI_H
#define TRIGMON_MQI_H

#include <stdint.h>

#include "mqi_constants.h"

typedef int32_t MQLONG;
typedef int64_t MQINT64;
typedef int64_t MQHMSG;
typedef MQLONG MQHCONN;
typedef MQLONG MQHOBJ;
typedef char MQCHAR;
typedef unsigned char MQBYTE;
typedef void *MQPTR;
typedef void *PMQVOID;
typedef MQLONG *PMQLONG;
typedef MQCHAR *PMQCHAR;
typedef MQHCONN *PMQHCONN;
typedef MQHOBJ *PMQHOBJ;
typedef MQHMSG *PMQHMSG;
typedef MQCHAR MQCHAR4[4];
typedef MQCHAR MQCHAR8[8];
typedef MQCHAR MQCHAR12[12];
typedef MQCHAR MQCHAR20[20];
typedef MQCHAR MQCHAR28[28];
typedef MQCHAR MQCHAR32[32];
typedef MQCHAR MQCHAR48[48];
typedef MQCHAR MQCHAR64[64];
typedef MQCHAR MQCHAR128[128];
typedef MQCHAR MQCHAR264[264];
typedef MQBYTE MQBYTE16[16];
typedef MQBYTE MQBYTE24[24];
typedef MQBYTE MQBYTE32[32];
typedef MQBYTE MQBYTE40[40];
typedef MQBYTE MQBYTE128[128];

typedef struct tagMQCHARV {
    MQPTR VSPtr;
    MQLONG VSOffset;
    MQLONG VSBufSize;
    MQLONG VSLength;
    MQLONG VSCCSID;
} MQCHARV;

typedef struct tagMQMD {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG Report;
    MQLONG MsgType;
    MQLONG Expiry;
    MQLONG Feedback;
    MQLONG Encoding;
    MQLONG CodedCharSetId;
    MQCHAR8 Format;
    MQLONG Priority;
    MQLONG Persistence;
    MQBYTE24 MsgId;
    MQBYTE24 CorrelId;
    MQLONG BackoutCount;
    MQCHAR48 ReplyToQ;
    MQCHAR48 ReplyToQMgr;
    MQCHAR12 UserIdentifier;
    MQBYTE32 AccountingToken;
    MQCHAR32 ApplIdentityData;
    MQLONG PutApplType;
    MQCHAR28 PutApplName;
    MQCHAR8 PutDate;
    MQCHAR8 PutTime;
    MQCHAR4 ApplOriginData;
    MQBYTE24 GroupId; /* from version 2 on */
    MQLONG MsgSeqNumber;
    MQLONG Offset;
    MQLONG MsgFlags;
    MQLONG OriginalLength;
} MQMD;
typedef MQMD MQMD2;

typedef struct tagMQOD {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG ObjectType;
    MQCHAR48 ObjectName;
    MQCHAR48 ObjectQMgrName;
    MQCHAR48 DynamicQName;
    MQCHAR12 AlternateUserId;
    MQLONG RecsPresent; /* from version 2 on */
    MQLONG KnownDestCount;
    MQLONG UnknownDestCount;
    MQLONG InvalidDestCount;
    MQLONG ObjectRecOffset;
    MQLONG ResponseRecOffset;
    MQPTR ObjectRecPtr;
    MQPTR ResponseRecPtr;
    MQBYTE40 AlternateSecurityId; /* from version 3 on */
    MQCHAR48 ResolvedQName;
    MQCHAR48 ResolvedQMgrName;
    MQCHARV ObjectString; /* from version 4 on */
    MQCHARV SelectionString;
    MQCHARV ResObjectString;
    MQLONG ResolvedType;
} MQOD;

typedef struct tagMQPMO {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG Options;
    MQLONG Timeout;
    MQHOBJ Context;
    MQLONG KnownDestCount;
    MQLONG UnknownDestCount;
    MQLONG InvalidDestCount;
    MQCHAR48 ResolvedQName;
    MQCHAR48 ResolvedQMgrName;
    MQLONG RecsPresent; /* from version 2 on */
    MQLONG PutMsgRecFields;
    MQLONG PutMsgRecOffset;
    MQLONG ResponseRecOffset;
    MQPTR PutMsgRecPtr;
    MQPTR ResponseRecPtr;
    MQHMSG OriginalMsgHandle; /* from version 3 on */
    MQHMSG NewMsgHandle;
    MQLONG Action;
    MQLONG PubLevel;
} MQPMO;

typedef struct tagMQGMO {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG Options;
    MQLONG WaitInterval;
    MQLONG Signal1;
    MQLONG Signal2;
    MQCHAR48 ResolvedQName;
    MQLONG MatchOptions; /* from version 2 on */
    MQCHAR GroupStatus;
    MQCHAR SegmentStatus;
    MQCHAR Segmentation;
    MQCHAR Reserved1;
    MQBYTE16 MsgToken; /* from version 3 on */
    MQLONG ReturnedLength;
    MQLONG Reserved2; /* from version 4 on */
    MQHMSG MsgHandle;
} MQGMO;

typedef struct tagMQCNO {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG Options;
    MQLONG ClientConnOffset; /* from version 2 on */
    MQPTR ClientConnPtr;
    MQBYTE128 ConnTag; /* from version 3 on */
    MQPTR SSLConfigPtr; /* from version 4 on */
    MQLONG SSLConfigOffset;
    MQBYTE24 ConnectionId; /* from version 5 on */
    MQLONG SecurityParmsOffset;
    MQPTR SecurityParmsPtr;
    MQPTR CCDTUrlPtr; /* from version 6 on */
    MQLONG CCDTUrlOffset;
    MQLONG CCDTUrlLength;
    MQBYTE Reserved[8];
    MQCHAR28 ApplName; /* from version 7 on */
    MQLONG Reserved2;
    MQPTR BalanceParmsPtr; /* from version 8 on */
    MQLONG BalanceParmsOffset;
    MQLONG Reserved3;
} MQCNO;

typedef struct tagMQCSP {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG AuthenticationType;
    MQBYTE Reserved1[4];
    MQPTR CSPUserIdPtr;
    MQLONG CSPUserIdOffset;
    MQLONG CSPUserIdLength;
    MQBYTE Reserved2[8];
    MQPTR CSPPasswordPtr;
    MQLONG CSPPasswordOffset;
    MQLONG CSPPasswordLength;
    MQBYTE Reserved3[8]; /* from version 2 on */
    MQPTR InitialKeyPtr;
    MQLONG InitialKeyOffset;
    MQLONG InitialKeyLength;
    MQBYTE Reserved4[8]; /* from version 3 on */
    MQPTR TokenPtr;
    MQLONG TokenOffset;
    MQLONG TokenLength;
} MQCSP;

/* The first part of MQCD: all that a client's connection reads of it. */
typedef struct tagMQCD {
    MQCHAR20 ChannelName;
    MQLONG Version;
    MQLONG ChannelType;
    MQLONG TransportType;
    MQCHAR64 Desc;
    MQCHAR48 QMgrName;
    MQCHAR48 XmitQName;
    MQCHAR20 ShortConnectionName;
    MQCHAR20 MCAName;
    MQCHAR8 ModeName;
    MQCHAR64 TpName;
    MQLONG BatchSize;
    MQLONG DiscInterval;
    MQLONG ShortRetryCount;
    MQLONG ShortRetryInterval;
    MQLONG LongRetryCount;
    MQLONG LongRetryInterval;
    MQCHAR128 SecurityExit;
    MQCHAR128 MsgExit;
    MQCHAR128 SendExit;
    MQCHAR128 ReceiveExit;
    MQLONG SeqNumberWrap;
    MQLONG MaxMsgLength;
    MQLONG PutAuthority;
    MQLONG DataConversion;
    MQCHAR32 SecurityUserData;
    MQCHAR32 MsgUserData;
    MQCHAR32 SendUserData;
    MQCHAR32 ReceiveUserData;
    MQCHAR12 UserIdentifier; /* from version 2 on */
    MQCHAR12 Password;
    MQCHAR12 MCAUserIdentifier;
    MQLONG MCAType;
    MQCHAR264 ConnectionName;
} MQCD;

typedef struct tagMQSTS {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG CompCode;
    MQLONG Reason;
    MQLONG PutSuccessCount;
    MQLONG PutWarningCount;
    MQLONG PutFailureCount;
    MQLONG ObjectType;
    MQCHAR48 ObjectName;
    MQCHAR48 ObjectQMgrName;
    MQCHAR48 ResolvedObjectName;
    MQCHAR48 ResolvedQMgrName;
    MQCHARV ObjectString; /* from version 2 on */
    MQCHARV SubName;
    MQLONG OpenOptions;
    MQLONG SubOptions;
} MQSTS;

typedef struct tagMQBO {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG Options;
} MQBO;

typedef struct tagMQCMHO {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG Options;
} MQCMHO;

typedef struct tagMQDMHO {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG Options;
} MQDMHO;

typedef struct tagMQSMPO {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG Options;
    MQLONG ValueEncoding;
    MQLONG ValueCCSID;
} MQSMPO;

typedef struct tagMQDMPO {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG Options;
} MQDMPO;

typedef struct tagMQIMPO {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG Options;
    MQLONG RequestedEncoding;
    MQLONG RequestedCCSID;
    MQLONG ReturnedEncoding;
    MQLONG ReturnedCCSID;
    MQLONG Reserved1;
    MQCHARV ReturnedName;
    MQCHAR8 TypeString;
} MQIMPO;

typedef struct tagMQPD {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG Options;
    MQLONG Support;
    MQLONG Context;
    MQLONG CopyOptions;
} MQPD;

typedef struct tagMQBMHO {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG Options;
} MQBMHO;

typedef struct tagMQMHBO {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG Options;
} MQMHBO;

typedef struct tagMQCBD {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG CallbackType;
    MQLONG Options;
    MQPTR CallbackArea;
    MQPTR CallbackFunction;
    MQCHAR128 CallbackName;
    MQLONG MaxMsgLength;
} MQCBD;

typedef struct tagMQCBC {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG CallType;
    MQHOBJ Hobj;
    MQPTR CallbackArea;
    MQPTR ConnectionArea;
    MQLONG CompCode;
    MQLONG Reason;
    MQLONG State;
    MQLONG DataLength;
    MQLONG BufferLength;
    MQLONG Flags;
    MQLONG ReconnectDelay; /* from version 2 on */
} MQCBC;

typedef struct tagMQCTLO {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG Options;
    MQLONG Reserved;
    MQPTR ConnectionArea;
} MQCTLO;

typedef struct tagMQRFH2 {
    MQCHAR4 StrucId;
    MQLONG Version;
    MQLONG StrucLength;
    MQLONG Encoding;
    MQLONG CodedCharSetId;
    MQCHAR8 Format;
    MQLONG Flags;
    MQLONG NameValueCCSID;
} MQRFH2;

#include "mqi_calls.h"

#endif
