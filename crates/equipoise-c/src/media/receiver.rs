//! The receiving end of sessions.

use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll};

use equipoise_net::media::{Incoming, MediaReceiver, Received, Reception};
use equipoise_net::{End, KeyFrames, ServerConfig};
use equipoise_session::rtp::{Payload, ReorderConfig};
use equipoise_session::wire::key_frames::KeyFrameRequest;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::border::{Growing, fill, hand_out, options};
use crate::error::{Fault, eq_error, guarded, value};
use crate::media::{self, EQ_PAYLOAD_RTP, EQ_PAYLOAD_STREAM, seconds};
use crate::runtime;
use crate::signal::{Deadline, Inbox, Source};
use crate::time::span_or;

/// The session continues.
pub const EQ_GOES_ON: i32 = 0;
/// The sender said goodbye.
pub const EQ_GOODBYE: i32 = 1;
/// The sender was silent for too long.
pub const EQ_SILENCE: i32 = 2;
/// The receiver was closed, or failed.
pub const EQ_STOPPED: i32 = 3;

/// Options of a receiver. Set struct_size and key; a field left at 0 has its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_receiver_options {
    /// sizeof(eq_receiver_options).
    pub struct_size: usize,
    /// The key shared by both hosts, as written by `equipoise keygen`: base64. NULL only if insecure is set.
    pub key: *const c_char,
    /// 1 for sessions that anybody can read and forge.
    pub insecure: i32,
    /// Maximum number of sessions; default 1000.
    pub most_sessions: u32,
    /// How long a session may be silent before it ends; default 30 s.
    pub idle_ns: i64,
    /// How long to wait for a missing packet before later ones are delivered; default 100 ms.
    pub hold_ns: i64,
}

// SAFETY: it is `repr(C)`, begins with its size, and has numbers and pointers otherwise.
unsafe impl Growing for eq_receiver_options {
    const NAME: &'static str = "eq_receiver_options";

    fn standard() -> Self {
        let struct_size = size_of::<Self>();
        Self { struct_size, key: ptr::null(), insecure: 0, most_sessions: 0, idle_ns: 0, hold_ns: 0 }
    }
}

/// Information about a received payload.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_received {
    /// sizeof(eq_received), set by the caller.
    pub struct_size: usize,
    /// Packets missing before it: lost in the network, or not read in time.
    pub missing: u64,
    /// When it arrived, or became the next in order, in ns since the Unix epoch, by a clock that never steps.
    pub at_unix_ns: i64,
}

// SAFETY: it is `repr(C)`, begins with its size, and has numbers otherwise.
unsafe impl Growing for eq_received {
    const NAME: &'static str = "eq_received";

    fn standard() -> Self {
        Self { struct_size: size_of::<Self>(), missing: 0, at_unix_ns: 0 }
    }
}

/// State of a session. Unknown values are NaN.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_session_status {
    /// sizeof(eq_session_status), set by the caller.
    pub struct_size: usize,
    /// Number of the session at this receiver, from 0.
    pub number: u64,
    /// The SSRC of its packets.
    pub ssrc: u32,
    /// EQ_PAYLOAD_STREAM or EQ_PAYLOAD_RTP; -1 for the zeros that `equipoise send` sends as a load.
    pub payload: i32,
    /// Number of packets received.
    pub packets: u64,
    /// Bytes of these packets, with their IP headers.
    pub bytes: u64,
    /// Missing packets.
    pub missing: u64,
    /// Packets whose payload was dropped because it was not read in time.
    pub dropped: u64,
    /// Mean delay relative to the first packet, over the last report interval, in s.
    pub delay_mean_s: f64,
    /// Its standard deviation, in s.
    pub delay_deviation_s: f64,
    /// EQ_GOES_ON, or the reason why it ended.
    pub end: i32,
}

// SAFETY: it is `repr(C)`, begins with its size, and has numbers otherwise.
unsafe impl Growing for eq_session_status {
    const NAME: &'static str = "eq_session_status";

    fn standard() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            number: 0,
            ssrc: 0,
            payload: EQ_PAYLOAD_STREAM,
            packets: 0,
            bytes: 0,
            missing: 0,
            dropped: 0,
            delay_mean_s: f64::NAN,
            delay_deviation_s: f64::NAN,
            end: EQ_GOES_ON,
        }
    }
}

/// Accepts sessions. Threads may share it, except when it is closed.
pub struct eq_receiver {
    inbox: Inbox<MediaReceiver>,
    port: u16,
    runtime: Arc<Runtime>,
}

/// A session at a receiver; it may outlive the receiver. Threads may share it, except when it is closed.
pub struct eq_session {
    inbox: Inbox<Incoming>,
    ssrc: u32,
    key_frames: KeyFrames,
    measurements: watch::Receiver<Reception>,
    peer: CString,
    runtime: Arc<Runtime>,
}

impl Source for MediaReceiver {
    type Item = Incoming;

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Incoming>> {
        self.poll_accept(context)
    }
}

impl Source for Incoming {
    type Item = Received;

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Received>> {
        self.poll_recv(context)
    }
}

impl eq_session {
    fn new(incoming: Incoming, key_frames: KeyFrames, runtime: Arc<Runtime>) -> Result<Self, Fault> {
        let (measurements, peer) = (incoming.measurements(), incoming.session().peer.to_string());
        let ssrc = incoming.session().ssrc;
        let peer = CString::new(peer).unwrap_or_default();
        Ok(Self { inbox: Inbox::new(incoming)?, ssrc, key_frames, measurements, peer, runtime })
    }

    fn status(&self) -> eq_session_status {
        if self.inbox.source(|incoming| incoming.end().is_some()) {
            // Wait, because the server's thread still has to deliver the last measurements.
            let mut last = self.measurements.clone();
            self.runtime.block_on(async { while last.changed().await.is_ok() {} });
        }
        let known = *self.measurements.borrow();
        let is_over = self.measurements.has_changed().is_err();
        self.inbox.source(|incoming| {
            let session = incoming.session();
            eq_session_status {
                number: session.number,
                ssrc: session.ssrc,
                payload: match session.payload {
                    Payload::Stream => EQ_PAYLOAD_STREAM,
                    Payload::Rtp => EQ_PAYLOAD_RTP,
                    Payload::Generated => -1,
                },
                packets: known.packets,
                bytes: known.bytes,
                missing: known.missing,
                dropped: incoming.dropped(),
                delay_mean_s: seconds(known.delay_mean),
                delay_deviation_s: seconds(known.delay_deviation),
                end: match incoming.end() {
                    Some(End::Goodbye) => EQ_GOODBYE,
                    Some(End::Silence) => EQ_SILENCE,
                    Some(End::Stopped) => EQ_STOPPED,
                    None if is_over => EQ_STOPPED,
                    None => EQ_GOES_ON,
                },
                ..eq_session_status::standard()
            }
        })
    }
}

/// Receives at "host:port"; port 0 takes any free port. Close it with eq_receiver_close.
///
/// Returns EQ_OK, EQ_E_SYSTEM if the address is not available, EQ_E_KEY or EQ_E_ARGUMENT.
///
/// # Safety
/// `address` and the strings in `options` end with a zero byte, `options` begins with its size, and `receiver` is
/// writable. Each pointer may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_receiver_open(
    address: *const c_char,
    options: *const eq_receiver_options,
    receiver: *mut *mut eq_receiver,
) -> eq_error {
    let make = || {
        // SAFETY: the caller vouches for the pointers.
        let (options, address, key) = unsafe {
            let options = self::options(options)?;
            (options, media::address(address)?, media::key(options.key, options.insecure)?)
        };
        let usual = ServerConfig::new(key);
        let config = ServerConfig {
            most_sessions: if options.most_sessions == 0 {
                usual.most_sessions
            } else {
                options.most_sessions as usize
            },
            idle: span_or(options.idle_ns, usual.idle),
            reorder: ReorderConfig { hold: span_or(options.hold_ns, usual.reorder.hold), ..usual.reorder },
            ..usual
        };
        let runtime = runtime::shared()?;
        let receiver = runtime.block_on(MediaReceiver::bind(address, config))?;
        let port = receiver.local_address().port();
        Ok(eq_receiver { inbox: Inbox::new(receiver)?, port, runtime })
    };
    // SAFETY: the caller vouches for the pointer.
    guarded(|| unsafe { hand_out(receiver, make) })
}

/// The UDP port of the receiver; 0 for NULL.
///
/// # Safety
/// `receiver` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_receiver_port(receiver: *const eq_receiver) -> u16 {
    // SAFETY: the caller vouches for the pointer.
    value(|| Ok(unsafe { receiver.as_ref() }.ok_or_else(Fault::no_handle)?.port)).unwrap_or(0)
}

/// A descriptor that is readable while a session waits to be accepted. It belongs to the receiver: do not read or close
/// it. -1 for NULL.
///
/// # Safety
/// `receiver` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_receiver_fd(receiver: *const eq_receiver) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    value(|| Ok(unsafe { receiver.as_ref() }.ok_or_else(Fault::no_handle)?.inbox.descriptor())).unwrap_or(-1)
}

/// Returns the next session opened by a sender. Waits for `timeout_ms`; 0 does not wait, a negative value waits
/// forever. Close it with eq_session_close. Up to 128 sessions may wait to be accepted.
///
/// Returns EQ_OK, EQ_AGAIN, EQ_END after eq_receiver_stop or if the receiver failed, EQ_E_HANDLE or EQ_E_ARGUMENT.
///
/// # Safety
/// `receiver` is null or open; `session` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_receiver_accept(
    receiver: *const eq_receiver,
    timeout_ms: i32,
    session: *mut *mut eq_session,
) -> eq_error {
    let accept = || {
        // SAFETY: the caller vouches for the pointer.
        let this = unsafe { receiver.as_ref() }.ok_or_else(Fault::no_handle)?;
        let incoming = this.inbox.take(Deadline::after_ms(timeout_ms), |_| Ok(()))?;
        let key_frames = this.inbox.source(|receiver| receiver.key_frames().clone());
        eq_session::new(incoming, key_frames, this.runtime.clone())
    };
    // SAFETY: the caller vouches for the pointer.
    guarded(|| unsafe { hand_out(session, accept) })
}

/// Makes every present and later eq_receiver_accept return EQ_END. Can be called from any thread.
///
/// # Safety
/// `receiver` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_receiver_stop(receiver: *const eq_receiver) -> eq_error {
    guarded(|| {
        // SAFETY: the caller vouches for the pointer.
        unsafe { receiver.as_ref() }.ok_or_else(Fault::no_handle)?.inbox.stop();
        Ok(())
    })
}

/// Says goodbye to all sessions, releases the port, and frees the receiver; NULL is allowed. Accepted sessions still
/// deliver received data, then end.
///
/// Returns EQ_OK, or EQ_E_SYSTEM if the receiver had failed.
///
/// # Safety
/// `receiver` is null or open, and is not used by others now or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_receiver_close(receiver: *mut eq_receiver) -> eq_error {
    guarded(|| {
        if !receiver.is_null() {
            // SAFETY: it was made by `Box::into_raw`, and the caller gives it up.
            let eq_receiver { inbox, runtime, .. } = *unsafe { Box::from_raw(receiver) };
            runtime.block_on(inbox.into_source().close())?;
        }
        Ok(())
    })
}

/// Reads the next payload into `buffer` of `capacity` bytes, and its length into `length`: the next bytes of the
/// stream, or one RTP packet. EQ_PAYLOAD_MAX bytes are always enough. Waits for `timeout_ms`; 0 does not wait, a
/// negative value waits forever. `received` may be NULL; set its struct_size before.
///
/// Returns EQ_OK, EQ_AGAIN, EQ_END if the session is over and all data was read, EQ_E_BUFFER if the payload needs a
/// longer buffer and can still be read, EQ_E_HANDLE or EQ_E_ARGUMENT.
///
/// # Safety
/// `session` is null or open; `buffer` has `capacity` writable bytes, `length` is writable, `received` begins with its
/// size; each may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_session_read(
    session: *const eq_session,
    buffer: *mut c_void,
    capacity: usize,
    length: *mut usize,
    received: *mut eq_received,
    timeout_ms: i32,
) -> eq_error {
    guarded(|| {
        // SAFETY: the caller vouches for the pointer.
        let this = unsafe { session.as_ref() }.ok_or_else(Fault::no_handle)?;
        if buffer.is_null() || length.is_null() {
            return Err(Fault::null("buffer or length"));
        }
        let fits = |next: &Received| {
            if next.payload.len() > capacity {
                let words = format!("{} bytes are to be read, and the buffer has {capacity}", next.payload.len());
                return Err(Fault::new(eq_error::EQ_E_BUFFER, words));
            }
            Ok(())
        };
        let next = this.inbox.take(Deadline::after_ms(timeout_ms), fits)?;
        // SAFETY: it fits, and the caller vouches for the pointers; the payload does not overlap with the caller's
        // memory.
        unsafe {
            ptr::copy_nonoverlapping(next.payload.as_ptr(), buffer.cast(), next.payload.len());
            length.write(next.payload.len());
        }
        if received.is_null() {
            return Ok(());
        }
        let at_unix_ns = i64::try_from(next.at.as_nanos()).unwrap_or(i64::MAX);
        // SAFETY: the caller vouches for the pointer.
        unsafe { fill(received, eq_received { missing: next.missing, at_unix_ns, ..eq_received::standard() }) }
    })
}

/// A descriptor that is readable while there is payload to read, and after the end. It belongs to the session: do not
/// read or close it. -1 for NULL.
///
/// # Safety
/// `session` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_session_fd(session: *const eq_session) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    value(|| Ok(unsafe { session.as_ref() }.ok_or_else(Fault::no_handle)?.inbox.descriptor())).unwrap_or(-1)
}

/// The sender's address when the session was opened, as "address:port"; "" for NULL. The text belongs to the session.
///
/// # Safety
/// `session` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_session_peer(session: *const eq_session) -> *const c_char {
    // SAFETY: the caller vouches for the pointer.
    let peer = value(|| Ok(unsafe { session.as_ref() }.ok_or_else(Fault::no_handle)?.peer.as_ptr()));
    peer.unwrap_or(c"".as_ptr())
}

/// The state of the session. Set status->struct_size before.
///
/// # Safety
/// `session` is null or open; `status` is null, or begins with its size and points to as many writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_session_get_status(session: *const eq_session, status: *mut eq_session_status) -> eq_error {
    guarded(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe { fill(status, session.as_ref().ok_or_else(Fault::no_handle)?.status()) }
    })
}

/// Asks the sender for a key frame because the decoder cannot continue: its eq_sender_events then has
/// EQ_EVENT_KEY_FRAME. At most one request is sent per 0.3 s. Can be called from any thread.
///
/// # Safety
/// `session` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_session_request_key_frame(session: *const eq_session) -> eq_error {
    guarded(|| {
        // SAFETY: the caller vouches for the pointer.
        let this = unsafe { session.as_ref() }.ok_or_else(Fault::no_handle)?;
        this.key_frames.request(this.ssrc, KeyFrameRequest::PictureLoss);
        Ok(())
    })
}

/// Makes every present and later eq_session_read return EQ_END. Can be called from any thread.
///
/// # Safety
/// `session` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_session_stop(session: *const eq_session) -> eq_error {
    guarded(|| {
        // SAFETY: the caller vouches for the pointer.
        unsafe { session.as_ref() }.ok_or_else(Fault::no_handle)?.inbox.stop();
        Ok(())
    })
}

/// Frees a session; NULL is allowed. Its sender is not notified and continues until it ends the session.
///
/// # Safety
/// `session` is null or open, and is not used by others now or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_session_close(session: *mut eq_session) {
    if !session.is_null() {
        // SAFETY: it was made by `Box::into_raw`, and the caller gives it up.
        drop(unsafe { Box::from_raw(session) });
    }
}
