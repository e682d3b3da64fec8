/* Flow pairs for C: application data units over TCP and RTP in turn, at the rate that TCP finds on the path.
 * Written by `cargo xtask generate`; changes made here are lost. */

#ifndef EQUIPOISE_PAIR_H
#define EQUIPOISE_PAIR_H

#include <sys/socket.h>
#include <sys/types.h>
#include "equipoise.h"

// The longest application data unit, in bytes.
#define EQ_ADU_MAX 1048576

// For eq_recv: return EQ_AGAIN in place of waiting.
#define EQ_DONTWAIT 1

// How the sending flow of a handle stands.
typedef struct eq_pair_status {
  // sizeof(eq_pair_status), set by the caller.
  size_t struct_size;
  // The rate of IP packets that was found or set last, in bit/s; 0 before there is one.
  uint64_t rate_bps;
  // TCP's congestion window, in bytes.
  uint64_t window_bytes;
  // Bytes that were given and that no transport has taken.
  uint64_t waiting_bytes;
  // Running periods, in which RTP carries the units, that have begun.
  uint64_t running_periods;
  // 1 while RTP carries the units, 0 while TCP does.
  int32_t is_running;
  // 1 if the receiver ended the flow.
  int32_t ended_by_peer;
} eq_pair_status;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Opens a handle. At a local address of IPv4 or IPv6 flows may arrive from now on, over TCP and UDP of the same port; with
// NULL it can only send.
//
// Returns the handle, or EQ_E_ARGUMENT or EQ_E_SYSTEM.
//
// # Safety
// `local_addr` is null, or points to `length` bytes that can be read.
int eq_fsocket(const struct sockaddr *local_addr,
               socklen_t length);

// The port at which flows arrive; 0 for a handle that can only send, and for none.
uint16_t eq_port(int fsock);

// Sets a parameter of the flow that eq_dst will open, by a text of the form "name=value": packet_size, report_interval, patience,
// congestion_control, probe_interval, tolerance, running, adapt, reduction_factor, min_rate. Values have units, such as "1 s".
//
// Returns EQ_OK, EQ_E_NAME, EQ_E_VALUE, EQ_E_HANDLE, EQ_E_ARGUMENT, or EQ_E_STATE after eq_dst.
//
// # Safety
// `parameter` is null or a text.
eq_error eq_set(int fsock,
                const char *parameter);

// Sets the destination, and opens the flow to it: the handle sends from now on. One with a local address goes on to receive there, and
// sends from the same address and another port.
//
// Returns EQ_OK, EQ_E_HANDLE, EQ_E_ARGUMENT, EQ_E_STATE where it has a destination, EQ_E_PEER, EQ_E_VALUE or EQ_E_SYSTEM; then it has no
// destination still.
//
// # Safety
// `remote_addr` is null, or points to `length` bytes that can be read.
eq_error eq_dst(int fsock,
                const struct sockaddr *remote_addr,
                socklen_t length);

// Sends bytes of an application data unit, which ends with them where `adu_ind` is not 0; waits while there is no room.
//
// Returns `length`, or EQ_E_HANDLE, EQ_E_ARGUMENT, EQ_E_STATE before eq_dst, EQ_E_LENGTH where the unit would be longer than EQ_ADU_MAX, or
// EQ_END where the flow is over. `flags` is 0.
//
// # Safety
// `msg` points to `length` bytes that can be read; with a `length` of 0 it may be null.
ssize_t eq_send(int fsock,
                const void *msg,
                size_t length,
                int flags,
                int adu_ind);

// Receives the next application data unit, whole and in order; waits for the flow and for the unit, unless `flags` is EQ_DONTWAIT.
//
// Returns the unit's length, or EQ_END when the flow is over and all was read, or the handle was shut down; EQ_AGAIN, EQ_E_HANDLE,
// EQ_E_ARGUMENT, EQ_E_STATE for a handle without a local address, EQ_E_BUFFER where the unit stays to be read into a longer buffer, of
// EQ_ADU_MAX bytes at most.
//
// # Safety
// `msg` points to `length` bytes that can be written; with a `length` of 0 it may be null.
ssize_t eq_recv(int fsock,
                void *msg,
                size_t length,
                int flags);

// A descriptor that is readable while there is a unit to receive, and after the end of the flow. It is the handle's: do not read or close
// it. EQ_E_STATE for a handle without a local address, or EQ_E_HANDLE.
int eq_fd(int fsock);

// How the sending flow stands. Set status->struct_size before.
//
// Returns EQ_OK, EQ_E_HANDLE, EQ_E_STATE before eq_dst, or EQ_E_ARGUMENT.
//
// # Safety
// `status` is null, or begins with its size and points to as many writable bytes.
eq_error eq_pair_get_status(int fsock, struct eq_pair_status *status);

// Ends each eq_send and eq_recv of the handle that waits, now and later, with EQ_END; from any thread. eq_close then leaves unsent what
// waits.
eq_error eq_shutdown(int fsock);

// Closes a handle; calls of other threads that wait for it end with EQ_END. A sender first sends what waits, and ends an application data
// unit that is open, unless the handle was shut down.
//
// Returns EQ_OK, or EQ_E_HANDLE, or EQ_END where a sender's flow was over before all was sent; the handle is closed then, too.
eq_error eq_close(int fsock);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* EQUIPOISE_PAIR_H */
