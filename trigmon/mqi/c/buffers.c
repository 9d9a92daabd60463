/* MQBUFMH and MQMHBUF: between a message handle and an MQRFH2 in a buffer; MQXCNVC. */
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "properties.h"

static MQLONG check_connection(MQHCONN hconn) {
    return hconn == MQHC_UNASSOCIATED_HCONN || is_connected(hconn) ? MQRC_NONE : MQRC_HCONN_ERROR;
}

/* Moves the properties of a header in a buffer into the handle; the data behind it moves to the begin where asked. */
void MQBUFMH(MQHCONN Hconn, MQHMSG Hmsg, PMQVOID BufMsgHOpts, PMQVOID MsgDesc, MQLONG BufferLength, PMQVOID Buffer,
             PMQLONG DataLength, PMQLONG CompCode, PMQLONG Reason) {
    MQMD md;
    MQRFH2 header;
    MQLONG reason = check_connection(Hconn);
    if (reason == MQRC_NONE && !is_struct(BufMsgHOpts, "BMHO", 1)) reason = MQRC_BMHO_ERROR;
    if (reason == MQRC_NONE) reason = read_md(MsgDesc, &md);
    if (reason == MQRC_NONE && BufferLength < 0) reason = MQRC_BUFFER_LENGTH_ERROR;
    if (reason == MQRC_NONE && BufferLength > 0 && Buffer == NULL) reason = MQRC_BUFFER_ERROR;
    MQLONG left = reason == MQRC_NONE ? BufferLength : 0;
    int has_header = reason == MQRC_NONE && memcmp(md.Format, "MQHRF2  ", 8) == 0;
    if (reason == MQRC_NONE) {
        struct properties *all = message_of(Hmsg);
        if (all == NULL) reason = MQRC_HMSG_ERROR;
        size_t length = all && has_header ? read_rfh2(Buffer, (size_t)BufferLength, md.Encoding, all, &header) : 0;
        if (all && has_header && length == 0) reason = MQRC_RFH_ERROR;
        if (length > 0 && ((MQBMHO *)BufMsgHOpts)->Options & MQBMHO_DELETE_PROPERTIES) {
            memmove(Buffer, (char *)Buffer + length, (size_t)BufferLength - length);
            left = BufferLength - (MQLONG)length;
            memcpy(md.Format, header.Format, 8);
            md.Encoding = header.Encoding;
            md.CodedCharSetId = header.CodedCharSetId;
            write_md(MsgDesc, &md);
        }
        if (all != NULL) release_message();
    }
    if (DataLength != NULL) *DataLength = left;
    answer((struct result){reason ? MQCC_FAILED : MQCC_OK, reason}, CompCode, Reason);
}

/* Writes the properties of a handle into a buffer, as an MQRFH2 whose data have the descriptor's format. */
void MQMHBUF(MQHCONN Hconn, MQHMSG Hmsg, PMQVOID MsgHBufOpts, PMQVOID Name, PMQVOID MsgDesc, MQLONG BufferLength,
             PMQVOID Buffer, PMQLONG DataLength, PMQLONG CompCode, PMQLONG Reason) {
    MQMD md;
    struct writer header = {0};
    struct properties chosen = {0};
    int is_valid = 0;
    MQLONG reason = check_connection(Hconn);
    if (reason == MQRC_NONE && !is_struct(MsgHBufOpts, "MHBO", 1)) reason = MQRC_MHBO_ERROR;
    if (reason == MQRC_NONE) reason = read_md(MsgDesc, &md);
    if (reason == MQRC_NONE && BufferLength < 0) reason = MQRC_BUFFER_LENGTH_ERROR;
    if (reason == MQRC_NONE && Buffer == NULL && BufferLength > 0) reason = MQRC_BUFFER_ERROR;
    struct slice name = Name != NULL ? charv_text(Name, Name, &is_valid) : (struct slice){NULL, 0};
    if (reason == MQRC_NONE && (!is_valid || name.length == 0)) reason = MQRC_PROPERTY_NAME_ERROR;
    struct properties *all = reason == MQRC_NONE ? message_of(Hmsg) : NULL;
    if (reason == MQRC_NONE && all == NULL) reason = MQRC_HMSG_ERROR;
    struct property *one = all ? find_property(all, name.bytes, name.length) : NULL;
    if (reason == MQRC_NONE && one == NULL) reason = MQRC_PROPERTY_NOT_AVAILABLE;
    for (; one != NULL; one = find_from(one->next, name.bytes, name.length))
        if (!add_property(&chosen, NULL, one->name, strlen(one->name), one->type, one->value, one->length))
            reason = MQRC_STORAGE_NOT_AVAILABLE;
    if (reason == MQRC_NONE && !write_rfh2(&header, &chosen, md.Encoding, md.CodedCharSetId, md.Format))
        reason = MQRC_STORAGE_NOT_AVAILABLE;
    if (reason == MQRC_NONE && header.length > (size_t)BufferLength) reason = MQRC_PROPERTY_VALUE_TOO_BIG;
    if (DataLength != NULL) *DataLength = (MQLONG)header.length;
    if (reason == MQRC_NONE) {
        memcpy(Buffer, header.bytes, header.length);
        memcpy(md.Format, "MQHRF2  ", 8);
        md.Encoding = MQENC_NATIVE;
        md.CodedCharSetId = TRIGMON_CCSID;
        write_md(MsgDesc, &md);
        int deletes = ((MQMHBO *)MsgHBufOpts)->Options & MQMHBO_DELETE_PROPERTIES;
        for (one = chosen.first; deletes && one != NULL; one = one->next) {
            struct property *same = stored_property(all, all->last, one->name);
            if (same != NULL) remove_property(all, same);
        }
    }
    if (all != NULL) release_message();
    clear_properties(&chosen);
    free(header.bytes);
    answer((struct result){reason ? MQCC_FAILED : MQCC_OK, reason}, CompCode, Reason);
}

void MQXCNVC(MQHCONN Hconn, MQLONG Options, MQLONG SourceCCSID, MQLONG SourceLength, PMQCHAR SourceBuffer, MQLONG TargetCCSID,
             MQLONG TargetLength, PMQCHAR TargetBuffer, PMQLONG DataLength, PMQLONG CompCode, PMQLONG Reason) {
    struct writer target = {0};
    MQLONG reason = MQRC_NONE;
    (void)Hconn; /* it may be MQHC_DEF_HCONN: no queue manager is asked */
    (void)Options;
    if (SourceCCSID == MQCCSI_Q_MGR) SourceCCSID = TRIGMON_CCSID;
    if (TargetCCSID == MQCCSI_Q_MGR) TargetCCSID = TRIGMON_CCSID;
    if (!is_known_ccsid(SourceCCSID)) reason = MQRC_SOURCE_CCSID_ERROR;
    else if (!is_known_ccsid(TargetCCSID)) reason = MQRC_TARGET_CCSID_ERROR;
    else if (SourceLength < 0) reason = MQRC_SOURCE_LENGTH_ERROR;
    else if (TargetLength < 0) reason = MQRC_TARGET_LENGTH_ERROR;
    else if (SourceBuffer == NULL && SourceLength > 0) reason = MQRC_SOURCE_BUFFER_ERROR;
    else if (TargetBuffer == NULL && TargetLength > 0) reason = MQRC_TARGET_BUFFER_ERROR;
    if (reason == MQRC_NONE && convert_text(SourceCCSID, (uint8_t *)SourceBuffer, (size_t)SourceLength, TargetCCSID, &target, 1) < 0)
        reason = MQRC_NOT_CONVERTED;
    size_t copied = target.length < (size_t)TargetLength ? target.length : (size_t)(TargetLength < 0 ? 0 : TargetLength);
    if (reason == MQRC_NONE && copied > 0) memcpy(TargetBuffer, target.bytes, copied);
    if (DataLength != NULL) *DataLength = reason == MQRC_NONE ? (MQLONG)target.length : 0;
    struct result result = reason ? failed(reason) : warned(copied < target.length ? MQRC_CONVERTED_MSG_TOO_BIG : MQRC_NONE);
    free(target.bytes);
    answer(result, CompCode, Reason);
}
