/* Equipoise for C: rate controllers, a pacer, and media between hosts. Flow pairs are in equipoise_pair.h.
 * Written by `cargo xtask generate`; changes made here are lost.
 *
 * Times are nanoseconds of a monotonic clock, rates bits per second, sizes bytes of IP packets. A call that can fail returns
 * EQ_OK or a negative code; eq_last_error_message says what exactly was wrong. NULL is never followed, and nothing is thrown or
 * aborted. Structures begin with struct_size, which the caller sets to their sizeof: so they can grow. */

#ifndef EQUIPOISE_H
#define EQUIPOISE_H

#include <stddef.h>
#include <stdint.h>

/* The version of this header as a text; eq_version is that of the library. */
#define EQ_VERSION_TEXT_(number) #number
#define EQ_VERSION_TEXT(major, minor, patch) \
    EQ_VERSION_TEXT_(major) "." EQ_VERSION_TEXT_(minor) "." EQ_VERSION_TEXT_(patch)
#define EQ_VERSION EQ_VERSION_TEXT(EQ_VERSION_MAJOR, EQ_VERSION_MINOR, EQ_VERSION_PATCH)

// The version of the header: a number of the soname, which changes when programs have to be built anew,
#define EQ_VERSION_MAJOR 0

// one that rises with what is added,
#define EQ_VERSION_MINOR 1

// and one that rises with what is mended.
#define EQ_VERSION_PATCH 0

// A time that never comes.
#define EQ_NEVER INT64_MAX

// Transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01), in eq_controller_rtcp.
#define EQ_FEEDBACK_TWCC 0

// Congestion control feedback (RFC 8888), in eq_controller_rtcp.
#define EQ_FEEDBACK_RFC8888 1

// Packets with their arrival times, in eq_controller_packets.
#define EQ_FEEDBACK_ARRIVALS 2

// Packets without arrival times, as acknowledgements tell them, in eq_controller_packets.
#define EQ_FEEDBACK_ACKS 3

// In place of an arrival time: the packet was lost.
#define EQ_LOST INT64_MIN

// In place of an arrival time: it arrived, and nobody knows when.
#define EQ_UNTIMED (INT64_MIN + 1)

// In place of a window: it is open.
#define EQ_OPEN UINT64_MAX

// A stream of bytes, such as an encoder's: it comes out in order, without the bounds of what was written.
#define EQ_PAYLOAD_STREAM 0

// Whole RTP packets, which come out as they were.
#define EQ_PAYLOAD_RTP 1

// The longest payload that is written or read at once, in bytes.
#define EQ_PAYLOAD_MAX 262144

// The session goes on.
#define EQ_GOES_ON 0

// The sender said goodbye.
#define EQ_GOODBYE 1

// The sender fell silent.
#define EQ_SILENCE 2

// The receiver was closed, or failed.
#define EQ_STOPPED 3

// The rate has changed.
#define EQ_EVENT_RATE 1

// A report came: the status is new.
#define EQ_EVENT_REPORT 2

// There is room, where there was none before.
#define EQ_EVENT_ROOM 4

// The session is over.
#define EQ_EVENT_END 8

// The receiver wants a key frame.
#define EQ_EVENT_KEY_FRAME 16

// What a call came to: EQ_OK, or a negative number. eq_last_error_message says what exactly was wrong, and what would be right.
enum eq_error
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // All is well.
  EQ_OK = 0,
  // NULL in place of a handle, a descriptor of no flow pair, or one that was closed.
  EQ_E_HANDLE = -1,
  // A null pointer, an address that cannot be read, a text that is not UTF-8, or a number out of its range.
  EQ_E_ARGUMENT = -2,
  // Another call has to come before, or was too early.
  EQ_E_STATE = -3,
  // The other host does not answer, or refuses.
  EQ_E_PEER = -4,
  // The session or flow is over, and all that came was read. This is how every reading ends.
  EQ_END = -5,
  // It is longer than can be sent at once; nothing was taken of it.
  EQ_E_LENGTH = -6,
  // The buffer is too short; what was to be read stays to be read.
  EQ_E_BUFFER = -7,
  // The system refused: a port that is taken, no threads, no descriptors.
  EQ_E_SYSTEM = -8,
  // A fault of the library's own.
  EQ_E_INTERNAL = -9,
  // There is nothing to read, or no room, within the time that was given: poll the descriptor, then call again.
  EQ_AGAIN = -10,
  // There is no controller or parameter of that name.
  EQ_E_NAME = -11,
  // A parameter's value is wrong, or does not fit to the others, or the controller cannot be used here.
  EQ_E_VALUE = -12,
  // It is no key.
  EQ_E_KEY = -13,
  // It is no feedback, or tells of packets that were never sent. It has no effect.
  EQ_E_FEEDBACK = -14,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum eq_error eq_error;
#else
typedef int32_t eq_error;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A controller and its pacer. One thread at a time may use it.
typedef struct eq_controller eq_controller;

// Spaces packets evenly. One thread at a time may use it.
typedef struct eq_pacer eq_pacer;

// Where sessions arrive. Threads may share it, but for its closing.
typedef struct eq_receiver eq_receiver;

// The sending end of a session. Threads may share it, but for its closing.
typedef struct eq_sender eq_sender;

// A session at a receiver, which it may outlive. Threads may share it, but for its closing.
typedef struct eq_session eq_session;

// A parameter of a controller. All texts are the library's.
typedef struct eq_parameter {
  // sizeof(eq_parameter), set by the caller.
  size_t struct_size;
  // Its name.
  const char *name;
  // What it is set to: "rate", "time", a number's unit, "number", or the words that it may be, with commas.
  const char *kind;
  // Its value where none is given; NULL where one has to be given.
  const char *standard;
  // Its smallest and its largest value; NULL for words.
  const char *least;
  // As least.
  const char *most;
  // What it means, and what turning it does.
  const char *meaning;
} eq_parameter;

// What a controller is made of beside its name and parameters. Set struct_size, and leave at 0 what is to be as usual.
typedef struct eq_controller_options {
  // sizeof(eq_controller_options).
  size_t struct_size;
  // The kind of feedback: one of EQ_FEEDBACK_..., of which transport-wide is 0.
  int32_t feedback;
  // Size of full IP packets in bytes, headers included; usually 1240.
  uint32_t packet_size;
  // Packets of a frame follow each other at so many times the rate; usually 1.5, and 1 at least.
  double pacing;
  // Length of an interval for controllers that decide by intervals, such as "ap"; usually 250 ms.
  int64_t interval_ns;
  // Not 0 if packets are sent as ECN-capable and feedback tells their marks.
  int32_t has_ecn;
} eq_controller_options;

// What became of a packet, for eq_controller_packets. This structure never grows.
typedef struct eq_packet {
  // The number that it had in eq_controller_sent.
  uint64_t number;
  // When it arrived, by the receiver's clock, from any zero; EQ_LOST or EQ_UNTIMED.
  int64_t arrival_ns;
  // The mark with which it arrived: the two bits of its IP header (RFC 3168, Sec. 5), 3 for congestion experienced.
  uint32_t ecn;
} eq_packet;

// What a controller has decided and believes. NaN is what it does not say.
typedef struct eq_controller_status {
  // sizeof(eq_controller_status), set by the caller.
  size_t struct_size;
  // The rate of IP packets, in bit/s.
  uint64_t rate_bps;
  // The rate at which single packets may follow each other, in bit/s.
  uint64_t pace_bps;
  // Bytes that may be under way; EQ_OPEN where the controller leaves that open.
  uint64_t window_bytes;
  // Bytes that are under way.
  uint64_t in_flight_bytes;
  // The last round trip; the one that is assumed before there is one.
  int64_t round_trip_ns;
  // Reports that had effect, and those that were refused.
  uint64_t reports;
  // As reports.
  uint64_t refused;
  // How the controller goes by what it believes: "delay", "rival" or "policed"; NULL if it does not say. The text is the library's.
  const char *mode;
  // The bottleneck's rate of service, in bit/s.
  double capacity_bps;
  // The rate at which trains of packets come through, in bit/s.
  double available_bps;
  // Round trip of the empty path, in s.
  double base_s;
  // The queueing delay, in s.
  double queue_s;
  // The queueing delay that is aimed at, in s.
  double target_s;
} eq_controller_status;

// What a receiver is made of. Set struct_size and key, and leave at 0 what is to be as usual.
typedef struct eq_receiver_options {
  // sizeof(eq_receiver_options).
  size_t struct_size;
  // What both hosts know, as `equipoise keygen` writes it: base64. NULL only if insecure is set.
  const char *key;
  // 1 for sessions that anybody may read and forge.
  int32_t insecure;
  // Sessions at once; usually 1000.
  uint32_t most_sessions;
  // How long a session may be silent before it is given up; usually 30 s.
  int64_t idle_ns;
  // How long a missing packet is waited for before what follows is given out; usually 100 ms.
  int64_t hold_ns;
} eq_receiver_options;

// What came with a payload.
typedef struct eq_received {
  // sizeof(eq_received), set by the caller.
  size_t struct_size;
  // Packets that are missing before it: lost on the way, or not read in time.
  uint64_t missing;
  // When it arrived, or became next in order, in ns since the Unix epoch, by a clock that never steps.
  int64_t at_unix_ns;
} eq_received;

// How a session stands. NaN is what is not known.
typedef struct eq_session_status {
  // sizeof(eq_session_status), set by the caller.
  size_t struct_size;
  // Counts the receiver's sessions, from 0.
  uint64_t number;
  // The source (SSRC) of its packets.
  uint32_t ssrc;
  // EQ_PAYLOAD_STREAM or EQ_PAYLOAD_RTP; -1 for zeros, which `equipoise send` sends as a load.
  int32_t payload;
  // Packets that came, and bytes of their IP packets.
  uint64_t packets;
  // As packets.
  uint64_t bytes;
  // Packets that are missing.
  uint64_t missing;
  // Packets whose payload was not read in time, and dropped.
  uint64_t dropped;
  // Mean of the delay less that of the first packet, over the last report, in s.
  double delay_mean_s;
  // Its standard deviation, in s.
  double delay_deviation_s;
  // EQ_GOES_ON, or why it is over.
  int32_t end;
} eq_session_status;

// What a session is made of. Set struct_size and key, and leave at 0 what is to be as usual.
typedef struct eq_sender_options {
  // sizeof(eq_sender_options).
  size_t struct_size;
  // What both hosts know, as `equipoise keygen` writes it: base64. NULL only if insecure is set.
  const char *key;
  // 1 for a session that anybody may read and forge.
  int32_t insecure;
  // EQ_PAYLOAD_STREAM or EQ_PAYLOAD_RTP.
  int32_t payload;
  // The controller's name; NULL for "equipoise".
  const char *controller;
  // Texts of the form "name=value", such as "max_rate=5 Mbit/s".
  const char *const *parameters;
  // How many there are.
  size_t parameter_count;
  // Size of the largest IP packets in bytes, headers included; usually 1200.
  uint32_t packet_size;
  // The source (SSRC) of the packets, which whole RTP packets have to have; 0 for one drawn by chance.
  uint32_t ssrc;
  // RTP payload type of a stream; usually 96.
  uint32_t payload_type;
  // Time between two requests for a report; usually 1 s.
  int64_t report_interval_ns;
  // How long the receiver's answer is waited for; usually 5 s.
  int64_t patience_ns;
} eq_sender_options;

// How a session stands, by the receiver's last report. NaN is what is not known.
typedef struct eq_sender_status {
  // sizeof(eq_sender_status), set by the caller.
  size_t struct_size;
  // The rate of IP packets that the controller allows, in bit/s.
  uint64_t rate_bps;
  // What of it headers leave for payload: what an encoder may give, in bit/s.
  uint64_t media_rate_bps;
  // Bytes that were written and have not left.
  uint64_t waiting_bytes;
  // Reports so far.
  uint64_t reports;
  // Packets that were sent and have not arrived, since the session began.
  uint64_t lost;
  // Share of the packets that were lost, 0 to 1.
  double fraction_lost;
  // Mean of the queueing delay, in s.
  double delay_mean_s;
  // Its standard deviation, in s.
  double delay_deviation_s;
  // The round trip, in s.
  double round_trip_s;
  // 1 once the session is over.
  int32_t is_over;
  // Why the rate is what it is, as eq_controller_why says it; "" before the first decision. The text is the library's.
  const char *why;
} eq_sender_status;

// What a session came to.
typedef struct eq_sender_summary {
  // sizeof(eq_sender_summary), set by the caller.
  size_t struct_size;
  // Media packets that were sent.
  uint64_t packets;
  // Bytes of their IP packets.
  uint64_t bytes;
  // Those that are known to be lost.
  uint64_t lost;
  // 1 if the receiver ended the session.
  int32_t ended_by_peer;
} eq_sender_summary;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library that is linked, as EQ_VERSION is that of the header. The text is the library's.
const char *eq_version(void);

// The name of a code, such as "EQ_E_PEER"; never NULL. The text is the library's.
const char *eq_error_name(int32_t code);

// What a code means, in a few words of English; never NULL. The text is the library's.
const char *eq_strerror(int32_t code);

// What was wrong with the last call of this thread that failed, and what would be right, in English; never NULL. The text is valid until
// another call of this thread fails.
const char *eq_last_error_message(void);

// How many controllers there are.
size_t eq_controller_count(void);

// The name of controller `index`, from 0; NULL beyond the last. The text is the library's.
const char *eq_controller_name(size_t index);

// What controller `index` does, and where it comes from, in one line; NULL beyond the last. The text is the library's.
const char *eq_controller_summary(size_t index);

// How many parameters controller `index` has; 0 beyond the last.
size_t eq_controller_parameter_count(size_t index);

// Parameter `number` of controller `index`, both from 0. Returns EQ_END beyond the last, or EQ_E_ARGUMENT.
//
// # Safety
// `parameter` is null, or begins with a `usize` and points to as many writable bytes as that says.
eq_error eq_controller_parameter(size_t index,
                                 size_t number,
                                 struct eq_parameter *parameter);

// Makes the controller `name`, with `count` texts of the form "name=value" such as "max_rate=5 Mbit/s", by a monotonic clock of the
// caller's that shows `now_ns`, from any zero. `options` may be NULL. Free it with eq_controller_free.
//
// Returns EQ_OK, EQ_E_NAME for a controller or parameter that there is not, EQ_E_VALUE for a value that cannot be or a controller that
// needs what feedback on packets does not provide, or EQ_E_ARGUMENT.
//
// # Safety
// `name` is a text, `parameters` are `count` texts, `options` begins with its size, `controller` can be written; each may be null.
eq_error eq_controller_new(const char *name,
                           const char *const *parameters,
                           size_t count,
                           const struct eq_controller_options *options,
                           int64_t now_ns,
                           struct eq_controller **controller);

// Frees a controller; NULL is allowed.
//
// # Safety
// `controller` is null or of eq_controller_new, and nobody uses it now or later.
void eq_controller_free(struct eq_controller *controller);

// A packet left at `now_ns`: of source `ssrc`, which counts for RFC 8888 alone, with this number, and of `size` bytes with all
// headers. The number is the one that feedback will name: the transport-wide one, the RTP sequence number of its source, or for
// arrays any that rises; of the first two the lower 16 bits count.
//
// # Safety
// `controller` is null or a controller that nobody else uses meanwhile.
eq_error eq_controller_sent(struct eq_controller *controller,
                            int64_t now_ns,
                            uint32_t ssrc,
                            uint64_t number,
                            size_t size);

// A frame of `size` bytes joins what waits to be sent: `waiting` bytes, the oldest of them for `waited_ns`. Some controllers keep the
// delay of frames short by it.
//
// # Safety
// As eq_controller_sent.
eq_error eq_controller_frame(struct eq_controller *controller,
                             int64_t now_ns,
                             size_t size,
                             size_t waiting,
                             int64_t waited_ns);

// Nothing waits to be sent since `now_ns`: it is the application that holds the sender back, and not the rate. Say so whenever the
// last packet has left.
//
// # Safety
// As eq_controller_sent.
eq_error eq_controller_idle(struct eq_controller *controller,
                            int64_t now_ns);

// A datagram of RTCP arrived at `now_ns`, decrypted. What in it is transport-wide feedback or RFC 8888, whichever the controller was
// made for, has effect; other packets are passed over.
//
// Returns EQ_OK, or EQ_E_FEEDBACK for what is malformed or tells of packets that were never sent.
//
// # Safety
// As eq_controller_sent; `data` is `length` bytes.
eq_error eq_controller_rtcp(struct eq_controller *controller,
                            int64_t now_ns,
                            const uint8_t *data,
                            size_t length);

// It became known at `now_ns` what became of these packets, in any order, for a controller that was made for arrays. Tell of each packet,
// also that it was lost; one that was taken to be lost may turn out to have arrived.
//
// Returns EQ_OK, or EQ_E_FEEDBACK where a packet is said to have arrived that was never sent: then nothing has effect.
//
// # Safety
// As eq_controller_sent; `packets` are `count`.
eq_error eq_controller_packets(struct eq_controller *controller,
                               int64_t now_ns,
                               const struct eq_packet *packets,
                               size_t count);

// When to call eq_controller_on_timer, if nothing else happens before; EQ_NEVER for never.
//
// # Safety
// As eq_controller_sent.
int64_t eq_controller_next_timer_ns(const struct eq_controller *controller);

// Time has come to `now_ns`; too early or without need does no harm.
//
// # Safety
// As eq_controller_sent.
eq_error eq_controller_on_timer(struct eq_controller *controller, int64_t now_ns);

// The rate of IP packets from now on, in bit/s; 0 for NULL. An encoder may have what headers leave of it.
//
// # Safety
// As eq_controller_sent.
uint64_t eq_controller_rate_bps(const struct eq_controller *controller);

// When the next packet may leave: `now_ns` for now, a later moment, or EQ_NEVER while the window is full or the rate 0: then feedback or
// the timer changes it.
//
// # Safety
// As eq_controller_sent.
int64_t eq_controller_next_departure_ns(const struct eq_controller *controller,
                                        int64_t now_ns);

// Why the rate is what it is, in lower-case words joined by hyphens, such as "law", "overload" or "unproved"; "" before the first
// decision and for NULL. The text is the library's.
//
// # Safety
// As eq_controller_sent.
const char *eq_controller_why(const struct eq_controller *controller);

// What the controller has decided and believes. Set status->struct_size before.
//
// # Safety
// As eq_controller_sent; `status` is null, or begins with its size and points to as many writable bytes.
eq_error eq_controller_get_status(const struct eq_controller *controller,
                                  struct eq_controller_status *status);

// Makes a pacer whose first packet may leave at once, by a monotonic clock of the caller's that shows `now_ns`. Free it with eq_pacer_free.
//
// Returns EQ_OK or EQ_E_ARGUMENT.
//
// # Safety
// `pacer` is null or can be written.
eq_error eq_pacer_new(uint64_t rate_bps,
                      int64_t now_ns,
                      struct eq_pacer **pacer);

// Frees a pacer; NULL is allowed.
//
// # Safety
// `pacer` is null or of eq_pacer_new, and nobody uses it now or later.
void eq_pacer_free(struct eq_pacer *pacer);

// Sets the rate of IP packets; it already holds for the gap behind the packet that left last. Nothing leaves at 0.
//
// # Safety
// `pacer` is null or a pacer that nobody else uses meanwhile.
eq_error eq_pacer_set_rate(struct eq_pacer *pacer,
                           uint64_t rate_bps);

// When the next packet may leave: `now_ns` for now, a later moment, or EQ_NEVER at a rate of 0 and for NULL.
//
// # Safety
// As eq_pacer_set_rate.
int64_t eq_pacer_next_ns(const struct eq_pacer *pacer,
                         int64_t now_ns);

// A packet of `size` bytes, IP header included, left at `now_ns`.
//
// # Safety
// As eq_pacer_set_rate.
eq_error eq_pacer_sent(struct eq_pacer *pacer, int64_t now_ns, size_t size);

// There was nothing to send until `now_ns`: a packet that was due before is due now, and not late.
//
// # Safety
// As eq_pacer_set_rate.
eq_error eq_pacer_idle(struct eq_pacer *pacer, int64_t now_ns);

// Receives at "host:port"; port 0 takes any free one. Close it with eq_receiver_close.
//
// Returns EQ_OK, EQ_E_SYSTEM where the address cannot be had, EQ_E_KEY or EQ_E_ARGUMENT.
//
// # Safety
// `address` is a text, `options` begins with its size and has texts, `receiver` can be written; each may be null.
eq_error eq_receiver_open(const char *address,
                          const struct eq_receiver_options *options,
                          struct eq_receiver **receiver);

// The UDP port at which it receives; 0 for NULL.
//
// # Safety
// `receiver` is null or open.
uint16_t eq_receiver_port(const struct eq_receiver *receiver);

// A descriptor that is readable while there is a session to accept. It is the receiver's: do not read or close it. -1 for NULL.
//
// # Safety
// `receiver` is null or open.
int32_t eq_receiver_fd(const struct eq_receiver *receiver);

// The next session that a sender has opened; waits for `timeout_ms`, not at all for 0, and for ever below 0. Close it with
// eq_session_close. 128 may wait to be accepted.
//
// Returns EQ_OK, EQ_AGAIN, EQ_END after eq_receiver_stop or where the receiver failed, EQ_E_HANDLE or EQ_E_ARGUMENT.
//
// # Safety
// `receiver` is null or open; `session` is null or can be written.
eq_error eq_receiver_accept(const struct eq_receiver *receiver,
                            int32_t timeout_ms,
                            struct eq_session **session);

// Ends each eq_receiver_accept that waits, now and later, with EQ_END; from any thread.
//
// # Safety
// `receiver` is null or open.
eq_error eq_receiver_stop(const struct eq_receiver *receiver);

// Says goodbye to all sessions, gives the port back, and frees the receiver; NULL is allowed. Sessions that were accepted give out what
// came, then end.
//
// Returns EQ_OK, or EQ_E_SYSTEM where the receiver had failed.
//
// # Safety
// `receiver` is null or open, and nobody else uses it now or later.
eq_error eq_receiver_close(struct eq_receiver *receiver);

// Reads the next payload into `buffer` of `capacity` bytes, and its length into `length`: the next bytes of the stream, or one RTP
// packet. EQ_PAYLOAD_MAX bytes always suffice. Waits for `timeout_ms`, not at all for 0, and for ever below 0. `received` may be NULL; set
// its struct_size before.
//
// Returns EQ_OK, EQ_AGAIN, EQ_END when the session is over and all was read, EQ_E_BUFFER where the payload stays to be read into a longer
// buffer, EQ_E_HANDLE or EQ_E_ARGUMENT.
//
// # Safety
// `session` is null or open; `buffer` is `capacity` writable bytes, `length` can be written, `received` begins with its size; each may be
// null.
eq_error eq_session_read(const struct eq_session *session,
                         void *buffer,
                         size_t capacity,
                         size_t *length,
                         struct eq_received *received,
                         int32_t timeout_ms);

// A descriptor that is readable while there is payload to read, and after the end. It is the session's: do not read or close it. -1 for
// NULL.
//
// # Safety
// `session` is null or open.
int32_t eq_session_fd(const struct eq_session *session);

// Where the session came from when it was opened, as "address:port"; "" for NULL. The text is the session's.
//
// # Safety
// `session` is null or open.
const char *eq_session_peer(const struct eq_session *session);

// How the session stands. Set status->struct_size before.
//
// # Safety
// `session` is null or open; `status` is null, or begins with its size and points to as many writable bytes.
eq_error eq_session_get_status(const struct eq_session *session,
                               struct eq_session_status *status);

// Asks the session's sender for a key frame, as the decoder cannot go on without one: its eq_sender_events says EQ_EVENT_KEY_FRAME. At most
// one request is sent in 0.3 s, from any thread.
//
// # Safety
// `session` is null or open.
eq_error eq_session_request_key_frame(const struct eq_session *session);

// Ends each eq_session_read that waits, now and later, with EQ_END; from any thread.
//
// # Safety
// `session` is null or open.
eq_error eq_session_stop(const struct eq_session *session);

// Frees a session; NULL is allowed. Its sender goes on until it ends it, unheard.
//
// # Safety
// `session` is null or open, and nobody else uses it now or later.
void eq_session_close(struct eq_session *session);

// Opens a session to a receiver at "host:port": `equipoise receive`, eq_receiver_open, or the Rust library's. Waits for its answer.
// Close it with eq_sender_close.
//
// Returns EQ_OK, EQ_E_PEER where nobody answers who knows the key, EQ_E_KEY, EQ_E_NAME, EQ_E_VALUE, EQ_E_ARGUMENT or EQ_E_SYSTEM.
//
// # Safety
// `address` is a text, `options` begins with its size and has texts, `sender` can be written; each may be null.
eq_error eq_sender_open(const char *address,
                        const struct eq_sender_options *options,
                        struct eq_sender **sender);

// Sends the next bytes of the stream or one RTP packet, all or nothing. Waits for room for `timeout_ms`; not at all for 0, and for ever
// below 0. Live media writes with 0, and leaves out a frame on EQ_AGAIN: later it would be late.
//
// Returns EQ_OK, EQ_AGAIN, EQ_END where the session is over, EQ_E_LENGTH above EQ_PAYLOAD_MAX, EQ_E_ARGUMENT or EQ_E_HANDLE.
//
// # Safety
// `sender` is null or open; `data` is `length` bytes.
eq_error eq_sender_write(const struct eq_sender *sender,
                         const void *data,
                         size_t length,
                         int32_t timeout_ms);

// A descriptor that is readable when something of EQ_EVENT_... has happened, until eq_sender_events is called. It is the sender's: do not
// read or close it. -1 for NULL.
//
// # Safety
// `sender` is null or open.
int32_t eq_sender_fd(const struct eq_sender *sender);

// What has happened since the last call: some of EQ_EVENT_..., added up; 0 for nothing and for NULL. EQ_EVENT_ROOM comes after an EQ_AGAIN.
//
// # Safety
// `sender` is null or open.
uint32_t eq_sender_events(const struct eq_sender *sender);

// What an encoder may give now, in bit/s: the controller's rate without headers. 0 for NULL.
//
// # Safety
// `sender` is null or open.
uint64_t eq_sender_media_rate_bps(const struct eq_sender *sender);

// How the session stands. Set status->struct_size before.
//
// # Safety
// `sender` is null or open; `status` is null, or begins with its size and points to as many writable bytes.
eq_error eq_sender_get_status(const struct eq_sender *sender,
                              struct eq_sender_status *status);

// Ends each eq_sender_write that waits, now and later, with EQ_END; from any thread. Then join those threads and call eq_sender_close, which
// leaves unsent what waits.
//
// # Safety
// `sender` is null or open.
eq_error eq_sender_stop(const struct eq_sender *sender);

// Sends what waits, for `timeout_ms` at the most (below 0: as long as it takes), says goodbye, and frees the sender. `summary` may be
// NULL; set its struct_size before. NULL for the sender is allowed.
//
// Returns EQ_OK, EQ_AGAIN where the time was over before all was sent, or EQ_E_SYSTEM where the session had failed; the sender is freed
// in any case.
//
// # Safety
// `sender` is null or open, and nobody else uses it now or later; `summary` is null, or begins with its size and points to as many
// writable bytes.
eq_error eq_sender_close(struct eq_sender *sender,
                         int32_t timeout_ms,
                         struct eq_sender_summary *summary);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* EQUIPOISE_H */
