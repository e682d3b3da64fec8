/* Uses a rate controller in a program with its own network code. The program sends packets over a link of 3 Mbit/s with
 * a round-trip time of 40 ms, in simulated time, and reports each arrival in an array of one packet. A program that
 * receives RTCP feedback passes it to eq_controller_rtcp instead.
 *
 *   controller [NAME [PARAMETER=VALUE ...]]
 *
 * Build it with $(pkg-config --cflags --libs equipoise). */
#include <equipoise.h>
#include <stdio.h>

enum { PACKET = 1200, UNDER_WAY = 4096 };
static const int64_t MS = 1000000, SECONDS = 20, WAY = 20000000, PER_PACKET = PACKET * 8 * 1000000000LL / 3000000;

int main(int count, char **words) {
    struct eq_controller_options options = {.struct_size = sizeof options, .feedback = EQ_FEEDBACK_ARRIVALS};
    struct eq_controller_status status = {.struct_size = sizeof status};
    const char *name = count > 1 ? words[1] : "equipoise";
    const char *const *parameters = (const char *const *)words + 2;
    eq_controller *controller;
    eq_error made = eq_controller_new(name, parameters, count > 2 ? (size_t)count - 2 : 0, &options, 0, &controller);
    if (made != EQ_OK) {
        fprintf(stderr, "%s: %s\n", eq_error_name(made), eq_last_error_message());
        return 1;
    }
    static int64_t arrivals[UNDER_WAY]; /* arrival times by packet number */
    uint64_t sent = 0, told = 0;
    int64_t free_at = 0, next_line = 0;
    for (int64_t now = 0; now < SECONDS * 1000 * MS;) {
        /* The next event is the departure of a packet, the acknowledgement of a packet, or the controller's timer. */
        int64_t departure = eq_controller_next_departure_ns(controller, now);
        int64_t answer = told < sent ? arrivals[told % UNDER_WAY] + WAY : EQ_NEVER;
        int64_t timer = eq_controller_next_timer_ns(controller);
        int64_t next = departure < answer ? departure : answer;
        next = timer < next ? timer : next;
        now = next > now ? next : now;
        if (now == departure && sent - told < UNDER_WAY) {
            free_at = (free_at > now ? free_at : now) + PER_PACKET;
            arrivals[sent % UNDER_WAY] = free_at + WAY;
            eq_controller_sent(controller, now, 0, sent++, PACKET);
        } else if (now == answer) {
            struct eq_packet packet = {told, arrivals[told % UNDER_WAY], 0};
            told++;
            if (eq_controller_packets(controller, now, &packet, 1) != EQ_OK) break;
        } else {
            eq_controller_on_timer(controller, now);
        }
        if (now >= next_line) {
            eq_controller_get_status(controller, &status);
            printf("%2d s: %5.0f kbit/s, %s, queue %.1f ms\n", (int)(now / MS / 1000), status.rate_bps / 1e3,
                   eq_controller_why(controller), (free_at > now ? free_at - now : 0) / 1e6);
            next_line += 1000 * MS;
        }
    }
    eq_controller_free(controller);
    return 0;
}
