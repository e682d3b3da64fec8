/* Equipoise for C: flow pairs. Written by `cargo xtask generate`; changes made here are lost. */

#ifndef EQUIPOISE_H
#define EQUIPOISE_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

// The longest application data unit, in bytes.
#define EQ_ADU_MAX 1048576

// There is no such handle, or it was closed.
#define EQ_E_HANDLE -1

// A null pointer, an address that is none of IPv4 or IPv6, or flags that are not zero.
#define EQ_E_ARGUMENT -2

// eq_send wants eq_dst before it; eq_recv a handle with a local address and without a destination.
#define EQ_E_STATE -3

// No receiver of flow pairs answers at the destination.
#define EQ_E_PEER -4

// The flow is over: for a receiver, all that came was read.
#define EQ_E_OVER -5

// The application data unit would be longer than EQ_ADU_MAX; nothing was taken of these bytes.
#define EQ_E_LENGTH -6

// The buffer is shorter than the unit, which stays to be read into a longer one, of EQ_ADU_MAX bytes at most.
#define EQ_E_BUFFER -7

// The system refused: a port that is taken, no threads, no descriptors.
#define EQ_E_SYSTEM -8

// A fault of the library's own.
#define EQ_E_INTERNAL -9

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

// Sets the destination, and opens the flow to it: the handle sends from now on, from its local address where it has one.
//
// Returns 0, or EQ_E_HANDLE, EQ_E_ARGUMENT, EQ_E_STATE, EQ_E_PEER or EQ_E_SYSTEM; then it has no destination, and
// no flow arrives there any more.
//
// # Safety
// `remote_addr` is null, or points to `length` bytes that can be read.
int eq_dst(int fsock,
           const struct sockaddr *remote_addr,
           socklen_t length);

// Sends bytes of an application data unit, which ends with them where `adu_ind` is not 0; waits while there is no room.
//
// Returns `length`, or EQ_E_HANDLE, EQ_E_ARGUMENT, EQ_E_STATE, EQ_E_LENGTH or EQ_E_OVER. `flags` is 0.
//
// # Safety
// `msg` points to `length` bytes that can be read; with a `length` of 0 it may be null.
ssize_t eq_send(int fsock,
                const void *msg,
                size_t length,
                int flags,
                int adu_ind);

// Receives the next application data unit, whole and in order; waits for the flow and for the unit.
//
// Returns the unit's length, or EQ_E_HANDLE, EQ_E_ARGUMENT, EQ_E_STATE, EQ_E_BUFFER, EQ_E_OVER or EQ_E_SYSTEM. `flags` is 0.
//
// # Safety
// `msg` points to `length` bytes that can be written; with a `length` of 0 it may be null.
ssize_t eq_recv(int fsock,
                void *msg,
                size_t length,
                int flags);

// Closes a handle. A sender first sends what waits, and ends an application data unit that is open.
//
// Returns 0, or EQ_E_HANDLE, or EQ_E_OVER where a sender's flow was over before all was sent; the handle is closed then, too.
int eq_close(int fsock);

// What an error code means, in English; never NULL. The text is the library's.
const char *eq_strerror(int error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* EQUIPOISE_H */
