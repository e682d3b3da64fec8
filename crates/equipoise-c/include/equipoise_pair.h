/* Flow pairs for C: application data units that alternate between TCP and RTP, at the rate that TCP finds on the path.
 * Written by `cargo xtask generate`; changes made here are lost. */

#ifndef EQUIPOISE_PAIR_H
#define EQUIPOISE_PAIR_H

#include <sys/socket.h>
#include <sys/types.h>
#include "equipoise.h"

// Maximum length of an application data unit, in bytes.
#define EQ_ADU_MAX 1048576

// Flag for eq_recv: return EQ_AGAIN instead of waiting.
#define EQ_DONTWAIT 1

// State of the flow that a handle sends.
typedef struct eq_pair_status {
  // sizeof(eq_pair_status), set by the caller.
  size_t struct_size;
  // The latest rate of IP packets, measured for TCP or set for RTP, in bit/s; 0 before the first rate.
  uint64_t rate_bps;
  // TCP's congestion window, in bytes.
  uint64_t window_bytes;
  // Bytes that the application passed to eq_send and that neither TCP nor RTP has accepted yet.
  uint64_t waiting_bytes;
  // Number of running periods so far. In a running period RTP carries the application data units.
  uint64_t running_periods;
  // 1 while RTP carries the application data units, 0 while TCP carries them.
  int32_t is_running;
  // 1 if the receiver closed the connection, or the connection was lost, before the end of the flow.
  int32_t ended_by_peer;
} eq_pair_status;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Opens a handle of a flow pair. If `local_addr` is an IPv4 or IPv6 address, the handle can receive a flow there, over
// TCP and over UDP. The UDP port has the same number as the TCP port if that UDP port is free, and otherwise any free
// number. If `local_addr` is NULL, the handle can only send.
//
// Returns the handle, which is not negative, or EQ_E_ARGUMENT or EQ_E_SYSTEM.
//
// # Safety
// `local_addr` is null, or points to `length` readable bytes.
int eq_fsocket(const struct sockaddr *local_addr,
               socklen_t length);

// Returns the local port at which a flow can arrive; 0 if the handle can only send, or is invalid.
uint16_t eq_port(int fsock);

// Sets a parameter of the flow that eq_dst will open. `parameter` has the form "name=value". The names are
// packet_size, report_interval, patience, congestion_control, probe_interval, tolerance, running, adapt,
// reduction_factor and min_rate. Times and rates have units, such as "1 s".
//
// Returns EQ_OK, EQ_E_NAME, EQ_E_VALUE, EQ_E_HANDLE, EQ_E_ARGUMENT, or EQ_E_STATE if eq_dst has opened the flow
// already.
//
// # Safety
// `parameter` is null or a C string.
eq_error eq_set(int fsock,
                const char *parameter);

// Sets the handle's destination and opens a flow to it. After this call the handle can send. A handle with a local
// address still receives at this address, and sends from another port of the same IP address. If the local IP address
// is 0.0.0.0 or ::, or if its family differs from that of `remote_addr`, the system chooses the IP address from which
// the handle sends.
//
// Returns EQ_OK, EQ_E_HANDLE, EQ_E_ARGUMENT, EQ_E_STATE if the handle already has a destination, EQ_E_PEER, EQ_E_VALUE
// or EQ_E_SYSTEM. After EQ_E_PEER, EQ_E_VALUE and EQ_E_SYSTEM the handle still has no destination.
//
// # Safety
// `remote_addr` is null, or points to `length` readable bytes.
eq_error eq_dst(int fsock,
                const struct sockaddr *remote_addr,
                socklen_t length);

// Sends the next bytes of an application data unit. If `adu_ind` is not 0, these bytes are the last of the unit.
// Blocks while the send queue has no space.
//
// `flags` must be 0. Returns `length`, or an error: EQ_E_STATE if the handle has no destination yet, EQ_E_LENGTH if
// the unit would be longer than EQ_ADU_MAX, EQ_END if the flow is over or the handle was shut down, or one of
// EQ_E_HANDLE and EQ_E_ARGUMENT.
//
// # Safety
// `msg` points to `length` readable bytes; if `length` is 0, it may be null.
ssize_t eq_send(int fsock,
                const void *msg,
                size_t length,
                int flags,
                int adu_ind);

// Receives the next complete application data unit, in the order in which units were sent. Waits for a flow to arrive
// and for the unit, unless `flags` is EQ_DONTWAIT.
//
// Returns the unit's length, or one of these codes: EQ_END if the flow is over and all data was read, or if the handle
// was shut down; EQ_AGAIN if `flags` is EQ_DONTWAIT and no complete unit has arrived; EQ_E_STATE if the handle has no
// local address; EQ_E_BUFFER if the unit is longer than the buffer (the unit can then still be read); EQ_E_HANDLE;
// EQ_E_ARGUMENT. A buffer of EQ_ADU_MAX bytes is always long enough.
//
// # Safety
// `msg` points to `length` writable bytes; if `length` is 0, it may be null.
ssize_t eq_recv(int fsock,
                void *msg,
                size_t length,
                int flags);

// Returns a descriptor that is readable while there is a unit to receive, and after the end of the flow. The
// descriptor belongs to the handle: do not read or close it. Returns EQ_E_STATE if the handle has no local address.
// Returns EQ_E_HANDLE if the handle is unknown or closed.
int eq_fd(int fsock);

// Stores in `*status` the state of the flow that the handle sends. Set status->struct_size before the call.
//
// Returns EQ_OK, EQ_E_HANDLE, EQ_E_STATE if the handle has no destination yet, or EQ_E_ARGUMENT.
//
// # Safety
// `status` is null, or points to a structure that begins with its size and has that number of writable bytes.
eq_error eq_pair_get_status(int fsock,
                            struct eq_pair_status *status);

// Makes all waiting and all later calls of eq_send and eq_recv for the handle return EQ_END. May be called from any
// thread. A later eq_close discards data that still waits to be sent.
eq_error eq_shutdown(int fsock);

// Closes a handle. Calls of other threads that wait on the handle return EQ_END. Unless the handle was shut down,
// eq_close first sends the waiting data and ends an unfinished application data unit.
//
// Returns EQ_OK, EQ_E_HANDLE, EQ_END if the receiver ended the flow before all data was sent, or EQ_E_SYSTEM if a flow
// of the handle failed. The handle is closed in any case.
eq_error eq_close(int fsock);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* EQUIPOISE_PAIR_H */
