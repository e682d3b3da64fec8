//! Flow pairs, with the interface of Tobe 1999, Sec. 5.2 and Fig. 6.
//!
//! A handle is a small number, like a descriptor. With a local address it receives the first flow that arrives there;
//! with a destination it sends; with both it does both. The application does not see which transport carries its data
//! units.

mod handle;
mod settings;
mod table;

use std::ffi::{c_char, c_int, c_void};

use libc::{sockaddr, socklen_t, ssize_t};

use crate::address;
use crate::border::{Growing, fill, many, text};
use crate::error::{Fault, eq_error, guarded, value};
use crate::signal::Deadline;

/// The longest application data unit, in bytes.
pub const EQ_ADU_MAX: usize = 1_048_576;
/// For eq_recv: return EQ_AGAIN in place of waiting.
pub const EQ_DONTWAIT: c_int = 1;

/// State of the sending flow of a handle.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_pair_status {
    /// sizeof(eq_pair_status), set by the caller.
    pub struct_size: usize,
    /// The last rate of IP packets that was measured or set, in bit/s; 0 before the first.
    pub rate_bps: u64,
    /// TCP's congestion window, in bytes.
    pub window_bytes: u64,
    /// Bytes passed by the application that no transport has taken yet.
    pub waiting_bytes: u64,
    /// Number of running periods so far, in which RTP carries the units.
    pub running_periods: u64,
    /// 1 while RTP carries the units, 0 while TCP does.
    pub is_running: i32,
    /// 1 if the receiver ended the flow.
    pub ended_by_peer: i32,
}

// SAFETY: it is `repr(C)`, begins with its size, and has numbers otherwise.
unsafe impl Growing for eq_pair_status {
    const NAME: &'static str = "eq_pair_status";

    fn standard() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            rate_bps: 0,
            window_bytes: 0,
            waiting_bytes: 0,
            running_periods: 0,
            is_running: 0,
            ended_by_peer: 0,
        }
    }
}

/// Opens a handle. With a local IPv4 or IPv6 address, flows can arrive there, over TCP and UDP at the same port; with
/// NULL the handle can only send.
///
/// Returns the handle, or EQ_E_ARGUMENT or EQ_E_SYSTEM.
///
/// # Safety
/// `local_addr` is null, or points to `length` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_fsocket(local_addr: *const sockaddr, length: socklen_t) -> c_int {
    let open = || {
        // SAFETY: the caller vouches for the pointer and its length.
        let local = unsafe { address::read_or_none(local_addr, length) }?;
        table::open(local)
    };
    value(open).unwrap_or_else(|code| code as c_int)
}

/// The port at which flows arrive; 0 for a handle that can only send, and for an invalid handle.
#[unsafe(no_mangle)]
pub extern "C" fn eq_port(fsock: c_int) -> u16 {
    value(|| Ok(table::get(fsock)?.port())).unwrap_or(0)
}

/// Sets a parameter of the flow that eq_dst will open, with a text of the form "name=value": packet_size,
/// report_interval, patience, congestion_control, probe_interval, tolerance, running, adapt, reduction_factor,
/// min_rate. Values have units, such as "1 s".
///
/// Returns EQ_OK, EQ_E_NAME, EQ_E_VALUE, EQ_E_HANDLE, EQ_E_ARGUMENT, or EQ_E_STATE after eq_dst.
///
/// # Safety
/// `parameter` is null or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_set(fsock: c_int, parameter: *const c_char) -> eq_error {
    // SAFETY: the caller vouches for the text.
    guarded(|| table::get(fsock)?.set(unsafe { text(parameter, "parameter") }?))
}

/// Sets the destination and opens the flow to it; the handle can then send. A handle with a local address still
/// receives there, and sends from the same address and another port.
///
/// Returns EQ_OK, EQ_E_HANDLE, EQ_E_ARGUMENT, EQ_E_STATE if it already has a destination, EQ_E_PEER, EQ_E_VALUE or
/// EQ_E_SYSTEM. After an error of the last three the handle still has no destination.
///
/// # Safety
/// `remote_addr` is null, or points to `length` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_dst(fsock: c_int, remote_addr: *const sockaddr, length: socklen_t) -> eq_error {
    guarded(|| {
        let handle = table::get(fsock)?;
        // SAFETY: the caller vouches for the pointer and its length.
        let remote = unsafe { address::read_or_none(remote_addr, length) }?;
        handle.connect(remote.ok_or_else(|| Fault::null("remote_addr"))?)
    })
}

/// Sends bytes of an application data unit, which ends after them if `adu_ind` is not 0; blocks while there is no room.
///
/// Returns `length`, or EQ_E_HANDLE, EQ_E_ARGUMENT, EQ_E_STATE before eq_dst, EQ_E_LENGTH if the unit would be longer
/// than EQ_ADU_MAX, or EQ_END if the flow is over. `flags` is 0.
///
/// # Safety
/// `msg` points to `length` readable bytes; if `length` is 0, it may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_send(
    fsock: c_int,
    msg: *const c_void,
    length: usize,
    flags: c_int,
    adu_ind: c_int,
) -> ssize_t {
    let send = || {
        let handle = table::get(fsock)?;
        if flags != 0 {
            return Err(Fault::new(eq_error::EQ_E_ARGUMENT, format!("`flags` is {flags}; eq_send takes 0")));
        }
        if length > EQ_ADU_MAX {
            let words = format!("{length} bytes are longer than a unit may be, which has {EQ_ADU_MAX} at most");
            return Err(Fault::new(eq_error::EQ_E_LENGTH, words));
        }
        // SAFETY: the caller vouches for the pointer and its length.
        handle.send(unsafe { many(msg.cast(), length, "msg") }?, adu_ind != 0)?;
        Ok(length as ssize_t)
    };
    value(send).unwrap_or_else(|code| code as ssize_t)
}

/// Receives the next application data unit, complete and in order; waits for the flow and for the unit, unless `flags`
/// is EQ_DONTWAIT.
///
/// Returns the unit's length, or EQ_END if the flow is over and all data was read, or if the handle was shut down;
/// EQ_AGAIN, EQ_E_HANDLE, EQ_E_ARGUMENT, EQ_E_STATE for a handle without a local address, or EQ_E_BUFFER if the unit
/// needs a longer buffer, of at most EQ_ADU_MAX bytes, and can still be read.
///
/// # Safety
/// `msg` points to `length` writable bytes; if `length` is 0, it may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_recv(fsock: c_int, msg: *mut c_void, length: usize, flags: c_int) -> ssize_t {
    let recv = || {
        let handle = table::get(fsock)?;
        if flags & !EQ_DONTWAIT != 0 {
            let words = format!("`flags` is {flags}; eq_recv takes 0 or EQ_DONTWAIT ({EQ_DONTWAIT})");
            return Err(Fault::new(eq_error::EQ_E_ARGUMENT, words));
        }
        if msg.is_null() && length > 0 {
            return Err(Fault::null("msg"));
        }
        let deadline = Deadline::after_ms(if flags == 0 { -1 } else { 0 });
        let data = handle.recv(length, deadline)?;
        if !data.is_empty() {
            // SAFETY: `recv` returns at most `length` bytes, for which the caller vouches; they do not overlap with the
            // library's.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), msg.cast(), data.len()) };
        }
        Ok(data.len() as ssize_t)
    };
    value(recv).unwrap_or_else(|code| code as ssize_t)
}

/// A descriptor that is readable while there is a unit to receive, and after the end of the flow. It belongs to the
/// handle: do not read or close it. EQ_E_STATE for a handle without a local address, or EQ_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn eq_fd(fsock: c_int) -> c_int {
    value(|| table::get(fsock)?.descriptor()).unwrap_or_else(|code| code as c_int)
}

/// The state of the sending flow. Set status->struct_size before.
///
/// Returns EQ_OK, EQ_E_HANDLE, EQ_E_STATE before eq_dst, or EQ_E_ARGUMENT.
///
/// # Safety
/// `status` is null, or begins with its size and points to as many writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_pair_get_status(fsock: c_int, status: *mut eq_pair_status) -> eq_error {
    // SAFETY: the caller vouches for the pointer.
    guarded(|| unsafe { fill(status, table::get(fsock)?.status()?) })
}

/// Makes every present and later eq_send and eq_recv of the handle return EQ_END. Can be called from any thread.
/// eq_close then discards waiting data.
#[unsafe(no_mangle)]
pub extern "C" fn eq_shutdown(fsock: c_int) -> eq_error {
    guarded(|| {
        table::get(fsock)?.shut_down();
        Ok(())
    })
}

/// Closes a handle; calls of other threads that wait on it return EQ_END. A sender first sends waiting data and ends an
/// unfinished application data unit, unless the handle was shut down.
///
/// Returns EQ_OK, or EQ_E_HANDLE, or EQ_END if a sender's flow ended before all data was sent; then the handle is
/// closed, too.
#[unsafe(no_mangle)]
pub extern "C" fn eq_close(fsock: c_int) -> eq_error {
    guarded(|| table::remove(fsock)?.close())
}
