/* Which socket a queue manager's name means: the rules of trigmon/paths.py and trigmon/client/address.py.

   MQSERVER, a channel table (CCDT, JSON) and MQCD say which queue manager is meant, never a host: the library speaks over
   Unix sockets, and has no TLS. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

#define MOST_DIRECTORIES 4

struct directories {
    char paths[MOST_DIRECTORIES][128];
    int count;
};

static void add_directory(struct directories *all, const char *before, const char *after) {
    int length = snprintf(all->paths[all->count], sizeof all->paths[0], "%s%s", before, after);
    if (length > 0 && (size_t)length < sizeof all->paths[0]) all->count++;
}

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Lists the runtime directories; one that is named is the only one. In /tmp another user's directory is not looked into. */
static void runtime_directories(struct directories *all) {
    const char *named;
    all->count = 0;
    if ((named = environment("TRIGMON_RUNTIME")) != NULL) {
        add_directory(all, named, "");
        return;
    }
    if ((named = environment("TRIGMON_HOME")) != NULL) {
        add_directory(all, named, "/.run");
        return;
    }
    if ((named = environment("RUNTIME_DIRECTORY")) != NULL) {
        char first[128];
        snprintf(first, sizeof first, "%.*s", (int)strcspn(named, ":"), named);
        add_directory(all, first, "");
    }
    if ((named = environment("XDG_RUNTIME_DIR")) != NULL) add_directory(all, named, "/trigmon");
    uid_t user = getuid();
    if (user != 0) {
        char path[64];
        struct stat status;
        snprintf(path, sizeof path, "/tmp/trigmon-%u", (unsigned)user);
        int is_ours = lstat(path, &status) == 0 ? S_ISDIR(status.st_mode) && status.st_uid == user : errno == ENOENT;
        if (is_ours) add_directory(all, path, "");
    }
    add_directory(all, "/run/trigmon", "");
}

static int socket_path(const char *directory, const char *name, char *path, size_t room) {
    char file[NAME_LENGTH + 1];
    size_t length = 0;
    for (; name[length] != '\0' && length < NAME_LENGTH; length++) file[length] = name[length] == '/' ? '&' : name[length];
    file[length] = '\0';
    if (file[0] == '.') file[0] = '!';
    int needed = snprintf(path, room, "%s/%s/mq.sock", directory, file);
    return needed > 0 && (size_t)needed < room;
}

/* Finds the socket of a name; one in a directory that may not be entered counts, so that its refusal is shown. */
static int find_socket(const char *name, char *path, size_t room) {
    struct directories all;
    struct stat status;
    runtime_directories(&all);
    for (int i = 0; i < all.count; i++) {
        if (!socket_path(all.paths[i], name, path, room)) continue;
        if (stat(path, &status) == 0 ? S_ISSOCK(status.st_mode) : errno == EACCES) return 1;
    }
    return 0;
}

static int is_object_name(const char *name) {
    size_t length = strlen(name);
    return length > 0 && length <= NAME_LENGTH &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/%") == length;
}

/* Reads the name that `trigmon use` has written. */
static int chosen(char *name) {
    char path[512];
    const char *config = environment("XDG_CONFIG_HOME"), *home = environment("HOME");
    if (config == NULL && home == NULL) return 0;
    snprintf(path, sizeof path, "%s%s/trigmon/qmgr", config ? config : home, config ? "" : "/.config");
    FILE *file = fopen(path, "re");
    if (file == NULL) return 0;
    int found = fscanf(file, "%48s", name) == 1;
    fclose(file);
    return found && is_object_name(name);
}

/* Finds the only queue manager whose socket is there; returns how many there are. */
static int running(char *name) {
    struct directories all;
    char path[256];
    struct stat status;
    int count = 0;
    runtime_directories(&all);
    for (int i = 0; i < all.count; i++) {
        DIR *directory = opendir(all.paths[i]);
        if (directory == NULL) continue;
        for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
            if (entry->d_name[0] == '.' || strlen(entry->d_name) > NAME_LENGTH) continue;
            int needed = snprintf(path, sizeof path, "%s/%s/mq.sock", all.paths[i], entry->d_name);
            if (needed >= (int)sizeof path || stat(path, &status) != 0 || !S_ISSOCK(status.st_mode)) continue;
            if (count++ == 0) strcpy(name, entry->d_name);
        }
        closedir(directory);
    }
    for (char *at = name; count && *at; at++)
        if (*at == '&') *at = '/';
    if (count && name[0] == '!') name[0] = '.';
    return count;
}

/* Finds the queue manager that is meant when nobody says which: a name, or an address as it is. */
static MQLONG default_name(char *name, size_t room) {
    const char *named = environment("TRIGMON_QMGR");
    if (named == NULL) named = environment("TRIGMON_QMGR_NAME");
    if (named != NULL) {
        if (strlen(named) >= room) return MQRC_Q_MGR_NAME_ERROR;
        strcpy(name, named);
        return MQRC_NONE;
    }
    if (chosen(name)) return MQRC_NONE;
    int count = running(name);
    if (count == 0) strcpy(name, "QM1");
    return count > 1 ? MQRC_Q_MGR_NAME_ERROR : MQRC_NONE;
}

/* Returns the value of the next "key": "..." behind ``at``, in JSON of one line or many; NULL for none. */
static const char *json_text(const char *at, const char *key, char *value, size_t room) {
    char quoted[40];
    snprintf(quoted, sizeof quoted, "\"%s\"", key);
    at = strstr(at, quoted);
    if (at == NULL) return NULL;
    at += strlen(quoted);
    at += strspn(at, " \t\r\n");
    if (*at++ != ':') return NULL;
    at += strspn(at, " \t\r\n");
    if (*at++ != '"') return NULL;
    size_t length = strcspn(at, "\"\\");
    if (at[length] != '"' || length >= room) return NULL;
    memcpy(value, at, length);
    value[length] = '\0';
    return at + length;
}

/* Looks up a name in a channel table. ``*`` and a group's name mean any queue manager that the table has for it. */
static MQLONG in_channel_table(const char *url, const char *name, char *found) {
    const char *path = strncmp(url, "file://", 7) == 0 ? url + 7 : url;
    const char *wanted = name[0] == '*' ? name + 1 : name;
    char text[65536], value[NAME_LENGTH + 1];
    FILE *file = fopen(path, "re");
    if (file == NULL) return MQRC_Q_MGR_NAME_ERROR;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    int count = 0;
    for (const char *at = text; (at = json_text(at, "queueManager", value, sizeof value)) != NULL; count++) {
        if (strcmp(value, wanted) != 0) continue;
        strcpy(found, name[0] == '*' ? "" : value);
        return MQRC_NONE;
    }
    found[0] = '\0';
    return name[0] == '\0' && count > 0 ? MQRC_NONE : MQRC_Q_MGR_NAME_ERROR;
}

/* Returns the channel table that the program or its environment names. */
static const char *channel_table(const char *url, char *path, size_t room) {
    const char *directory = environment("MQCHLLIB"), *file = environment("MQCHLTAB"), *named = environment("MQCCDTURL");
    if (url != NULL && url[0] != '\0') return url;
    if (named != NULL) return named;
    if (file == NULL || strstr(file, ".json") == NULL) return NULL;
    snprintf(path, room, "%s%s%s", directory ? directory : "", directory ? "/" : "", file);
    return path;
}

static MQLONG not_there(const char *name, const MQCD *channel) {
    static const char *why = "no queue manager of this machine has this name; other machines need TLS, which is not here";
    report(name, (const uint8_t *)why, strlen(why));
    return channel != NULL || environment("MQSERVER") ? MQRC_HOST_NOT_AVAILABLE : MQRC_Q_MGR_NOT_AVAILABLE;
}

static MQLONG by_address(const char *address, char *path, size_t room) {
    static const char *why = "tls: and tcp: need more than this library has: use a queue manager of this machine";
    if (strncmp(address, "unix:", 5) != 0) {
        report(address, (const uint8_t *)why, strlen(why));
        return strncmp(address, "tls:", 4) == 0 ? MQRC_SSL_INITIALIZATION_ERROR : MQRC_Q_MGR_NAME_ERROR;
    }
    address += strncmp(address, "unix://", 7) == 0 ? 7 : 5;
    if (strlen(address) >= room) return MQRC_Q_MGR_NAME_ERROR;
    strcpy(path, address);
    return MQRC_NONE;
}

/* Finds the socket for the name that MQCONN was given, and the name that must answer there (empty: any). */
MQLONG find_address(const char *name, const MQCD *channel, const char *ccdt, char *path, size_t room, char *expected) {
    char meant[256] = "", table[1024];
    const char *url = channel == NULL && !environment("MQSERVER") ? channel_table(ccdt, table, sizeof table) : NULL;
    if (url != NULL) {
        MQLONG reason = in_channel_table(url, name, meant);
        if (reason != MQRC_NONE) return reason;
    } else if (name[0] != '*') {
        strcpy(meant, name);
    }
    if (meant[0] == '\0' && channel != NULL) {
        if (channel->Version < 1 || channel->Version > 13) return MQRC_CD_ERROR;
        name_of_field(meant, channel->QMgrName);
    }
    strncpy(expected, meant, NAME_LENGTH + 1);
    expected[NAME_LENGTH] = '\0';
    if (meant[0] == '\0') {
        MQLONG reason = default_name(meant, sizeof meant);
        if (reason != MQRC_NONE) return reason;
        if (strchr(meant, ':') != NULL) return by_address(meant, path, room);
    }
    if (!is_object_name(meant)) return MQRC_Q_MGR_NAME_ERROR;
    if (find_socket(meant, path, room)) return MQRC_NONE;
    /* A program that a monitor started has the address of its queue manager; the name that answers is looked at. */
    const char *named = environment("TRIGMON_QMGR");
    if (named != NULL && strncmp(named, "unix:", 5) == 0) return by_address(named, path, room);
    return not_there(meant, channel);
}
