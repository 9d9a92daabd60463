/* A TCP socket that notices when the other host falls silent: as trigmon/client/transport.py opens one. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "callback.h"

#define CONNECT_MS 10000
#define SILENCE_MS 60000u

static void set(int link, int level, int option, int value) {
    setsockopt(link, level, option, &value, sizeof value);
}

static void keep_alive(int link) {
    set(link, IPPROTO_TCP, TCP_NODELAY, 1);
    set(link, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(link, IPPROTO_TCP, TCP_KEEPIDLE, 30);
    set(link, IPPROTO_TCP, TCP_KEEPINTVL, 10);
    set(link, IPPROTO_TCP, TCP_KEEPCNT, 3);
    unsigned silence = SILENCE_MS;
    setsockopt(link, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence, sizeof silence);
}

/* Waits for the end of a connect. Returns 0 with errno. */
static int is_connected_in_time(int link, int64_t until_ms) {
    for (;;) {
        struct pollfd one = {link, POLLOUT, 0};
        int64_t left_ms = until_ms - monotonic_ms();
        int count = poll(&one, 1, left_ms > 0 ? (int)left_ms : 0);
        if (count < 0 && errno == EINTR) continue;
        if (count == 0) errno = ETIMEDOUT;
        if (count <= 0) return 0;
        int error = 0;
        socklen_t length = sizeof error;
        getsockopt(link, SOL_SOCKET, SO_ERROR, &error, &length);
        errno = error;
        return error == 0;
    }
}

static int connect_to(const struct addrinfo *address, int64_t until_ms) {
    int link = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->ai_protocol);
    if (link < 0) return -1;
    int done = connect(link, address->ai_addr, address->ai_addrlen) == 0;
    if (!done && errno == EINPROGRESS) done = is_connected_in_time(link, until_ms);
    if (!done) {
        int error = errno;
        close(link);
        errno = error;
        return -1;
    }
    fcntl(link, F_SETFL, fcntl(link, F_GETFL) & ~O_NONBLOCK);
    keep_alive(link);
    return link;
}

/* Returns a connected socket, or -1; each address of the host is tried. */
int connect_tcp(const struct place *place) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int error = getaddrinfo(place->host, place->port, &hints, &found), link = -1;
    const char *why = error ? gai_strerror(error) : NULL;
    int64_t until_ms = monotonic_ms() + CONNECT_MS;
    for (struct addrinfo *each = found; each != NULL && link < 0; each = each->ai_next) link = connect_to(each, until_ms);
    if (link < 0 && why == NULL) why = strerror(errno);
    if (link < 0) report(place->host, (const uint8_t *)why, strlen(why));
    if (found != NULL) freeaddrinfo(found);
    return link;
}
