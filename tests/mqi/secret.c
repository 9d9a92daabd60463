/* Connects with the password that stands on standard input, wipes its own copy of it, and waits until that ends.

   secret: writes the reason of MQCONNX. A password "-" gives no MQCSP. */
#include <cmqc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char password[1024];

int main(void) {
    MQCSP csp = {{'C', 'S', 'P', ' '}, 1, MQCSP_AUTH_USER_ID_AND_PWD};
    MQCNO cno = {{'C', 'N', 'O', ' '}, 5};
    MQCHAR48 q_mgr = "";
    MQHCONN hconn;
    MQLONG comp_code, reason;
    char line[16];
    ssize_t length = read(0, password, sizeof password);
    if (length < 1) return 2;
    csp.CSPUserIdPtr = "batch";
    csp.CSPUserIdLength = 5;
    csp.CSPPasswordPtr = password;
    csp.CSPPasswordLength = (MQLONG)length;
    if (password[0] != '-') cno.SecurityParmsPtr = &csp;
    MQCONNX(q_mgr, &cno, &hconn, &comp_code, &reason);
    explicit_bzero(password, sizeof password);
    int size = snprintf(line, sizeof line, "%d\n", reason);
    if (write(1, line, (size_t)size) != size) return 3;
    while (read(0, line, sizeof line) > 0) continue;
    MQDISC(&hconn, &comp_code, &reason);
    return 0;
}
