//! A controller in the caller's own stack: what it sends and what it hears go in, a rate and the next departure come out.
//!
//! The handle is a [`Guest`](equipoise_session::guest::Guest): the controller is held to what was proved to arrive, and to silence.

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
/// Packets without arrival times, as acknowledgements tell them, in eq_controller_packets.
pub const EQ_FEEDBACK_ACKS: i32 = 3;

/// In place of an arrival time: the packet was lost.
pub const EQ_LOST: i64 = i64::MIN;
/// In place of an arrival time: it arrived, and nobody knows when.
pub const EQ_UNTIMED: i64 = i64::MIN + 1;
/// In place of a window: it is open.
pub const EQ_OPEN: u64 = u64::MAX;

/// What packetisers make of frames, with all headers.
const PACKET: u32 = 1240;

/// What a controller is made of beside its name and parameters. Set struct_size, and leave at 0 what is to be as usual.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_controller_options {
    /// sizeof(eq_controller_options).
    pub struct_size: usize,
    /// The kind of feedback: one of EQ_FEEDBACK_..., of which transport-wide is 0.
    pub feedback: i32,
    /// Size of full IP packets in bytes, headers included; usually 1240.
    pub packet_size: u32,
    /// Packets of a frame follow each other at so many times the rate; usually 1.5, and 1 at least.
    pub pacing: f64,
    /// Length of an interval for controllers that decide by intervals, such as "ap"; usually 250 ms.
    pub interval_ns: i64,
    /// Not 0 if packets are sent as ECN-capable and feedback tells their marks.
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

/// What became of a packet, for eq_controller_packets. This structure never grows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_packet {
    /// The number that it had in eq_controller_sent.
    pub number: u64,
    /// When it arrived, by the receiver's clock, from any zero; EQ_LOST or EQ_UNTIMED.
    pub arrival_ns: i64,
    /// The mark with which it arrived: the two bits of its IP header (RFC 3168, Sec. 5), 3 for congestion experienced.
    pub ecn: u32,
}

/// What a controller has decided and believes. NaN is what it does not say.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_controller_status {
    /// sizeof(eq_controller_status), set by the caller.
    pub struct_size: usize,
    /// The rate of IP packets, in bit/s.
    pub rate_bps: u64,
    /// The rate at which single packets may follow each other, in bit/s.
    pub pace_bps: u64,
    /// Bytes that may be under way; EQ_OPEN where the controller leaves that open.
    pub window_bytes: u64,
    /// Bytes that are under way.
    pub in_flight_bytes: u64,
    /// The last round trip; the one that is assumed before there is one.
    pub round_trip_ns: i64,
    /// Reports that had effect, and those that were refused.
    pub reports: u64,
    /// As reports.
    pub refused: u64,
    /// How the controller goes by what it believes: "delay", "rival" or "policed"; NULL if it does not say. The text is the library's.
    pub mode: *const c_char,
    /// The bottleneck's rate of service, in bit/s.
    pub capacity_bps: f64,
    /// The rate at which trains of packets come through, in bit/s.
    pub available_bps: f64,
    /// Round trip of the empty path, in s.
    pub base_s: f64,
    /// The queueing delay, in s.
    pub queue_s: f64,
    /// The queueing delay that is aimed at, in s.
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

/// Does something with a handle.
///
/// # Safety
/// `controller` is null or a controller that nobody else uses meanwhile.
unsafe fn with(controller: *mut eq_controller, body: impl FnOnce(&mut eq_controller) -> Result<(), Fault>) -> eq_error {
    // SAFETY: the caller vouches for the pointer.
    guarded(|| body(unsafe { controller.as_mut() }.ok_or_else(Fault::no_handle)?))
}

/// Reads something of a handle; `none` for NULL.
///
/// # Safety
/// As [`with`].
unsafe fn read<T>(controller: *const eq_controller, none: T, body: impl FnOnce(&eq_controller) -> T) -> T {
    // SAFETY: the caller vouches for the pointer.
    value(|| Ok(body(unsafe { controller.as_ref() }.ok_or_else(Fault::no_handle)?))).unwrap_or(none)
}

/// Makes the controller `name`, with `count` texts of the form "name=value" such as "max_rate=5 Mbit/s", by a monotonic clock of the
/// caller's that shows `now_ns`, from any zero. `options` may be NULL. Free it with eq_controller_free.
///
/// Returns EQ_OK, EQ_E_NAME for a controller or parameter that there is not, EQ_E_VALUE for a value that cannot be or a controller that
/// needs what feedback on packets does not provide, or EQ_E_ARGUMENT.
///
/// # Safety
/// `name` is a text, `parameters` are `count` texts, `options` begins with its size, `controller` can be written; each may be null.
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
/// `controller` is null or of eq_controller_new, and nobody uses it now or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_free(controller: *mut eq_controller) {
    if !controller.is_null() {
        // SAFETY: it was made by `Box::into_raw`, and the caller gives it up.
        drop(unsafe { Box::from_raw(controller) });
    }
}

/// A packet left at `now_ns`: of source `ssrc`, which counts for RFC 8888 alone, with this number, and of `size` bytes with all
/// headers. The number is the one that feedback will name: the transport-wide one, the RTP sequence number of its source, or for
/// arrays any that rises; of the first two the lower 16 bits count.
///
/// # Safety
/// `controller` is null or a controller that nobody else uses meanwhile.
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

/// A frame of `size` bytes joins what waits to be sent: `waiting` bytes, the oldest of them for `waited_ns`. Some controllers keep the
/// delay of frames short by it.
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

/// Nothing waits to be sent since `now_ns`: it is the application that holds the sender back, and not the rate. Say so whenever the
/// last packet has left.
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

/// A datagram of RTCP arrived at `now_ns`, decrypted. What in it is transport-wide feedback or RFC 8888, whichever the controller was
/// made for, has effect; other packets are passed over.
///
/// Returns EQ_OK, or EQ_E_FEEDBACK for what is malformed or tells of packets that were never sent.
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

/// It became known at `now_ns` what became of these packets, in any order, for a controller that was made for arrays. Tell of each packet,
/// also that it was lost; one that was taken to be lost may turn out to have arrived.
///
/// Returns EQ_OK, or EQ_E_FEEDBACK where a packet is said to have arrived that was never sent: then nothing has effect.
///
/// # Safety
/// As eq_controller_sent; `packets` are `count`.
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

/// When to call eq_controller_on_timer, if nothing else happens before; EQ_NEVER for never.
///
/// # Safety
/// As eq_controller_sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_next_timer_ns(controller: *const eq_controller) -> i64 {
    let next = |this: &eq_controller| this.inner.next_timer().map_or(EQ_NEVER, |at| this.clock.nanos(at));
    // SAFETY: the caller vouches for the pointer.
    unsafe { read(controller, EQ_NEVER, next) }
}

/// Time has come to `now_ns`; too early or without need does no harm.
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

/// The rate of IP packets from now on, in bit/s; 0 for NULL. An encoder may have what headers leave of it.
///
/// # Safety
/// As eq_controller_sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_rate_bps(controller: *const eq_controller) -> u64 {
    // SAFETY: the caller vouches for the pointer.
    unsafe { read(controller, 0, |this| this.inner.guest().rate().as_bps()) }
}

/// When the next packet may leave: `now_ns` for now, a later moment, or EQ_NEVER while the window is full or the rate 0: then feedback or
/// the timer changes it.
///
/// # Safety
/// As eq_controller_sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_next_departure_ns(controller: *const eq_controller, now_ns: i64) -> i64 {
    // SAFETY: the caller vouches for the pointer.
    unsafe { read(controller, EQ_NEVER, |this| this.next_departure(now_ns)) }
}

/// Why the rate is what it is, in lower-case words joined by hyphens, such as "law", "overload" or "unproved"; "" before the first
/// decision and for NULL. The text is the library's.
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

/// What the controller has decided and believes. Set status->struct_size before.
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
