//! A controller in the caller's own stack. The caller reports packets sent and feedback; the controller returns a rate
//! and the next departure time.
//!
//! The handle is a [`Guest`](equipoise_session::guest::Guest): it limits the rate to twice the rate that feedback proved
//! to arrive, and lowers it if no feedback arrives.

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

/// Transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01), in eq_controller_rtcp.
pub const EQ_FEEDBACK_TWCC: i32 = 0;
/// Congestion control feedback (RFC 8888), in eq_controller_rtcp.
pub const EQ_FEEDBACK_RFC8888: i32 = 1;
/// Packets with their arrival times, in eq_controller_packets.
pub const EQ_FEEDBACK_ARRIVALS: i32 = 2;
/// Packets without arrival times, as in acknowledgements, in eq_controller_packets.
pub const EQ_FEEDBACK_ACKS: i32 = 3;

/// In place of an arrival time: the packet was lost.
pub const EQ_LOST: i64 = i64::MIN;
/// In place of an arrival time: the packet arrived at an unknown time.
pub const EQ_UNTIMED: i64 = i64::MIN + 1;
/// In place of a window: no limit.
pub const EQ_OPEN: u64 = u64::MAX;

/// Typical packet size of packetisers, with all headers.
const PACKET: u32 = 1240;

/// Options of a controller in addition to its name and parameters. Set struct_size; a field left at 0 has its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_controller_options {
    /// sizeof(eq_controller_options).
    pub struct_size: usize,
    /// The kind of feedback: one of EQ_FEEDBACK_...; 0 is transport-wide.
    pub feedback: i32,
    /// Size of full IP packets in bytes, headers included; default 1240.
    pub packet_size: u32,
    /// The packets of a frame are sent at this multiple of the rate; default 1.5, at least 1.
    pub pacing: f64,
    /// Interval length for controllers that decide once per interval, such as "ap"; default 250 ms.
    pub interval_ns: i64,
    /// Not 0 if packets are sent as ECN-capable and feedback reports their marks.
    pub has_ecn: i32,
}

// SAFETY: it is `repr(C)`, begins with its size, and has numbers otherwise.
unsafe impl Growing for eq_controller_options {
    const NAME: &'static str = "eq_controller_options";

    fn standard() -> Self {
        let struct_size = size_of::<Self>();
        Self { struct_size, feedback: EQ_FEEDBACK_TWCC, packet_size: 0, pacing: 0.0, interval_ns: 0, has_ecn: 0 }
    }
}

/// Fate of a packet, for eq_controller_packets. This structure never grows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_packet {
    /// Its number in eq_controller_sent.
    pub number: u64,
    /// Its arrival time by the receiver's clock, with any origin; EQ_LOST or EQ_UNTIMED.
    pub arrival_ns: i64,
    /// Its ECN field on arrival: two bits of the IP header (RFC 3168, Sec. 5), 3 for Congestion Experienced.
    pub ecn: u32,
}

/// Decisions and estimates of a controller. Unknown values are NaN.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_controller_status {
    /// sizeof(eq_controller_status), set by the caller.
    pub struct_size: usize,
    /// The rate of IP packets, in bit/s.
    pub rate_bps: u64,
    /// The rate at which single packets may be sent, in bit/s.
    pub pace_bps: u64,
    /// Maximum bytes in flight; EQ_OPEN if the controller sets no limit.
    pub window_bytes: u64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// The last round-trip time; before the first measurement an assumed one.
    pub round_trip_ns: i64,
    /// Number of reports that were applied.
    pub reports: u64,
    /// Number of reports that were refused.
    pub refused: u64,
    /// The controller's mode, from its estimates: "delay", "rival" or "policed"; NULL if it has none. The text belongs
    /// to the library.
    pub mode: *const c_char,
    /// The bottleneck's service rate, in bit/s.
    pub capacity_bps: f64,
    /// The rate at which trains of packets arrive, in bit/s.
    pub available_bps: f64,
    /// Round-trip time of the empty path, in s.
    pub base_s: f64,
    /// The queueing delay, in s.
    pub queue_s: f64,
    /// The target of the queueing delay, in s.
    pub target_s: f64,
}

// SAFETY: it is `repr(C)`, begins with its size, and has numbers and pointers otherwise.
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

/// Calls `body` with a handle.
///
/// # Safety
/// `controller` is null or a controller that no other thread uses at the same time.
unsafe fn with(controller: *mut eq_controller, body: impl FnOnce(&mut eq_controller) -> Result<(), Fault>) -> eq_error {
    // SAFETY: the caller vouches for the pointer.
    guarded(|| body(unsafe { controller.as_mut() }.ok_or_else(Fault::no_handle)?))
}

/// Reads a value from a handle; `none` for NULL.
///
/// # Safety
/// As [`with`].
unsafe fn read<T>(controller: *const eq_controller, none: T, body: impl FnOnce(&eq_controller) -> T) -> T {
    // SAFETY: the caller vouches for the pointer.
    value(|| Ok(body(unsafe { controller.as_ref() }.ok_or_else(Fault::no_handle)?))).unwrap_or(none)
}

/// Creates the controller `name` with `count` parameter texts of the form "name=value", such as "max_rate=5 Mbit/s".
/// `now_ns` is the present time of the caller's monotonic clock, with any origin. `options` may be NULL. Free it with
/// eq_controller_free.
///
/// Returns EQ_OK, EQ_E_NAME for an unknown controller or parameter, EQ_E_VALUE for an invalid value or a controller
/// that cannot work with per-packet feedback, or EQ_E_ARGUMENT.
///
/// # Safety
/// `name` is a text, `parameters` are `count` texts, `options` begins with its size, `controller` is writable; each may
/// be null.
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
        // SAFETY: the caller vouches for the pointer.
        let make = unsafe { self::options(options) }?;
        let packet = if make.packet_size == 0 { PACKET } else { make.packet_size };
        // SAFETY: the caller vouches for the pointers.
        let built = unsafe { build(name, parameters, count, Size::from_bytes(packet.into())) }?;
        eq_controller::new(&make, built, now_ns)
    };
    // SAFETY: the caller vouches for the pointer.
    guarded(|| unsafe { hand_out(controller, make) })
}

/// Frees a controller; NULL is allowed.
///
/// # Safety
/// `controller` is null or from eq_controller_new, and is not used now or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_free(controller: *mut eq_controller) {
    if !controller.is_null() {
        // SAFETY: it was made by `Box::into_raw`, and the caller gives it up.
        drop(unsafe { Box::from_raw(controller) });
    }
}

/// Reports that a packet of `size` bytes, with all headers, was sent at `now_ns`. `number` identifies it in feedback:
/// the transport-wide sequence number, the RTP sequence number of its source or, for arrays, any increasing number. Of
/// the first two only the lower 16 bits are used. `ssrc` is its source and is used for RFC 8888 only.
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
    // SAFETY: the caller vouches for the pointer.
    unsafe { with(controller, |this| this.on_sent(this.clock.time(now_ns), ssrc, number, size)) }
}

/// Reports that a frame of `size` bytes was queued behind `waiting` bytes, the oldest of which has waited for
/// `waited_ns`. Some controllers use this to keep the delay of frames short.
///
/// # Safety
/// As eq_controller_sent.
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
    // SAFETY: the caller vouches for the pointer.
    unsafe { with(controller, tell) }
}

/// Reports that nothing has waited to be sent since `now_ns`: the sender is limited by the application, not by the
/// rate. Call it whenever the last packet has been sent.
///
/// # Safety
/// As eq_controller_sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_idle(controller: *mut eq_controller, now_ns: i64) -> eq_error {
    let tell = |this: &mut eq_controller| {
        this.inner.on_idle(this.clock.time(now_ns));
        Ok(())
    };
    // SAFETY: the caller vouches for the pointer.
    unsafe { with(controller, tell) }
}

/// Handles a decrypted RTCP datagram that arrived at `now_ns`. Transport-wide feedback or RFC 8888 feedback in it is
/// applied, whichever the controller was created for; other packets are ignored.
///
/// Returns EQ_OK, or EQ_E_FEEDBACK if feedback is malformed or names packets that were never sent.
///
/// # Safety
/// As eq_controller_sent; `data` is `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_rtcp(
    controller: *mut eq_controller,
    now_ns: i64,
    data: *const u8,
    length: usize,
) -> eq_error {
    let take = |this: &mut eq_controller| {
        // SAFETY: the caller vouches for the bytes.
        Ok(this.inner.on_rtcp(this.clock.time(now_ns), unsafe { many(data, length, "data") }?)?)
    };
    // SAFETY: the caller vouches for the pointer.
    unsafe { with(controller, take) }
}

/// Reports the fate of packets, which became known at `now_ns`, in any order, to a controller created for arrays.
/// Report each packet, including lost ones; a packet reported as lost may later be reported as arrived.
///
/// Returns EQ_OK, or EQ_E_FEEDBACK if a packet that was never sent is reported as arrived: then nothing is applied.
///
/// # Safety
/// As eq_controller_sent; `packets` has `count` items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_packets(
    controller: *mut eq_controller,
    now_ns: i64,
    packets: *const eq_packet,
    count: usize,
) -> eq_error {
    let take = |this: &mut eq_controller| {
        // SAFETY: the caller vouches for them.
        this.on_packets(this.clock.time(now_ns), unsafe { many(packets, count, "packets") }?)
    };
    // SAFETY: the caller vouches for the pointer.
    unsafe { with(controller, take) }
}

/// When to call eq_controller_on_timer if nothing happens before; EQ_NEVER for never.
///
/// # Safety
/// As eq_controller_sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_next_timer_ns(controller: *const eq_controller) -> i64 {
    let next = |this: &eq_controller| this.inner.next_timer().map_or(EQ_NEVER, |at| this.clock.nanos(at));
    // SAFETY: the caller vouches for the pointer.
    unsafe { read(controller, EQ_NEVER, next) }
}

/// Advances the time to `now_ns`; calling it too early or without need is harmless.
///
/// # Safety
/// As eq_controller_sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_on_timer(controller: *mut eq_controller, now_ns: i64) -> eq_error {
    let pass = |this: &mut eq_controller| {
        this.inner.on_timer(this.clock.time(now_ns));
        Ok(())
    };
    // SAFETY: the caller vouches for the pointer.
    unsafe { with(controller, pass) }
}

/// The present rate of IP packets, in bit/s; 0 for NULL. The rate of an encoder is this rate minus headers.
///
/// # Safety
/// As eq_controller_sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_rate_bps(controller: *const eq_controller) -> u64 {
    // SAFETY: the caller vouches for the pointer.
    unsafe { read(controller, 0, |this| this.inner.guest().rate().as_bps()) }
}

/// When the next packet may be sent: `now_ns` for now, a later time, or EQ_NEVER while the window is full or the rate
/// is 0; then feedback or the timer changes it.
///
/// # Safety
/// As eq_controller_sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_next_departure_ns(controller: *const eq_controller, now_ns: i64) -> i64 {
    // SAFETY: the caller vouches for the pointer.
    unsafe { read(controller, EQ_NEVER, |this| this.next_departure(now_ns)) }
}

/// The reason for the rate, as lower-case words joined by hyphens, such as "law", "overload" or "unproved"; "" before
/// the first decision and for NULL. The text belongs to the library.
///
/// # Safety
/// As eq_controller_sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_why(controller: *const eq_controller) -> *const c_char {
    let why =
        |this: &eq_controller| this.inner.guest().snapshot().reason.map_or(c"".as_ptr(), |reason| word(reason.name()));
    // SAFETY: the caller vouches for the pointer.
    unsafe { read(controller, c"".as_ptr(), why) }
}

/// The controller's decisions and estimates. Set status->struct_size before.
///
/// # Safety
/// As eq_controller_sent; `status` is null, or begins with its size and points to as many writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_get_status(
    controller: *const eq_controller,
    status: *mut eq_controller_status,
) -> eq_error {
    guarded(|| {
        // SAFETY: the caller vouches for the pointer.
        let this = unsafe { controller.as_ref() }.ok_or_else(Fault::no_handle)?;
        // SAFETY: the caller vouches for the pointer.
        unsafe { fill(status, this.status()) }
    })
}
