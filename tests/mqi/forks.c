/* Forks beside threads that use message handles all the time: each child makes one, and must not wait for ever.

   forks COUNT: writes the number of children that ended well. */
#include <cmqc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static MQHMSG made(void) {
    MQCMHO options = {{'C', 'M', 'H', 'O'}, 1, 0};
    MQHMSG hmsg;
    MQLONG comp_code, reason;
    MQCRTMH(MQHC_UNASSOCIATED_HCONN, &options, &hmsg, &comp_code, &reason);
    return comp_code == MQCC_OK ? hmsg : MQHM_UNUSABLE_HMSG;
}

static void *use(void *nothing) {
    static char value[20000];
    MQSMPO options = {{'S', 'M', 'P', 'O'}, 1, 0, MQENC_NATIVE, 1208};
    MQPD description = {{'P', 'D', ' ', ' '}, 1};
    MQCHARV name = {"name", 0, 0, 4, 1208};
    MQLONG comp_code, reason;
    MQHMSG hmsg = made();
    for (;;) MQSETMP(MQHC_UNASSOCIATED_HCONN, hmsg, &options, &name, &description, MQTYPE_BYTE_STRING, sizeof value, value, &comp_code, &reason);
    return nothing;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    int good = 0, status, count = argc > 1 ? atoi(argv[1]) : 1;
    made();
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, use, NULL);
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20); /* ends a child that waits for a thread which it does not have */
            _exit(made() == MQHM_UNUSABLE_HMSG);
        }
        if (waitpid(child, &status, 0) != child || status != 0) break;
        good++;
    }
    printf("%d\n", good);
    fflush(stdout);
    _exit(good != count);
}
