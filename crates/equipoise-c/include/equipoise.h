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

// Major version of the header. The soname contains the same number. The number increases when programs must be rebuilt
// for the new version.
#define EQ_VERSION_MAJOR 0

// Minor version of the header. It increases when calls or fields are added.
#define EQ_VERSION_MINOR 1

// Patch version of the header. It increases when a version only corrects errors.
#define EQ_VERSION_PATCH 0

// Value of a time in ns that means never.
#define EQ_NEVER INT64_MAX

// Kind of feedback: transport-wide RTCP feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01), passed to
// eq_controller_rtcp.
#define EQ_FEEDBACK_TWCC 0

// Kind of feedback: RTCP congestion control feedback (RFC 8888), passed to eq_controller_rtcp.
#define EQ_FEEDBACK_RFC8888 1

// Kind of feedback: arrays of packets with arrival times, passed to eq_controller_packets.
#define EQ_FEEDBACK_ARRIVALS 2

// Kind of feedback: acknowledgements without arrival times. Arrays of packets are passed to eq_controller_packets.
#define EQ_FEEDBACK_ACKS 3

// Value of eq_packet.arrival_ns for a packet that was lost.
#define EQ_LOST INT64_MIN

// Value of eq_packet.arrival_ns for a packet that arrived at an unknown time.
#define EQ_UNTIMED (INT64_MIN + 1)

// Value of eq_controller_status.window_bytes if the controller does not limit the bytes in flight.
#define EQ_OPEN UINT64_MAX

// Kind of payload: a stream of bytes, such as the output of an encoder. The bytes are delivered in order; a read may
// combine or divide the bytes of several writes.
#define EQ_PAYLOAD_STREAM 0

// Kind of payload: complete RTP packets, which are delivered unchanged.
#define EQ_PAYLOAD_RTP 1

// Maximum length of the payload of one write or one read, in bytes.
#define EQ_PAYLOAD_MAX 262144

// The session has not ended.
#define EQ_GOES_ON 0

// The session ended because the sender sent an RTCP BYE packet.
#define EQ_GOODBYE 1

// The session ended because no packet arrived from the sender for too long.
#define EQ_SILENCE 2

// The session ended because the receiver was closed or failed.
#define EQ_STOPPED 3

// Event: the controller's rate has changed.
#define EQ_EVENT_RATE 1

// Event: a report from the receiver arrived, or the reason for the rate changed, so that eq_sender_get_status returns
// new values.
#define EQ_EVENT_REPORT 2

// Event: the send queue has space again, after eq_sender_write had returned EQ_AGAIN.
#define EQ_EVENT_ROOM 4

// Event: the session is over.
#define EQ_EVENT_END 8

// Event: the receiver requests a key frame.
#define EQ_EVENT_KEY_FRAME 16

// Result of a call: EQ_OK, or a negative number. eq_last_error_message describes the error and how to correct it.
enum eq_error
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Success.
  EQ_OK = 0,
  // The handle is NULL, or the flow-pair handle is unknown or closed.
  EQ_E_HANDLE = -1,
  // A null pointer, an invalid address, a text that is not UTF-8, or a number out of range.
  EQ_E_ARGUMENT = -2,
  // The call is not allowed in the present state, such as eq_send before eq_dst.
  EQ_E_STATE = -3,
  // The other host does not answer, or refuses the session or the flow.
  EQ_E_PEER = -4,
  // The session, the flow or the list is at its end, or was stopped. A loop that reads all items ends with this
  // code.
  EQ_END = -5,
  // The data is longer than the maximum. No part of the data was accepted.
  EQ_E_LENGTH = -6,
  // The buffer is too short; the data can still be read.
  EQ_E_BUFFER = -7,
  // The operating system refused a resource: a port that is in use, a thread, or a descriptor.
  EQ_E_SYSTEM = -8,
  // An error in the library.
  EQ_E_INTERNAL = -9,
  // Within the timeout there was nothing to read, or no space to write: poll the descriptor, then call again. The
  // code has another meaning for eq_sender_close: some data may not have been sent, and the sender was freed.
  EQ_AGAIN = -10,
  // There is no controller or parameter with this name.
  EQ_E_NAME = -11,
  // A parameter's value is invalid or conflicts with another parameter, or the controller needs input that this API
  // does not provide.
  EQ_E_VALUE = -12,
  // The text is not a valid key.
  EQ_E_KEY = -13,
  // The data is not valid feedback, or reports the arrival of packets that were never sent. The invalid feedback is
  // not applied.
  EQ_E_FEEDBACK = -14,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum eq_error eq_error;
#else
typedef int32_t eq_error;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A controller and its pacer. Only one thread may use a handle at a time.
typedef struct eq_controller eq_controller;

// Spaces packets evenly. Only one thread may use a pacer at a time.
typedef struct eq_pacer eq_pacer;

// A receiver, which accepts sessions. Several threads may use the receiver at the same time, but no thread may use it
// during or after eq_receiver_close.
typedef struct eq_receiver eq_receiver;

// The sender of a session. Several threads may use the sender at the same time, but no thread may use it during or
// after eq_sender_close.
typedef struct eq_sender eq_sender;

// A session at a receiver. It may be used after the receiver was closed. Several threads may use the session at the
// same time, but no thread may use it during or after eq_session_close.
typedef struct eq_session eq_session;

// A parameter of a controller. All texts belong to the library.
typedef struct eq_parameter {
  // sizeof(eq_parameter), set by the caller.
  size_t struct_size;
  // Name of the parameter.
  const char *name;
  // Type of the parameter: "rate", "time", or "number" for a number without a unit. If the parameter is a number
  // with a unit, the type is this unit. If it is a word, the type is the list of the possible words, separated by
  // commas.
  const char *kind;
  // Default value of the parameter; NULL if the caller must specify a value.
  const char *standard;
  // Minimum of the parameter; NULL if its value is a word.
  const char *least;
  // Maximum of the parameter; NULL if its value is a word.
  const char *most;
  // Meaning of the parameter, and the effect of a change.
  const char *meaning;
} eq_parameter;

// Options of a controller in addition to its name and parameters. Set struct_size; a field that is 0 has its default.
typedef struct eq_controller_options {
  // sizeof(eq_controller_options).
  size_t struct_size;
  // The kind of feedback, one of EQ_FEEDBACK_...; default 0, which is EQ_FEEDBACK_TWCC.
  int32_t feedback;
  // Size of a full IP packet in bytes, with headers; default 1240.
  uint32_t packet_size;
  // Pacing rate of the packets of a frame, as a multiple of the controller's rate; default 1.5. A value below 1
  // means the default.
  double pacing;
  // Time between two decisions of controllers that decide once per interval, such as "ap", in ns; default 250 ms.
  int64_t interval_ns;
  // Not 0 if packets are sent as ECN-capable and feedback reports their ECN marks.
  int32_t has_ecn;
} eq_controller_options;

// A packet that arrived or was lost, for eq_controller_packets. Later versions add no fields to this structure.
typedef struct eq_packet {
  // The packet's number, as passed to eq_controller_sent.
  uint64_t number;
  // The packet's arrival time by the receiver's clock, in ns from any origin, or EQ_LOST or EQ_UNTIMED.
  int64_t arrival_ns;
  // The packet's ECN field on arrival, two bits of the IP header (RFC 3168, Sec. 5): 3 is Congestion Experienced.
  uint32_t ecn;
} eq_packet;

// Decisions and estimates of a controller. Unknown floating-point values are NaN.
typedef struct eq_controller_status {
  // sizeof(eq_controller_status), set by the caller.
  size_t struct_size;
  // The rate of IP packets that the controller allows, in bit/s.
  uint64_t rate_bps;
  // The pacing rate, at which the packets of a frame may be sent, in bit/s.
  uint64_t pace_bps;
  // Maximum bytes in flight; EQ_OPEN if the controller sets no limit.
  uint64_t window_bytes;
  // Bytes that were sent and neither acknowledged nor lost.
  uint64_t in_flight_bytes;
  // The last measured round-trip time, in ns; before the first measurement, an assumed value.
  int64_t round_trip_ns;
  // Number of feedback reports that were applied.
  uint64_t reports;
  // Number of feedback reports that were refused, because they report the arrival of packets that were never sent.
  uint64_t refused;
  // The controller's mode: "delay" (it keeps the queueing delay at the target), "rival" (it competes with a flow
  // that fills the queue) or "policed" (it stays below the rate of a policer, or tests for one); NULL for a
  // controller without modes. The text belongs to the library.
  const char *mode;
  // The controller's estimate of the bottleneck's capacity, in bit/s.
  double capacity_bps;
  // The controller's estimate of the available rate, from the rate at which trains of packets arrive, in bit/s.
  double available_bps;
  // The controller's estimate of the round-trip time without queueing, in s.
  double base_s;
  // The controller's estimate of the present queueing delay, in s.
  double queue_s;
  // The queueing delay that the controller aims at, in s.
  double target_s;
} eq_controller_status;

// Options of a receiver. Set struct_size and key; a field that is 0 has its default.
typedef struct eq_receiver_options {
  // sizeof(eq_receiver_options).
  size_t struct_size;
  // The key that both hosts share, in base64 as written by `equipoise keygen`. NULL only if insecure is set.
  const char *key;
  // 1 for sessions without encryption and authentication, which anybody can read and forge.
  int32_t insecure;
  // Maximum number of sessions at the same time; default 1000.
  uint32_t most_sessions;
  // A session ends if no packet arrives from its sender for this time, in ns; default 30 s. Before the first packet,
  // the limit is at most 5 s.
  int64_t idle_ns;
  // Maximum time for which a missing packet delays the delivery of later packets, in ns; default 100 ms.
  int64_t hold_ns;
} eq_receiver_options;

// Information about a received payload.
typedef struct eq_received {
  // sizeof(eq_received), set by the caller.
  size_t struct_size;
  // Number of packets that are missing directly before this payload, because they were lost in the network or not
  // read in time.
  uint64_t missing;
  // The time at which the payload arrived, in ns since the Unix epoch, by a clock that never jumps. If the payload
  // waited for earlier packets, this is the time at which the wait ended.
  int64_t at_unix_ns;
} eq_received;

// State of a session at the receiver. Unknown floating-point values are NaN.
typedef struct eq_session_status {
  // sizeof(eq_session_status), set by the caller.
  size_t struct_size;
  // Number of the session. A receiver counts its sessions from 0.
  uint64_t number;
  // The SSRC of the session's packets.
  uint32_t ssrc;
  // EQ_PAYLOAD_STREAM or EQ_PAYLOAD_RTP; -1 if the payload is zeros, which `equipoise send` sends to load a path.
  int32_t payload;
  // Number of packets received.
  uint64_t packets;
  // Bytes of the packets received, with IP headers.
  uint64_t bytes;
  // Number of packets whose payload is missing, because they were lost or arrived too late.
  uint64_t missing;
  // Number of packets whose payload was dropped because the program did not read it in time.
  uint64_t dropped;
  // Mean delay of the packets in the last report interval, minus the delay of the session's first packet, in s.
  double delay_mean_s;
  // Standard deviation of the delay in the last report interval, in s.
  double delay_deviation_s;
  // EQ_GOES_ON, or the reason why the session ended.
  int32_t end;
} eq_session_status;

// Options of a sender's session. Set struct_size and key; a field that is 0 has its default.
typedef struct eq_sender_options {
  // sizeof(eq_sender_options).
  size_t struct_size;
  // The key that both hosts share, in base64 as written by `equipoise keygen`. NULL only if insecure is set.
  const char *key;
  // 1 for a session without encryption and authentication, which anybody can read and forge.
  int32_t insecure;
  // Kind of payload: EQ_PAYLOAD_STREAM or EQ_PAYLOAD_RTP.
  int32_t payload;
  // The controller's name; NULL for "equipoise".
  const char *controller;
  // The controller's parameters: texts of the form "name=value", such as "max_rate=5 Mbit/s".
  const char *const *parameters;
  // Number of texts in `parameters`.
  size_t parameter_count;
  // Maximum size of an IP packet in bytes, with headers; default 1200.
  uint32_t packet_size;
  // The SSRC of the packets; 0 for a random SSRC. With the payload EQ_PAYLOAD_RTP, the SSRC must not be 0.
  uint32_t ssrc;
  // RTP payload type for the payload EQ_PAYLOAD_STREAM; default 96.
  uint32_t payload_type;
  // Interval at which the sender requests reports from the receiver, in ns; default 1 s.
  int64_t report_interval_ns;
  // How long eq_sender_open waits for the receiver's answer, in ns; default 5 s.
  int64_t patience_ns;
} eq_sender_options;

// State of a sender's session. The measurements are those of the receiver's last report. Unknown floating-point values
// are NaN.
typedef struct eq_sender_status {
  // sizeof(eq_sender_status), set by the caller.
  size_t struct_size;
  // The rate of IP packets that the controller allows, in bit/s.
  uint64_t rate_bps;
  // The rate for an encoder, in bit/s: the controller's rate minus the rate of the headers.
  uint64_t media_rate_bps;
  // Bytes that were written and have not been sent yet.
  uint64_t waiting_bytes;
  // Number of reports that have arrived from the receiver.
  uint64_t reports;
  // Number of packets that were sent but not received, since the session began; 0 before the first report.
  uint64_t lost;
  // Share of the packets in the last report interval that were lost, 0 to 1.
  double fraction_lost;
  // Mean queueing delay in the last report interval, in s.
  double delay_mean_s;
  // Standard deviation of the queueing delay in the last report interval, in s.
  double delay_deviation_s;
  // The last measured round-trip time, in s.
  double round_trip_s;
  // 1 if the session is over.
  int32_t is_over;
  // The reason for the rate, as in eq_controller_why; "" until a report has arrived and the controller has decided.
  // The text belongs to the library.
  const char *why;
} eq_sender_status;

// Final counters of a session.
typedef struct eq_sender_summary {
  // sizeof(eq_sender_summary), set by the caller.
  size_t struct_size;
  // Number of media packets sent.
  uint64_t packets;
  // Bytes of the media packets sent, with IP headers.
  uint64_t bytes;
  // Number of packets that were lost according to the last report.
  uint64_t lost;
  // 1 if the receiver ended the session.
  int32_t ended_by_peer;
} eq_sender_summary;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the library at run time; EQ_VERSION is the version of the header. The text belongs to the
// library.
const char *eq_version(void);

// Returns the name of a result code, such as "EQ_E_PEER"; never NULL. The text belongs to the library.
const char *eq_error_name(int32_t code);

// Returns the meaning of a result code, as a short English text; never NULL. The text belongs to the library.
const char *eq_strerror(int32_t code);

// Returns a text in English that describes the last error in this thread and says how to correct it; never NULL. The
// text is valid until another call in this thread fails.
const char *eq_last_error_message(void);

// Returns the number of controllers in the library.
size_t eq_controller_count(void);

// Returns the name of controller `index`, which counts from 0; NULL if `index` is too large. The text belongs to the
// library.
const char *eq_controller_name(size_t index);

// Returns one line: what controller `index` does, and in parentheses the publication that defines it. Returns NULL if
// `index` is too large. The text belongs to the library.
const char *eq_controller_summary(size_t index);

// Returns the number of parameters of controller `index`; 0 if `index` is too large.
size_t eq_controller_parameter_count(size_t index);

// Describes parameter `number` of controller `index` in `*parameter`. Both numbers count from 0. Set
// parameter->struct_size before the call. Returns EQ_OK, EQ_END if one of the numbers is too large, or EQ_E_ARGUMENT.
//
// # Safety
// `parameter` is null, or points to a structure that begins with its size and has that number of writable bytes.
eq_error eq_controller_parameter(size_t index,
                                 size_t number,
                                 struct eq_parameter *parameter);

// Creates the controller `name` with `count` parameter texts of the form "name=value", such as "max_rate=5 Mbit/s".
// `now_ns` is the present time of the caller's monotonic clock, in ns from any origin. `options` may be NULL. Free the
// controller with eq_controller_free.
//
// Returns EQ_OK, EQ_E_NAME for an unknown controller or parameter, EQ_E_VALUE for an invalid value or for a controller
// that does not work with per-packet feedback, or EQ_E_ARGUMENT.
//
// # Safety
// `name` is a C string, `parameters` points to `count` C strings, `options` begins with its size, and `controller` is
// writable. Each pointer may be null.
eq_error eq_controller_new(const char *name,
                           const char *const *parameters,
                           size_t count,
                           const struct eq_controller_options *options,
                           int64_t now_ns,
                           struct eq_controller **controller);

// Frees a controller; NULL is allowed.
//
// # Safety
// `controller` is null or from eq_controller_new, and is not used during or after this call.
void eq_controller_free(struct eq_controller *controller);

// Reports that a packet of `size` bytes, with all headers, was sent at `now_ns`. `number` identifies the packet in
// feedback. For EQ_FEEDBACK_TWCC it is the transport-wide sequence number, and for EQ_FEEDBACK_RFC8888 the RTP
// sequence number. Only the lower 16 bits of a sequence number are used. For EQ_FEEDBACK_ARRIVALS and EQ_FEEDBACK_ACKS
// it is any number that increases from packet to packet. `ssrc` is the packet's SSRC and is only used for
// EQ_FEEDBACK_RFC8888.
//
// # Safety
// `controller` is null or a controller that no other thread uses at the same time.
eq_error eq_controller_sent(struct eq_controller *controller,
                            int64_t now_ns,
                            uint32_t ssrc,
                            uint64_t number,
                            size_t size);

// Reports that a frame of `size` bytes was queued at `now_ns` behind `waiting` bytes of earlier frames. The oldest of
// these bytes has waited for `waited_ns`. Some controllers use this report to keep the delay of frames short.
//
// # Safety
// `controller` is null or a controller that no other thread uses at the same time.
eq_error eq_controller_frame(struct eq_controller *controller,
                             int64_t now_ns,
                             size_t size,
                             size_t waiting,
                             int64_t waited_ns);

// Reports that nothing waits to be sent from `now_ns` on. This tells the controller that the application, and not the
// rate, limits the sender. Call this function whenever the last waiting packet has been sent.
//
// # Safety
// `controller` is null or a controller that no other thread uses at the same time.
eq_error eq_controller_idle(struct eq_controller *controller,
                            int64_t now_ns);

// Processes a decrypted RTCP datagram that arrived at `now_ns`, for a controller that was created with
// EQ_FEEDBACK_TWCC or EQ_FEEDBACK_RFC8888. Only feedback of the controller's kind is applied. Other RTCP packets are
// ignored.
//
// Returns EQ_OK, EQ_E_FEEDBACK if the datagram or its feedback is malformed or if the feedback reports the arrival of
// packets that were never sent, EQ_E_STATE if the controller was created with EQ_FEEDBACK_ARRIVALS or
// EQ_FEEDBACK_ACKS, EQ_E_HANDLE or EQ_E_ARGUMENT.
//
// # Safety
// `controller` is null or a controller that no other thread uses at the same time; `data` has `length` readable bytes.
eq_error eq_controller_rtcp(struct eq_controller *controller,
                            int64_t now_ns,
                            const uint8_t *data,
                            size_t length);

// Reports packets as arrived or lost, in any order, to a controller that was created with EQ_FEEDBACK_ARRIVALS or
// EQ_FEEDBACK_ACKS. `now_ns` is the time at which the sender received this information. Report each packet, including
// lost packets. A packet that was reported as lost may later be reported as arrived.
//
// Returns EQ_OK, EQ_E_FEEDBACK if a packet that was never sent is reported as arrived, EQ_E_STATE if the controller
// was created with EQ_FEEDBACK_TWCC or EQ_FEEDBACK_RFC8888, EQ_E_HANDLE or EQ_E_ARGUMENT. After an error, no packet of
// the array is applied.
//
// # Safety
// `controller` is null or a controller that no other thread uses at the same time; `packets` has `count` items.
eq_error eq_controller_packets(struct eq_controller *controller,
                               int64_t now_ns,
                               const struct eq_packet *packets,
                               size_t count);

// Returns the time at which to call eq_controller_on_timer; EQ_NEVER if no call is needed. Other calls for this
// controller may change this time.
//
// # Safety
// `controller` is null or a controller that no other thread uses at the same time.
int64_t eq_controller_next_timer_ns(const struct eq_controller *controller);

// Advances the controller's time to `now_ns`. A call that is too early or not needed is harmless.
//
// # Safety
// `controller` is null or a controller that no other thread uses at the same time.
eq_error eq_controller_on_timer(struct eq_controller *controller, int64_t now_ns);

// Returns the present rate of IP packets, in bit/s; 0 for NULL. An encoder must use a lower rate, because this rate
// includes the packet headers.
//
// # Safety
// `controller` is null or a controller that no other thread uses at the same time.
uint64_t eq_controller_rate_bps(const struct eq_controller *controller);

// Returns the time at which the next packet may be sent: `now_ns` if it may be sent now, a later time, or EQ_NEVER
// while the window is full or the rate is 0. After EQ_NEVER, feedback or the timer can allow a packet again.
//
// # Safety
// `controller` is null or a controller that no other thread uses at the same time.
int64_t eq_controller_next_departure_ns(const struct eq_controller *controller,
                                        int64_t now_ns);

// Returns the reason for the present rate, as lower-case words joined by hyphens, such as "law", "overload" or
// "unproved"; "" before the first decision and for NULL. The text belongs to the library.
//
// # Safety
// `controller` is null or a controller that no other thread uses at the same time.
const char *eq_controller_why(const struct eq_controller *controller);

// Stores the controller's decisions and estimates in `*status`. Set status->struct_size before the call.
//
// # Safety
// `controller` is null or a controller that no other thread uses at the same time; `status` is null, or points to a
// structure that begins with its size and has that number of writable bytes.
eq_error eq_controller_get_status(const struct eq_controller *controller,
                                  struct eq_controller_status *status);

// Creates a pacer that allows the first packet immediately. `now_ns` is the present time of the caller's monotonic
// clock. Free the pacer with eq_pacer_free.
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
// `pacer` is null or from eq_pacer_new, and is not used during or after this call.
void eq_pacer_free(struct eq_pacer *pacer);

// Sets the rate of IP packets, in bit/s. The new rate also applies to the gap after the packet that was sent last. At
// rate 0 no packet may be sent.
//
// # Safety
// `pacer` is null or a pacer that no other thread uses at the same time.
eq_error eq_pacer_set_rate(struct eq_pacer *pacer,
                           uint64_t rate_bps);

// Returns the time at which the next packet may be sent: `now_ns` if it may be sent now, a later time, or EQ_NEVER if
// the rate is 0 or `pacer` is NULL.
//
// # Safety
// `pacer` is null or a pacer that no other thread uses at the same time.
int64_t eq_pacer_next_ns(const struct eq_pacer *pacer,
                         int64_t now_ns);

// Reports that a packet of `size` bytes, IP header included, was sent at `now_ns`.
//
// # Safety
// `pacer` is null or a pacer that no other thread uses at the same time.
eq_error eq_pacer_sent(struct eq_pacer *pacer, int64_t now_ns, size_t size);

// Reports that there was nothing to send until `now_ns`. The next packet is then due at `now_ns` at the earliest, so
// that the following packets are not sent faster to make up for the pause.
//
// # Safety
// `pacer` is null or a pacer that no other thread uses at the same time.
eq_error eq_pacer_idle(struct eq_pacer *pacer,
                       int64_t now_ns);

// Opens a receiver at the local address "host:port". For port 0 the system chooses a free port. Close the receiver
// with eq_receiver_close.
//
// Returns EQ_OK, EQ_E_SYSTEM if the address is not available, EQ_E_KEY or EQ_E_ARGUMENT.
//
// # Safety
// `address` and the strings in `options` end with a zero byte, `options` begins with its size, and `receiver` is
// writable. Each pointer may be null.
eq_error eq_receiver_open(const char *address,
                          const struct eq_receiver_options *options,
                          struct eq_receiver **receiver);

// Returns the UDP port of the receiver; 0 for NULL.
//
// # Safety
// `receiver` is null or open.
uint16_t eq_receiver_port(const struct eq_receiver *receiver);

// Returns a descriptor that is readable while a session waits to be accepted; -1 for NULL. The descriptor belongs to
// the receiver: do not read or close it.
//
// # Safety
// `receiver` is null or open.
int32_t eq_receiver_fd(const struct eq_receiver *receiver);

// Accepts the next session that a sender opened, and stores it in `*session`. Waits at most `timeout_ms` milliseconds:
// 0 does not wait, a negative value waits without limit. Close the session with eq_session_close. Up to 128 sessions
// may wait to be accepted.
//
// Returns EQ_OK, EQ_AGAIN, EQ_END after eq_receiver_stop or if the receiver failed, EQ_E_SYSTEM if the system has no
// descriptor left for the session, EQ_E_HANDLE or EQ_E_ARGUMENT.
//
// # Safety
// `receiver` is null or open; `session` is null or writable.
eq_error eq_receiver_accept(const struct eq_receiver *receiver,
                            int32_t timeout_ms,
                            struct eq_session **session);

// Makes all waiting and all later calls of eq_receiver_accept return EQ_END. May be called from any thread.
//
// # Safety
// `receiver` is null or open.
eq_error eq_receiver_stop(const struct eq_receiver *receiver);

// Ends all sessions with an RTCP BYE packet, releases the port, and frees the receiver; NULL is allowed. Data that
// accepted sessions have received can still be read.
//
// Returns EQ_OK, or EQ_E_SYSTEM if the receiver failed before this call.
//
// # Safety
// `receiver` is null or open, and no other call uses `receiver` during or after this call.
eq_error eq_receiver_close(struct eq_receiver *receiver);

// Reads the next payload into `buffer`, which has `capacity` bytes, and stores the payload's length in `*length`. The
// payload is the next bytes of the stream, or one RTP packet. A buffer of EQ_PAYLOAD_MAX bytes is always long enough.
// Waits at most `timeout_ms` milliseconds: 0 does not wait, a negative value waits without limit. `received` may be
// NULL; otherwise set received->struct_size before the call.
//
// Returns one of these codes: EQ_OK; EQ_AGAIN; EQ_END after eq_session_stop, or if the session is over and all data
// was read; EQ_E_BUFFER if the payload is longer than the buffer (the payload can then still be read); EQ_E_HANDLE;
// EQ_E_ARGUMENT.
//
// # Safety
// `session` is null or open; `buffer` has `capacity` writable bytes, `length` is writable, and `received` begins with
// its size. Each pointer may be null.
eq_error eq_session_read(const struct eq_session *session,
                         void *buffer,
                         size_t capacity,
                         size_t *length,
                         struct eq_received *received,
                         int32_t timeout_ms);

// Returns a descriptor that is readable while there is payload to read, and after the end of the session; -1 for NULL.
// The descriptor belongs to the session: do not read or close it.
//
// # Safety
// `session` is null or open.
int32_t eq_session_fd(const struct eq_session *session);

// Returns the address that the sender had when it opened the session, as "address:port"; "" for NULL. The text belongs
// to the session.
//
// # Safety
// `session` is null or open.
const char *eq_session_peer(const struct eq_session *session);

// Stores the state of the session in `*status`. Set status->struct_size before the call.
//
// # Safety
// `session` is null or open; `status` is null, or points to a structure that begins with its size and has that number
// of writable bytes.
eq_error eq_session_get_status(const struct eq_session *session,
                               struct eq_session_status *status);

// Requests a key frame from the sender, because the decoder cannot continue without one. If the sender uses this
// library, its eq_sender_events then returns EQ_EVENT_KEY_FRAME. At most one request is sent per 0.3 s. May be called
// from any thread.
//
// # Safety
// `session` is null or open.
eq_error eq_session_request_key_frame(const struct eq_session *session);

// Makes all waiting and all later calls of eq_session_read return EQ_END. May be called from any thread.
//
// # Safety
// `session` is null or open.
eq_error eq_session_stop(const struct eq_session *session);

// Frees a session; NULL is allowed. The sender is not notified, and continues to send until it ends the session.
//
// # Safety
// `session` is null or open, and no other call uses `session` during or after this call.
void eq_session_close(struct eq_session *session);

// Opens a session to the receiver at "host:port", and waits for the receiver's answer. The receiver is `equipoise
// receive` or a program that uses eq_receiver_open or the Rust library. Close the session with eq_sender_close.
//
// Returns EQ_OK, EQ_E_PEER if no receiver with the same key answers or if the receiver refuses the session, EQ_E_KEY,
// EQ_E_NAME, EQ_E_VALUE, EQ_E_ARGUMENT or EQ_E_SYSTEM.
//
// # Safety
// `address` and the strings in `options` end with a zero byte, `options` begins with its size, and `sender` is
// writable. Each pointer may be null.
eq_error eq_sender_open(const char *address,
                        const struct eq_sender_options *options,
                        struct eq_sender **sender);

// Queues the next bytes of the stream, or one RTP packet, for sending: all of the data or nothing. Waits at most
// `timeout_ms` milliseconds for space in the queue: 0 does not wait, a negative value waits without limit. For live
// media use 0, and skip the frame if the result is EQ_AGAIN, because it would arrive late.
//
// Returns EQ_OK, EQ_AGAIN, EQ_E_ARGUMENT or EQ_E_HANDLE. Returns EQ_END if the session is over or eq_sender_stop was
// called. Returns EQ_E_LENGTH if `length` is above EQ_PAYLOAD_MAX.
//
// # Safety
// `sender` is null or open; `data` has `length` bytes.
eq_error eq_sender_write(const struct eq_sender *sender,
                         const void *data,
                         size_t length,
                         int32_t timeout_ms);

// Returns a descriptor; -1 for NULL. After an event (EQ_EVENT_...), the descriptor is readable until the next call of
// eq_sender_events. After EQ_EVENT_END the descriptor stays readable. The descriptor belongs to the sender: do not
// read or close it.
//
// # Safety
// `sender` is null or open.
int32_t eq_sender_fd(const struct eq_sender *sender);

// Returns the events since the last call of this function, as a combination of EQ_EVENT_... bits; 0 if there was no
// event, and for NULL. Once the session is over, every call returns EQ_EVENT_END. EQ_EVENT_ROOM only occurs after
// eq_sender_write returned EQ_AGAIN.
//
// # Safety
// `sender` is null or open.
uint32_t eq_sender_events(const struct eq_sender *sender);

// Returns the present rate for an encoder, in bit/s: the controller's rate minus the rate of the headers; 0 for NULL.
//
// # Safety
// `sender` is null or open.
uint64_t eq_sender_media_rate_bps(const struct eq_sender *sender);

// Stores the state of the session in `*status`. Set status->struct_size before the call.
//
// # Safety
// `sender` is null or open; `status` is null, or points to a structure that begins with its size and has that number
// of writable bytes.
eq_error eq_sender_get_status(const struct eq_sender *sender,
                              struct eq_sender_status *status);

// Makes all waiting and all later calls of eq_sender_write return EQ_END. May be called from any thread. A later
// eq_sender_close discards the data that has not been sent yet. Before eq_sender_close, wait until the calls of all
// other threads for this sender have returned.
//
// # Safety
// `sender` is null or open.
eq_error eq_sender_stop(const struct eq_sender *sender);

// Sends the waiting data for at most `timeout_ms` milliseconds (a negative value: without limit), ends the session
// with an RTCP BYE packet, and frees the sender; NULL is allowed. `summary` may be NULL; otherwise set
// summary->struct_size before the call.
//
// Returns EQ_OK, EQ_AGAIN if the session did not end within the timeout or if the sender was stopped, EQ_E_SYSTEM if
// the session failed before this call, or EQ_E_ARGUMENT. The sender is freed in any case.
//
// # Safety
// `sender` is null or open, and no other call uses `sender` during or after this call. `summary` is null, or points to
// a structure that begins with its size and has that number of writable bytes.
eq_error eq_sender_close(struct eq_sender *sender,
                         int32_t timeout_ms,
                         struct eq_sender_summary *summary);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* EQUIPOISE_H */
