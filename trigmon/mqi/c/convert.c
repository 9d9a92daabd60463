/* Text between sets of characters: UTF-8 (1208), Latin-1 (819), UTF-16 (1200 big-endian, 1202 little-endian), EBCDIC. */
#include <stddef.h>

#include "ebcdic.h"
#include "internal.h"

#define SUBSTITUTE 0x1a
#define UTF_16_BIG 1200
#define UTF_16_LITTLE 1202
#define LATIN_1 819
#define UCS_2 13488
#define UCS_2_OF_3_0 17584

static const uint8_t *ebcdic_of(MQLONG ccsid) {
    switch (ccsid) {
        case 37: return ebcdic_37;
        case 500: return ebcdic_500;
        case 1047: return ebcdic_1047;
        default: return NULL;
    }
}

static int is_big(MQLONG ccsid) {
    return ccsid == UTF_16_BIG || ccsid == UCS_2 || ccsid == UCS_2_OF_3_0;
}

int is_known_ccsid(MQLONG ccsid) {
    return ccsid == TRIGMON_CCSID || ccsid == LATIN_1 || is_big(ccsid) || ccsid == UTF_16_LITTLE || ebcdic_of(ccsid) != NULL;
}

static uint32_t unit_of(const uint8_t *at, int big) {
    return big ? (uint32_t)at[0] << 8 | at[1] : (uint32_t)at[1] << 8 | at[0];
}

static size_t utf16_character(const uint8_t *at, const uint8_t *end, int big, uint32_t *code) {
    if (end - at < 2) return 0;
    *code = unit_of(at, big);
    if (*code < 0xd800 || *code > 0xdfff) return 2;
    if (*code > 0xdbff || end - at < 4) return 0;
    uint32_t low = unit_of(at + 2, big);
    if (low < 0xdc00 || low > 0xdfff) return 0;
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return 4;
}

/* Reads one character. Returns its bytes, 0 where there is none that is valid. */
static size_t next_character(MQLONG ccsid, const uint8_t *at, const uint8_t *end, uint32_t *code) {
    if (ccsid == TRIGMON_CCSID) return utf8_character(at, end, code);
    if (is_big(ccsid) || ccsid == UTF_16_LITTLE) return utf16_character(at, end, is_big(ccsid), code);
    const uint8_t *table = ebcdic_of(ccsid);
    *code = table ? table[*at] : *at;
    return 1;
}

static void add(struct writer *w, uint32_t byte) {
    if (writer_reserve(w, 1)) w->bytes[w->length++] = (uint8_t)byte;
}

static void add_unit(struct writer *w, int big, uint32_t unit) {
    add(w, big ? unit >> 8 : unit & 0xff);
    add(w, big ? unit & 0xff : unit >> 8);
}

static void add_utf8(struct writer *w, uint32_t code) {
    if (code < 0x80) {
        add(w, code);
        return;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint8_t first[] = {0, 0xc0, 0xe0, 0xf0};
    add(w, first[more] | code >> (6 * more));
    while (more-- > 0) add(w, 0x80 | (code >> (6 * more) & 0x3f));
}

/* What each of the three EBCDIC sets has for a character of Latin-1: made once, from the tables. */
static uint8_t reversed[3][256];
static pthread_once_t reversed_once = PTHREAD_ONCE_INIT;

static void reverse(void) {
    static const uint8_t *const tables[] = {ebcdic_37, ebcdic_500, ebcdic_1047};
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 256; i++) reversed[t][tables[t][i]] = (uint8_t)i;
}

/* Writes one character. Returns 0 where the set does not have it. */
static int add_character(struct writer *w, MQLONG ccsid, uint32_t code) {
    if (ccsid == TRIGMON_CCSID)
        add_utf8(w, code);
    else if (is_big(ccsid) || ccsid == UTF_16_LITTLE) {
        if (code >= 0x10000) {
            add_unit(w, is_big(ccsid), 0xd800 + ((code - 0x10000) >> 10));
            code = 0xdc00 + ((code - 0x10000) & 0x3ff);
        }
        add_unit(w, is_big(ccsid), code);
    } else if (code > 0xff)
        return 0;
    else
        add(w, ccsid == LATIN_1 ? code : reversed[ccsid == 37 ? 0 : ccsid == 500 ? 1 : 2][code]);
    return 1;
}

/* Converts a text. A character that the target has not becomes its substitute, or ends it where that is not wanted. */
int64_t convert_text(MQLONG from, const uint8_t *source, size_t length, MQLONG to, struct writer *target, int substitute) {
    if (!is_known_ccsid(from) || !is_known_ccsid(to)) return -1;
    pthread_once(&reversed_once, reverse);
    const uint8_t *at = source, *end = source + length;
    while (at < end) {
        uint32_t code;
        size_t size = next_character(from, at, end, &code);
        if (size == 0) return -1;
        if (!add_character(target, to, code) && (!substitute || !add_character(target, to, SUBSTITUTE))) return -1;
        at += size;
    }
    return target->failed ? -1 : (int64_t)target->length;
}
