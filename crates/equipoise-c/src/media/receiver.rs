//! The receiving end of many sessions.

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

/// The session goes on.
pub const EQ_GOES_ON: i32 = 0;
/// The sender said goodbye.
pub const EQ_GOODBYE: i32 = 1;
/// The sender fell silent.
pub const EQ_SILENCE: i32 = 2;
/// The receiver was closed, or failed.
pub const EQ_STOPPED: i32 = 3;

/// What a receiver is made of. Set struct_size and key, and leave at 0 what is to be as usual.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_receiver_options {
    /// sizeof(eq_receiver_options).
    pub struct_size: usize,
    /// What both hosts know, as `equipoise keygen` writes it: base64. NULL only if insecure is set.
    pub key: *const c_char,
    /// 1 for sessions that anybody may read and forge.
    pub insecure: i32,
    /// Sessions at once; usually 1000.
    pub most_sessions: u32,
    /// How long a session may be silent before it is given up; usually 30 s.
    pub idle_ns: i64,
    /// How long a missing packet is waited for before what follows is given out; usually 100 ms.
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

/// What came with a payload.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_received {
    /// sizeof(eq_received), set by the caller.
    pub struct_size: usize,
    /// Packets that are missing before it: lost on the way, or not read in time.
    pub missing: u64,
    /// When it arrived, or became next in order, in ns since the Unix epoch, by a clock that never steps.
    pub at_unix_ns: i64,
}

// SAFETY: it is `repr(C)`, begins with its size, and has numbers otherwise.
unsafe impl Growing for eq_received {
    const NAME: &'static str = "eq_received";

    fn standard() -> Self {
        Self { struct_size: size_of::<Self>(), missing: 0, at_unix_ns: 0 }
    }
}

/// How a session stands. NaN is what is not known.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_session_status {
    /// sizeof(eq_session_status), set by the caller.
    pub struct_size: usize,
    /// Counts the receiver's sessions, from 0.
    pub number: u64,
    /// The source (SSRC) of its packets.
    pub ssrc: u32,
    /// EQ_PAYLOAD_STREAM or EQ_PAYLOAD_RTP; -1 for zeros, which `equipoise send` sends as a load.
    pub payload: i32,
    /// Packets that came, and bytes of their IP packets.
    pub packets: u64,
    /// As packets.
    pub bytes: u64,
    /// Packets that are missing.
    pub missing: u64,
    /// Packets whose payload was not read in time, and dropped.
    pub dropped: u64,
    /// Mean of the delay less that of the first packet, over the last report, in s.
    pub delay_mean_s: f64,
    /// Its standard deviation, in s.
    pub delay_deviation_s: f64,
    /// EQ_GOES_ON, or why it is over.
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

/// Where sessions arrive. Threads may share it, but for its closing.
pub struct eq_receiver {
    inbox: Inbox<MediaReceiver>,
    port: u16,
    runtime: Arc<Runtime>,
}

/// A session at a receiver, which it may outlive. Threads may share it, but for its closing.
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
            // The last words are on their way from the server's thread.
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

/// Receives at "host:port"; port 0 takes any free one. Close it with eq_receiver_close.
///
/// Returns EQ_OK, EQ_E_SYSTEM where the address cannot be had, EQ_E_KEY or EQ_E_ARGUMENT.
///
/// # Safety
/// `address` is a text, `options` begins with its size and has texts, `receiver` can be written; each may be null.
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

/// The UDP port at which it receives; 0 for NULL.
///
/// # Safety
/// `receiver` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_receiver_port(receiver: *const eq_receiver) -> u16 {
    // SAFETY: the caller vouches for the pointer.
    value(|| Ok(unsafe { receiver.as_ref() }.ok_or_else(Fault::no_handle)?.port)).unwrap_or(0)
}

/// A descriptor that is readable while there is a session to accept. It is the receiver's: do not read or close it. -1 for NULL.
///
/// # Safety
/// `receiver` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_receiver_fd(receiver: *const eq_receiver) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    value(|| Ok(unsafe { receiver.as_ref() }.ok_or_else(Fault::no_handle)?.inbox.descriptor())).unwrap_or(-1)
}

/// The next session that a sender has opened; waits for `timeout_ms`, not at all for 0, and for ever below 0. Close it with
/// eq_session_close. 128 may wait to be accepted.
///
/// Returns EQ_OK, EQ_AGAIN, EQ_END after eq_receiver_stop or where the receiver failed, EQ_E_HANDLE or EQ_E_ARGUMENT.
///
/// # Safety
/// `receiver` is null or open; `session` is null or can be written.
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

/// Ends each eq_receiver_accept that waits, now and later, with EQ_END; from any thread.
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

/// Says goodbye to all sessions, gives the port back, and frees the receiver; NULL is allowed. Sessions that were accepted give out what
/// came, then end.
///
/// Returns EQ_OK, or EQ_E_SYSTEM where the receiver had failed.
///
/// # Safety
/// `receiver` is null or open, and nobody else uses it now or later.
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

/// Reads the next payload into `buffer` of `capacity` bytes, and its length into `length`: the next bytes of the stream, or one RTP
/// packet. EQ_PAYLOAD_MAX bytes always suffice. Waits for `timeout_ms`, not at all for 0, and for ever below 0. `received` may be NULL; set
/// its struct_size before.
///
/// Returns EQ_OK, EQ_AGAIN, EQ_END when the session is over and all was read, EQ_E_BUFFER where the payload stays to be read into a longer
/// buffer, EQ_E_HANDLE or EQ_E_ARGUMENT.
///
/// # Safety
/// `session` is null or open; `buffer` is `capacity` writable bytes, `length` can be written, `received` begins with its size; each may be
/// null.
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
        // SAFETY: it fits, and the caller vouches for the pointers; the payload is not the caller's.
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

/// A descriptor that is readable while there is payload to read, and after the end. It is the session's: do not read or close it. -1 for
/// NULL.
///
/// # Safety
/// `session` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_session_fd(session: *const eq_session) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    value(|| Ok(unsafe { session.as_ref() }.ok_or_else(Fault::no_handle)?.inbox.descriptor())).unwrap_or(-1)
}

/// Where the session came from when it was opened, as "address:port"; "" for NULL. The text is the session's.
///
/// # Safety
/// `session` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_session_peer(session: *const eq_session) -> *const c_char {
    // SAFETY: the caller vouches for the pointer.
    let peer = value(|| Ok(unsafe { session.as_ref() }.ok_or_else(Fault::no_handle)?.peer.as_ptr()));
    peer.unwrap_or(c"".as_ptr())
}

/// How the session stands. Set status->struct_size before.
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

/// Asks the session's sender for a key frame, as the decoder cannot go on without one: its eq_sender_events says EQ_EVENT_KEY_FRAME. At most
/// one request is sent in 0.3 s, from any thread.
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

/// Ends each eq_session_read that waits, now and later, with EQ_END; from any thread.
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

/// Frees a session; NULL is allowed. Its sender goes on until it ends it, unheard.
///
/// # Safety
/// `session` is null or open, and nobody else uses it now or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_session_close(session: *mut eq_session) {
    if !session.is_null() {
        // SAFETY: it was made by `Box::into_raw`, and the caller gives it up.
        drop(unsafe { Box::from_raw(session) });
    }
}
