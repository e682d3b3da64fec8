//! The receiver of media sessions for C programs.

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

/// The session has not ended.
pub const EQ_GOES_ON: i32 = 0;
/// The session ended because the sender sent an RTCP BYE packet.
pub const EQ_GOODBYE: i32 = 1;
/// The session ended because no packet arrived from the sender for too long.
pub const EQ_SILENCE: i32 = 2;
/// The session ended because the receiver was closed or failed.
pub const EQ_STOPPED: i32 = 3;

/// Options of a receiver. Set struct_size and key; a field that is 0 has its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_receiver_options {
    /// sizeof(eq_receiver_options).
    pub struct_size: usize,
    /// The key that both hosts share, in base64 as written by `equipoise keygen`. NULL only if insecure is set.
    pub key: *const c_char,
    /// 1 for sessions without encryption and authentication, which anybody can read and forge.
    pub insecure: i32,
    /// Maximum number of sessions at the same time; default 1000.
    pub most_sessions: u32,
    /// A session ends if no packet arrives from its sender for this time, in ns; default 30 s. Before the first packet,
    /// the limit is at most 5 s.
    pub idle_ns: i64,
    /// Maximum time for which a missing packet delays the delivery of later packets, in ns; default 100 ms.
    pub hold_ns: i64,
}

// SAFETY: the structure is `repr(C)`, its first field is its size, and all its other fields are numbers and pointers.
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
    /// Number of packets that are missing directly before this payload, because they were lost in the network or not
    /// read in time.
    pub missing: u64,
    /// The time at which the payload arrived, in ns since the Unix epoch, by a clock that never jumps. If the payload
    /// waited for earlier packets, this is the time at which the wait ended.
    pub at_unix_ns: i64,
}

// SAFETY: the structure is `repr(C)`, its first field is its size, and all its other fields are numbers.
unsafe impl Growing for eq_received {
    const NAME: &'static str = "eq_received";

    fn standard() -> Self {
        Self { struct_size: size_of::<Self>(), missing: 0, at_unix_ns: 0 }
    }
}

/// State of a session at the receiver. Unknown floating-point values are NaN.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_session_status {
    /// sizeof(eq_session_status), set by the caller.
    pub struct_size: usize,
    /// Number of the session. A receiver counts its sessions from 0.
    pub number: u64,
    /// The SSRC of the session's packets.
    pub ssrc: u32,
    /// EQ_PAYLOAD_STREAM or EQ_PAYLOAD_RTP; -1 if the payload is zeros, which `equipoise send` sends to load a path.
    pub payload: i32,
    /// Number of packets received.
    pub packets: u64,
    /// Bytes of the packets received, with IP headers.
    pub bytes: u64,
    /// Number of packets whose payload is missing, because they were lost or arrived too late.
    pub missing: u64,
    /// Number of packets whose payload was dropped because the program did not read it in time.
    pub dropped: u64,
    /// Mean delay of the packets in the last report interval, minus the delay of the session's first packet, in s.
    pub delay_mean_s: f64,
    /// Standard deviation of the delay in the last report interval, in s.
    pub delay_deviation_s: f64,
    /// EQ_GOES_ON, or the reason why the session ended.
    pub end: i32,
}

// SAFETY: the structure is `repr(C)`, its first field is its size, and all its other fields are numbers.
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

/// A receiver, which accepts sessions. Several threads may use the receiver at the same time, but no thread may use it
/// during or after eq_receiver_close.
pub struct eq_receiver {
    inbox: Inbox<MediaReceiver>,
    port: u16,
    runtime: Arc<Runtime>,
}

/// A session at a receiver. It may be used after the receiver was closed. Several threads may use the session at the
/// same time, but no thread may use it during or after eq_session_close.
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
            // The session has ended. Wait until the receiver's thread has published the session's last measurements.
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

/// Opens a receiver at the local address "host:port". For port 0 the system chooses a free port. Close the receiver
/// with eq_receiver_close.
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
        // SAFETY: the caller guarantees that the pointers are valid.
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
    // SAFETY: the caller guarantees that the pointer is valid.
    guarded(|| unsafe { hand_out(receiver, make) })
}

/// Returns the UDP port of the receiver; 0 for NULL.
///
/// # Safety
/// `receiver` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_receiver_port(receiver: *const eq_receiver) -> u16 {
    // SAFETY: the caller guarantees that the pointer is valid.
    value(|| Ok(unsafe { receiver.as_ref() }.ok_or_else(Fault::no_handle)?.port)).unwrap_or(0)
}

/// Returns a descriptor that is readable while a session waits to be accepted; -1 for NULL. The descriptor belongs to
/// the receiver: do not read or close it.
///
/// # Safety
/// `receiver` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_receiver_fd(receiver: *const eq_receiver) -> i32 {
    // SAFETY: the caller guarantees that the pointer is valid.
    value(|| Ok(unsafe { receiver.as_ref() }.ok_or_else(Fault::no_handle)?.inbox.descriptor())).unwrap_or(-1)
}

/// Accepts the next session that a sender opened, and stores it in `*session`. Waits at most `timeout_ms` milliseconds:
/// 0 does not wait, a negative value waits without limit. Close the session with eq_session_close. Up to 128 sessions
/// may wait to be accepted.
///
/// Returns EQ_OK, EQ_AGAIN, EQ_END after eq_receiver_stop or if the receiver failed, EQ_E_SYSTEM if the system has no
/// descriptor left for the session, EQ_E_HANDLE or EQ_E_ARGUMENT.
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
        // SAFETY: the caller guarantees that the pointer is valid.
        let this = unsafe { receiver.as_ref() }.ok_or_else(Fault::no_handle)?;
        let incoming = this.inbox.take(Deadline::after_ms(timeout_ms), |_| Ok(()))?;
        let key_frames = this.inbox.source(|receiver| receiver.key_frames().clone());
        eq_session::new(incoming, key_frames, this.runtime.clone())
    };
    // SAFETY: the caller guarantees that the pointer is valid.
    guarded(|| unsafe { hand_out(session, accept) })
}

/// Makes all waiting and all later calls of eq_receiver_accept return EQ_END. May be called from any thread.
///
/// # Safety
/// `receiver` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_receiver_stop(receiver: *const eq_receiver) -> eq_error {
    guarded(|| {
        // SAFETY: the caller guarantees that the pointer is valid.
        unsafe { receiver.as_ref() }.ok_or_else(Fault::no_handle)?.inbox.stop();
        Ok(())
    })
}

/// Ends all sessions with an RTCP BYE packet, releases the port, and frees the receiver; NULL is allowed. Data that
/// accepted sessions have received can still be read.
///
/// Returns EQ_OK, or EQ_E_SYSTEM if the receiver failed before this call.
///
/// # Safety
/// `receiver` is null or open, and no other call uses `receiver` during or after this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_receiver_close(receiver: *mut eq_receiver) -> eq_error {
    guarded(|| {
        if !receiver.is_null() {
            // SAFETY: the pointer is from `Box::into_raw`, and the caller does not use it again.
            let eq_receiver { inbox, runtime, .. } = *unsafe { Box::from_raw(receiver) };
            runtime.block_on(inbox.into_source().close())?;
        }
        Ok(())
    })
}

/// Reads the next payload into `buffer`, which has `capacity` bytes, and stores the payload's length in `*length`. The
/// payload is the next bytes of the stream, or one RTP packet. A buffer of EQ_PAYLOAD_MAX bytes is always long enough.
/// Waits at most `timeout_ms` milliseconds: 0 does not wait, a negative value waits without limit. `received` may be
/// NULL; otherwise set received->struct_size before the call.
///
/// Returns one of these codes: EQ_OK; EQ_AGAIN; EQ_END after eq_session_stop, or if the session is over and all data
/// was read; EQ_E_BUFFER if the payload is longer than the buffer (the payload can then still be read); EQ_E_HANDLE;
/// EQ_E_ARGUMENT.
///
/// # Safety
/// `session` is null or open; `buffer` has `capacity` writable bytes, `length` is writable, and `received` begins with
/// its size. Each pointer may be null.
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
        // SAFETY: the caller guarantees that the pointer is valid.
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
        // SAFETY: the payload fits into the buffer, the caller guarantees that the pointers are valid, and the payload
        // does not overlap with the caller's memory.
        unsafe {
            ptr::copy_nonoverlapping(next.payload.as_ptr(), buffer.cast(), next.payload.len());
            length.write(next.payload.len());
        }
        if received.is_null() {
            return Ok(());
        }
        let at_unix_ns = i64::try_from(next.at.as_nanos()).unwrap_or(i64::MAX);
        // SAFETY: the caller guarantees that the pointer is valid.
        unsafe { fill(received, eq_received { missing: next.missing, at_unix_ns, ..eq_received::standard() }) }
    })
}

/// Returns a descriptor that is readable while there is payload to read, and after the end of the session; -1 for NULL.
/// The descriptor belongs to the session: do not read or close it.
///
/// # Safety
/// `session` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_session_fd(session: *const eq_session) -> i32 {
    // SAFETY: the caller guarantees that the pointer is valid.
    value(|| Ok(unsafe { session.as_ref() }.ok_or_else(Fault::no_handle)?.inbox.descriptor())).unwrap_or(-1)
}

/// Returns the address that the sender had when it opened the session, as "address:port"; "" for NULL. The text belongs
/// to the session.
///
/// # Safety
/// `session` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_session_peer(session: *const eq_session) -> *const c_char {
    // SAFETY: the caller guarantees that the pointer is valid.
    let peer = value(|| Ok(unsafe { session.as_ref() }.ok_or_else(Fault::no_handle)?.peer.as_ptr()));
    peer.unwrap_or(c"".as_ptr())
}

/// Stores the state of the session in `*status`. Set status->struct_size before the call.
///
/// # Safety
/// `session` is null or open; `status` is null, or points to a structure that begins with its size and has that number
/// of writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_session_get_status(session: *const eq_session, status: *mut eq_session_status) -> eq_error {
    guarded(|| {
        // SAFETY: the caller guarantees that the pointers are valid.
        unsafe { fill(status, session.as_ref().ok_or_else(Fault::no_handle)?.status()) }
    })
}

/// Requests a key frame from the sender, because the decoder cannot continue without one. If the sender uses this
/// library, its eq_sender_events then returns EQ_EVENT_KEY_FRAME. At most one request is sent per 0.3 s. May be called
/// from any thread.
///
/// # Safety
/// `session` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_session_request_key_frame(session: *const eq_session) -> eq_error {
    guarded(|| {
        // SAFETY: the caller guarantees that the pointer is valid.
        let this = unsafe { session.as_ref() }.ok_or_else(Fault::no_handle)?;
        this.key_frames.request(this.ssrc, KeyFrameRequest::PictureLoss);
        Ok(())
    })
}

/// Makes all waiting and all later calls of eq_session_read return EQ_END. May be called from any thread.
///
/// # Safety
/// `session` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_session_stop(session: *const eq_session) -> eq_error {
    guarded(|| {
        // SAFETY: the caller guarantees that the pointer is valid.
        unsafe { session.as_ref() }.ok_or_else(Fault::no_handle)?.inbox.stop();
        Ok(())
    })
}

/// Frees a session; NULL is allowed. The sender is not notified, and continues to send until it ends the session.
///
/// # Safety
/// `session` is null or open, and no other call uses `session` during or after this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_session_close(session: *mut eq_session) {
    if !session.is_null() {
        // SAFETY: the pointer is from `Box::into_raw`, and the caller does not use it again.
        drop(unsafe { Box::from_raw(session) });
    }
}
