/* A library that provides a process with its own clocks. A test can set these clocks while the process runs.
 *
 * The library is preloaded into the process. The file $EQUIPOISE_CLOCKS contains a `struct setting`, with all values in
 * ns. `at` is the true wall time at which a clock was last set. The other values are the offsets of the wall clock and
 * of the monotonic clock before and after this time.
 *
 * The offset of the wall clock is added to CLOCK_REALTIME, and to the timestamps that the kernel assigns to datagrams.
 * The offset of the monotonic clock is added to CLOCK_MONOTONIC, and subtracted from the deadlines of sleeps.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct setting {
    volatile int64_t at, wall_before, wall_after, monotonic_before, monotonic_after;
};

static const int64_t SECOND = 1000000000;
static struct setting true_clocks, *clocks = &true_clocks;

static int (*next_gettime)(clockid_t, struct timespec *);
static int (*next_nanosleep)(clockid_t, int, const struct timespec *, struct timespec *);
static ssize_t (*next_recvmsg)(int, struct msghdr *, int);
static int (*next_recvmmsg)(int, struct mmsghdr *, unsigned, int, struct timespec *);

__attribute__((constructor)) static void start(void) {
    next_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    next_nanosleep = dlsym(RTLD_NEXT, "clock_nanosleep");
    next_recvmsg = dlsym(RTLD_NEXT, "recvmsg");
    next_recvmmsg = dlsym(RTLD_NEXT, "recvmmsg");
    const char *path = getenv("EQUIPOISE_CLOCKS");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *found = mmap(NULL, sizeof *clocks, PROT_READ, MAP_SHARED, file, 0);
    if (found != MAP_FAILED) clocks = found;
    close(file);
}

static int64_t nanos(const struct timespec *time) { return time->tv_sec * SECOND + time->tv_nsec; }

static void add(struct timespec *time, int64_t offset) {
    int64_t sum = nanos(time) + offset;
    time->tv_sec = sum / SECOND;
    time->tv_nsec = sum % SECOND;
}

static int64_t wall_offset(int64_t real) { return real < clocks->at ? clocks->wall_before : clocks->wall_after; }

static int64_t monotonic_offset(void) {
    struct timespec real;
    next_gettime(CLOCK_REALTIME, &real);
    return nanos(&real) < clocks->at ? clocks->monotonic_before : clocks->monotonic_after;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!next_gettime) start();
    int result = next_gettime(clock, time);
    if (result == 0 && clock == CLOCK_REALTIME) add(time, wall_offset(nanos(time)));
    if (result == 0 && clock == CLOCK_MONOTONIC) add(time, monotonic_offset());
    return result;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left) {
    struct timespec shifted = *until;
    if (clock == CLOCK_MONOTONIC && (flags & TIMER_ABSTIME)) add(&shifted, -monotonic_offset());
    return next_nanosleep(clock, flags, &shifted, left);
}

static void restamp(struct msghdr *message) {
    for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
        if (control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec *stamp = (struct timespec *)CMSG_DATA(control);
            add(stamp, wall_offset(nanos(stamp)));
        }
    }
}

ssize_t recvmsg(int socket, struct msghdr *message, int flags) {
    ssize_t result = next_recvmsg(socket, message, flags);
    if (result >= 0) restamp(message);
    return result;
}

int recvmmsg(int socket, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout) {
    int result = next_recvmmsg(socket, messages, count, flags, timeout);
    for (int at = 0; at < result; at++) restamp(&messages[at].msg_hdr);
    return result;
}
