/* Fixed fields of characters, and the checks of a structure's first eight bytes. */
#include <string.h>

#include "internal.h"

/* Returns how many bytes of a field are text: up to a NUL, without the blanks behind. */
size_t field_length(const char *field, size_t size) {
    size_t length = strnlen(field, size);
    while (length > 0 && field[length - 1] == ' ') length--;
    return length;
}

/* Writes text into a field, cut at the edge of a character, with blanks behind. */
void fill_field(char *field, size_t size, const uint8_t *text, size_t length) {
    if (length > size) {
        length = size;
        while (length > 0 && (text[length] & 0xc0) == 0x80) length--;
    }
    memset(field, ' ', size);
    if (length > 0) memcpy(field, text, length);
}

void write_field(struct writer *w, const char *field, size_t size) {
    write_text(w, field, field_length(field, size));
}

/* Copies a name's field as a string of at most 48 bytes. */
void name_of_field(char *name, const char *field) {
    size_t length = field_length(field, NAME_LENGTH);
    memcpy(name, field, length);
    name[length] = '\0';
}

/* Returns whether a structure begins with its StrucId and has a version that exists. */
int is_struct(const void *structure, const char *id, MQLONG most) {
    if (structure == NULL || memcmp(structure, id, 4) != 0) return 0;
    MQLONG version;
    memcpy(&version, (const char *)structure + 4, sizeof version);
    return version >= 1 && version <= most;
}

int is_zero(const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++)
        if (at[i] != 0) return 0;
    return 1;
}

/* Returns the text of an MQCHARV; ``base`` is the structure that its offset counts from. */
struct slice charv_text(const MQCHARV *text, const void *base, int *is_valid) {
    struct slice found = {text->VSPtr, 0};
    if (found.bytes == NULL && text->VSOffset != 0) found.bytes = (const uint8_t *)base + text->VSOffset;
    *is_valid = found.bytes != NULL && text->VSLength >= MQVS_NULL_TERMINATED && text->VSLength <= 1 << 20;
    if (*is_valid)
        found.length = text->VSLength < 0 ? strnlen((const char *)found.bytes, 1 << 20) : (size_t)text->VSLength;
    return found;
}
