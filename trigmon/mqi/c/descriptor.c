/* The message descriptor: MQMD as the program has it, and the array of the protocol. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define DAY_MS 86400000LL

/* Returns days since 1970 of a civil date, by arithmetic alone. */
static int64_t days_of(int64_t year, int month, int day) {
    year -= month <= 2;
    int64_t era = year / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int digits(const char *text, int count, int *value) {
    *value = 0;
    for (int i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9') return 0;
        *value = *value * 10 + (text[i] - '0');
    }
    return 1;
}

/* Returns milliseconds since 1970 of PutDate (YYYYMMDD) and PutTime (HHMMSSTH), GMT; 0 where they are none. */
int64_t ms_of(const char *date, const char *time) {
    int year, month, day, hours, minutes, seconds, hundredths;
    if (!digits(date, 4, &year) || !digits(date + 4, 2, &month) || !digits(date + 6, 2, &day)) return 0;
    if (!digits(time, 2, &hours) || !digits(time + 2, 2, &minutes)) return 0;
    if (!digits(time + 4, 2, &seconds) || !digits(time + 6, 2, &hundredths)) return 0;
    if (month < 1 || month > 12 || day < 1 || day > 31 || hours > 23 || minutes > 59 || seconds > 59) return 0;
    int64_t ms = days_of(year, month, day) * DAY_MS + ((hours * 60LL + minutes) * 60 + seconds) * 1000 + hundredths * 10;
    return ms > 0 ? ms : 0;
}

void date_and_time(int64_t ms, char *date, char *time) {
    char text[64];
    if (ms < 0 || ms > 253402300799999LL) ms = 0;
    int64_t days = ms / DAY_MS + 719468, rest = ms % DAY_MS;
    int64_t era = days / 146097, of_era = days % 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153, day = of_year - (153 * month + 2) / 5 + 1;
    month = month < 10 ? month + 3 : month - 9;
    year += era * 400 + (month <= 2);
    snprintf(text, sizeof text, "%04d%02d%02d", (int)year, (int)month, (int)day);
    memcpy(date, text, 8);
    int64_t seconds = rest / 1000;
    snprintf(text, sizeof text, "%02d%02d%02d%02d", (int)(seconds / 3600), (int)(seconds / 60 % 60), (int)(seconds % 60),
             (int)(rest % 1000 / 10));
    memcpy(time, text, 8);
}

/* Writes the descriptor; CCSID, format and encoding may be others than it says, where a header was put before the data. */
void write_descriptor(struct writer *w, const MQMD *md, MQLONG ccsid, const char *format, MQLONG encoding) {
    int has_groups = md->Version >= 2;
    static const MQBYTE24 none;
    write_array(w, 26);
    write_int(w, md->Report);
    write_int(w, md->MsgType);
    write_int(w, md->Expiry);
    write_int(w, md->Feedback);
    write_int(w, encoding);
    write_int(w, ccsid);
    write_field(w, format, 8);
    write_int(w, md->Priority);
    write_int(w, md->Persistence);
    write_binary(w, md->MsgId, 24);
    write_binary(w, md->CorrelId, 24);
    write_int(w, md->BackoutCount);
    write_field(w, md->ReplyToQ, 48);
    write_field(w, md->ReplyToQMgr, 48);
    write_field(w, md->UserIdentifier, 12);
    write_binary(w, md->AccountingToken, is_zero(md->AccountingToken, 32) ? 0 : 32);
    write_field(w, md->ApplIdentityData, 32);
    write_int(w, md->PutApplType);
    write_field(w, md->PutApplName, 28);
    write_int(w, ms_of(md->PutDate, md->PutTime));
    write_field(w, md->ApplOriginData, 4);
    write_binary(w, has_groups ? md->GroupId : none, 24);
    write_int(w, has_groups ? md->MsgSeqNumber : 1);
    write_int(w, has_groups ? md->Offset : 0);
    write_int(w, has_groups ? md->MsgFlags : 0);
    write_int(w, has_groups ? md->OriginalLength : -1);
}

static void read_field(struct reader *r, uint32_t *left, char *field, size_t size) {
    if (*left == 0) return;
    --*left;
    struct slice text = read_text(r);
    fill_field(field, size, text.bytes, text.length);
}

static void read_number(struct reader *r, uint32_t *left, MQLONG *value) {
    if (*left == 0) return;
    --*left;
    *value = (MQLONG)read_int(r);
}

static void read_id(struct reader *r, uint32_t *left, MQBYTE *id, size_t size) {
    if (*left == 0) return;
    --*left;
    struct slice bytes = read_binary(r);
    memset(id, 0, size);
    if (bytes.length > 0) memcpy(id, bytes.bytes, bytes.length < size ? bytes.length : size);
}

/* Reads a descriptor of version 2. Fields that are missing at the end keep what they are. */
void read_descriptor(struct reader *r, MQMD *md) {
    uint32_t left = read_array(r);
    read_number(r, &left, &md->Report);
    read_number(r, &left, &md->MsgType);
    read_number(r, &left, &md->Expiry);
    read_number(r, &left, &md->Feedback);
    read_number(r, &left, &md->Encoding);
    read_number(r, &left, &md->CodedCharSetId);
    read_field(r, &left, md->Format, 8);
    read_number(r, &left, &md->Priority);
    read_number(r, &left, &md->Persistence);
    read_id(r, &left, md->MsgId, 24);
    read_id(r, &left, md->CorrelId, 24);
    read_number(r, &left, &md->BackoutCount);
    read_field(r, &left, md->ReplyToQ, 48);
    read_field(r, &left, md->ReplyToQMgr, 48);
    read_field(r, &left, md->UserIdentifier, 12);
    read_id(r, &left, md->AccountingToken, 32);
    read_field(r, &left, md->ApplIdentityData, 32);
    read_number(r, &left, &md->PutApplType);
    read_field(r, &left, md->PutApplName, 28);
    if (left > 0) {
        left--;
        date_and_time(read_int(r), md->PutDate, md->PutTime);
    }
    read_field(r, &left, md->ApplOriginData, 4);
    read_id(r, &left, md->GroupId, 24);
    read_number(r, &left, &md->MsgSeqNumber);
    read_number(r, &left, &md->Offset);
    read_number(r, &left, &md->MsgFlags);
    read_number(r, &left, &md->OriginalLength);
    for (; left > 0 && !r->failed; left--) skip_value(r);
}
