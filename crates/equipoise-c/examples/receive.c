/* Receives one media session into a file, in an event loop. The sender is `equipoise send --file`, encoder.c or a
 * program that uses the Rust library.
 *
 *   EQUIPOISE_KEY=... receive HOST:PORT FILE
 *
 * Build it with $(pkg-config --cflags --libs equipoise). */
#include <equipoise.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, eq_last_error_message());
    return 1;
}

int main(int count, char **words) {
    struct eq_receiver_options options = {.struct_size = sizeof options, .key = getenv("EQUIPOISE_KEY")};
    struct eq_session_status status = {.struct_size = sizeof status};
    eq_receiver *receiver;
    eq_session *session = NULL;
    if (count != 3) return fprintf(stderr, "usage: receive HOST:PORT FILE\n"), 2;
    FILE *file = fopen(words[2], "wb");
    if (file == NULL) return perror(words[2]), 1;
    if (eq_receiver_open(words[1], &options, &receiver) != EQ_OK) return failed(words[1]);
    printf("receiving at port %d\n", eq_receiver_port(receiver));
    fflush(stdout);

    static unsigned char payload[EQ_PAYLOAD_MAX];
    eq_error result = EQ_AGAIN;
    while (result != EQ_END) {
        struct pollfd polled = {.fd = session ? eq_session_fd(session) : eq_receiver_fd(receiver), .events = POLLIN};
        if (poll(&polled, 1, -1) < 0) return perror("poll"), 1;
        if (session == NULL) {
            result = eq_receiver_accept(receiver, 0, &session);
        } else {
            size_t length = 0;
            result = eq_session_read(session, payload, sizeof payload, &length, NULL, 0);
            if (result == EQ_OK && fwrite(payload, 1, length, file) != length) return perror(words[2]), 1;
        }
        if (result != EQ_OK && result != EQ_AGAIN && result != EQ_END) return failed("receive");
    }
    if (session != NULL) {
        eq_session_get_status(session, &status);
        printf("%s: %llu packets, %llu missing\n", eq_session_peer(session), (unsigned long long)status.packets,
               (unsigned long long)status.missing);
        eq_session_close(session);
    }
    if (eq_receiver_close(receiver) != EQ_OK) return failed("close");
    return fclose(file) == 0 ? 0 : 1;
}
