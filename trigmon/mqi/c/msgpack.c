/* msgpack: see msgpack.h. Every read first looks at what is left; nothing nested is followed by recursion. */
#include "msgpack.h"

#include <stdlib.h>
#include <string.h>

int writer_reserve(struct writer *w, size_t more) {
    if (w->failed) return 0;
    if (w->room - w->length >= more) return 1;
    size_t room = w->room ? w->room : 512;
    while (room - w->length < more) {
        if (room > SIZE_MAX / 4) {
            w->failed = 1;
            return 0;
        }
        room *= 2;
    }
    uint8_t *bytes = realloc(w->bytes, room);
    if (bytes == NULL) {
        w->failed = 1;
        return 0;
    }
    w->bytes = bytes;
    w->room = room;
    return 1;
}

static void write_head(struct writer *w, uint8_t kind, uint64_t value, int size) {
    if (!writer_reserve(w, 1 + (size_t)size)) return;
    w->bytes[w->length++] = kind;
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) w->bytes[w->length++] = (uint8_t)(value >> shift);
}

static void write_raw(struct writer *w, const void *bytes, size_t length) {
    if (length == 0 || !writer_reserve(w, length)) return;
    memcpy(w->bytes + w->length, bytes, length);
    w->length += length;
}

void write_array(struct writer *w, uint32_t count) {
    if (count < 16)
        write_head(w, (uint8_t)(0x90 | count), 0, 0);
    else if (count < 65536)
        write_head(w, 0xdc, count, 2);
    else
        write_head(w, 0xdd, count, 4);
}

void write_map(struct writer *w, uint32_t count) {
    if (count < 16)
        write_head(w, (uint8_t)(0x80 | count), 0, 0);
    else
        write_head(w, 0xdf, count, 4);
}

void write_int(struct writer *w, int64_t value) {
    if (value >= 0 && value < 128)
        write_head(w, (uint8_t)value, 0, 0);
    else if (value < 0 && value >= -32)
        write_head(w, (uint8_t)value, 0, 0);
    else if (value >= INT32_MIN && value <= INT32_MAX)
        write_head(w, 0xd2, (uint64_t)value, 4);
    else
        write_head(w, 0xd3, (uint64_t)value, 8);
}

size_t utf8_character(const uint8_t *at, const uint8_t *end, uint32_t *code) {
    static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    uint8_t first = *at;
    size_t length = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : (first & 0xf0) == 0xe0 ? 3 : (first & 0xf8) == 0xf0 ? 4 : 0;
    if (length == 0 || (size_t)(end - at) < length) return 0;
    uint32_t value = length == 1 ? first : first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
        value = value << 6 | (at[i] & 0x3f);
    }
    if (value < lowest[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return 0;
    *code = value;
    return length;
}

void write_text(struct writer *w, const char *text, size_t length) {
    if (length < 32)
        write_head(w, (uint8_t)(0xa0 | length), 0, 0);
    else
        write_head(w, 0xdb, length, 4);
    size_t start = w->length;
    write_raw(w, text, length);
    if (w->failed) return;
    uint8_t *at = w->bytes + start, *end = at + length;
    while (at < end) {
        uint32_t code;
        size_t size = utf8_character(at, end, &code);
        if (size == 0) *at = '?';
        at += size ? size : 1;
    }
}

void write_binary(struct writer *w, const void *bytes, size_t length) {
    if (length < 256)
        write_head(w, 0xc4, length, 1);
    else
        write_head(w, 0xc6, length, 4);
    write_raw(w, bytes, length);
}

static uint64_t read_big_endian(struct reader *r, size_t size) {
    if (r->failed || (size_t)(r->end - r->at) < size) {
        r->failed = 1;
        return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) value = value << 8 | *r->at++;
    return value;
}

static uint8_t read_kind(struct reader *r) {
    return (uint8_t)read_big_endian(r, 1);
}

/* Returns a count of values of at least one byte each: one that cannot be there is a fault, not a long loop. */
static uint32_t checked_count(struct reader *r, uint64_t count) {
    if (!r->failed && count > (uint64_t)(r->end - r->at)) r->failed = 1;
    return r->failed ? 0 : (uint32_t)count;
}

uint32_t read_array(struct reader *r) {
    uint8_t kind = read_kind(r);
    if (r->failed) return 0;
    if ((kind & 0xf0) == 0x90) return checked_count(r, kind & 0x0f);
    if (kind == 0xdc) return checked_count(r, read_big_endian(r, 2));
    if (kind == 0xdd) return checked_count(r, read_big_endian(r, 4));
    r->failed = 1;
    return 0;
}

uint32_t read_map(struct reader *r) {
    uint8_t kind = read_kind(r);
    if (r->failed) return 0;
    if ((kind & 0xf0) == 0x80) return checked_count(r, kind & 0x0f);
    if (kind == 0xde) return checked_count(r, read_big_endian(r, 2));
    if (kind == 0xdf) return checked_count(r, read_big_endian(r, 4));
    r->failed = 1;
    return 0;
}

int64_t read_int(struct reader *r) {
    uint8_t kind = read_kind(r);
    if (r->failed) return 0;
    if (kind < 0x80) return kind;
    if (kind >= 0xe0) return (int8_t)kind;
    switch (kind) {
        case 0xc0: return 0;
        case 0xc2: return 0;
        case 0xc3: return 1;
        case 0xcc: return (int64_t)read_big_endian(r, 1);
        case 0xcd: return (int64_t)read_big_endian(r, 2);
        case 0xce: return (int64_t)read_big_endian(r, 4);
        case 0xcf: return (int64_t)read_big_endian(r, 8);
        case 0xd0: return (int8_t)read_big_endian(r, 1);
        case 0xd1: return (int16_t)read_big_endian(r, 2);
        case 0xd2: return (int32_t)read_big_endian(r, 4);
        case 0xd3: return (int64_t)read_big_endian(r, 8);
        default: r->failed = 1; return 0;
    }
}

static int is_text_kind(uint8_t kind) {
    return (kind & 0xe0) == 0xa0 || (kind >= 0xd9 && kind <= 0xdb);
}

int read_is_text(const struct reader *r) {
    return !r->failed && r->at < r->end && is_text_kind(*r->at);
}

static struct slice taken(struct reader *r, uint64_t length) {
    struct slice none = {NULL, 0};
    if (r->failed || length > (uint64_t)(r->end - r->at)) {
        r->failed = 1;
        return none;
    }
    struct slice found = {r->at, (size_t)length};
    r->at += length;
    return found;
}

struct slice read_text(struct reader *r) {
    uint8_t kind = read_kind(r);
    if (!r->failed && !is_text_kind(kind)) r->failed = 1;
    if ((kind & 0xe0) == 0xa0) return taken(r, kind & 0x1f);
    return taken(r, read_big_endian(r, kind == 0xd9 ? 1 : kind == 0xda ? 2 : 4));
}

struct slice read_binary(struct reader *r) {
    uint8_t kind = read_kind(r);
    if (!r->failed && (kind < 0xc4 || kind > 0xc6)) r->failed = 1;
    return taken(r, read_big_endian(r, kind == 0xc4 ? 1 : kind == 0xc5 ? 2 : 4));
}

void skip_value(struct reader *r) {
    /* How many values are still to be passed over; bounded, since each of them has a byte at least. */
    uint64_t left = 1;
    while (left > 0 && !r->failed) {
        left--;
        uint8_t kind = read_kind(r);
        if (r->failed) return;
        if (kind < 0x80 || kind >= 0xe0 || kind == 0xc0 || kind == 0xc2 || kind == 0xc3) continue;
        if ((kind & 0xf0) == 0x80 || kind == 0xde || kind == 0xdf) {
            r->at--;
            left += 2 * (uint64_t)read_map(r);
        } else if ((kind & 0xf0) == 0x90 || kind == 0xdc || kind == 0xdd) {
            r->at--;
            left += read_array(r);
        } else if (is_text_kind(kind)) {
            r->at--;
            read_text(r);
        } else if (kind >= 0xc4 && kind <= 0xc6) {
            r->at--;
            read_binary(r);
        } else if (kind >= 0xca && kind <= 0xd3) {
            static const uint8_t sizes[] = {4, 8, 1, 2, 4, 8, 1, 2, 4, 8};
            taken(r, sizes[kind - 0xca]);
        } else {
            r->failed = 1; /* extensions are not spoken */
        }
        if (left > (uint64_t)(r->end - r->at)) r->failed = 1;
    }
}
