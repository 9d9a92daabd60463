/* msgpack as trigmon's protocol uses it: written into a buffer that grows, read with every length checked. */
#ifndef TRIGMON_MSGPACK_H
#define TRIGMON_MSGPACK_H

#include <stddef.h>
#include <stdint.h>

struct writer {
    uint8_t *bytes;
    size_t length;
    size_t room;
    int failed; /* no memory: what was written is not complete */
};

struct reader {
    const uint8_t *at;
    const uint8_t *end;
    int failed; /* a value of another type, or cut off: all further reads give nothing */
};

struct slice {
    const uint8_t *bytes;
    size_t length;
};

void write_array(struct writer *w, uint32_t count);
void write_map(struct writer *w, uint32_t count);
void write_int(struct writer *w, int64_t value);
void write_text(struct writer *w, const char *text, size_t length); /* what is no UTF-8 becomes question marks */
void write_binary(struct writer *w, const void *bytes, size_t length);
int writer_reserve(struct writer *w, size_t more);

uint32_t read_array(struct reader *r);
uint32_t read_map(struct reader *r);
int64_t read_int(struct reader *r);
int read_is_text(const struct reader *r);
struct slice read_text(struct reader *r);
struct slice read_binary(struct reader *r);
void skip_value(struct reader *r);

size_t utf8_character(const uint8_t *at, const uint8_t *end, uint32_t *code); /* its bytes, 0 for none that is valid */

#endif
