/* Options that a program may give and that mean nothing here, and structures that several calls read. */
#ifndef TRIGMON_OPTIONS_H
#define TRIGMON_OPTIONS_H

#include "internal.h"

/* ALTERNATE_USER_AUTHORITY, BIND_*, CO_OP, RESOLVE_*, READ_AHEAD*, NO_MULTICAST: there are no clusters here, and who calls
   is whom the socket says. */
#define OPEN_WITHOUT_EFFECT (0x1000 | 0x4000 | 0x8000 | 0x10000 | 0x20000 | 0x40000 | 0x80000 | 0x100000 | 0x200000 | 0x400000)
/* ALTERNATE_USER_AUTHORITY, ASYNC_RESPONSE and SYNC_RESPONSE (the library's), RESOLVE_LOCAL_Q, those of topics, and
   MD_FOR_OUTPUT_ONLY. */
#define PUT_WITHOUT_EFFECT (0x1000 | 0x10000 | 0x20000 | 0x40000 | 0x80000 | 0x200000 | 0x800000 | 0x4000000 | 0x8000000 | 0x10000000)
#define PUT_MD_FOR_OUTPUT_ONLY 0x800000
/* CONVERT and the five about properties are the library's. */
#define GET_WITHOUT_EFFECT (0x4000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000)
#define MQCO_QUIESCE 0x20

MQLONG read_od(const void *given, MQOD *od);
MQLONG check_q_mgr(const struct connection *connection, const MQOD *od);
MQLONG read_md(const void *given, MQMD *md);
void write_md(void *given, const MQMD *md);
MQLONG read_gmo(const void *given, MQGMO *gmo);
void write_gmo(void *given, const MQGMO *gmo);

#endif
