/* Shows the minimum cost of even packet spacing. For each packet, the program only sleeps until the packet's time and
 * calls sendto.
 * Usage: bare ADDRESS PORT PAYLOAD_BYTES GAP_NS SECONDS
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

int main(int count, char **given) {
    if (count != 6) return 2;
    static char payload[65507];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(given[2]))};
    inet_pton(AF_INET, given[1], &to.sin_addr);
    int out = socket(AF_INET, SOCK_DGRAM, 0);
    size_t length = strtoul(given[3], NULL, 10);
    if (length > sizeof payload) return 2;
    long gap = atol(given[4]), packets = atol(given[5]) * 1000000000L / gap;
    prctl(PR_SET_TIMERSLACK, 1);
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (long sent = 0; sent < packets; sent++) {
        due.tv_nsec += gap;
        due.tv_sec += due.tv_nsec / 1000000000L;
        due.tv_nsec %= 1000000000L;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        sendto(out, payload, length, 0, (struct sockaddr *)&to, sizeof to);
    }
    return 0;
}
