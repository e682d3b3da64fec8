//! Conversions between C and Rust: texts, structures that can grow, and handles.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::slice;
use std::sync::Mutex;

use equipoise::units::Size;

use crate::error::{Fault, eq_error};
use crate::signal::locked;

/// A structure of numbers and pointers that begins with its size, so that later versions of the library can add fields
/// at its end.
///
/// # Safety
/// Its first field is a `usize`, it is `repr(C)`, and any bytes are a valid value.
pub(crate) unsafe trait Growing: Copy {
    /// Its name in C.
    const NAME: &'static str;
    /// The values of fields that are missing in the caller's structure, or of all fields for NULL.
    fn standard() -> Self;
}

/// Reads the caller's structure. Missing fields, or all for NULL, have their standard values.
///
/// # Safety
/// `from` is null, or begins with a `usize` and points to that many readable bytes.
pub(crate) unsafe fn options<T: Growing>(from: *const T) -> Result<T, Fault> {
    let mut whole = T::standard();
    if from.is_null() {
        return Ok(whole);
    }
    // SAFETY: the caller vouches for the first field.
    let size = unsafe { from.cast::<usize>().read_unaligned() };
    check_size::<T>(size)?;
    let length = size.min(size_of::<T>());
    // SAFETY: that many bytes are readable there and writable here, and any bytes are a valid `T`.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), std::ptr::from_mut(&mut whole).cast::<u8>(), length) };
    Ok(whole)
}

/// Copies `value` into the caller's structure, as far as the size of that structure allows.
///
/// # Safety
/// `to` is null, or begins with a `usize` and points to that many writable bytes.
pub(crate) unsafe fn fill<T: Growing>(to: *mut T, value: T) -> Result<(), Fault> {
    if to.is_null() {
        return Err(Fault::null(T::NAME));
    }
    // SAFETY: the caller vouches for the first field.
    let size = unsafe { to.cast::<usize>().read_unaligned() };
    check_size::<T>(size)?;
    let (length, head) = (size.min(size_of::<T>()), size_of::<usize>());
    let value = std::ptr::from_ref(&value).cast::<u8>();
    // SAFETY: both have that many bytes; the caller's size is not changed.
    unsafe { std::ptr::copy_nonoverlapping(value.add(head), to.cast::<u8>().add(head), length - head) };
    Ok(())
}

fn check_size<T: Growing>(size: usize) -> Result<(), Fault> {
    // No structure is as large as a page: a larger number means that the size was not set.
    if (size_of::<usize>()..=4096).contains(&size) {
        return Ok(());
    }
    let words = format!("`struct_size` is {size}; set it to sizeof({})", T::NAME);
    Err(Fault::new(eq_error::EQ_E_ARGUMENT, words))
}

/// Reads a text.
///
/// # Safety
/// `from` is null or points to a string with a terminating zero byte that outlives the result.
pub(crate) unsafe fn text<'a>(from: *const c_char, what: &str) -> Result<&'a str, Fault> {
    if from.is_null() {
        return Err(Fault::null(what));
    }
    // SAFETY: the caller vouches for the pointer.
    let text = unsafe { CStr::from_ptr(from) };
    text.to_str().map_err(|_| Fault::new(eq_error::EQ_E_ARGUMENT, format!("`{what}` is not UTF-8")))
}

/// Converts a word of the library to a C string, which is kept forever. The number of words is bounded: one for each
/// reason of a rate.
pub(crate) fn word(word: &'static str) -> *const c_char {
    static WORDS: Mutex<BTreeMap<&'static str, CString>> = Mutex::new(BTreeMap::new());
    let mut words = locked(&WORDS);
    // The bytes of a string do not move when the map grows.
    words.entry(word).or_insert_with(|| CString::new(word).unwrap_or_default()).as_ptr()
}

/// Reads an array of `count` items.
///
/// # Safety
/// `from` points to `count` readable items that outlive the result; if `count` is 0, it may be null.
pub(crate) unsafe fn many<'a, T>(from: *const T, count: usize, what: &str) -> Result<&'a [T], Fault> {
    match (from.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Fault::null(what)),
        (false, count) if count.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize) => {
            Err(Fault::new(eq_error::EQ_E_ARGUMENT, format!("{count} of `{what}` are more than memory has")))
        }
        (false, _) if !from.is_aligned() => {
            Err(Fault::new(eq_error::EQ_E_ARGUMENT, format!("`{what}` is not aligned as its type wants")))
        }
        // SAFETY: the caller vouches for the pointer and the count, which does not exceed the size of an object.
        (false, _) => Ok(unsafe { slice::from_raw_parts(from, count) }),
    }
}

/// Reads texts of the form "name=value".
///
/// # Safety
/// As [`many`], and each text as [`text`].
pub(crate) unsafe fn pairs<'a>(from: *const *const c_char, count: usize) -> Result<Vec<(&'a str, &'a str)>, Fault> {
    // SAFETY: the caller vouches for them.
    let texts = unsafe { many(from, count, "parameters") }?;
    let pair = |from: &*const c_char| {
        // SAFETY: the caller vouches for each.
        let text = unsafe { text(*from, "parameters") }?;
        let wrong = || {
            let words = format!("parameter `{text}` is not of the form `name=value`");
            Fault::new(eq_error::EQ_E_ARGUMENT, words)
        };
        text.split_once('=').map(|(name, value)| (name.trim(), value.trim())).ok_or_else(wrong)
    };
    texts.iter().map(pair).collect()
}

/// Stores a new handle at `to`.
///
/// # Safety
/// `to` is null or writable.
pub(crate) unsafe fn hand_out<T>(to: *mut *mut T, make: impl FnOnce() -> Result<T, Fault>) -> Result<(), Fault> {
    if to.is_null() {
        return Err(Fault::null("where the handle is to go"));
    }
    // SAFETY: the caller vouches for the pointer.
    unsafe { to.write(std::ptr::null_mut()) };
    let made = Box::into_raw(Box::new(make()?));
    // SAFETY: as before.
    unsafe { to.write(made) };
    Ok(())
}

/// Maximum size of an IP packet, in bytes: the longest IPv6 payload and its header (RFC 8200, Sec. 3).
pub(crate) const LONGEST_PACKET: usize = 65_575;
/// Maximum bytes of a frame, and of waiting data. Our choice: far above real values, and sums cannot overflow.
pub(crate) const LONGEST_FRAME: usize = 1 << 31;
/// A size given by the caller.
pub(crate) fn bytes(count: usize, most: usize) -> Result<Size, Fault> {
    if count > most {
        let words = format!("a size of {count} bytes; {most} are the most");
        return Err(Fault::new(eq_error::EQ_E_ARGUMENT, words));
    }
    Ok(Size::from_bytes(count as u64))
}
