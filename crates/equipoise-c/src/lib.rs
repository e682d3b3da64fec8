//! Flow pairs for C, in the shape of Tobe 1999, Sec. 5.2 and Fig. 6.
//!
//! A handle is a small number, as a descriptor is. One that is given a destination sends; one with a local address of its own
//! receives the first flow that arrives there. The application never sees which transport carries its data units.
//!
//! Every call gives zero or more, or a negative error code that [`eq_strerror`] puts into words. Nothing panics across the
//! border. Each handle's calls follow each other: one that waits holds up others of the same handle, its closing among them.

#![expect(
    clippy::doc_markdown,
    reason = "the documentation of the calls is that of the header, where nobody reads Markdown"
)]

mod address;
mod error;
mod table;

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

use libc::{sockaddr, socklen_t, ssize_t};

use error::Error;
use table::{close, open, with};

/// The longest application data unit, in bytes.
pub const EQ_ADU_MAX: usize = 1_048_576;

/// There is no such handle, or it was closed.
pub const EQ_E_HANDLE: c_int = -1;
/// A null pointer, an address that is none of IPv4 or IPv6, or flags that are not zero.
pub const EQ_E_ARGUMENT: c_int = -2;
/// eq_send wants eq_dst before it; eq_recv a handle with a local address and without a destination.
pub const EQ_E_STATE: c_int = -3;
/// No receiver of flow pairs answers at the destination.
pub const EQ_E_PEER: c_int = -4;
/// The flow is over: for a receiver, all that came was read.
pub const EQ_E_OVER: c_int = -5;
/// The application data unit would be longer than EQ_ADU_MAX; nothing was taken of these bytes.
pub const EQ_E_LENGTH: c_int = -6;
/// The buffer is shorter than the unit, which stays to be read into a longer one, of EQ_ADU_MAX bytes at most.
pub const EQ_E_BUFFER: c_int = -7;
/// The system refused: a port that is taken, no threads, no descriptors.
pub const EQ_E_SYSTEM: c_int = -8;
/// A fault of the library's own.
pub const EQ_E_INTERNAL: c_int = -9;

/// Opens a handle. At a local address of IPv4 or IPv6 flows may arrive from now on, over TCP and UDP of the same port; with
/// NULL it can only send.
///
/// Returns the handle, or EQ_E_ARGUMENT or EQ_E_SYSTEM.
///
/// # Safety
/// `local_addr` is null, or points to `length` bytes that can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_fsocket(local_addr: *const sockaddr, length: socklen_t) -> c_int {
    guarded(|| {
        // SAFETY: the caller vouches for the pointer and its length.
        let local = unsafe { address::read_or_none(local_addr, length) }?;
        open(local)
    })
}

/// Sets the destination, and opens the flow to it: the handle sends from now on, from its local address where it has one.
///
/// Returns 0, or EQ_E_HANDLE, EQ_E_ARGUMENT, EQ_E_STATE, EQ_E_PEER or EQ_E_SYSTEM; then it has no destination, and
/// no flow arrives there any more.
///
/// # Safety
/// `remote_addr` is null, or points to `length` bytes that can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_dst(fsock: c_int, remote_addr: *const sockaddr, length: socklen_t) -> c_int {
    guarded(|| {
        // SAFETY: the caller vouches for the pointer and its length.
        let remote = unsafe { address::read_or_none(remote_addr, length) }?.ok_or(Error::Argument)?;
        with(fsock, |handle| handle.connect(remote))?;
        Ok(0)
    })
}

/// Sends bytes of an application data unit, which ends with them where `adu_ind` is not 0; waits while there is no room.
///
/// Returns `length`, or EQ_E_HANDLE, EQ_E_ARGUMENT, EQ_E_STATE, EQ_E_LENGTH or EQ_E_OVER. `flags` is 0.
///
/// # Safety
/// `msg` points to `length` bytes that can be read; with a `length` of 0 it may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_send(
    fsock: c_int,
    msg: *const c_void,
    length: usize,
    flags: c_int,
    adu_ind: c_int,
) -> ssize_t {
    guarded(|| {
        let data: &[u8] = match (msg.is_null(), length) {
            (_, 0) => &[],
            (true, _) => return Err(Error::Argument),
            (false, length) if length > EQ_ADU_MAX => return Err(Error::Length),
            // SAFETY: the caller vouches for the pointer and its length, which is far below what an object may have.
            (false, length) => unsafe { slice::from_raw_parts(msg.cast(), length) },
        };
        if flags != 0 {
            return Err(Error::Argument);
        }
        with(fsock, |handle| handle.send(data, adu_ind != 0))?;
        Ok(length as ssize_t)
    })
}

/// Receives the next application data unit, whole and in order; waits for the flow and for the unit.
///
/// Returns the unit's length, or EQ_E_HANDLE, EQ_E_ARGUMENT, EQ_E_STATE, EQ_E_BUFFER, EQ_E_OVER or EQ_E_SYSTEM. `flags` is 0.
///
/// # Safety
/// `msg` points to `length` bytes that can be written; with a `length` of 0 it may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_recv(fsock: c_int, msg: *mut c_void, length: usize, flags: c_int) -> ssize_t {
    guarded(|| {
        if flags != 0 || (msg.is_null() && length > 0) {
            return Err(Error::Argument);
        }
        with(fsock, |handle| {
            let data = handle.recv(length)?;
            if !data.is_empty() {
                // SAFETY: `recv` gives no more than `length` bytes, for which the caller vouches; they are not the library's.
                unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), msg.cast(), data.len()) };
            }
            Ok(data.len() as ssize_t)
        })
    })
}

/// Closes a handle. A sender first sends what waits, and ends an application data unit that is open.
///
/// Returns 0, or EQ_E_HANDLE, or EQ_E_OVER where a sender's flow was over before all was sent; the handle is closed then, too.
#[unsafe(no_mangle)]
pub extern "C" fn eq_close(fsock: c_int) -> c_int {
    guarded(|| close(fsock).map(|()| 0))
}

/// What an error code means, in English; never NULL. The text is the library's.
#[unsafe(no_mangle)]
pub extern "C" fn eq_strerror(error: c_int) -> *const c_char {
    Error::words_of(error).as_ptr()
}

/// Runs `body`; whatever goes wrong is a number.
fn guarded<T: From<i16>>(body: impl FnOnce() -> Result<T, Error>) -> T {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(Error::Internal));
    result.unwrap_or_else(|error| T::from(error.code()))
}

#[cfg(test)]
mod tests;
