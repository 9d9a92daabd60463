/* The client's file: by which addresses a queue manager of another machine is reached (trigmon/client/tls.py). */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"

#define LONGEST_VALUE 2048

/* A section while it is read: its addresses, and what its other keys say. */
struct section {
    char addresses[LONGEST_VALUE];
    struct place keys;
    char directory[FILE_ROOM];
    char key[64], value[LONGEST_VALUE]; /* of the line before, which the next may go on */
    int is_there;
    int is_wrong;
};

static char *stripped(char *text) {
    while (isspace((unsigned char)*text)) text++;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1])) text[--length] = '\0';
    return text;
}

/* Takes the key whose value has come to its end. */
static void take_key(struct section *section) {
    if (section->key[0] == '\0') return;
    struct slice key = {(const uint8_t *)section->key, strlen(section->key)};
    if (strcmp(section->key, "address") == 0)
        strcpy(section->addresses, section->value);
    else if (!set_key(&section->keys, key, section->value, section->directory))
        section->is_wrong = 1;
    section->key[0] = '\0';
}

static void begin_key(struct section *section, char *text) {
    size_t length = strcspn(text, "=:");
    if (text[length] == '\0') {
        section->is_wrong = 1;
        return;
    }
    text[length] = '\0';
    char *value = stripped(text + length + 1), *key = stripped(text);
    if (strlen(key) >= sizeof section->key || strlen(value) >= sizeof section->value || key[0] == '\0') {
        section->is_wrong = 1;
        return;
    }
    for (size_t i = 0; i <= strlen(key); i++) section->key[i] = (char)tolower((unsigned char)key[i]);
    strcpy(section->value, value);
}

/* Takes a line of the file: a section's begin, a key, or a value that goes on. */
static void take_line(struct section *section, char *line, const char *name, int *is_inside) {
    int is_indented = isspace((unsigned char)line[0]);
    char *text = stripped(line);
    size_t length = strlen(text);
    if (length == 0 || text[0] == '#' || text[0] == ';') return;
    if (is_indented && *is_inside && section->key[0] != '\0') {
        if (strlen(section->value) + length + 2 > sizeof section->value)
            section->is_wrong = 1;
        else
            strcat(strcat(section->value, " "), text);
        return;
    }
    take_key(section);
    if (text[0] == '[' && text[length - 1] == ']') {
        text[length - 1] = '\0';
        *is_inside = strcmp(text + 1, name) == 0;
        section->is_there |= *is_inside;
    } else if (*is_inside)
        begin_key(section, text);
}

static void read_section(FILE *file, const char *name, struct section *section) {
    char line[LONGEST_VALUE + 128];
    int is_inside = 0;
    while (fgets(line, sizeof line, file) != NULL) take_line(section, line, name, &is_inside);
    take_key(section);
}

/* Adds the places of a section. Returns 0 where one of its addresses is none of TLS. */
static int add_places(struct section *section, const char *name, struct places *places) {
    int before = places->count;
    for (char *rest = section->addresses, *each; (each = strsep(&rest, ",")) != NULL;) {
        each = stripped(each);
        if (each[0] == '\0' || places->count == MOST_PLACES) continue;
        int has_keys = strchr(each, '?') != NULL;
        struct place *place = &places->all[places->count];
        struct place read = {0};
        if (strncmp(each, "tls:", 4) != 0 || !read_tls_address(each, &read)) return 0;
        *place = has_keys ? read : section->keys;
        strcpy(place->host, read.host);
        strcpy(place->port, read.port);
        strcpy(place->q_mgr_name, has_keys ? read.q_mgr_name : name);
        places->count++;
    }
    return places->count > before;
}

static int in_file(const char *path, const char *name, struct places *places) {
    static const char *why = "this file, or its section for the queue manager, cannot be used";
    struct section section = {0};
    FILE *file = fopen(path, "re");
    if (file == NULL && errno == ENOENT) return 0;
    int is_usable = file != NULL;
    if (file != NULL) {
        const char *slash = strrchr(path, '/');
        snprintf(section.directory, sizeof section.directory, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
        read_section(file, name, &section);
        fclose(file);
        if (!section.is_there && !section.is_wrong) return 0;
        is_usable = !section.is_wrong && is_sound(&section.keys) && add_places(&section, name, places);
    }
    if (!is_usable) report(path, (const uint8_t *)why, strlen(why));
    return is_usable ? 1 : -1;
}

int in_client_file(const char *name, struct places *places) {
    char path[FILE_ROOM];
    const char *chosen = environment("TRIGMON_CLIENT_FILE");
    if (chosen != NULL) return in_file(chosen, name, places);
    const char *config = environment("XDG_CONFIG_HOME"), *home = environment("HOME");
    int found = 0;
    if (config != NULL || home != NULL) {
        int needed = snprintf(path, sizeof path, "%s%s/trigmon/client.ini", config ? config : home, config ? "" : "/.config");
        if (needed > 0 && (size_t)needed < sizeof path) found = in_file(path, name, places);
    }
    return found ? found : in_file("/etc/trigmon/client.ini", name, places);
}
