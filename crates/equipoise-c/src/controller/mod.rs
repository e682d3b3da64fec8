//! A rate controller for a program with its own network code. The program reports the packets that it sends and the
//! feedback that it receives; the controller returns a rate and the time at which the next packet may be sent.
//!
//! The handle uses a [`Guest`](equipoise_session::guest::Guest), which limits the rate to twice the delivery rate that
//! feedback shows, and which lowers the rate if no feedback arrives.

mod handle;

use std::ffi::c_char;
use std::ptr;

use equipoise::control::{Ecn, Fate, QueuedFrame};
use equipoise::units::{Size, Span};

use crate::border::{Growing, LONGEST_FRAME, bytes, fill, hand_out, many, options, word};
use crate::catalogue::build;
use crate::error::{Fault, eq_error, guarded, value};
use crate::time::{EQ_NEVER, arrival};

pub use handle::eq_controller;

/// Kind of feedback: transport-wide RTCP feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01), passed to
/// eq_controller_rtcp.
pub const EQ_FEEDBACK_TWCC: i32 = 0;
/// Kind of feedback: RTCP congestion control feedback (RFC 8888), passed to eq_controller_rtcp.
pub const EQ_FEEDBACK_RFC8888: i32 = 1;
/// Kind of feedback: arrays of packets with arrival times, passed to eq_controller_packets.
pub const EQ_FEEDBACK_ARRIVALS: i32 = 2;
/// Kind of feedback: acknowledgements without arrival times. Arrays of packets are passed to eq_controller_packets.
pub const EQ_FEEDBACK_ACKS: i32 = 3;

/// Value of eq_packet.arrival_ns for a packet that was lost.
pub const EQ_LOST: i64 = i64::MIN;
/// Value of eq_packet.arrival_ns for a packet that arrived at an unknown time.
pub const EQ_UNTIMED: i64 = i64::MIN + 1;
/// Value of eq_controller_status.window_bytes if the controller does not limit the bytes in flight.
pub const EQ_OPEN: u64 = u64::MAX;

/// Default size of a full packet with all headers, in bytes: a typical size for RTP packetisers.
const PACKET: u32 = 1240;

/// Options of a controller in addition to its name and parameters. Set struct_size; a field that is 0 has its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_controller_options {
    /// sizeof(eq_controller_options).
    pub struct_size: usize,
    /// The kind of feedback, one of EQ_FEEDBACK_...; default 0, which is EQ_FEEDBACK_TWCC.
    pub feedback: i32,
    /// Size of a full IP packet in bytes, with headers; default 1240.
    pub packet_size: u32,
    /// Pacing rate of the packets of a frame, as a multiple of the controller's rate; default 1.5. A value below 1
    /// means the default.
    pub pacing: f64,
    /// Time between two decisions of controllers that decide once per interval, such as "ap", in ns; default 250 ms.
    pub interval_ns: i64,
    /// Not 0 if packets are sent as ECN-capable and feedback reports their ECN marks.
    pub has_ecn: i32,
}

// SAFETY: the structure is `repr(C)`, its first field is its size, and all its other fields are numbers.
unsafe impl Growing for eq_controller_options {
    const NAME: &'static str = "eq_controller_options";

    fn standard() -> Self {
        let struct_size = size_of::<Self>();
        Self { struct_size, feedback: EQ_FEEDBACK_TWCC, packet_size: 0, pacing: 0.0, interval_ns: 0, has_ecn: 0 }
    }
}

/// A packet that arrived or was lost, for eq_controller_packets. Later versions add no fields to this structure.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_packet {
    /// The packet's number, as passed to eq_controller_sent.
    pub number: u64,
    /// The packet's arrival time by the receiver's clock, in ns from any origin, or EQ_LOST or EQ_UNTIMED.
    pub arrival_ns: i64,
    /// The packet's ECN field on arrival, two bits of the IP header (RFC 3168, Sec. 5): 3 is Congestion Experienced.
    pub ecn: u32,
}

/// Decisions and estimates of a controller. Unknown floating-point values are NaN.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_controller_status {
    /// sizeof(eq_controller_status), set by the caller.
    pub struct_size: usize,
    /// The rate of IP packets that the controller allows, in bit/s.
    pub rate_bps: u64,
    /// The pacing rate, at which the packets of a frame may be sent, in bit/s.
    pub pace_bps: u64,
    /// Maximum bytes in flight; EQ_OPEN if the controller sets no limit.
    pub window_bytes: u64,
    /// Bytes that were sent and neither acknowledged nor lost.
    pub in_flight_bytes: u64,
    /// The last measured round-trip time, in ns; before the first measurement, an assumed value.
    pub round_trip_ns: i64,
    /// Number of feedback reports that were applied.
    pub reports: u64,
    /// Number of feedback reports that were refused, because they report the arrival of packets that were never sent.
    pub refused: u64,
    /// The controller's mode: "delay" (it keeps the queueing delay at the target), "rival" (it competes with a flow
    /// that fills the queue) or "policed" (it stays below the rate of a policer, or tests for one); NULL for a
    /// controller without modes. The text belongs to the library.
    pub mode: *const c_char,
    /// The controller's estimate of the bottleneck's capacity, in bit/s.
    pub capacity_bps: f64,
    /// The controller's estimate of the available rate, from the rate at which trains of packets arrive, in bit/s.
    pub available_bps: f64,
    /// The controller's estimate of the round-trip time without queueing, in s.
    pub base_s: f64,
    /// The controller's estimate of the present queueing delay, in s.
    pub queue_s: f64,
    /// The queueing delay that the controller aims at, in s.
    pub target_s: f64,
}

// SAFETY: the structure is `repr(C)`, its first field is its size, and all its other fields are numbers and pointers.
unsafe impl Growing for eq_controller_status {
    const NAME: &'static str = "eq_controller_status";

    fn standard() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            rate_bps: 0,
            pace_bps: 0,
            window_bytes: EQ_OPEN,
            in_flight_bytes: 0,
            round_trip_ns: 0,
            reports: 0,
            refused: 0,
            mode: ptr::null(),
            capacity_bps: f64::NAN,
            available_bps: f64::NAN,
            base_s: f64::NAN,
            queue_s: f64::NAN,
            target_s: f64::NAN,
        }
    }
}

impl eq_packet {
    fn fate(&self) -> Fate {
        let ecn = match self.ecn & 3 {
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            3 => Ecn::Ce,
            _ => Ecn::NotEct,
        };
        match self.arrival_ns {
            EQ_LOST => Fate::Lost,
            EQ_UNTIMED => Fate::Arrived { at: None, ecn },
            at => Fate::Arrived { at: Some(arrival(at)), ecn },
        }
    }
}

/// Calls `body` with the controller. Returns `EQ_OK`, or the code of the error; a NULL controller is an error.
///
/// # Safety
/// `controller` is null or a controller that no other thread uses at the same time.
unsafe fn with(controller: *mut eq_controller, body: impl FnOnce(&mut eq_controller) -> Result<(), Fault>) -> eq_error {
    // SAFETY: the caller guarantees that the pointer is valid.
    guarded(|| body(unsafe { controller.as_mut() }.ok_or_else(Fault::no_handle)?))
}

/// Reads a value from the controller with `body`. Returns `none` if `controller` is NULL.
///
/// # Safety
/// `controller` is null or a controller that no other thread uses at the same time.
unsafe fn read<T>(controller: *const eq_controller, none: T, body: impl FnOnce(&eq_controller) -> T) -> T {
    // SAFETY: the caller guarantees that the pointer is valid.
    value(|| Ok(body(unsafe { controller.as_ref() }.ok_or_else(Fault::no_handle)?))).unwrap_or(none)
}

/// Creates the controller `name` with `count` parameter texts of the form "name=value", such as "max_rate=5 Mbit/s".
/// `now_ns` is the present time of the caller's monotonic clock, in ns from any origin. `options` may be NULL. Free the
/// controller with eq_controller_free.
///
/// Returns EQ_OK, EQ_E_NAME for an unknown controller or parameter, EQ_E_VALUE for an invalid value or for a controller
/// that does not work with per-packet feedback, or EQ_E_ARGUMENT.
///
/// # Safety
/// `name` is a C string, `parameters` points to `count` C strings, `options` begins with its size, and `controller` is
/// writable. Each pointer may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_new(
    name: *const c_char,
    parameters: *const *const c_char,
    count: usize,
    options: *const eq_controller_options,
    now_ns: i64,
    controller: *mut *mut eq_controller,
) -> eq_error {
    let make = || {
        // SAFETY: the caller guarantees that the pointer is valid.
        let make = unsafe { self::options(options) }?;
        let packet = if make.packet_size == 0 { PACKET } else { make.packet_size };
        // SAFETY: the caller guarantees that the pointers are valid.
        let built = unsafe { build(name, parameters, count, Size::from_bytes(packet.into())) }?;
        eq_controller::new(&make, built, now_ns)
    };
    // SAFETY: the caller guarantees that the pointer is valid.
    guarded(|| unsafe { hand_out(controller, make) })
}

/// Frees a controller; NULL is allowed.
///
/// # Safety
/// `controller` is null or from eq_controller_new, and is not used during or after this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_free(controller: *mut eq_controller) {
    if !controller.is_null() {
        // SAFETY: the pointer is from `Box::into_raw`, and the caller does not use it again.
        drop(unsafe { Box::from_raw(controller) });
    }
}

/// Reports that a packet of `size` bytes, with all headers, was sent at `now_ns`. `number` identifies the packet in
/// feedback. For EQ_FEEDBACK_TWCC it is the transport-wide sequence number, and for EQ_FEEDBACK_RFC8888 the RTP
/// sequence number. Only the lower 16 bits of a sequence number are used. For EQ_FEEDBACK_ARRIVALS and EQ_FEEDBACK_ACKS
/// it is any number that increases from packet to packet. `ssrc` is the packet's SSRC and is only used for
/// EQ_FEEDBACK_RFC8888.
///
/// # Safety
/// `controller` is null or a controller that no other thread uses at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_sent(
    controller: *mut eq_controller,
    now_ns: i64,
    ssrc: u32,
    number: u64,
    size: usize,
) -> eq_error {
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { with(controller, |this| this.on_sent(this.clock.time(now_ns), ssrc, number, size)) }
}

/// Reports that a frame of `size` bytes was queued at `now_ns` behind `waiting` bytes of earlier frames. The oldest of
/// these bytes has waited for `waited_ns`. Some controllers use this report to keep the delay of frames short.
///
/// # Safety
/// `controller` is null or a controller that no other thread uses at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_frame(
    controller: *mut eq_controller,
    now_ns: i64,
    size: usize,
    waiting: usize,
    waited_ns: i64,
) -> eq_error {
    let tell = |this: &mut eq_controller| {
        let (size, waiting) = (bytes(size, LONGEST_FRAME)?, bytes(waiting, LONGEST_FRAME)?);
        let frame = QueuedFrame::new(size, waiting, Span::from_nanos(waited_ns.max(0)));
        this.inner.on_frame(this.clock.time(now_ns), &frame);
        Ok(())
    };
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { with(controller, tell) }
}

/// Reports that nothing waits to be sent from `now_ns` on. This tells the controller that the application, and not the
/// rate, limits the sender. Call this function whenever the last waiting packet has been sent.
///
/// # Safety
/// `controller` is null or a controller that no other thread uses at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_idle(controller: *mut eq_controller, now_ns: i64) -> eq_error {
    let tell = |this: &mut eq_controller| {
        this.inner.on_idle(this.clock.time(now_ns));
        Ok(())
    };
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { with(controller, tell) }
}

/// Processes a decrypted RTCP datagram that arrived at `now_ns`, for a controller that was created with
/// EQ_FEEDBACK_TWCC or EQ_FEEDBACK_RFC8888. Only feedback of the controller's kind is applied. Other RTCP packets are
/// ignored.
///
/// Returns EQ_OK, EQ_E_FEEDBACK if the datagram or its feedback is malformed or if the feedback reports the arrival of
/// packets that were never sent, EQ_E_STATE if the controller was created with EQ_FEEDBACK_ARRIVALS or
/// EQ_FEEDBACK_ACKS, EQ_E_HANDLE or EQ_E_ARGUMENT.
///
/// # Safety
/// `controller` is null or a controller that no other thread uses at the same time; `data` has `length` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_rtcp(
    controller: *mut eq_controller,
    now_ns: i64,
    data: *const u8,
    length: usize,
) -> eq_error {
    let take = |this: &mut eq_controller| {
        // SAFETY: the caller guarantees that the bytes are readable.
        Ok(this.inner.on_rtcp(this.clock.time(now_ns), unsafe { many(data, length, "data") }?)?)
    };
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { with(controller, take) }
}

/// Reports packets as arrived or lost, in any order, to a controller that was created with EQ_FEEDBACK_ARRIVALS or
/// EQ_FEEDBACK_ACKS. `now_ns` is the time at which the sender received this information. Report each packet, including
/// lost packets. A packet that was reported as lost may later be reported as arrived.
///
/// Returns EQ_OK, EQ_E_FEEDBACK if a packet that was never sent is reported as arrived, EQ_E_STATE if the controller
/// was created with EQ_FEEDBACK_TWCC or EQ_FEEDBACK_RFC8888, EQ_E_HANDLE or EQ_E_ARGUMENT. After an error, no packet of
/// the array is applied.
///
/// # Safety
/// `controller` is null or a controller that no other thread uses at the same time; `packets` has `count` items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_packets(
    controller: *mut eq_controller,
    now_ns: i64,
    packets: *const eq_packet,
    count: usize,
) -> eq_error {
    let take = |this: &mut eq_controller| {
        // SAFETY: the caller guarantees that `packets` has `count` items.
        this.on_packets(this.clock.time(now_ns), unsafe { many(packets, count, "packets") }?)
    };
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { with(controller, take) }
}

/// Returns the time at which to call eq_controller_on_timer; EQ_NEVER if no call is needed. Other calls for this
/// controller may change this time.
///
/// # Safety
/// `controller` is null or a controller that no other thread uses at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_next_timer_ns(controller: *const eq_controller) -> i64 {
    let next = |this: &eq_controller| this.inner.next_timer().map_or(EQ_NEVER, |at| this.clock.nanos(at));
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { read(controller, EQ_NEVER, next) }
}

/// Advances the controller's time to `now_ns`. A call that is too early or not needed is harmless.
///
/// # Safety
/// `controller` is null or a controller that no other thread uses at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_on_timer(controller: *mut eq_controller, now_ns: i64) -> eq_error {
    let pass = |this: &mut eq_controller| {
        this.inner.on_timer(this.clock.time(now_ns));
        Ok(())
    };
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { with(controller, pass) }
}

/// Returns the present rate of IP packets, in bit/s; 0 for NULL. An encoder must use a lower rate, because this rate
/// includes the packet headers.
///
/// # Safety
/// `controller` is null or a controller that no other thread uses at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_rate_bps(controller: *const eq_controller) -> u64 {
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { read(controller, 0, |this| this.inner.guest().rate().as_bps()) }
}

/// Returns the time at which the next packet may be sent: `now_ns` if it may be sent now, a later time, or EQ_NEVER
/// while the window is full or the rate is 0. After EQ_NEVER, feedback or the timer can allow a packet again.
///
/// # Safety
/// `controller` is null or a controller that no other thread uses at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_next_departure_ns(controller: *const eq_controller, now_ns: i64) -> i64 {
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { read(controller, EQ_NEVER, |this| this.next_departure(now_ns)) }
}

/// Returns the reason for the present rate, as lower-case words joined by hyphens, such as "law", "overload" or
/// "unproved"; "" before the first decision and for NULL. The text belongs to the library.
///
/// # Safety
/// `controller` is null or a controller that no other thread uses at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_why(controller: *const eq_controller) -> *const c_char {
    let why =
        |this: &eq_controller| this.inner.guest().snapshot().reason.map_or(c"".as_ptr(), |reason| word(reason.name()));
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { read(controller, c"".as_ptr(), why) }
}

/// Stores the controller's decisions and estimates in `*status`. Set status->struct_size before the call.
///
/// # Safety
/// `controller` is null or a controller that no other thread uses at the same time; `status` is null, or points to a
/// structure that begins with its size and has that number of writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_get_status(
    controller: *const eq_controller,
    status: *mut eq_controller_status,
) -> eq_error {
    guarded(|| {
        // SAFETY: the caller guarantees that the pointer is valid.
        let this = unsafe { controller.as_ref() }.ok_or_else(Fault::no_handle)?;
        // SAFETY: the caller guarantees that the pointer is valid.
        unsafe { fill(status, this.status()) }
    })
}
