/* Flow pairs for C: application data units that alternate between TCP and RTP, at the rate that TCP finds on the path.
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

// State of the sending flow of a handle.
typedef struct eq_pair_status {
  // sizeof(eq_pair_status), set by the caller.
  size_t struct_size;
  // The last rate of IP packets that was measured or set, in bit/s; 0 before the first.
  uint64_t rate_bps;
  // TCP's congestion window, in bytes.
  uint64_t window_bytes;
  // Bytes passed by the application that no transport has taken yet.
  uint64_t waiting_bytes;
  // Number of running periods so far, in which RTP carries the units.
  uint64_t running_periods;
  // 1 while RTP carries the units, 0 while TCP does.
  int32_t is_running;
  // 1 if the receiver ended the flow.
  int32_t ended_by_peer;
} eq_pair_status;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Opens a handle. With a local IPv4 or IPv6 address, flows can arrive there, over TCP and UDP at the same port; with
// NULL the handle can only send.
//
// Returns the handle, or EQ_E_ARGUMENT or EQ_E_SYSTEM.
//
// # Safety
// `local_addr` is null, or points to `length` readable bytes.
int eq_fsocket(const struct sockaddr *local_addr,
               socklen_t length);

// The port at which flows arrive; 0 for a handle that can only send, and for an invalid handle.
uint16_t eq_port(int fsock);

// Sets a parameter of the flow that eq_dst will open, with a text of the form "name=value": packet_size,
// report_interval, patience, congestion_control, probe_interval, tolerance, running, adapt, reduction_factor,
// min_rate. Values have units, such as "1 s".
//
// Returns EQ_OK, EQ_E_NAME, EQ_E_VALUE, EQ_E_HANDLE, EQ_E_ARGUMENT, or EQ_E_STATE after eq_dst.
//
// # Safety
// `parameter` is null or a text.
eq_error eq_set(int fsock,
                const char *parameter);

// Sets the destination and opens the flow to it; the handle can then send. A handle with a local address still
// receives there, and sends from the same address and another port.
//
// Returns EQ_OK, EQ_E_HANDLE, EQ_E_ARGUMENT, EQ_E_STATE if it already has a destination, EQ_E_PEER, EQ_E_VALUE or
// EQ_E_SYSTEM. After an error of the last three the handle still has no destination.
//
// # Safety
// `remote_addr` is null, or points to `length` readable bytes.
eq_error eq_dst(int fsock,
                const struct sockaddr *remote_addr,
                socklen_t length);

// Sends bytes of an application data unit, which ends after them if `adu_ind` is not 0; blocks while there is no room.
//
// Returns `length`, or EQ_E_HANDLE, EQ_E_ARGUMENT, EQ_E_STATE before eq_dst, EQ_E_LENGTH if the unit would be longer
// than EQ_ADU_MAX, or EQ_END if the flow is over. `flags` is 0.
//
// # Safety
// `msg` points to `length` readable bytes; if `length` is 0, it may be null.
ssize_t eq_send(int fsock,
                const void *msg,
                size_t length,
                int flags,
                int adu_ind);

// Receives the next application data unit, complete and in order; waits for the flow and for the unit, unless `flags`
// is EQ_DONTWAIT.
//
// Returns the unit's length, or EQ_END if the flow is over and all data was read, or if the handle was shut down;
// EQ_AGAIN, EQ_E_HANDLE, EQ_E_ARGUMENT, EQ_E_STATE for a handle without a local address, or EQ_E_BUFFER if the unit
// needs a longer buffer, of at most EQ_ADU_MAX bytes, and can still be read.
//
// # Safety
// `msg` points to `length` writable bytes; if `length` is 0, it may be null.
ssize_t eq_recv(int fsock,
                void *msg,
                size_t length,
                int flags);

// A descriptor that is readable while there is a unit to receive, and after the end of the flow. It belongs to the
// handle: do not read or close it. EQ_E_STATE for a handle without a local address, or EQ_E_HANDLE.
int eq_fd(int fsock);

// The state of the sending flow. Set status->struct_size before.
//
// Returns EQ_OK, EQ_E_HANDLE, EQ_E_STATE before eq_dst, or EQ_E_ARGUMENT.
//
// # Safety
// `status` is null, or begins with its size and points to as many writable bytes.
eq_error eq_pair_get_status(int fsock, struct eq_pair_status *status);

// Makes every present and later eq_send and eq_recv of the handle return EQ_END. Can be called from any thread.
// eq_close then discards waiting data.
eq_error eq_shutdown(int fsock);

// Closes a handle; calls of other threads that wait on it return EQ_END. A sender first sends waiting data and ends an
// unfinished application data unit, unless the handle was shut down.
//
// Returns EQ_OK, or EQ_E_HANDLE, or EQ_END if a sender's flow ended before all data was sent; then the handle is
// closed, too.
eq_error eq_close(int fsock);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* EQUIPOISE_PAIR_H */
