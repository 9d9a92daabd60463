/* The calls of the MQI. CompCode and Reason are always the last two. Included by mqi.h. */
#ifndef TRIGMON_MQI_CALLS_H
#define TRIGMON_MQI_CALLS_H

#ifdef __cplusplus
extern "C" {
#endif
#define MQENTRY __attribute__((visibility("default")))

typedef void MQCB_FUNCTION(MQHCONN, PMQVOID MsgDesc, PMQVOID GetMsgOpts, PMQVOID Buffer, MQCBC *Context);

MQENTRY void MQCONN(PMQCHAR QMgrName, PMQHCONN Hconn, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQCONNX(PMQCHAR QMgrName, PMQVOID ConnectOpts, PMQHCONN Hconn, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQDISC(PMQHCONN Hconn, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQOPEN(MQHCONN, PMQVOID ObjDesc, MQLONG Options, PMQHOBJ Hobj, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQCLOSE(MQHCONN, PMQHOBJ Hobj, MQLONG Options, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQPUT(MQHCONN, MQHOBJ, PMQVOID MsgDesc, PMQVOID PutMsgOpts, MQLONG BufferLength, PMQVOID Buffer,
                   PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQPUT1(MQHCONN, PMQVOID ObjDesc, PMQVOID MsgDesc, PMQVOID PutMsgOpts, MQLONG BufferLength,
                    PMQVOID Buffer, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQGET(MQHCONN, MQHOBJ, PMQVOID MsgDesc, PMQVOID GetMsgOpts, MQLONG BufferLength, PMQVOID Buffer,
                   PMQLONG DataLength, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQBEGIN(MQHCONN, PMQVOID BeginOptions, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQCMIT(MQHCONN, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQBACK(MQHCONN, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQINQ(MQHCONN, MQHOBJ, MQLONG SelectorCount, PMQLONG Selectors, MQLONG IntAttrCount, PMQLONG IntAttrs,
                   MQLONG CharAttrLength, PMQCHAR CharAttrs, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQSET(MQHCONN, MQHOBJ, MQLONG SelectorCount, PMQLONG Selectors, MQLONG IntAttrCount, PMQLONG IntAttrs,
                   MQLONG CharAttrLength, PMQCHAR CharAttrs, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQSTAT(MQHCONN, MQLONG Type, PMQVOID Status, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQCB(MQHCONN, MQLONG Operation, PMQVOID CallbackDesc, MQHOBJ, PMQVOID MsgDesc, PMQVOID GetMsgOpts,
                  PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQCTL(MQHCONN, MQLONG Operation, PMQVOID ControlOpts, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQCRTMH(MQHCONN, PMQVOID CrtMsgHOpts, PMQHMSG Hmsg, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQDLTMH(MQHCONN, PMQHMSG Hmsg, PMQVOID DltMsgHOpts, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQSETMP(MQHCONN, MQHMSG, PMQVOID SetPropOpts, PMQVOID Name, PMQVOID PropDesc, MQLONG Type,
                     MQLONG ValueLength, PMQVOID Value, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQDLTMP(MQHCONN, MQHMSG, PMQVOID DltPropOpts, PMQVOID Name, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQINQMP(MQHCONN, MQHMSG, PMQVOID InqPropOpts, PMQVOID Name, PMQVOID PropDesc, PMQLONG Type,
                     MQLONG ValueLength, PMQVOID Value, PMQLONG DataLength, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQBUFMH(MQHCONN, MQHMSG, PMQVOID BufMsgHOpts, PMQVOID MsgDesc, MQLONG BufferLength, PMQVOID Buffer,
                     PMQLONG DataLength, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQMHBUF(MQHCONN, MQHMSG, PMQVOID MsgHBufOpts, PMQVOID Name, PMQVOID MsgDesc, MQLONG BufferLength,
                     PMQVOID Buffer, PMQLONG DataLength, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQXCNVC(MQHCONN, MQLONG Options, MQLONG SourceCCSID, MQLONG SourceLength, PMQCHAR SourceBuffer,
                     MQLONG TargetCCSID, MQLONG TargetLength, PMQCHAR TargetBuffer, PMQLONG DataLength,
                     PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQSUB(MQHCONN, PMQVOID SubDesc, PMQHOBJ Hobj, PMQHOBJ Hsub, PMQLONG CompCode, PMQLONG Reason);
MQENTRY void MQSUBRQ(MQHCONN, MQHOBJ Hsub, MQLONG Action, PMQVOID SubRqOpts, PMQLONG CompCode, PMQLONG Reason);

#ifdef __cplusplus
}
#endif
#endif
