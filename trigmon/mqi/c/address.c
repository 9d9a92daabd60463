/* Which socket of this machine a queue manager's name means, and which name where none is given: the rules of
   trigmon/paths.py and trigmon/client/address.py. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "address.h"

#define MOST_DIRECTORIES 4

struct directories {
    char paths[MOST_DIRECTORIES][128];
    int count;
};

static void add_directory(struct directories *all, const char *before, const char *after) {
    int length = snprintf(all->paths[all->count], sizeof all->paths[0], "%s%s", before, after);
    if (length > 0 && (size_t)length < sizeof all->paths[0]) all->count++;
}

const char *environment(const char *name) {
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
int find_socket(const char *name, char *path, size_t room) {
    struct directories all;
    struct stat status;
    runtime_directories(&all);
    for (int i = 0; i < all.count; i++) {
        if (!socket_path(all.paths[i], name, path, room)) continue;
        if (stat(path, &status) == 0 ? S_ISSOCK(status.st_mode) : errno == EACCES) return 1;
    }
    return 0;
}

int is_object_name(const char *name) {
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
MQLONG default_name(char *name, size_t room) {
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
