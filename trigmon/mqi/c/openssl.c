/* Loads OpenSSL 3, once for a process: who connects through the socket of this machine never does. */
#include "openssl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Its own libcrypto comes before one that is in the program already (Node has one of another release). The sanitizers do
   without. */
#if defined(RTLD_DEEPBIND) && !defined(__SANITIZE_ADDRESS__)
#define OWN_FIRST RTLD_DEEPBIND
#else
#define OWN_FIRST 0
#endif

static struct openssl functions;
static int is_loaded;
static char missing[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int look_up(void *library, const char *name, void *function, size_t size) {
    void *found = dlsym(library, name);
    if (found == NULL) snprintf(missing, sizeof missing, "libssl.so.3 has no %s: it is too old, or no OpenSSL 3", name);
    memcpy(function, &found, size);
    return found != NULL;
}

static void load(void) {
    void *library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL | OWN_FIRST);
    if (library == NULL) {
        const char *why = dlerror();
        snprintf(missing, sizeof missing, "TLS needs OpenSSL 3 (Debian: apt install libssl3): %s", why ? why : "libssl.so.3");
        return;
    }
    is_loaded = 1;
#define X(result, name, arguments) \
    if (is_loaded) is_loaded = look_up(library, #name, &functions.name, sizeof functions.name);
    OPENSSL_FUNCTIONS(X)
#undef X
    /* It is not taken down at exit: the consumers' thread may still read. */
    if (is_loaded) functions.OPENSSL_init_ssl(INIT_NO_ATEXIT, NULL);
}

const struct openssl *load_openssl(const char **why) {
    pthread_once(&once, load);
    *why = missing;
    return is_loaded ? &functions : NULL;
}
