//! The sender of media sessions for C programs.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use equipoise::units::{Rate, Size};
use equipoise_net::SendConfig;
use equipoise_net::media::{Measurement, MediaSender, Summary};
use equipoise_session::rtp::Payload;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::timeout_at;

use crate::border::{Growing, fill, hand_out, many, options, word};
use crate::catalogue::build;
use crate::error::{Fault, eq_error, guarded, value};
use crate::media::events::{self, Events};
use crate::media::{self, EQ_PAYLOAD_MAX, EQ_PAYLOAD_RTP, EQ_PAYLOAD_STREAM, seconds};
use crate::runtime;
use crate::signal::Deadline;
use crate::time::span_or;

/// Event: the controller's rate has changed.
pub const EQ_EVENT_RATE: u32 = 1;
/// Event: a report from the receiver arrived, or the reason for the rate changed, so that eq_sender_get_status returns
/// new values.
pub const EQ_EVENT_REPORT: u32 = 2;
/// Event: the send queue has space again, after eq_sender_write had returned EQ_AGAIN.
pub const EQ_EVENT_ROOM: u32 = 4;
/// Event: the session is over.
pub const EQ_EVENT_END: u32 = 8;
/// Event: the receiver requests a key frame.
pub const EQ_EVENT_KEY_FRAME: u32 = 16;

/// Options of a sender's session. Set struct_size and key; a field that is 0 has its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_sender_options {
    /// sizeof(eq_sender_options).
    pub struct_size: usize,
    /// The key that both hosts share, in base64 as written by `equipoise keygen`. NULL only if insecure is set.
    pub key: *const c_char,
    /// 1 for a session without encryption and authentication, which anybody can read and forge.
    pub insecure: i32,
    /// Kind of payload: EQ_PAYLOAD_STREAM or EQ_PAYLOAD_RTP.
    pub payload: i32,
    /// The controller's name; NULL for "equipoise".
    pub controller: *const c_char,
    /// The controller's parameters: texts of the form "name=value", such as "max_rate=5 Mbit/s".
    pub parameters: *const *const c_char,
    /// Number of texts in `parameters`.
    pub parameter_count: usize,
    /// Maximum size of an IP packet in bytes, with headers; default 1200.
    pub packet_size: u32,
    /// The SSRC of the packets; 0 for a random SSRC. With the payload EQ_PAYLOAD_RTP, the SSRC must not be 0.
    pub ssrc: u32,
    /// RTP payload type for the payload EQ_PAYLOAD_STREAM; default 96.
    pub payload_type: u32,
    /// Interval at which the sender requests reports from the receiver, in ns; default 1 s.
    pub report_interval_ns: i64,
    /// How long eq_sender_open waits for the receiver's answer, in ns; default 5 s.
    pub patience_ns: i64,
}

// SAFETY: the structure is `repr(C)`, its first field is its size, and all its other fields are numbers and pointers.
unsafe impl Growing for eq_sender_options {
    const NAME: &'static str = "eq_sender_options";

    fn standard() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            key: ptr::null(),
            insecure: 0,
            payload: EQ_PAYLOAD_STREAM,
            controller: ptr::null(),
            parameters: ptr::null(),
            parameter_count: 0,
            packet_size: 0,
            ssrc: 0,
            payload_type: 0,
            report_interval_ns: 0,
            patience_ns: 0,
        }
    }
}

impl eq_sender_options {
    /// # Safety
    /// `address` and the strings in the options are null or valid C strings.
    unsafe fn config(&self, address: *const c_char) -> Result<SendConfig, Fault> {
        // SAFETY: the caller guarantees that the strings are valid.
        let (peer, key) = unsafe { (media::address(address)?, media::key(self.key, self.insecure)?) };
        let payload = match self.payload {
            EQ_PAYLOAD_STREAM => Payload::Stream,
            EQ_PAYLOAD_RTP => Payload::Rtp,
            other => {
                let words = format!("`payload` is {other}; it is EQ_PAYLOAD_STREAM (0) or EQ_PAYLOAD_RTP (1)");
                return Err(Fault::new(eq_error::EQ_E_ARGUMENT, words));
            }
        };
        let usual = SendConfig::new(peer, key);
        let payload_type = match self.payload_type {
            0 => usual.payload_type,
            given => u8::try_from(given).unwrap_or(u8::MAX),
        };
        let packet_size =
            if self.packet_size == 0 { usual.packet_size } else { Size::from_bytes(self.packet_size.into()) };
        Ok(SendConfig {
            payload,
            packet_size,
            payload_type,
            ssrc: (self.ssrc != 0).then_some(self.ssrc),
            report_interval: span_or(self.report_interval_ns, usual.report_interval),
            patience: span_or(self.patience_ns, usual.patience),
            ..usual
        })
    }
}

/// State of a sender's session. The measurements are those of the receiver's last report. Unknown floating-point values
/// are NaN.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_sender_status {
    /// sizeof(eq_sender_status), set by the caller.
    pub struct_size: usize,
    /// The rate of IP packets that the controller allows, in bit/s.
    pub rate_bps: u64,
    /// The rate for an encoder, in bit/s: the controller's rate minus the rate of the headers.
    pub media_rate_bps: u64,
    /// Bytes that were written and have not been sent yet.
    pub waiting_bytes: u64,
    /// Number of reports that have arrived from the receiver.
    pub reports: u64,
    /// Number of packets that were sent but not received, since the session began; 0 before the first report.
    pub lost: u64,
    /// Share of the packets in the last report interval that were lost, 0 to 1.
    pub fraction_lost: f64,
    /// Mean queueing delay in the last report interval, in s.
    pub delay_mean_s: f64,
    /// Standard deviation of the queueing delay in the last report interval, in s.
    pub delay_deviation_s: f64,
    /// The last measured round-trip time, in s.
    pub round_trip_s: f64,
    /// 1 if the session is over.
    pub is_over: i32,
    /// The reason for the rate, as in eq_controller_why; "" until a report has arrived and the controller has decided.
    /// The text belongs to the library.
    pub why: *const c_char,
}

// SAFETY: the structure is `repr(C)`, its first field is its size, and all its other fields are numbers and pointers.
unsafe impl Growing for eq_sender_status {
    const NAME: &'static str = "eq_sender_status";

    fn standard() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            rate_bps: 0,
            media_rate_bps: 0,
            waiting_bytes: 0,
            reports: 0,
            lost: 0,
            fraction_lost: f64::NAN,
            delay_mean_s: f64::NAN,
            delay_deviation_s: f64::NAN,
            round_trip_s: f64::NAN,
            is_over: 0,
            why: c"".as_ptr(),
        }
    }
}

/// Final counters of a session.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_sender_summary {
    /// sizeof(eq_sender_summary), set by the caller.
    pub struct_size: usize,
    /// Number of media packets sent.
    pub packets: u64,
    /// Bytes of the media packets sent, with IP headers.
    pub bytes: u64,
    /// Number of packets that were lost according to the last report.
    pub lost: u64,
    /// 1 if the receiver ended the session.
    pub ended_by_peer: i32,
}

// SAFETY: the structure is `repr(C)`, its first field is its size, and all its other fields are numbers.
unsafe impl Growing for eq_sender_summary {
    const NAME: &'static str = "eq_sender_summary";

    fn standard() -> Self {
        Self { struct_size: size_of::<Self>(), packets: 0, bytes: 0, lost: 0, ended_by_peer: 0 }
    }
}

/// The sender of a session. Several threads may use the sender at the same time, but no thread may use it during or
/// after eq_sender_close.
pub struct eq_sender {
    media: MediaSender,
    rate: watch::Receiver<Rate>,
    measurement: watch::Receiver<Measurement>,
    events: Arc<Events>,
    runtime: Arc<Runtime>,
}

impl eq_sender {
    fn open(config: SendConfig, controller: equipoise::control::BoxedController) -> Result<Self, Fault> {
        let (runtime, events) = (runtime::shared()?, Events::new()?);
        let media = runtime.block_on(MediaSender::open(config, controller))?;
        let (rate, measurement) = (media.target_rate(), media.measurements());
        runtime.spawn(events::watch((rate.clone(), measurement.clone(), media.key_frames_wanted()), events.clone()));
        Ok(Self { media, rate, measurement, events, runtime })
    }

    fn write(&self, data: &[u8], timeout_ms: i32) -> Result<(), Fault> {
        if data.len() > EQ_PAYLOAD_MAX {
            let words = format!("{} bytes are too many at once; write {EQ_PAYLOAD_MAX} at most", data.len());
            return Err(Fault::new(eq_error::EQ_E_LENGTH, words));
        }
        let deadline = Deadline::after_ms(timeout_ms);
        loop {
            if self.events.is_stopped() {
                return Err(Fault::new(eq_error::EQ_END, "it was stopped from this end"));
            }
            if self.is_over() {
                return Err(Fault::new(eq_error::EQ_END, "the session is over"));
            }
            if self.media.try_send(data)? {
                return Ok(());
            }
            let room = async {
                tokio::select! {
                    () = self.media.payloads().room(data.len()) => {}
                    () = self.events.until_stopped() => {}
                }
            };
            let room_in_time = async {
                if let Some(at) = deadline.at() {
                    return timeout_at(at.into(), room).await.is_ok();
                }
                room.await;
                true
            };
            let in_time = timeout_ms != 0 && self.runtime.block_on(room_in_time);
            if !in_time {
                self.tell_of_room(data.len());
                return Err(Fault::new(eq_error::EQ_AGAIN, "too much waits to be sent: leave out a frame, or wait"));
            }
        }
    }

    fn is_over(&self) -> bool {
        self.rate.has_changed().is_err()
    }

    /// Makes the sender's descriptor readable when the send queue has space for `length` bytes.
    fn tell_of_room(&self, length: usize) {
        if self.events.waits.swap(true, Ordering::SeqCst) {
            return;
        }
        let (payloads, events) = (self.media.payloads().clone(), self.events.clone());
        self.runtime.spawn(async move {
            payloads.room(length).await;
            // The session ends only after the last clone of the payload channel is dropped.
            drop(payloads);
            events.waits.store(false, Ordering::SeqCst);
            events.add(EQ_EVENT_ROOM);
        });
    }

    fn status(&self) -> eq_sender_status {
        let (rate, known) = (*self.rate.borrow(), *self.measurement.borrow());
        eq_sender_status {
            rate_bps: rate.as_bps(),
            media_rate_bps: self.media.payload_rate(rate).as_bps(),
            waiting_bytes: self.media.waiting() as u64,
            reports: known.reports,
            lost: known.lost.unwrap_or(0),
            fraction_lost: known.fraction_lost.unwrap_or(f64::NAN),
            delay_mean_s: seconds(known.delay_mean),
            delay_deviation_s: seconds(known.delay_deviation),
            round_trip_s: seconds(known.round_trip),
            is_over: self.is_over().into(),
            why: known.reason.map_or(c"".as_ptr(), |reason| word(reason.name())),
            ..eq_sender_status::standard()
        }
    }

    /// Ends the session and returns its final counters. Returns `None` if the sender was stopped, or if the session did
    /// not end before the timeout.
    fn close(self, timeout_ms: i32) -> Result<Option<Summary>, Fault> {
        let Self { media, runtime, events, .. } = self;
        let (deadline, is_stopped) = (Deadline::after_ms(timeout_ms), events.is_stopped());
        let close = media.close();
        if is_stopped {
            drop(close);
            return Ok(None);
        }
        runtime.block_on(async {
            match deadline.at() {
                Some(at) => Ok(timeout_at(at.into(), close).await.ok().transpose()?),
                None => Ok(Some(close.await?)),
            }
        })
    }
}

impl From<Summary> for eq_sender_summary {
    fn from(summary: Summary) -> Self {
        Self {
            packets: summary.packets,
            bytes: summary.bytes,
            lost: summary.measurement.lost.unwrap_or(0),
            ended_by_peer: summary.ended_by_peer.into(),
            ..Self::standard()
        }
    }
}

/// Opens a session to the receiver at "host:port", and waits for the receiver's answer. The receiver is `equipoise
/// receive` or a program that uses eq_receiver_open or the Rust library. Close the session with eq_sender_close.
///
/// Returns EQ_OK, EQ_E_PEER if no receiver with the same key answers or if the receiver refuses the session, EQ_E_KEY,
/// EQ_E_NAME, EQ_E_VALUE, EQ_E_ARGUMENT or EQ_E_SYSTEM.
///
/// # Safety
/// `address` and the strings in `options` end with a zero byte, `options` begins with its size, and `sender` is
/// writable. Each pointer may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_sender_open(
    address: *const c_char,
    options: *const eq_sender_options,
    sender: *mut *mut eq_sender,
) -> eq_error {
    let make = || {
        // SAFETY: the caller guarantees that the pointers are valid.
        let (options, config) = unsafe {
            let options = self::options(options)?;
            (options, options.config(address)?)
        };
        let name = if options.controller.is_null() { c"equipoise".as_ptr() } else { options.controller };
        // SAFETY: the caller guarantees that the pointers are valid.
        let built = unsafe { build(name, options.parameters, options.parameter_count, config.packet_size) }?;
        eq_sender::open(config, built)
    };
    // SAFETY: the caller guarantees that the pointer is valid.
    guarded(|| unsafe { hand_out(sender, make) })
}

/// Queues the next bytes of the stream, or one RTP packet, for sending: all of the data or nothing. Waits at most
/// `timeout_ms` milliseconds for space in the queue: 0 does not wait, a negative value waits without limit. For live
/// media use 0, and skip the frame if the result is EQ_AGAIN, because it would arrive late.
///
/// Returns EQ_OK, EQ_AGAIN, EQ_E_ARGUMENT or EQ_E_HANDLE. Returns EQ_END if the session is over or eq_sender_stop was
/// called. Returns EQ_E_LENGTH if `length` is above EQ_PAYLOAD_MAX.
///
/// # Safety
/// `sender` is null or open; `data` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_sender_write(
    sender: *const eq_sender,
    data: *const c_void,
    length: usize,
    timeout_ms: i32,
) -> eq_error {
    guarded(|| {
        // SAFETY: the caller guarantees that the pointers are valid.
        let (this, data) = unsafe { (sender.as_ref(), many(data.cast(), length, "data")?) };
        this.ok_or_else(Fault::no_handle)?.write(data, timeout_ms)
    })
}

/// Returns a descriptor; -1 for NULL. After an event (EQ_EVENT_...), the descriptor is readable until the next call of
/// eq_sender_events. After EQ_EVENT_END the descriptor stays readable. The descriptor belongs to the sender: do not
/// read or close it.
///
/// # Safety
/// `sender` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_sender_fd(sender: *const eq_sender) -> i32 {
    // SAFETY: the caller guarantees that the pointer is valid.
    value(|| Ok(unsafe { sender.as_ref() }.ok_or_else(Fault::no_handle)?.events.signal.number())).unwrap_or(-1)
}

/// Returns the events since the last call of this function, as a combination of EQ_EVENT_... bits; 0 if there was no
/// event, and for NULL. Once the session is over, every call returns EQ_EVENT_END. EQ_EVENT_ROOM only occurs after
/// eq_sender_write returned EQ_AGAIN.
///
/// # Safety
/// `sender` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_sender_events(sender: *const eq_sender) -> u32 {
    // SAFETY: the caller guarantees that the pointer is valid.
    value(|| Ok(unsafe { sender.as_ref() }.ok_or_else(Fault::no_handle)?.events.take())).unwrap_or(0)
}

/// Returns the present rate for an encoder, in bit/s: the controller's rate minus the rate of the headers; 0 for NULL.
///
/// # Safety
/// `sender` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_sender_media_rate_bps(sender: *const eq_sender) -> u64 {
    // SAFETY: the caller guarantees that the pointer is valid.
    value(|| Ok(unsafe { sender.as_ref() }.ok_or_else(Fault::no_handle)?.status().media_rate_bps)).unwrap_or(0)
}

/// Stores the state of the session in `*status`. Set status->struct_size before the call.
///
/// # Safety
/// `sender` is null or open; `status` is null, or points to a structure that begins with its size and has that number
/// of writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_sender_get_status(sender: *const eq_sender, status: *mut eq_sender_status) -> eq_error {
    guarded(|| {
        // SAFETY: the caller guarantees that the pointers are valid.
        unsafe { fill(status, sender.as_ref().ok_or_else(Fault::no_handle)?.status()) }
    })
}

/// Makes all waiting and all later calls of eq_sender_write return EQ_END. May be called from any thread. A later
/// eq_sender_close discards the data that has not been sent yet. Before eq_sender_close, wait until the calls of all
/// other threads for this sender have returned.
///
/// # Safety
/// `sender` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_sender_stop(sender: *const eq_sender) -> eq_error {
    guarded(|| {
        // SAFETY: the caller guarantees that the pointer is valid.
        unsafe { sender.as_ref() }.ok_or_else(Fault::no_handle)?.events.stop();
        Ok(())
    })
}

/// Sends the waiting data for at most `timeout_ms` milliseconds (a negative value: without limit), ends the session
/// with an RTCP BYE packet, and frees the sender; NULL is allowed. `summary` may be NULL; otherwise set
/// summary->struct_size before the call.
///
/// Returns EQ_OK, EQ_AGAIN if the session did not end within the timeout or if the sender was stopped, EQ_E_SYSTEM if
/// the session failed before this call, or EQ_E_ARGUMENT. The sender is freed in any case.
///
/// # Safety
/// `sender` is null or open, and no other call uses `sender` during or after this call. `summary` is null, or points to
/// a structure that begins with its size and has that number of writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_sender_close(
    sender: *mut eq_sender,
    timeout_ms: i32,
    summary: *mut eq_sender_summary,
) -> eq_error {
    guarded(|| {
        if sender.is_null() {
            return Ok(());
        }
        // SAFETY: the pointer is from `Box::into_raw`, and the caller does not use it again.
        let came_to = unsafe { Box::from_raw(sender) }.close(timeout_ms)?;
        let Some(came_to) = came_to else {
            return Err(Fault::new(eq_error::EQ_AGAIN, "the session has ended before all that waited was sent"));
        };
        if summary.is_null() {
            return Ok(());
        }
        // SAFETY: the caller guarantees that the pointer is valid.
        unsafe { fill(summary, came_to.into()) }
    })
}
