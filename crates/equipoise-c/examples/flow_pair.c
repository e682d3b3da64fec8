/* Sends a file as a flow of application data units, or receives such a flow into a file.
 *
 *   flow_pair send HOST PORT FILE
 *   flow_pair receive PORT FILE
 *
 * The program also works with the Rust example `flow_pair` of equipoise-net on the remote host. */
#define _POSIX_C_SOURCE 200809L
#include <equipoise_pair.h>

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The sender sends a data unit of 4096 bytes every 20 ms, which is 1.6 Mbit/s. */
enum { UNIT = 4096, PAUSE_NS = 20000000 };

static void check(long result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, eq_last_error_message());
        exit(1);
    }
}

static void send_file(const char *host, const char *port, FILE *file) {
    struct addrinfo hints, *found;
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_STREAM;
    int failed = getaddrinfo(host, port, &hints, &found);
    if (failed != 0) {
        fprintf(stderr, "%s: %s\n", host, gai_strerror(failed));
        exit(1);
    }
    int pair = eq_fsocket(NULL, 0);
    check(pair, "eq_fsocket");
    check(eq_dst(pair, found->ai_addr, found->ai_addrlen), "eq_dst");
    freeaddrinfo(found);

    static char unit[UNIT];
    const struct timespec pause = {0, PAUSE_NS};
    size_t length;
    while ((length = fread(unit, 1, sizeof unit, file)) > 0) {
        check(eq_send(pair, unit, length, 0, 1), "eq_send");
        nanosleep(&pause, NULL);
    }
    check(eq_close(pair), "eq_close");
}

static void receive_file(const char *port, FILE *file) {
    struct sockaddr_in6 local;
    memset(&local, 0, sizeof local);
    local.sin6_family = AF_INET6;
    local.sin6_addr = in6addr_any;
    local.sin6_port = htons((in_port_t)atoi(port));
    int pair = eq_fsocket((struct sockaddr *)&local, sizeof local);
    check(pair, "eq_fsocket");

    static char unit[EQ_ADU_MAX];
    ssize_t length;
    while ((length = eq_recv(pair, unit, sizeof unit, 0)) >= 0) {
        if (fwrite(unit, 1, (size_t)length, file) != (size_t)length) {
            perror("fwrite");
            exit(1);
        }
    }
    if (length != EQ_END) {
        check(length, "eq_recv");
    }
    check(eq_close(pair), "eq_close");
}

int main(int count, char **words) {
    int sends = count == 5 && strcmp(words[1], "send") == 0;
    int receives = count == 4 && strcmp(words[1], "receive") == 0;
    if (!sends && !receives) {
        fprintf(stderr, "usage: flow_pair send HOST PORT FILE | flow_pair receive PORT FILE\n");
        return 2;
    }
    FILE *file = fopen(words[count - 1], sends ? "rb" : "wb");
    if (file == NULL) {
        perror(words[count - 1]);
        return 1;
    }
    if (sends) {
        send_file(words[2], words[3], file);
    } else {
        receive_file(words[2], file);
    }
    return fclose(file) == 0 ? 0 : 1;
}
