/* Tests of media sessions whose sender and receiver are in one process: data arrives, descriptors signal events, and
 * every blocked call can be ended. */
#define _POSIX_C_SOURCE 200809L
#include <equipoise.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "check.h"

static eq_receiver *receiver_at(char address[32]) {
    struct eq_receiver_options options = {.struct_size = sizeof options, .key = KEY};
    eq_receiver *receiver;
    CHECK_CODE(EQ_OK, eq_receiver_open("127.0.0.1:0", &options, &receiver));
    snprintf(address, 32, "127.0.0.1:%d", eq_receiver_port(receiver));
    return receiver;
}

static eq_sender *sender_to(const char *address, int32_t payload, const char *rate) {
    const char *const parameters[] = {rate};
    struct eq_sender_options options = {.struct_size = sizeof options, .key = KEY, .payload = payload, .controller = "cbr",
                                        .parameters = parameters, .parameter_count = 1, .ssrc = 0x01020304,
                                        .report_interval_ns = 100000000, .patience_ns = 60000000000};
    eq_sender *sender;
    CHECK_CODE(EQ_OK, eq_sender_open(address, &options, &sender));
    return sender;
}

static int is_readable(int descriptor, int timeout_ms) {
    struct pollfd polled = {.fd = descriptor, .events = POLLIN};
    return poll(&polled, 1, timeout_ms) == 1;
}

/* Waits until one of the events in `event` occurs; other events may occur before. */
static void wait_for(eq_sender *sender, uint32_t event) {
    for (int tries = 0; tries < 100; tries++) {
        CHECK(is_readable(eq_sender_fd(sender), 10000));
        if (eq_sender_events(sender) & event) return;
    }
    CHECK(!"the event never came");
}

static void a_stream_comes_out_as_it_went_in_and_ends(void) {
    enum { LENGTH = 400000 };
    static unsigned char sent[LENGTH], got[LENGTH];
    char address[32];
    eq_receiver *receiver = receiver_at(address);
    eq_session *session;
    CHECK(!is_readable(eq_receiver_fd(receiver), 0));
    CHECK_CODE(EQ_AGAIN, eq_receiver_accept(receiver, 0, &session));
    CHECK(session == NULL);
    eq_sender *sender = sender_to(address, EQ_PAYLOAD_STREAM, "rate=20 Mbit/s");
    CHECK(is_readable(eq_receiver_fd(receiver), 5000));
    CHECK_CODE(EQ_OK, eq_receiver_accept(receiver, 0, &session));
    CHECK(!is_readable(eq_session_fd(session), 0) && strncmp(eq_session_peer(session), "127.0.0.1:", 10) == 0);

    for (size_t at = 0; at < LENGTH; at++) sent[at] = (unsigned char)(at * 31 % 251);
    CHECK_CODE(EQ_E_LENGTH, eq_sender_write(sender, sent, EQ_PAYLOAD_MAX + 1, -1));
    CHECK_CODE(EQ_OK, eq_sender_write(sender, sent, LENGTH / 2, 5000));
    CHECK_CODE(EQ_OK, eq_sender_write(sender, sent + LENGTH / 2, LENGTH / 2, 5000));
    size_t count = 0;
    while (count < LENGTH) {
        size_t length = 0;
        struct eq_received received = {.struct_size = sizeof received};
        CHECK(is_readable(eq_session_fd(session), 5000));
        CHECK_CODE(EQ_E_BUFFER, eq_session_read(session, got + count, 1, &length, NULL, 0));
        CHECK_CODE(EQ_OK, eq_session_read(session, got + count, LENGTH - count, &length, &received, 0));
        CHECK(received.missing == 0 && received.at_unix_ns > 1600000000LL * 1000000000);
        count += length;
    }
    CHECK(memcmp(sent, got, LENGTH) == 0);
    wait_for(sender, EQ_EVENT_REPORT);
    struct eq_sender_status status = {.struct_size = sizeof status};
    CHECK_CODE(EQ_OK, eq_sender_get_status(sender, &status));
    CHECK(status.reports > 0 && status.rate_bps == 20000000 && status.lost == 0 && status.round_trip_s > 0 && !status.is_over);
    CHECK(strcmp(status.why, "fixed") == 0);
    CHECK(status.media_rate_bps < status.rate_bps && status.media_rate_bps == eq_sender_media_rate_bps(sender));

    struct eq_sender_summary summary = {.struct_size = sizeof summary};
    CHECK_CODE(EQ_OK, eq_sender_close(sender, 5000, &summary));
    CHECK(summary.packets > LENGTH / 1200 && summary.bytes > LENGTH && summary.lost == 0 && !summary.ended_by_peer);
    size_t length;
    CHECK_CODE(EQ_END, eq_session_read(session, got, sizeof got, &length, NULL, 5000));
    CHECK(is_readable(eq_session_fd(session), 0)); /* the descriptor stays readable after the end of the session */
    struct eq_session_status end = {.struct_size = sizeof end};
    CHECK_CODE(EQ_OK, eq_session_get_status(session, &end));
    CHECK(end.end == EQ_GOODBYE && end.packets == summary.packets && end.missing == 0 && end.ssrc == 0x01020304);
    eq_session_close(session);
    CHECK_CODE(EQ_OK, eq_receiver_close(receiver));
}

static void rtp_packets_come_out_as_they_were(void) {
    char address[32];
    eq_receiver *receiver = receiver_at(address);
    eq_sender *sender = sender_to(address, EQ_PAYLOAD_RTP, "rate=20 Mbit/s");
    eq_session *session;
    CHECK_CODE(EQ_OK, eq_receiver_accept(receiver, 5000, &session));
    for (unsigned char number = 1; number <= 3; number++) {
        const unsigned char packet[] = {0x80, 96, 0, number, 0, 0, 0, 9, 1, 2, 3, 4, 'f', 'r', 'a', 'm', 'e', number};
        unsigned char got[64];
        size_t length = 0;
        CHECK_CODE(EQ_OK, eq_sender_write(sender, packet, sizeof packet, 0));
        CHECK_CODE(EQ_OK, eq_session_read(session, got, sizeof got, &length, NULL, 5000));
        CHECK(length == sizeof packet && memcmp(got, packet, length) == 0);
    }
    /* A decoder's request for a key frame reaches the encoder. */
    CHECK_CODE(EQ_OK, eq_session_request_key_frame(session));
    wait_for(sender, EQ_EVENT_KEY_FRAME);
    /* The receiver ends the session first, and the sender is notified. */
    eq_session_close(session);
    CHECK_CODE(EQ_OK, eq_receiver_close(receiver));
    wait_for(sender, EQ_EVENT_END);
    CHECK(is_readable(eq_sender_fd(sender), 0) && (eq_sender_events(sender) & EQ_EVENT_END));
    CHECK_CODE(EQ_END, eq_sender_write(sender, "late", 4, 0));
    struct eq_sender_summary summary = {.struct_size = sizeof summary};
    CHECK_CODE(EQ_OK, eq_sender_close(sender, 5000, &summary));
    CHECK(summary.ended_by_peer);
}

/* If this test fails, a program with a live encoder blocks on the network, or is never notified that it can write again. */
static void where_there_is_no_room_the_descriptor_tells_when_there_is(void) {
    static const unsigned char frame[100000];
    char address[32];
    eq_receiver *receiver = receiver_at(address);
    eq_sender *sender = sender_to(address, EQ_PAYLOAD_STREAM, "rate=5 Mbit/s");
    int written = 0;
    eq_error result;
    while ((result = eq_sender_write(sender, frame, sizeof frame, 0)) == EQ_OK) CHECK(written++ < 20);
    CHECK_CODE(EQ_AGAIN, result);
    CHECK(SAYS("leave out a frame"));
    wait_for(sender, EQ_EVENT_ROOM);
    CHECK_CODE(EQ_OK, eq_sender_write(sender, frame, sizeof frame, 0));
    CHECK_CODE(EQ_AGAIN, eq_sender_close(sender, 0, NULL));
    CHECK_CODE(EQ_OK, eq_receiver_close(receiver));
}

struct wait {
    eq_receiver *receiver;
    eq_session *session;
    eq_sender *sender;
};

static void *waits(void *argument) {
    struct wait *wait = argument;
    static unsigned char buffer[EQ_PAYLOAD_MAX];
    size_t length;
    eq_session *session = NULL;
    if (wait->receiver != NULL) CHECK_CODE(EQ_END, eq_receiver_accept(wait->receiver, -1, &session));
    if (wait->session != NULL) CHECK_CODE(EQ_END, eq_session_read(wait->session, buffer, sizeof buffer, &length, NULL, -1));
    eq_error result = EQ_END;
    while (wait->sender != NULL && (result = eq_sender_write(wait->sender, buffer, sizeof buffer, -1)) == EQ_OK) {}
    CHECK_CODE(EQ_END, result);
    return NULL;
}

/* If this test fails, a program cannot end while one of its threads waits. */
static void whoever_waits_is_ended_from_another_thread(void) {
    char address[32];
    const struct timespec moment = {0, 30000000};
    eq_receiver *receiver = receiver_at(address);
    eq_sender *sender = sender_to(address, EQ_PAYLOAD_STREAM, "rate=20 Mbit/s");
    eq_session *session;
    CHECK_CODE(EQ_OK, eq_receiver_accept(receiver, 5000, &session));
    struct wait all[] = {{.receiver = receiver}, {.session = session}, {.sender = sender}};
    pthread_t threads[3];
    for (int at = 0; at < 3; at++) CHECK(pthread_create(&threads[at], NULL, waits, &all[at]) == 0);
    nanosleep(&moment, NULL);
    CHECK_CODE(EQ_OK, eq_receiver_stop(receiver));
    CHECK_CODE(EQ_OK, eq_session_stop(session));
    CHECK_CODE(EQ_OK, eq_sender_stop(sender));
    for (int at = 0; at < 3; at++) CHECK(pthread_join(threads[at], NULL) == 0);
    CHECK_CODE(EQ_AGAIN, eq_sender_close(sender, -1, NULL));
    eq_session_close(session);
    CHECK_CODE(EQ_OK, eq_receiver_close(receiver));
}

static void what_is_wrong_is_named(void) {
    char address[32];
    eq_receiver *receiver = receiver_at(address), *second;
    eq_sender *sender;
    struct eq_receiver_options at = {.struct_size = sizeof at, .key = KEY};
    struct eq_sender_options to = {.struct_size = sizeof to, .patience_ns = 200000000};
    CHECK_CODE(EQ_E_SYSTEM, eq_receiver_open(address, &at, &second));
    CHECK(SAYS("in use") && second == NULL);
    CHECK_CODE(EQ_E_KEY, eq_receiver_open("127.0.0.1:0", NULL, &second));
    CHECK_CODE(EQ_E_KEY, eq_sender_open(address, &to, &sender));
    CHECK(SAYS("keygen"));
    to.key = "a word";
    CHECK_CODE(EQ_E_KEY, eq_sender_open(address, &to, &sender));
    to.key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    CHECK_CODE(EQ_E_PEER, eq_sender_open(address, &to, &sender));
    CHECK(SAYS("its key is another one"));
    to.key = KEY;
    CHECK_CODE(EQ_E_ARGUMENT, eq_sender_open("no port", &to, &sender));
    CHECK(SAYS("host:port"));
    to.controller = "ap";
    CHECK_CODE(EQ_E_VALUE, eq_sender_open(address, &to, &sender));
    to.controller = "none";
    CHECK_CODE(EQ_E_NAME, eq_sender_open(address, &to, &sender));
    to.controller = NULL, to.insecure = 1;
    CHECK_CODE(EQ_E_KEY, eq_sender_open(address, &to, &sender));
    to.insecure = 0, to.payload = 7;
    CHECK_CODE(EQ_E_ARGUMENT, eq_sender_open(address, &to, &sender));
    to.payload = 0, to.packet_size = 10;
    CHECK_CODE(EQ_E_VALUE, eq_sender_open(address, &to, &sender));
    CHECK(sender == NULL);
    CHECK_CODE(EQ_OK, eq_receiver_close(receiver));
}

static void null_is_never_followed(void) {
    size_t length;
    CHECK_CODE(EQ_E_ARGUMENT, eq_sender_open(NULL, NULL, NULL));
    CHECK_CODE(EQ_E_HANDLE, eq_sender_write(NULL, "x", 1, 0));
    CHECK_CODE(EQ_E_HANDLE, eq_sender_get_status(NULL, NULL));
    CHECK_CODE(EQ_E_HANDLE, eq_sender_stop(NULL));
    CHECK_CODE(EQ_OK, eq_sender_close(NULL, 0, NULL));
    CHECK(eq_sender_fd(NULL) == -1 && eq_sender_events(NULL) == 0 && eq_sender_media_rate_bps(NULL) == 0);
    CHECK_CODE(EQ_E_ARGUMENT, eq_receiver_open(NULL, NULL, NULL));
    CHECK_CODE(EQ_E_ARGUMENT, eq_receiver_accept(NULL, 0, NULL));
    CHECK_CODE(EQ_E_HANDLE, eq_receiver_stop(NULL));
    CHECK_CODE(EQ_OK, eq_receiver_close(NULL));
    CHECK(eq_receiver_fd(NULL) == -1 && eq_receiver_port(NULL) == 0);
    CHECK_CODE(EQ_E_HANDLE, eq_session_read(NULL, NULL, 0, &length, NULL, 0));
    CHECK_CODE(EQ_E_HANDLE, eq_session_get_status(NULL, NULL));
    CHECK_CODE(EQ_E_HANDLE, eq_session_request_key_frame(NULL));
    CHECK_CODE(EQ_E_HANDLE, eq_session_stop(NULL));
    CHECK(eq_session_fd(NULL) == -1 && strcmp(eq_session_peer(NULL), "") == 0);
    eq_session_close(NULL);
}

int main(void) {
    a_stream_comes_out_as_it_went_in_and_ends();
    rtp_packets_come_out_as_they_were();
    where_there_is_no_room_the_descriptor_tells_when_there_is();
    whoever_waits_is_ended_from_another_thread();
    what_is_wrong_is_named();
    null_is_never_followed();
    printf("media: all is as it should be\n");
    return 0;
}
