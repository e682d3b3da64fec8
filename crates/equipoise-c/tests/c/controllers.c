/* Tests of controllers and the pacer: the catalogue, each kind of feedback, NULL for every argument, and malformed
 * input. */
#include <equipoise.h>

#include "check.h"

static const int64_t MS = 1000000;

/* RFC 8888 feedback (Sec. 3.1) on packets 0 to 2 of SSRC 7. Packet 1 is missing, and the report timestamp is 1 s. */
static const uint8_t RFC8888[] = {0x8b, 205, 0, 6, 0, 0, 0, 9, 0, 0, 0, 7, 0, 0, 0, 3,
                                  0xa0, 0x0a, 0, 0, 0x80, 0x05, 0, 0, 0, 1, 0, 0};
/* Transport-wide feedback on packets 0 to 2. Packet 1 is missing, the reference time is 64 ms, and each arrival delta
 * is 1 ms. */
static const uint8_t TWCC[] = {0x8f, 205, 0, 5, 0, 0, 0, 9, 0, 0, 0, 7, 0, 0, 0, 3,
                               0, 0, 1, 0, 0xa8, 0, 4, 4};

static void the_version_is_that_of_the_header(void) {
    CHECK(strcmp(eq_version(), EQ_VERSION) == 0);
}

/* If this test fails, a program cannot list the controllers. */
static void the_catalogue_lists_every_controller_and_each_can_be_made(void) {
    CHECK(eq_controller_count() >= 10);
    CHECK(eq_controller_name(eq_controller_count()) == NULL && eq_controller_summary(99) == NULL);
    size_t made = 0;
    for (size_t index = 0; index < eq_controller_count(); index++) {
        const char *required[4];
        char texts[4][64];
        size_t count = 0;
        CHECK(strlen(eq_controller_summary(index)) > 10);
        for (size_t number = 0; number < eq_controller_parameter_count(index); number++) {
            struct eq_parameter parameter = {.struct_size = sizeof parameter};
            CHECK_CODE(EQ_OK, eq_controller_parameter(index, number, &parameter));
            CHECK(strlen(parameter.name) > 0 && strlen(parameter.meaning) > 0 && strlen(parameter.kind) > 0);
            if (parameter.standard == NULL) {
                int is_rate = strcmp(parameter.kind, "rate") == 0;
                snprintf(texts[count], sizeof texts[count], "%s=%s", parameter.name, is_rate ? "1 Mbit/s" : "10 ms");
                required[count] = texts[count];
                count++;
            }
        }
        struct eq_parameter beyond = {.struct_size = sizeof beyond};
        CHECK_CODE(EQ_END, eq_controller_parameter(index, eq_controller_parameter_count(index), &beyond));
        eq_controller *controller;
        eq_error result = eq_controller_new(eq_controller_name(index), required, count, NULL, 0, &controller);
        if (result == EQ_OK) {
            CHECK(eq_controller_rate_bps(controller) > 0 && eq_controller_next_departure_ns(controller, 5) == 5);
            made++;
        } else { /* the controller needs more than per-packet feedback */
            CHECK(result == EQ_E_VALUE && controller == NULL);
        }
        eq_controller_free(controller);
    }
    CHECK(made >= 10);
}

static void what_is_wrong_is_named_with_what_would_be_right(void) {
    eq_controller *controller;
    const char *unknown = "goal=8 ms", *unit = "target=8", *shape = "target";
    CHECK_CODE(EQ_E_NAME, eq_controller_new("app", NULL, 0, NULL, 0, &controller));
    CHECK(SAYS("`app`") && SAYS("equipoise") && controller == NULL);
    CHECK_CODE(EQ_E_NAME, eq_controller_new("ap", &unknown, 1, NULL, 0, &controller));
    CHECK(SAYS("goal") && SAYS("target"));
    CHECK_CODE(EQ_E_VALUE, eq_controller_new("ap", &unit, 1, NULL, 0, &controller));
    CHECK(SAYS("unit"));
    CHECK_CODE(EQ_E_VALUE, eq_controller_new("ap", NULL, 0, NULL, 0, &controller));
    CHECK(SAYS("needs `target`"));
    CHECK_CODE(EQ_E_ARGUMENT, eq_controller_new("ap", &shape, 1, NULL, 0, &controller));
    CHECK(SAYS("name=value"));
    CHECK_CODE(EQ_E_ARGUMENT, eq_controller_new("\xff", NULL, 0, NULL, 0, &controller));
    struct eq_controller_options options = {.struct_size = sizeof options, .feedback = 9};
    CHECK_CODE(EQ_E_ARGUMENT, eq_controller_new("equipoise", NULL, 0, &options, 0, &controller));
    struct eq_controller_options unset = {.struct_size = 0};
    CHECK_CODE(EQ_E_ARGUMENT, eq_controller_new("equipoise", NULL, 0, &unset, 0, &controller));
    CHECK(SAYS("sizeof(eq_controller_options)"));
}

/* If this test fails, a call with NULL crashes instead of returning an error. */
static void null_is_never_followed(void) {
    CHECK_CODE(EQ_E_ARGUMENT, eq_controller_new("equipoise", NULL, 0, NULL, 0, NULL));
    eq_controller *controller;
    CHECK_CODE(EQ_E_ARGUMENT, eq_controller_new(NULL, NULL, 0, NULL, 0, &controller));
    CHECK_CODE(EQ_E_ARGUMENT, eq_controller_new("equipoise", NULL, 1, NULL, 0, &controller));
    const char *nothing = NULL;
    CHECK_CODE(EQ_E_ARGUMENT, eq_controller_new("equipoise", &nothing, 1, NULL, 0, &controller));
    eq_controller_free(NULL);
    CHECK_CODE(EQ_E_HANDLE, eq_controller_sent(NULL, 0, 0, 0, 100));
    CHECK_CODE(EQ_E_HANDLE, eq_controller_frame(NULL, 0, 0, 0, 0));
    CHECK_CODE(EQ_E_HANDLE, eq_controller_idle(NULL, 0));
    CHECK_CODE(EQ_E_HANDLE, eq_controller_rtcp(NULL, 0, TWCC, sizeof TWCC));
    CHECK_CODE(EQ_E_HANDLE, eq_controller_packets(NULL, 0, NULL, 0));
    CHECK_CODE(EQ_E_HANDLE, eq_controller_on_timer(NULL, 0));
    CHECK_CODE(EQ_E_HANDLE, eq_controller_get_status(NULL, NULL));
    CHECK(eq_controller_rate_bps(NULL) == 0 && eq_controller_next_timer_ns(NULL) == EQ_NEVER);
    CHECK(eq_controller_next_departure_ns(NULL, 3) == EQ_NEVER && strcmp(eq_controller_why(NULL), "") == 0);
    CHECK_CODE(EQ_OK, eq_controller_new("equipoise", NULL, 0, NULL, 0, &controller));
    CHECK_CODE(EQ_E_ARGUMENT, eq_controller_rtcp(controller, 0, NULL, 5));
    CHECK_CODE(EQ_E_STATE, eq_controller_packets(controller, 0, NULL, 0));
    CHECK_CODE(EQ_E_ARGUMENT, eq_controller_get_status(controller, NULL));
    eq_controller_free(controller);
    CHECK_CODE(EQ_E_ARGUMENT, eq_controller_parameter(0, 0, NULL));
    CHECK_CODE(EQ_E_ARGUMENT, eq_pacer_new(1, 0, NULL));
    CHECK_CODE(EQ_E_HANDLE, eq_pacer_set_rate(NULL, 1));
    CHECK_CODE(EQ_E_HANDLE, eq_pacer_sent(NULL, 0, 1));
    CHECK_CODE(EQ_E_HANDLE, eq_pacer_idle(NULL, 0));
    CHECK(eq_pacer_next_ns(NULL, 7) == EQ_NEVER);
    eq_pacer_free(NULL);
    CHECK(strcmp(eq_error_name(12345), eq_strerror(-12345)) == 0);
}

/* The structure of a program that was built with an older header is shorter. The library must not write to memory after
 * it. */
static void a_shorter_structure_is_filled_as_far_as_it_goes(void) {
    eq_controller *controller;
    CHECK_CODE(EQ_OK, eq_controller_new("cbr", (const char *[]){"rate=2 Mbit/s"}, 1, NULL, 0, &controller));
    struct eq_controller_status status;
    memset(&status, 0xab, sizeof status);
    status.struct_size = offsetof(struct eq_controller_status, pace_bps);
    CHECK_CODE(EQ_OK, eq_controller_get_status(controller, &status));
    CHECK(status.rate_bps == 2000000 && status.pace_bps == 0xababababababababULL);
    CHECK(status.struct_size == offsetof(struct eq_controller_status, pace_bps));
    eq_controller_free(controller);
}

/* If this test fails, RTCP feedback does not reach the controller. */
static void feedback_in_either_format_is_joined_with_what_was_sent(void) {
    const struct { int32_t kind; const uint8_t *bytes; size_t length; } formats[] = {
        {EQ_FEEDBACK_TWCC, TWCC, sizeof TWCC}, {EQ_FEEDBACK_RFC8888, RFC8888, sizeof RFC8888}};
    for (size_t at = 0; at < 2; at++) {
        struct eq_controller_options options = {.struct_size = sizeof options, .feedback = formats[at].kind};
        struct eq_controller_status status = {.struct_size = sizeof status};
        eq_controller *controller;
        CHECK_CODE(EQ_OK, eq_controller_new("gcc", NULL, 0, &options, 1000 * MS, &controller));
        /* RFC 8888 feedback on an unknown SSRC may be for another sender, so it is no error. Transport-wide feedback is
         * always for this sender, so feedback on packets that were never sent is an error. */
        eq_error early = eq_controller_rtcp(controller, 1001 * MS, formats[at].bytes, formats[at].length);
        CHECK_CODE(formats[at].kind == EQ_FEEDBACK_TWCC ? EQ_E_FEEDBACK : EQ_OK, early);
        for (uint64_t number = 0; number < 3; number++)
            CHECK_CODE(EQ_OK, eq_controller_sent(controller, (1000 + (int64_t)number) * MS, 7, number, 1000));
        CHECK_CODE(EQ_E_ARGUMENT, eq_controller_sent(controller, 1003 * MS, 7, 2, 1000));
        CHECK_CODE(EQ_OK, eq_controller_get_status(controller, &status));
        CHECK(status.in_flight_bytes == 3000 && status.reports == 0);
        CHECK_CODE(EQ_OK, eq_controller_rtcp(controller, 1050 * MS, formats[at].bytes, formats[at].length));
        CHECK_CODE(EQ_OK, eq_controller_get_status(controller, &status));
        CHECK(status.in_flight_bytes == 0 && status.reports == 1 && status.refused == (early != EQ_OK));
        CHECK(status.round_trip_ns > 0 && status.round_trip_ns <= 50 * MS);
        CHECK(eq_controller_next_timer_ns(controller) > 1050 * MS);
        CHECK_CODE(EQ_E_FEEDBACK, eq_controller_rtcp(controller, 1060 * MS, formats[at].bytes, formats[at].length - 4));
        eq_controller_free(controller);
    }
}

/* If this test fails, a sender that receives no acknowledgements keeps its rate, even if the path is congested. */
static void silence_takes_the_rate_down(void) {
    struct eq_controller_options options = {.struct_size = sizeof options, .feedback = EQ_FEEDBACK_ACKS};
    eq_controller *controller;
    CHECK_CODE(EQ_OK, eq_controller_new("equipoise", NULL, 0, &options, -5, &controller));
    uint64_t before = eq_controller_rate_bps(controller);
    int64_t now = 0;
    for (uint64_t number = 0; now < 5000 * MS; number++, now += 20 * MS) {
        CHECK_CODE(EQ_OK, eq_controller_sent(controller, now, 0, number, 1200));
        if (eq_controller_next_timer_ns(controller) <= now) CHECK_CODE(EQ_OK, eq_controller_on_timer(controller, now));
    }
    CHECK(eq_controller_rate_bps(controller) <= before / 2);
    CHECK(strcmp(eq_controller_why(controller), "reports-missing") == 0 || strcmp(eq_controller_why(controller), "unproved") == 0);
    eq_controller_free(controller);
}

static void arrays_name_packets_by_their_whole_numbers(void) {
    struct eq_controller_options options = {.struct_size = sizeof options, .feedback = EQ_FEEDBACK_ARRIVALS};
    struct eq_controller_status status = {.struct_size = sizeof status};
    eq_controller *controller;
    CHECK_CODE(EQ_OK, eq_controller_new("equipoise", NULL, 0, &options, 0, &controller));
    uint64_t first = 1ULL << 40;
    for (uint64_t number = first; number < first + 3; number++) CHECK_CODE(EQ_OK, eq_controller_sent(controller, 0, 0, number, 500));
    struct eq_packet packets[] = {{first + 2, EQ_UNTIMED, 0}, {first, 77, 3}, {first + 1, EQ_LOST, 0}};
    CHECK_CODE(EQ_OK, eq_controller_packets(controller, 30 * MS, packets, 3));
    CHECK_CODE(EQ_OK, eq_controller_get_status(controller, &status));
    CHECK(status.in_flight_bytes == 0 && status.round_trip_ns == 30 * MS);
    packets[0].number = first + 3;
    CHECK_CODE(EQ_E_FEEDBACK, eq_controller_packets(controller, 31 * MS, packets, 3));
    CHECK_CODE(EQ_E_STATE, eq_controller_rtcp(controller, 31 * MS, TWCC, sizeof TWCC));
    CHECK_CODE(EQ_E_ARGUMENT, eq_controller_sent(controller, 32 * MS, 0, UINT64_MAX, 500));
    eq_controller_free(controller);
}

static uint64_t state = 88172645463325252ULL; /* xorshift (Marsaglia 2003): the same random numbers in every run */

static uint64_t draw(uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

/* If this test fails, malformed feedback from the network can crash the program. EQ_E_INTERNAL would be an error in the
 * library; all other results are allowed. */
static void a_hostile_peer_and_a_careless_caller_do_no_harm(void) {
    const char *names[] = {"equipoise", "gcc", "scream", "nada", "rap"};
    for (int round = 0; round < 400; round++) {
        struct eq_controller_options options = {.struct_size = sizeof options, .feedback = (int32_t)draw(4),
                                                .pacing = (double)draw(5), .has_ecn = (int32_t)draw(2)};
        int64_t now = (int64_t)draw(2) ? INT64_MAX - (int64_t)draw(1000) : (int64_t)draw(1000000) - 500000;
        eq_controller *controller;
        CHECK_CODE(EQ_OK, eq_controller_new(names[draw(5)], NULL, 0, &options, now, &controller));
        uint64_t number = draw(70000);
        for (int step = 0; step < 120; step++) {
            uint8_t bytes[64];
            const uint8_t *model = draw(2) ? TWCC : RFC8888;
            size_t length = model == TWCC ? sizeof TWCC : sizeof RFC8888;
            struct eq_packet packets[4];
            eq_error result = EQ_OK;
            now = draw(50) ? (now > INT64_MAX - 100 * MS ? now : now + (int64_t)draw((uint64_t)(50 * MS))) : (int64_t)draw(UINT64_MAX);
            switch (draw(7)) {
            case 0:
            case 1:
                result = eq_controller_sent(controller, now, 7, draw(9) ? number++ : draw(UINT64_MAX), draw(20) ? 1200 : (size_t)draw(UINT64_MAX));
                break;
            case 2: /* valid feedback in which some bytes are changed */
                memcpy(bytes, model, length);
                for (uint64_t changes = draw(6); changes > 0; changes--) bytes[draw(length)] = (uint8_t)draw(256);
                result = eq_controller_rtcp(controller, now, bytes, draw(5) ? length : (size_t)draw(length));
                break;
            case 3:
                for (size_t at = 0; at < 4; at++)
                    packets[at] = (struct eq_packet){number > 8 ? number - draw(8) : draw(UINT64_MAX),
                                                     draw(3) ? now : (int64_t)draw(UINT64_MAX), (uint32_t)draw(9)};
                result = eq_controller_packets(controller, now, packets, draw(5));
                break;
            case 4:
                result = eq_controller_on_timer(controller, now);
                break;
            case 5:
                result = eq_controller_idle(controller, now);
                break;
            default:
                result = eq_controller_frame(controller, now, (size_t)draw(UINT64_MAX), draw(100000), (int64_t)draw(UINT64_MAX));
            }
            CHECK(result != EQ_E_INTERNAL);
            struct eq_controller_status status = {.struct_size = sizeof status};
            CHECK_CODE(EQ_OK, eq_controller_get_status(controller, &status));
            eq_controller_next_departure_ns(controller, now);
            CHECK(eq_controller_why(controller) != NULL);
        }
        eq_controller_free(controller);
    }
}

static void the_pacer_spaces_packets_at_its_rate(void) {
    eq_pacer *pacer;
    CHECK_CODE(EQ_OK, eq_pacer_new(1000000, 100, &pacer));
    CHECK(eq_pacer_next_ns(pacer, 100) == 100);
    CHECK_CODE(EQ_OK, eq_pacer_sent(pacer, 100, 1000));
    CHECK(eq_pacer_next_ns(pacer, 200) == 100 + 8 * MS);
    CHECK_CODE(EQ_OK, eq_pacer_set_rate(pacer, 2000000));
    CHECK(eq_pacer_next_ns(pacer, 200) == 100 + 4 * MS);
    CHECK_CODE(EQ_OK, eq_pacer_idle(pacer, 50 * MS));
    CHECK(eq_pacer_next_ns(pacer, 50 * MS) == 50 * MS);
    CHECK_CODE(EQ_E_ARGUMENT, eq_pacer_sent(pacer, 50 * MS, SIZE_MAX));
    CHECK_CODE(EQ_OK, eq_pacer_set_rate(pacer, UINT64_MAX));
    CHECK_CODE(EQ_OK, eq_pacer_sent(pacer, INT64_MAX, 1500));
    CHECK_CODE(EQ_OK, eq_pacer_sent(pacer, INT64_MIN, 1500));
    CHECK_CODE(EQ_OK, eq_pacer_set_rate(pacer, 0));
    CHECK(eq_pacer_next_ns(pacer, 60 * MS) == EQ_NEVER);
    eq_pacer_free(pacer);
}

int main(void) {
    the_version_is_that_of_the_header();
    the_catalogue_lists_every_controller_and_each_can_be_made();
    what_is_wrong_is_named_with_what_would_be_right();
    null_is_never_followed();
    a_shorter_structure_is_filled_as_far_as_it_goes();
    feedback_in_either_format_is_joined_with_what_was_sent();
    silence_takes_the_rate_down();
    arrays_name_packets_by_their_whole_numbers();
    a_hostile_peer_and_a_careless_caller_do_no_harm();
    the_pacer_spaces_packets_at_its_rate();
    printf("controllers: all is as it should be\n");
    return 0;
}
