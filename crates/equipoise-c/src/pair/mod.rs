//! Flow pairs for C, with the interface of Tobe 1999, Sec. 5.2 and Fig. 6.
//!
//! A handle is a small number, like a file descriptor. A handle with a local address receives the first flow that
//! arrives at this address. A handle with a destination sends a flow to this destination. A handle can do both. The
//! same calls are used whether TCP or RTP carries the data units.

mod handle;
mod settings;
mod table;

use std::ffi::{c_char, c_int, c_void};

use libc::{sockaddr, socklen_t, ssize_t};

use crate::address;
use crate::border::{Growing, fill, many, text};
use crate::error::{Fault, eq_error, guarded, value};
use crate::signal::Deadline;

/// Maximum length of an application data unit, in bytes.
pub const EQ_ADU_MAX: usize = 1_048_576;
/// Flag for eq_recv: return EQ_AGAIN instead of waiting.
pub const EQ_DONTWAIT: c_int = 1;

/// State of the flow that a handle sends.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_pair_status {
    /// sizeof(eq_pair_status), set by the caller.
    pub struct_size: usize,
    /// The latest rate of IP packets, measured for TCP or set for RTP, in bit/s; 0 before the first rate.
    pub rate_bps: u64,
    /// TCP's congestion window, in bytes.
    pub window_bytes: u64,
    /// Bytes that the application passed to eq_send and that neither TCP nor RTP has accepted yet.
    pub waiting_bytes: u64,
    /// Number of running periods so far. In a running period RTP carries the application data units.
    pub running_periods: u64,
    /// 1 while RTP carries the application data units, 0 while TCP carries them.
    pub is_running: i32,
    /// 1 if the receiver closed the connection, or the connection was lost, before the end of the flow.
    pub ended_by_peer: i32,
}

// SAFETY: the structure is `repr(C)`, its first field is its size, and all its other fields are numbers.
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

/// Opens a handle of a flow pair. If `local_addr` is an IPv4 or IPv6 address, the handle can receive a flow there, over
/// TCP and over UDP. The UDP port has the same number as the TCP port if that UDP port is free, and otherwise any free
/// number. If `local_addr` is NULL, the handle can only send.
///
/// Returns the handle, which is not negative, or EQ_E_ARGUMENT or EQ_E_SYSTEM.
///
/// # Safety
/// `local_addr` is null, or points to `length` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_fsocket(local_addr: *const sockaddr, length: socklen_t) -> c_int {
    let open = || {
        // SAFETY: the caller guarantees that the pointer and its length are valid.
        let local = unsafe { address::read_or_none(local_addr, length) }?;
        table::open(local)
    };
    value(open).unwrap_or_else(|code| code as c_int)
}

/// Returns the local port at which a flow can arrive; 0 if the handle can only send, or is invalid.
#[unsafe(no_mangle)]
pub extern "C" fn eq_port(fsock: c_int) -> u16 {
    value(|| Ok(table::get(fsock)?.port())).unwrap_or(0)
}

/// Sets a parameter of the flow that eq_dst will open. `parameter` has the form "name=value". The names are
/// packet_size, report_interval, patience, congestion_control, probe_interval, tolerance, running, adapt,
/// reduction_factor and min_rate. Times and rates have units, such as "1 s".
///
/// Returns EQ_OK, EQ_E_NAME, EQ_E_VALUE, EQ_E_HANDLE, EQ_E_ARGUMENT, or EQ_E_STATE if eq_dst has opened the flow
/// already.
///
/// # Safety
/// `parameter` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_set(fsock: c_int, parameter: *const c_char) -> eq_error {
    // SAFETY: the caller guarantees that the text is valid.
    guarded(|| table::get(fsock)?.set(unsafe { text(parameter, "parameter") }?))
}

/// Sets the handle's destination and opens a flow to it. After this call the handle can send. A handle with a local
/// address still receives at this address, and sends from another port of the same IP address. If the local IP address
/// is 0.0.0.0 or ::, or if its family differs from that of `remote_addr`, the system chooses the IP address from which
/// the handle sends.
///
/// Returns EQ_OK, EQ_E_HANDLE, EQ_E_ARGUMENT, EQ_E_STATE if the handle already has a destination, EQ_E_PEER, EQ_E_VALUE
/// or EQ_E_SYSTEM. After EQ_E_PEER, EQ_E_VALUE and EQ_E_SYSTEM the handle still has no destination.
///
/// # Safety
/// `remote_addr` is null, or points to `length` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_dst(fsock: c_int, remote_addr: *const sockaddr, length: socklen_t) -> eq_error {
    guarded(|| {
        let handle = table::get(fsock)?;
        // SAFETY: the caller guarantees that the pointer and its length are valid.
        let remote = unsafe { address::read_or_none(remote_addr, length) }?;
        handle.connect(remote.ok_or_else(|| Fault::null("remote_addr"))?)
    })
}

/// Sends the next bytes of an application data unit. If `adu_ind` is not 0, these bytes are the last of the unit.
/// Blocks while the send queue has no space.
///
/// `flags` must be 0. Returns `length`, or an error: EQ_E_STATE if the handle has no destination yet, EQ_E_LENGTH if
/// the unit would be longer than EQ_ADU_MAX, EQ_END if the flow is over or the handle was shut down, or one of
/// EQ_E_HANDLE and EQ_E_ARGUMENT.
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
        // SAFETY: the caller guarantees that the pointer and its length are valid.
        handle.send(unsafe { many(msg.cast(), length, "msg") }?, adu_ind != 0)?;
        Ok(length as ssize_t)
    };
    value(send).unwrap_or_else(|code| code as ssize_t)
}

/// Receives the next complete application data unit, in the order in which units were sent. Waits for a flow to arrive
/// and for the unit, unless `flags` is EQ_DONTWAIT.
///
/// Returns the unit's length, or one of these codes: EQ_END if the flow is over and all data was read, or if the handle
/// was shut down; EQ_AGAIN if `flags` is EQ_DONTWAIT and no complete unit has arrived; EQ_E_STATE if the handle has no
/// local address; EQ_E_BUFFER if the unit is longer than the buffer (the unit can then still be read); EQ_E_HANDLE;
/// EQ_E_ARGUMENT. A buffer of EQ_ADU_MAX bytes is always long enough.
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
            // SAFETY: `recv` returns at most `length` bytes, the caller guarantees that `msg` has `length` writable
            // bytes, and `data` does not overlap with `msg`.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), msg.cast(), data.len()) };
        }
        Ok(data.len() as ssize_t)
    };
    value(recv).unwrap_or_else(|code| code as ssize_t)
}

/// Returns a descriptor that is readable while there is a unit to receive, and after the end of the flow. The
/// descriptor belongs to the handle: do not read or close it. Returns EQ_E_STATE if the handle has no local address.
/// Returns EQ_E_HANDLE if the handle is unknown or closed.
#[unsafe(no_mangle)]
pub extern "C" fn eq_fd(fsock: c_int) -> c_int {
    value(|| table::get(fsock)?.descriptor()).unwrap_or_else(|code| code as c_int)
}

/// Stores in `*status` the state of the flow that the handle sends. Set status->struct_size before the call.
///
/// Returns EQ_OK, EQ_E_HANDLE, EQ_E_STATE if the handle has no destination yet, or EQ_E_ARGUMENT.
///
/// # Safety
/// `status` is null, or points to a structure that begins with its size and has that number of writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_pair_get_status(fsock: c_int, status: *mut eq_pair_status) -> eq_error {
    // SAFETY: the caller guarantees that the pointer is valid.
    guarded(|| unsafe { fill(status, table::get(fsock)?.status()?) })
}

/// Makes all waiting and all later calls of eq_send and eq_recv for the handle return EQ_END. May be called from any
/// thread. A later eq_close discards data that still waits to be sent.
#[unsafe(no_mangle)]
pub extern "C" fn eq_shutdown(fsock: c_int) -> eq_error {
    guarded(|| {
        table::get(fsock)?.shut_down();
        Ok(())
    })
}

/// Closes a handle. Calls of other threads that wait on the handle return EQ_END. Unless the handle was shut down,
/// eq_close first sends the waiting data and ends an unfinished application data unit.
///
/// Returns EQ_OK, EQ_E_HANDLE, EQ_END if the receiver ended the flow before all data was sent, or EQ_E_SYSTEM if a flow
/// of the handle failed. The handle is closed in any case.
#[unsafe(no_mangle)]
pub extern "C" fn eq_close(fsock: c_int) -> eq_error {
    guarded(|| table::remove(fsock)?.close())
}
