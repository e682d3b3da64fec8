/* Equipoise for C: rate controllers, a pacer, and media between hosts. Flow pairs are in equipoise_pair.h.
 * Written by `cargo xtask generate`; changes made here are lost.
 *
 * Times are nanoseconds of a monotonic clock, rates bits per second, sizes bytes of IP packets. A call that can fail returns
 * EQ_OK or a negative code; eq_last_error_message says what exactly was wrong. NULL is never dereferenced, and no call throws or
 * aborts. Each structure begins with struct_size, which the caller sets to its sizeof, so that later versions can add fields. */

#ifndef EQUIPOISE_H
#define EQUIPOISE_H

#include <stddef.h>
#include <stdint.h>

/* The version of this header as a text; eq_version returns that of the library. */
#define EQ_VERSION_TEXT_(number) #number
#define EQ_VERSION_TEXT(major, minor, patch) \
    EQ_VERSION_TEXT_(major) "." EQ_VERSION_TEXT_(minor) "." EQ_VERSION_TEXT_(patch)
#define EQ_VERSION EQ_VERSION_TEXT(EQ_VERSION_MAJOR, EQ_VERSION_MINOR, EQ_VERSION_PATCH)

// Major version of the header, part of the soname. It changes when programs have to be rebuilt.
#define EQ_VERSION_MAJOR 0

// Minor version of the header. It rises with additions.
#define EQ_VERSION_MINOR 1

// Patch version of the header. It rises with fixes.
#define EQ_VERSION_PATCH 0

// A time that is never reached.
#define EQ_NEVER INT64_MAX

// Transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01), in eq_controller_rtcp.
#define EQ_FEEDBACK_TWCC 0

// Congestion control feedback (RFC 8888), in eq_controller_rtcp.
#define EQ_FEEDBACK_RFC8888 1

// Packets with their arrival times, in eq_controller_packets.
#define EQ_FEEDBACK_ARRIVALS 2

// Packets without arrival times, as in acknowledgements, in eq_controller_packets.
#define EQ_FEEDBACK_ACKS 3

// In place of an arrival time: the packet was lost.
#define EQ_LOST INT64_MIN

// In place of an arrival time: the packet arrived at an unknown time.
#define EQ_UNTIMED (INT64_MIN + 1)

// In place of a window: no limit.
#define EQ_OPEN UINT64_MAX

// A stream of bytes, such as an encoder's: delivered in order, without the boundaries of writes.
#define EQ_PAYLOAD_STREAM 0

// Complete RTP packets, delivered unchanged.
#define EQ_PAYLOAD_RTP 1

// The longest payload of one write or read, in bytes.
#define EQ_PAYLOAD_MAX 262144

// The session continues.
#define EQ_GOES_ON 0

// The sender said goodbye.
#define EQ_GOODBYE 1

// The sender was silent for too long.
#define EQ_SILENCE 2

// The receiver was closed, or failed.
#define EQ_STOPPED 3

// The rate has changed.
#define EQ_EVENT_RATE 1

// A report arrived, so the status is new.
#define EQ_EVENT_REPORT 2

// The sender takes data again, after it had no room.
#define EQ_EVENT_ROOM 4

// The session is over.
#define EQ_EVENT_END 8

// The receiver asks for a key frame.
#define EQ_EVENT_KEY_FRAME 16

// Result of a call: EQ_OK, or a negative number. eq_last_error_message describes the error and how to correct it.
enum eq_error
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Success.
  EQ_OK = 0,
  // NULL in place of a handle, an unknown flow-pair descriptor, or a closed one.
  EQ_E_HANDLE = -1,
  // A null pointer, an invalid address, a text that is not UTF-8, or a number out of range.
  EQ_E_ARGUMENT = -2,
  // Another call has to come first, or this call came too early.
  EQ_E_STATE = -3,
  // The other host does not answer, or refuses.
  EQ_E_PEER = -4,
  // The session or flow is over, and all data was read. Every reading loop ends with this.
  EQ_END = -5,
  // The data is longer than the maximum; nothing was taken.
  EQ_E_LENGTH = -6,
  // The buffer is too short; the data can still be read.
  EQ_E_BUFFER = -7,
  // The system refused: a port in use, no threads, no descriptors.
  EQ_E_SYSTEM = -8,
  // An error in the library.
  EQ_E_INTERNAL = -9,
  // There is nothing to read, or no room, within the given time: poll the descriptor, then call again.
  EQ_AGAIN = -10,
  // There is no controller or parameter with this name.
  EQ_E_NAME = -11,
  // A parameter's value is invalid or conflicts with others, or the controller cannot be used here.
  EQ_E_VALUE = -12,
  // The text is not a valid key.
  EQ_E_KEY = -13,
  // The data is not feedback, or names packets that were never sent. It is not applied.
  EQ_E_FEEDBACK = -14,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum eq_error eq_error;
#else
typedef int32_t eq_error;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A controller and its pacer. Only one thread may use it at a time.
typedef struct eq_controller eq_controller;

// Spaces packets evenly. Only one thread may use it at a time.
typedef struct eq_pacer eq_pacer;

// Accepts sessions. Threads may share it, except when it is closed.
typedef struct eq_receiver eq_receiver;

// The sending end of a session. Threads may share it, except when it is closed.
typedef struct eq_sender eq_sender;

// A session at a receiver; it may outlive the receiver. Threads may share it, except when it is closed.
typedef struct eq_session eq_session;

// A parameter of a controller. All texts belong to the library.
typedef struct eq_parameter {
  // sizeof(eq_parameter), set by the caller.
  size_t struct_size;
  // Its name.
  const char *name;
  // Its type: "rate", "time", the unit of a number, "number", or the possible words, separated by commas.
  const char *kind;
  // Its default value; NULL if it has to be given.
  const char *standard;
  // Its smallest value; NULL for words.
  const char *least;
  // Its largest value; NULL for words.
  const char *most;
  // Its meaning, and the effect of changing it.
  const char *meaning;
} eq_parameter;

// Options of a controller in addition to its name and parameters. Set struct_size; a field left at 0 has its default.
typedef struct eq_controller_options {
  // sizeof(eq_controller_options).
  size_t struct_size;
  // The kind of feedback: one of EQ_FEEDBACK_...; 0 is transport-wide.
  int32_t feedback;
  // Size of full IP packets in bytes, headers included; default 1240.
  uint32_t packet_size;
  // The packets of a frame are sent at this multiple of the rate; default 1.5, at least 1.
  double pacing;
  // Interval length for controllers that decide once per interval, such as "ap"; default 250 ms.
  int64_t interval_ns;
  // Not 0 if packets are sent as ECN-capable and feedback reports their marks.
  int32_t has_ecn;
} eq_controller_options;

// Fate of a packet, for eq_controller_packets. This structure never grows.
typedef struct eq_packet {
  // Its number in eq_controller_sent.
  uint64_t number;
  // Its arrival time by the receiver's clock, with any origin; EQ_LOST or EQ_UNTIMED.
  int64_t arrival_ns;
  // Its ECN field on arrival: two bits of the IP header (RFC 3168, Sec. 5), 3 for Congestion Experienced.
  uint32_t ecn;
} eq_packet;

// Decisions and estimates of a controller. Unknown values are NaN.
typedef struct eq_controller_status {
  // sizeof(eq_controller_status), set by the caller.
  size_t struct_size;
  // The rate of IP packets, in bit/s.
  uint64_t rate_bps;
  // The rate at which single packets may be sent, in bit/s.
  uint64_t pace_bps;
  // Maximum bytes in flight; EQ_OPEN if the controller sets no limit.
  uint64_t window_bytes;
  // Bytes in flight.
  uint64_t in_flight_bytes;
  // The last round-trip time; before the first measurement an assumed one.
  int64_t round_trip_ns;
  // Number of reports that were applied.
  uint64_t reports;
  // Number of reports that were refused.
  uint64_t refused;
  // The controller's mode, from its estimates: "delay", "rival" or "policed"; NULL if it has none. The text belongs
  // to the library.
  const char *mode;
  // The bottleneck's service rate, in bit/s.
  double capacity_bps;
  // The rate at which trains of packets arrive, in bit/s.
  double available_bps;
  // Round-trip time of the empty path, in s.
  double base_s;
  // The queueing delay, in s.
  double queue_s;
  // The target of the queueing delay, in s.
  double target_s;
} eq_controller_status;

// Options of a receiver. Set struct_size and key; a field left at 0 has its default.
typedef struct eq_receiver_options {
  // sizeof(eq_receiver_options).
  size_t struct_size;
  // The key shared by both hosts, as written by `equipoise keygen`: base64. NULL only if insecure is set.
  const char *key;
  // 1 for sessions that anybody can read and forge.
  int32_t insecure;
  // Maximum number of sessions; default 1000.
  uint32_t most_sessions;
  // How long a session may be silent before it ends; default 30 s.
  int64_t idle_ns;
  // How long to wait for a missing packet before later ones are delivered; default 100 ms.
  int64_t hold_ns;
} eq_receiver_options;

// Information about a received payload.
typedef struct eq_received {
  // sizeof(eq_received), set by the caller.
  size_t struct_size;
  // Packets missing before it: lost in the network, or not read in time.
  uint64_t missing;
  // When it arrived, or became the next in order, in ns since the Unix epoch, by a clock that never steps.
  int64_t at_unix_ns;
} eq_received;

// State of a session. Unknown values are NaN.
typedef struct eq_session_status {
  // sizeof(eq_session_status), set by the caller.
  size_t struct_size;
  // Number of the session at this receiver, from 0.
  uint64_t number;
  // The SSRC of its packets.
  uint32_t ssrc;
  // EQ_PAYLOAD_STREAM or EQ_PAYLOAD_RTP; -1 for the zeros that `equipoise send` sends as a load.
  int32_t payload;
  // Number of packets received.
  uint64_t packets;
  // Bytes of these packets, with their IP headers.
  uint64_t bytes;
  // Missing packets.
  uint64_t missing;
  // Packets whose payload was dropped because it was not read in time.
  uint64_t dropped;
  // Mean delay relative to the first packet, over the last report interval, in s.
  double delay_mean_s;
  // Its standard deviation, in s.
  double delay_deviation_s;
  // EQ_GOES_ON, or the reason why it ended.
  int32_t end;
} eq_session_status;

// Options of a session. Set struct_size and key; a field left at 0 has its default.
typedef struct eq_sender_options {
  // sizeof(eq_sender_options).
  size_t struct_size;
  // The key shared by both hosts, as written by `equipoise keygen`: base64. NULL only if insecure is set.
  const char *key;
  // 1 for a session that anybody can read and forge.
  int32_t insecure;
  // EQ_PAYLOAD_STREAM or EQ_PAYLOAD_RTP.
  int32_t payload;
  // The controller's name; NULL for "equipoise".
  const char *controller;
  // Texts of the form "name=value", such as "max_rate=5 Mbit/s".
  const char *const *parameters;
  // Number of parameters.
  size_t parameter_count;
  // Size of the largest IP packets in bytes, headers included; default 1200.
  uint32_t packet_size;
  // The SSRC of the packets; required for complete RTP packets. 0 for a random one.
  uint32_t ssrc;
  // RTP payload type of a stream; default 96.
  uint32_t payload_type;
  // Time between two requests for a report; default 1 s.
  int64_t report_interval_ns;
  // How long to wait for the receiver's answer; default 5 s.
  int64_t patience_ns;
} eq_sender_options;

// State of a session according to the receiver's last report. Unknown values are NaN.
typedef struct eq_sender_status {
  // sizeof(eq_sender_status), set by the caller.
  size_t struct_size;
  // The rate of IP packets that the controller allows, in bit/s.
  uint64_t rate_bps;
  // The payload rate that remains without headers, for an encoder, in bit/s.
  uint64_t media_rate_bps;
  // Bytes written but not sent yet.
  uint64_t waiting_bytes;
  // Reports so far.
  uint64_t reports;
  // Packets sent but not received, since the session began.
  uint64_t lost;
  // Share of the packets that were lost, 0 to 1.
  double fraction_lost;
  // Mean of the queueing delay, in s.
  double delay_mean_s;
  // Its standard deviation, in s.
  double delay_deviation_s;
  // The round-trip time, in s.
  double round_trip_s;
  // 1 once the session is over.
  int32_t is_over;
  // The reason for the rate, as in eq_controller_why; "" before the first decision. The text belongs to the library.
  const char *why;
} eq_sender_status;

// Final counters of a session.
typedef struct eq_sender_summary {
  // sizeof(eq_sender_summary), set by the caller.
  size_t struct_size;
  // Media packets sent.
  uint64_t packets;
  // Bytes of their IP packets.
  uint64_t bytes;
  // Packets known to be lost.
  uint64_t lost;
  // 1 if the receiver ended the session.
  int32_t ended_by_peer;
} eq_sender_summary;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the linked library; EQ_VERSION is the version of the header. The text belongs to the library.
const char *eq_version(void);

// The name of a code, such as "EQ_E_PEER"; never NULL. The text belongs to the library.
const char *eq_error_name(int32_t code);

// The meaning of a code, as a short English text; never NULL. The text belongs to the library.
const char *eq_strerror(int32_t code);

// The last error of this thread and how to correct it, in English; never NULL. The text is valid until another call of
// this thread fails.
const char *eq_last_error_message(void);

// The number of controllers.
size_t eq_controller_count(void);

// The name of controller `index`, from 0; NULL after the last. The text belongs to the library.
const char *eq_controller_name(size_t index);

// A summary of controller `index` with its source, in one line; NULL after the last. The text belongs to the library.
const char *eq_controller_summary(size_t index);

// The number of parameters of controller `index`; 0 after the last.
size_t eq_controller_parameter_count(size_t index);

// Parameter `number` of controller `index`, both from 0. Returns EQ_END after the last, or EQ_E_ARGUMENT.
//
// # Safety
// `parameter` is null, or begins with a `usize` and points to that many writable bytes.
eq_error eq_controller_parameter(size_t index,
                                 size_t number,
                                 struct eq_parameter *parameter);

// Creates the controller `name` with `count` parameter texts of the form "name=value", such as "max_rate=5 Mbit/s".
// `now_ns` is the present time of the caller's monotonic clock, with any origin. `options` may be NULL. Free it with
// eq_controller_free.
//
// Returns EQ_OK, EQ_E_NAME for an unknown controller or parameter, EQ_E_VALUE for an invalid value or a controller
// that cannot work with per-packet feedback, or EQ_E_ARGUMENT.
//
// # Safety
// `name` is a text, `parameters` are `count` texts, `options` begins with its size, `controller` is writable; each may
// be null.
eq_error eq_controller_new(const char *name,
                           const char *const *parameters,
                           size_t count,
                           const struct eq_controller_options *options,
                           int64_t now_ns,
                           struct eq_controller **controller);

// Frees a controller; NULL is allowed.
//
// # Safety
// `controller` is null or from eq_controller_new, and is not used now or later.
void eq_controller_free(struct eq_controller *controller);

// Reports that a packet of `size` bytes, with all headers, was sent at `now_ns`. `number` identifies it in feedback:
// the transport-wide sequence number, the RTP sequence number of its source or, for arrays, any increasing number. Of
// the first two only the lower 16 bits are used. `ssrc` is its source and is used for RFC 8888 only.
//
// # Safety
// `controller` is null or a controller that no other thread uses at the same time.
eq_error eq_controller_sent(struct eq_controller *controller,
                            int64_t now_ns,
                            uint32_t ssrc,
                            uint64_t number,
                            size_t size);

// Reports that a frame of `size` bytes was queued behind `waiting` bytes, the oldest of which has waited for
// `waited_ns`. Some controllers use this to keep the delay of frames short.
//
// # Safety
// As eq_controller_sent.
eq_error eq_controller_frame(struct eq_controller *controller,
                             int64_t now_ns,
                             size_t size,
                             size_t waiting,
                             int64_t waited_ns);

// Reports that nothing has waited to be sent since `now_ns`: the sender is limited by the application, not by the
// rate. Call it whenever the last packet has been sent.
//
// # Safety
// As eq_controller_sent.
eq_error eq_controller_idle(struct eq_controller *controller,
                            int64_t now_ns);

// Handles a decrypted RTCP datagram that arrived at `now_ns`. Transport-wide feedback or RFC 8888 feedback in it is
// applied, whichever the controller was created for; other packets are ignored.
//
// Returns EQ_OK, or EQ_E_FEEDBACK if feedback is malformed or names packets that were never sent.
//
// # Safety
// As eq_controller_sent; `data` is `length` bytes.
eq_error eq_controller_rtcp(struct eq_controller *controller,
                            int64_t now_ns,
                            const uint8_t *data,
                            size_t length);

// Reports the fate of packets, which became known at `now_ns`, in any order, to a controller created for arrays.
// Report each packet, including lost ones; a packet reported as lost may later be reported as arrived.
//
// Returns EQ_OK, or EQ_E_FEEDBACK if a packet that was never sent is reported as arrived: then nothing is applied.
//
// # Safety
// As eq_controller_sent; `packets` has `count` items.
eq_error eq_controller_packets(struct eq_controller *controller,
                               int64_t now_ns,
                               const struct eq_packet *packets,
                               size_t count);

// When to call eq_controller_on_timer if nothing happens before; EQ_NEVER for never.
//
// # Safety
// As eq_controller_sent.
int64_t eq_controller_next_timer_ns(const struct eq_controller *controller);

// Advances the time to `now_ns`; calling it too early or without need is harmless.
//
// # Safety
// As eq_controller_sent.
eq_error eq_controller_on_timer(struct eq_controller *controller, int64_t now_ns);

// The present rate of IP packets, in bit/s; 0 for NULL. The rate of an encoder is this rate minus headers.
//
// # Safety
// As eq_controller_sent.
uint64_t eq_controller_rate_bps(const struct eq_controller *controller);

// When the next packet may be sent: `now_ns` for now, a later time, or EQ_NEVER while the window is full or the rate
// is 0; then feedback or the timer changes it.
//
// # Safety
// As eq_controller_sent.
int64_t eq_controller_next_departure_ns(const struct eq_controller *controller,
                                        int64_t now_ns);

// The reason for the rate, as lower-case words joined by hyphens, such as "law", "overload" or "unproved"; "" before
// the first decision and for NULL. The text belongs to the library.
//
// # Safety
// As eq_controller_sent.
const char *eq_controller_why(const struct eq_controller *controller);

// The controller's decisions and estimates. Set status->struct_size before.
//
// # Safety
// As eq_controller_sent; `status` is null, or begins with its size and points to as many writable bytes.
eq_error eq_controller_get_status(const struct eq_controller *controller,
                                  struct eq_controller_status *status);

// Creates a pacer whose first packet may be sent at once. `now_ns` is the present time of the caller's monotonic
// clock. Free it with eq_pacer_free.
//
// Returns EQ_OK or EQ_E_ARGUMENT.
//
// # Safety
// `pacer` is null or writable.
eq_error eq_pacer_new(uint64_t rate_bps,
                      int64_t now_ns,
                      struct eq_pacer **pacer);

// Frees a pacer; NULL is allowed.
//
// # Safety
// `pacer` is null or from eq_pacer_new, and is not used now or later.
void eq_pacer_free(struct eq_pacer *pacer);

// Sets the rate of IP packets. It also applies to the gap after the last packet. At rate 0 nothing may be sent.
//
// # Safety
// `pacer` is null or a pacer that no other thread uses at the same time.
eq_error eq_pacer_set_rate(struct eq_pacer *pacer,
                           uint64_t rate_bps);

// When the next packet may be sent: `now_ns` for now, a later time, or EQ_NEVER at rate 0 and for NULL.
//
// # Safety
// As eq_pacer_set_rate.
int64_t eq_pacer_next_ns(const struct eq_pacer *pacer,
                         int64_t now_ns);

// Reports that a packet of `size` bytes, IP header included, was sent at `now_ns`.
//
// # Safety
// As eq_pacer_set_rate.
eq_error eq_pacer_sent(struct eq_pacer *pacer, int64_t now_ns, size_t size);

// Reports that there was nothing to send until `now_ns`: a packet that was due before is due now, and not late.
//
// # Safety
// As eq_pacer_set_rate.
eq_error eq_pacer_idle(struct eq_pacer *pacer,
                       int64_t now_ns);

// Receives at "host:port"; port 0 takes any free port. Close it with eq_receiver_close.
//
// Returns EQ_OK, EQ_E_SYSTEM if the address is not available, EQ_E_KEY or EQ_E_ARGUMENT.
//
// # Safety
// `address` and the strings in `options` end with a zero byte, `options` begins with its size, and `receiver` is
// writable. Each pointer may be null.
eq_error eq_receiver_open(const char *address,
                          const struct eq_receiver_options *options,
                          struct eq_receiver **receiver);

// The UDP port of the receiver; 0 for NULL.
//
// # Safety
// `receiver` is null or open.
uint16_t eq_receiver_port(const struct eq_receiver *receiver);

// A descriptor that is readable while a session waits to be accepted. It belongs to the receiver: do not read or close
// it. -1 for NULL.
//
// # Safety
// `receiver` is null or open.
int32_t eq_receiver_fd(const struct eq_receiver *receiver);

// Returns the next session opened by a sender. Waits for `timeout_ms`; 0 does not wait, a negative value waits
// forever. Close it with eq_session_close. Up to 128 sessions may wait to be accepted.
//
// Returns EQ_OK, EQ_AGAIN, EQ_END after eq_receiver_stop or if the receiver failed, EQ_E_HANDLE or EQ_E_ARGUMENT.
//
// # Safety
// `receiver` is null or open; `session` is null or writable.
eq_error eq_receiver_accept(const struct eq_receiver *receiver,
                            int32_t timeout_ms,
                            struct eq_session **session);

// Makes every present and later eq_receiver_accept return EQ_END. Can be called from any thread.
//
// # Safety
// `receiver` is null or open.
eq_error eq_receiver_stop(const struct eq_receiver *receiver);

// Says goodbye to all sessions, releases the port, and frees the receiver; NULL is allowed. Accepted sessions still
// deliver received data, then end.
//
// Returns EQ_OK, or EQ_E_SYSTEM if the receiver had failed.
//
// # Safety
// `receiver` is null or open, and is not used by others now or later.
eq_error eq_receiver_close(struct eq_receiver *receiver);

// Reads the next payload into `buffer` of `capacity` bytes, and its length into `length`: the next bytes of the
// stream, or one RTP packet. EQ_PAYLOAD_MAX bytes are always enough. Waits for `timeout_ms`; 0 does not wait, a
// negative value waits forever. `received` may be NULL; set its struct_size before.
//
// Returns EQ_OK, EQ_AGAIN, EQ_END if the session is over and all data was read, EQ_E_BUFFER if the payload needs a
// longer buffer and can still be read, EQ_E_HANDLE or EQ_E_ARGUMENT.
//
// # Safety
// `session` is null or open; `buffer` has `capacity` writable bytes, `length` is writable, `received` begins with its
// size; each may be null.
eq_error eq_session_read(const struct eq_session *session,
                         void *buffer,
                         size_t capacity,
                         size_t *length,
                         struct eq_received *received,
                         int32_t timeout_ms);

// A descriptor that is readable while there is payload to read, and after the end. It belongs to the session: do not
// read or close it. -1 for NULL.
//
// # Safety
// `session` is null or open.
int32_t eq_session_fd(const struct eq_session *session);

// The sender's address when the session was opened, as "address:port"; "" for NULL. The text belongs to the session.
//
// # Safety
// `session` is null or open.
const char *eq_session_peer(const struct eq_session *session);

// The state of the session. Set status->struct_size before.
//
// # Safety
// `session` is null or open; `status` is null, or begins with its size and points to as many writable bytes.
eq_error eq_session_get_status(const struct eq_session *session,
                               struct eq_session_status *status);

// Asks the sender for a key frame because the decoder cannot continue: its eq_sender_events then has
// EQ_EVENT_KEY_FRAME. At most one request is sent per 0.3 s. Can be called from any thread.
//
// # Safety
// `session` is null or open.
eq_error eq_session_request_key_frame(const struct eq_session *session);

// Makes every present and later eq_session_read return EQ_END. Can be called from any thread.
//
// # Safety
// `session` is null or open.
eq_error eq_session_stop(const struct eq_session *session);

// Frees a session; NULL is allowed. Its sender is not notified and continues until it ends the session.
//
// # Safety
// `session` is null or open, and is not used by others now or later.
void eq_session_close(struct eq_session *session);

// Opens a session to a receiver at "host:port": `equipoise receive`, eq_receiver_open, or the Rust library. Waits for
// its answer. Close it with eq_sender_close.
//
// Returns EQ_OK, EQ_E_PEER if no peer with the key answers, EQ_E_KEY, EQ_E_NAME, EQ_E_VALUE, EQ_E_ARGUMENT or
// EQ_E_SYSTEM.
//
// # Safety
// `address` and the strings in `options` end with a zero byte, `options` begins with its size, and `sender` is
// writable. Each pointer may be null.
eq_error eq_sender_open(const char *address,
                        const struct eq_sender_options *options,
                        struct eq_sender **sender);

// Sends the next bytes of the stream or one RTP packet, all or nothing. Waits for room for `timeout_ms`; 0 does not
// wait, a negative value waits forever. For live media use 0 and skip a frame on EQ_AGAIN, because it would be late.
//
// Returns EQ_OK, EQ_AGAIN, EQ_END if the session is over, EQ_E_LENGTH above EQ_PAYLOAD_MAX, EQ_E_ARGUMENT or
// EQ_E_HANDLE.
//
// # Safety
// `sender` is null or open; `data` has `length` bytes.
eq_error eq_sender_write(const struct eq_sender *sender,
                         const void *data,
                         size_t length,
                         int32_t timeout_ms);

// A descriptor that is readable after an event of EQ_EVENT_..., until eq_sender_events is called. It belongs to the
// sender: do not read or close it. -1 for NULL.
//
// # Safety
// `sender` is null or open.
int32_t eq_sender_fd(const struct eq_sender *sender);

// The events since the last call: a combination of EQ_EVENT_... bits; 0 for none and for NULL. EQ_EVENT_ROOM follows
// an EQ_AGAIN.
//
// # Safety
// `sender` is null or open.
uint32_t eq_sender_events(const struct eq_sender *sender);

// The present rate for an encoder, in bit/s: the controller's rate without headers. 0 for NULL.
//
// # Safety
// `sender` is null or open.
uint64_t eq_sender_media_rate_bps(const struct eq_sender *sender);

// The state of the session. Set status->struct_size before.
//
// # Safety
// `sender` is null or open; `status` is null, or begins with its size and points to as many writable bytes.
eq_error eq_sender_get_status(const struct eq_sender *sender,
                              struct eq_sender_status *status);

// Makes every present and later eq_sender_write return EQ_END. Can be called from any thread. Then join those threads
// and call eq_sender_close, which discards waiting data.
//
// # Safety
// `sender` is null or open.
eq_error eq_sender_stop(const struct eq_sender *sender);

// Sends waiting data for at most `timeout_ms` (negative: as long as necessary), says goodbye, and frees the sender.
// `summary` may be NULL; set its struct_size before. NULL for the sender is allowed.
//
// Returns EQ_OK, EQ_AGAIN if not all data was sent in time, or EQ_E_SYSTEM if the session had failed; the sender is
// freed in any case.
//
// # Safety
// `sender` is null or open, and is not used by others now or later; `summary` is null, or begins with its size and
// points to that many writable bytes.
eq_error eq_sender_close(struct eq_sender *sender,
                         int32_t timeout_ms,
                         struct eq_sender_summary *summary);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* EQUIPOISE_H */
