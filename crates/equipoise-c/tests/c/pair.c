/* Tests of flow pairs in one process: a handle sends and receives, and every blocked call can be ended. */
#define _POSIX_C_SOURCE 200809L
#include <equipoise_pair.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "check.h"

static struct sockaddr_in local(uint16_t port) {
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
}

static int open_pair(void) {
    struct sockaddr_in address = local(0);
    int pair = eq_fsocket((struct sockaddr *)&address, sizeof address);
    CHECK(pair >= 0 && eq_port(pair) > 0);
    return pair;
}

static void connect_pair(int pair, uint16_t port) {
    struct sockaddr_in address = local(port);
    CHECK_CODE(EQ_OK, eq_dst(pair, (struct sockaddr *)&address, sizeof address));
}

static int is_readable(int pair, int timeout_ms) {
    struct pollfd polled = {.fd = eq_fd(pair), .events = POLLIN};
    return poll(&polled, 1, timeout_ms) == 1;
}

/* If this test fails, two programs that exchange data need two handles and two ports each. */
static void one_handle_sends_and_receives(void) {
    int one = open_pair(), other = open_pair();
    static unsigned char unit[5000], got[EQ_ADU_MAX];
    CHECK_CODE(EQ_AGAIN, eq_recv(one, got, sizeof got, EQ_DONTWAIT));
    CHECK_CODE(EQ_OK, eq_set(one, "running=5 s"));
    connect_pair(one, eq_port(other));
    CHECK_CODE(EQ_E_STATE, eq_set(one, "running=5 s"));
    CHECK(eq_send(one, "half and ", 9, 0, 0) == 9 && eq_send(one, "half", 4, 0, 1) == 4);
    CHECK(eq_recv(other, got, sizeof got, 0) == 13 && memcmp(got, "half and half", 13) == 0);
    connect_pair(other, eq_port(one));
    for (size_t at = 0; at < sizeof unit; at++) unit[at] = (unsigned char)at;
    CHECK(eq_send(other, unit, sizeof unit, 0, 1) == sizeof unit && eq_send(other, NULL, 0, 0, 1) == 0);
    CHECK(is_readable(one, 5000));
    CHECK_CODE(EQ_E_BUFFER, eq_recv(one, got, sizeof unit - 1, 0));
    CHECK(eq_recv(one, got, sizeof got, EQ_DONTWAIT) == sizeof unit && memcmp(got, unit, sizeof unit) == 0);
    CHECK(eq_recv(one, got, sizeof got, 0) == 0); /* the empty data unit */
    struct eq_pair_status status = {.struct_size = sizeof status};
    CHECK_CODE(EQ_OK, eq_pair_get_status(other, &status));
    CHECK(!status.is_running && !status.ended_by_peer && status.window_bytes > 0);
    /* eq_recv returns EQ_END after the remote handle was closed. */
    CHECK_CODE(EQ_OK, eq_close(other));
    CHECK_CODE(EQ_END, eq_recv(one, got, sizeof got, 0));
    CHECK(is_readable(one, 0));
    eq_close(one);
    CHECK_CODE(EQ_E_HANDLE, eq_close(one));
}

static void *receives(void *pair) {
    static unsigned char unit[EQ_ADU_MAX];
    CHECK_CODE(EQ_END, eq_recv(*(int *)pair, unit, sizeof unit, 0));
    return NULL;
}

static void *sends(void *pair) {
    static unsigned char unit[EQ_ADU_MAX];
    ssize_t sent;
    while ((sent = eq_send(*(int *)pair, unit, sizeof unit, 0, 1)) == sizeof unit) {}
    CHECK_CODE(EQ_END, sent);
    return NULL;
}

/* If this test fails, closing a handle while another thread waits on it hangs the program. */
static void whoever_waits_is_ended_by_shutting_down_and_by_closing(void) {
    const struct timespec moment = {0, 50000000};
    for (int by_close = 0; by_close < 2; by_close++) {
        int deaf = open_pair(), pair = open_pair();
        pthread_t receiver, sender;
        connect_pair(pair, eq_port(deaf)); /* `deaf` never reads */
        CHECK(pthread_create(&receiver, NULL, receives, &pair) == 0);
        CHECK(pthread_create(&sender, NULL, sends, &pair) == 0);
        nanosleep(&moment, NULL);
        if (by_close) CHECK_CODE(EQ_OK, eq_close(deaf)); /* this ends the flow, so eq_close(pair) does not wait */
        int number = pair;
        if (by_close) eq_close(number); else CHECK_CODE(EQ_OK, eq_shutdown(number));
        CHECK(pthread_join(receiver, NULL) == 0 && pthread_join(sender, NULL) == 0);
        if (!by_close) {
            CHECK_CODE(EQ_END, eq_send(number, "x", 1, 0, 1));
            CHECK_CODE(EQ_OK, eq_close(number));
            CHECK_CODE(EQ_OK, eq_close(deaf));
        }
    }
}

static void what_is_wrong_with_a_call_is_a_code_and_a_sentence(void) {
    struct sockaddr_in address = local(1), strange = address;
    strange.sin_family = AF_UNIX;
    int pair = eq_fsocket(NULL, 0);
    CHECK(pair >= 0 && eq_port(pair) == 0);
    CHECK_CODE(EQ_E_ARGUMENT, eq_fsocket((struct sockaddr *)&strange, sizeof strange));
    CHECK(SAYS("family 1"));
    CHECK_CODE(EQ_E_ARGUMENT, eq_dst(pair, NULL, 16));
    CHECK_CODE(EQ_E_ARGUMENT, eq_dst(pair, (struct sockaddr *)&address, 15));
    CHECK_CODE(EQ_E_PEER, eq_dst(pair, (struct sockaddr *)&address, sizeof address));
    CHECK_CODE(EQ_E_STATE, eq_send(pair, "x", 1, 0, 1));
    CHECK(SAYS("eq_dst"));
    CHECK_CODE(EQ_E_STATE, eq_recv(pair, NULL, 0, 0));
    CHECK_CODE(EQ_E_STATE, eq_fd(pair));
    CHECK_CODE(EQ_E_ARGUMENT, eq_send(pair, NULL, 1, 0, 1));
    CHECK_CODE(EQ_E_ARGUMENT, eq_send(pair, NULL, 0, 1, 1));
    CHECK_CODE(EQ_E_ARGUMENT, eq_recv(pair, NULL, 1, 0));
    CHECK_CODE(EQ_E_ARGUMENT, eq_recv(pair, NULL, 0, 2));
    CHECK_CODE(EQ_E_LENGTH, eq_send(pair, &address, EQ_ADU_MAX + 1, 0, 1));
    CHECK_CODE(EQ_E_NAME, eq_set(pair, "walking=1 s"));
    CHECK(SAYS("running"));
    CHECK_CODE(EQ_E_VALUE, eq_set(pair, "running=1"));
    CHECK(SAYS("1 s"));
    CHECK_CODE(EQ_E_VALUE, eq_set(pair, "running=-1 s"));
    CHECK_CODE(EQ_E_VALUE, eq_set(pair, "reduction_factor=NaN"));
    CHECK_CODE(EQ_E_ARGUMENT, eq_set(pair, "running"));
    CHECK_CODE(EQ_E_ARGUMENT, eq_set(pair, NULL));
    CHECK_CODE(EQ_OK, eq_close(pair));
    CHECK_CODE(EQ_E_HANDLE, eq_send(pair, "x", 1, 0, 1));
    CHECK_CODE(EQ_E_HANDLE, eq_recv(-1, NULL, 0, 0));
    CHECK_CODE(EQ_E_HANDLE, eq_shutdown(12345));
}

int main(void) {
    one_handle_sends_and_receives();
    whoever_waits_is_ended_by_shutting_down_and_by_closing();
    what_is_wrong_with_a_call_is_a_code_and_a_sentence();
    printf("pair: all is as it should be\n");
    return 0;
}
