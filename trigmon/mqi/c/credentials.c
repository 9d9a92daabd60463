/* Users and passwords: of the program's MQCSP, or of the file that an address names. They are sent by TLS alone, to a
   server that has proved its name, and wiped behind that. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "address.h"

/* Copies a text of an MQCSP as a string. Returns 0 for a length that is none. */
static int copy(char *to, const void *base, const void *pointer, MQLONG offset, MQLONG length) {
    const char *from = pointer != NULL ? pointer : offset != 0 ? (const char *)base + offset : NULL;
    if (length < 0 || length > LONGEST_PASSWORD || (from == NULL && length > 0)) return 0;
    if (length > 0) memcpy(to, from, (size_t)length);
    to[length] = '\0';
    return 1;
}

/* Reads the user and the password of the connect options; empty where they have none. */
MQLONG read_csp(const MQCNO *options, const void *given, struct credentials *credentials) {
    const MQCSP *csp = options->SecurityParmsPtr;
    if (csp == NULL && options->SecurityParmsOffset != 0) csp = (const MQCSP *)((const char *)given + options->SecurityParmsOffset);
    credentials->user[0] = credentials->password[0] = '\0';
    if (csp == NULL) return MQRC_NONE;
    if (!is_struct(csp, "CSP ", 3)) return MQRC_CSP_ERROR;
    if (csp->AuthenticationType != MQCSP_AUTH_USER_ID_AND_PWD) return MQRC_NONE;
    int is_user = copy(credentials->user, csp, csp->CSPUserIdPtr, csp->CSPUserIdOffset, csp->CSPUserIdLength);
    int is_password = copy(credentials->password, csp, csp->CSPPasswordPtr, csp->CSPPasswordOffset, csp->CSPPasswordLength);
    return is_user && is_password ? MQRC_NONE : MQRC_CSP_ERROR;
}

static MQLONG refuse(const char *path, const char *why) {
    report(path, (const uint8_t *)why, strlen(why));
    return MQRC_SSL_INITIALIZATION_ERROR;
}

/* Reads the password that an address names: a file that its owner alone may read, or a credential of systemd. */
MQLONG read_password(const struct place *place, struct credentials *credentials) {
    char path[2 * FILE_ROOM];
    struct stat status;
    const char *directory = environment("CREDENTIALS_DIRECTORY"), *name = place->credential;
    if (place->user[0] == '\0') return MQRC_NONE;
    if (name[0] != '\0' && (directory == NULL || name[0] == '.' || strchr(name, '/') != NULL))
        return refuse(name, "there is no such credential in CREDENTIALS_DIRECTORY");
    snprintf(path, sizeof path, "%s%s%s", name[0] ? directory : "", name[0] ? "/" : "", name[0] ? name : place->password_file);
    FILE *file = fopen(path, "re");
    if (file == NULL) return refuse(path, "this password cannot be read");
    char buffer[LONGEST_PASSWORD + 2] = "";
    setvbuf(file, NULL, _IONBF, 0); /* no copy that nobody wipes */
    int is_private = fstat(fileno(file), &status) == 0 && ((status.st_mode & 077) == 0 || directory != NULL);
    size_t length = is_private ? fread(buffer, 1, sizeof buffer, file) : 0;
    fclose(file);
    while (length > 0 && buffer[length - 1] == '\n') length--;
    int fits = length <= LONGEST_PASSWORD && memchr(buffer, '\0', length) == NULL;
    if (is_private && fits) {
        strcpy(credentials->user, place->user);
        memcpy(credentials->password, buffer, length);
        credentials->password[length] = '\0';
    }
    explicit_bzero(buffer, sizeof buffer);
    if (!is_private) return refuse(path, "others may read this password: chmod 600");
    return fits ? MQRC_NONE : refuse(path, "this is longer than a password may be");
}
