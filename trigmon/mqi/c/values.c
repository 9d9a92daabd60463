/* Values of properties: as text in an MQRFH2, and from one type into another. */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "properties.h"

#define NUMBER_ROOM 64

/* Returns the bytes of a type whose values are all of one length, else 0. */
size_t fixed_size(MQLONG type) {
    switch (type) {
        case MQTYPE_BOOLEAN:
        case MQTYPE_INT32:
        case MQTYPE_FLOAT32: return 4;
        case MQTYPE_INT8: return 1;
        case MQTYPE_INT16: return 2;
        case MQTYPE_INT64:
        case MQTYPE_FLOAT64: return 8;
        default: return 0;
    }
}

static int is_whole(MQLONG type) {
    return type == MQTYPE_BOOLEAN || type == MQTYPE_INT8 || type == MQTYPE_INT16 || type == MQTYPE_INT32 || type == MQTYPE_INT64;
}

static int is_real(MQLONG type) {
    return type == MQTYPE_FLOAT32 || type == MQTYPE_FLOAT64;
}

static int64_t whole_of(const struct property *one) {
    int8_t of_8;
    int16_t of_16;
    int32_t of_32 = 0;
    int64_t of_64;
    switch (one->type) {
        case MQTYPE_INT8: memcpy(&of_8, one->value, 1); return of_8;
        case MQTYPE_INT16: memcpy(&of_16, one->value, 2); return of_16;
        case MQTYPE_INT64: memcpy(&of_64, one->value, 8); return of_64;
        default: memcpy(&of_32, one->value, 4); return of_32;
    }
}

static double real_of(const struct property *one) {
    float of_32;
    double of_64;
    if (one->type == MQTYPE_FLOAT32) {
        memcpy(&of_32, one->value, 4);
        return of_32;
    }
    memcpy(&of_64, one->value, 8);
    return of_64;
}

/* Replaces the point of a number: the program may have set a locale that writes another character. */
static void replace_point(char *number, char from, char to) {
    for (; *number != '\0'; number++)
        if (*number == from) *number = to;
}

/* Writes a value that is no byte string and no text as a string. Returns the reason why it cannot. */
MQLONG text_of_value(const struct property *one, char *text, size_t room) {
    if (one->type == MQTYPE_BOOLEAN)
        snprintf(text, room, "%d", whole_of(one) != 0);
    else if (is_whole(one->type))
        snprintf(text, room, "%lld", (long long)whole_of(one));
    else if (one->type == MQTYPE_FLOAT32)
        snprintf(text, room, "%.9g", real_of(one));
    else if (one->type == MQTYPE_FLOAT64)
        snprintf(text, room, "%.17g", real_of(one));
    else
        return MQRC_PROP_CONV_NOT_SUPPORTED;
    if (is_real(one->type)) replace_point(text, *localeconv()->decimal_point, '.');
    return MQRC_NONE;
}

static void add_bytes(struct writer *w, const void *bytes, size_t length) {
    if (length == 0 || !writer_reserve(w, length)) return;
    memcpy(w->bytes + w->length, bytes, length);
    w->length += length;
}

static int hexadecimal(uint8_t digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    if ((digit | 0x20) >= 'a' && (digit | 0x20) <= 'f') return (digit | 0x20) - 'a' + 10;
    return -1;
}

/* Writes a whole number as its type has it. Returns 0 where it does not fit. */
static int add_whole(struct writer *w, MQLONG type, int64_t number) {
    int8_t of_8 = (int8_t)number;
    int16_t of_16 = (int16_t)number;
    int32_t of_32 = type == MQTYPE_BOOLEAN ? number != 0 : (int32_t)number;
    if (type == MQTYPE_INT8 && of_8 != number) return 0;
    if (type == MQTYPE_INT16 && of_16 != number) return 0;
    if (type == MQTYPE_INT32 && of_32 != number) return 0;
    if (type == MQTYPE_INT8)
        add_bytes(w, &of_8, 1);
    else if (type == MQTYPE_INT16)
        add_bytes(w, &of_16, 2);
    else if (type == MQTYPE_INT64)
        add_bytes(w, &number, 8);
    else
        add_bytes(w, &of_32, 4);
    return 1;
}

static void add_real(struct writer *w, MQLONG type, double number) {
    float of_32 = (float)number;
    if (type == MQTYPE_FLOAT32)
        add_bytes(w, &of_32, 4);
    else
        add_bytes(w, &number, 8);
}

static MQLONG bytes_of_text(const uint8_t *text, size_t length, struct writer *value) {
    if (length % 2) return MQRC_PROP_NUMBER_FORMAT_ERROR;
    for (size_t i = 0; i < length; i += 2) {
        int high = hexadecimal(text[i]), low = hexadecimal(text[i + 1]);
        if (high < 0 || low < 0) return MQRC_PROP_NUMBER_FORMAT_ERROR;
        uint8_t byte = (uint8_t)(high << 4 | low);
        add_bytes(value, &byte, 1);
    }
    return MQRC_NONE;
}

/* Reads a text as a value of a type. Returns the reason why it is none. */
MQLONG value_of_text(const uint8_t *text, size_t length, MQLONG type, struct writer *value) {
    char number[NUMBER_ROOM], *end = number;
    if (type == MQTYPE_NULL) return MQRC_NONE;
    if (type == MQTYPE_BYTE_STRING) return bytes_of_text(text, length, value);
    if (type == MQTYPE_STRING) {
        add_bytes(value, text, length);
        return MQRC_NONE;
    }
    if (length == 0 || length >= sizeof number) return MQRC_PROP_NUMBER_FORMAT_ERROR;
    memcpy(number, text, length);
    number[length] = '\0';
    if (type == MQTYPE_BOOLEAN && (strcmp(number, "true") == 0 || strcmp(number, "TRUE") == 0)) strcpy(number, "1");
    if (type == MQTYPE_BOOLEAN && (strcmp(number, "false") == 0 || strcmp(number, "FALSE") == 0)) strcpy(number, "0");
    errno = 0;
    if (is_real(type)) {
        replace_point(number, '.', *localeconv()->decimal_point);
        add_real(value, type, strtod(number, &end));
        return end == number || *end != '\0' ? MQRC_PROP_NUMBER_FORMAT_ERROR : MQRC_NONE;
    }
    long long whole = strtoll(number, &end, 10);
    if (end == number || *end != '\0' || errno != 0 || !add_whole(value, type, whole)) return MQRC_PROP_NUMBER_FORMAT_ERROR;
    return MQRC_NONE;
}

/* Converts a property's value into another type, as MQIMPO_CONVERT_TYPE asks. Returns the reason why it cannot. */
MQLONG converted_value(const struct property *one, MQLONG type, struct writer *value) {
    char text[NUMBER_ROOM];
    if (type == one->type || type == MQTYPE_AS_SET) {
        add_bytes(value, one->value, one->length);
        return MQRC_NONE;
    }
    if (one->type == MQTYPE_NULL || type == MQTYPE_NULL) return MQRC_PROP_CONV_NOT_SUPPORTED;
    if (one->type == MQTYPE_STRING) return value_of_text(one->value, one->length, type, value);
    if (type == MQTYPE_STRING && one->type == MQTYPE_BYTE_STRING) {
        for (size_t i = 0; i < one->length; i++) {
            snprintf(text, sizeof text, "%02X", one->value[i]);
            add_bytes(value, text, 2);
        }
        return MQRC_NONE;
    }
    if (type == MQTYPE_STRING) {
        MQLONG reason = text_of_value(one, text, sizeof text);
        if (reason == MQRC_NONE) add_bytes(value, text, strlen(text));
        return reason;
    }
    if (is_whole(one->type) && is_whole(type))
        return add_whole(value, type, whole_of(one)) ? MQRC_NONE : MQRC_PROP_CONV_NOT_SUPPORTED;
    if (is_real(one->type) && is_real(type)) {
        add_real(value, type, real_of(one));
        return MQRC_NONE;
    }
    return MQRC_PROP_CONV_NOT_SUPPORTED;
}
