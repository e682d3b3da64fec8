//! Conversions between C and Rust values: texts, handles, and structures to which later versions can add fields.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::slice;
use std::sync::Mutex;

use equipoise::units::Size;

use crate::error::{Fault, eq_error};
use crate::signal::locked;

/// A C structure of numbers and pointers whose first field is its size. Because of the size, later versions of the
/// library can add fields at the end of the structure.
///
/// # Safety
/// The type is `repr(C)`, its first field is a `usize`, and any bytes are a valid value of the type.
pub(crate) unsafe trait Growing: Copy {
    /// Name of the structure in C.
    const NAME: &'static str;
    /// Returns the default values. They replace fields that are missing in the caller's structure, or all fields if the
    /// caller passes NULL.
    fn standard() -> Self;
}

/// Reads the caller's structure. Fields that are missing in the caller's structure have their default values. If `from`
/// is null, all fields have their default values.
///
/// # Safety
/// `from` is null, or points to a structure that begins with its size, a `usize`, and has that number of readable
/// bytes.
pub(crate) unsafe fn options<T: Growing>(from: *const T) -> Result<T, Fault> {
    let mut whole = T::standard();
    if from.is_null() {
        return Ok(whole);
    }
    // SAFETY: the caller guarantees that the first field is a readable `usize`.
    let size = unsafe { from.cast::<usize>().read_unaligned() };
    check_size::<T>(size)?;
    let length = size.min(size_of::<T>());
    // SAFETY: `length` bytes are readable in `from` and writable in `whole`, and any bytes are a valid `T`.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), std::ptr::from_mut(&mut whole).cast::<u8>(), length) };
    Ok(whole)
}

/// Copies `value` into the caller's structure. Fields that do not fit into the caller's structure are left out.
///
/// # Safety
/// `to` is null, or points to a structure that begins with its size, a `usize`, and has that number of writable bytes.
pub(crate) unsafe fn fill<T: Growing>(to: *mut T, value: T) -> Result<(), Fault> {
    if to.is_null() {
        return Err(Fault::null(T::NAME));
    }
    // SAFETY: the caller guarantees that the first field is a readable `usize`.
    let size = unsafe { to.cast::<usize>().read_unaligned() };
    check_size::<T>(size)?;
    let (length, head) = (size.min(size_of::<T>()), size_of::<usize>());
    let value = std::ptr::from_ref(&value).cast::<u8>();
    // SAFETY: `value` and `to` have at least `length` bytes. The copy leaves out `struct_size`, which belongs to the
    // caller.
    unsafe { std::ptr::copy_nonoverlapping(value.add(head), to.cast::<u8>().add(head), length - head) };
    Ok(())
}

fn check_size<T: Growing>(size: usize) -> Result<(), Fault> {
    // No structure of the library has more than 4096 bytes. A larger `size` means that the caller did not set the size.
    if (size_of::<usize>()..=4096).contains(&size) {
        return Ok(());
    }
    let words = format!("`struct_size` is {size}; set it to sizeof({})", T::NAME);
    Err(Fault::new(eq_error::EQ_E_ARGUMENT, words))
}

/// Reads a C string as UTF-8. `what` is the argument's name for the error message.
///
/// # Safety
/// `from` is null or points to a string that ends with a zero byte and outlives the result.
pub(crate) unsafe fn text<'a>(from: *const c_char, what: &str) -> Result<&'a str, Fault> {
    if from.is_null() {
        return Err(Fault::null(what));
    }
    // SAFETY: the caller guarantees that the pointer is valid.
    let text = unsafe { CStr::from_ptr(from) };
    text.to_str().map_err(|_| Fault::new(eq_error::EQ_E_ARGUMENT, format!("`{what}` is not UTF-8")))
}

/// Returns `word`, the reason for a rate, as a C string that is never freed. The set of reasons is fixed, so the memory
/// is bounded.
pub(crate) fn word(word: &'static str) -> *const c_char {
    static WORDS: Mutex<BTreeMap<&'static str, CString>> = Mutex::new(BTreeMap::new());
    let mut words = locked(&WORDS);
    // The pointer stays valid when the map grows, because a `CString` keeps its bytes on the heap.
    words.entry(word).or_insert_with(|| CString::new(word).unwrap_or_default()).as_ptr()
}

/// Reads an array of `count` items. `what` is the argument's name for the error message.
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
        // SAFETY: the caller guarantees that `from` has `count` items, and their total size is at most `isize::MAX`.
        (false, _) => Ok(unsafe { slice::from_raw_parts(from, count) }),
    }
}

/// Reads texts of the form "name=value".
///
/// # Safety
/// `from` satisfies the conditions of [`many`], and each of its items satisfies the conditions of [`text`].
pub(crate) unsafe fn pairs<'a>(from: *const *const c_char, count: usize) -> Result<Vec<(&'a str, &'a str)>, Fault> {
    // SAFETY: the caller guarantees that the pointers are valid.
    let texts = unsafe { many(from, count, "parameters") }?;
    let pair = |from: &*const c_char| {
        // SAFETY: the caller guarantees that each text is valid.
        let text = unsafe { text(*from, "parameters") }?;
        let wrong = || {
            let words = format!("parameter `{text}` is not of the form `name=value`");
            Fault::new(eq_error::EQ_E_ARGUMENT, words)
        };
        text.split_once('=').map(|(name, value)| (name.trim(), value.trim())).ok_or_else(wrong)
    };
    texts.iter().map(pair).collect()
}

/// Stores a pointer to a new handle at `to`, or NULL if `make` fails.
///
/// # Safety
/// `to` is null or writable.
pub(crate) unsafe fn hand_out<T>(to: *mut *mut T, make: impl FnOnce() -> Result<T, Fault>) -> Result<(), Fault> {
    if to.is_null() {
        return Err(Fault::null("where the handle is to go"));
    }
    // SAFETY: the caller guarantees that `to` is writable.
    unsafe { to.write(std::ptr::null_mut()) };
    let made = Box::into_raw(Box::new(make()?));
    // SAFETY: the caller guarantees that `to` is writable.
    unsafe { to.write(made) };
    Ok(())
}

/// Maximum size of an IP packet, in bytes: the longest IPv6 payload and its header (RFC 8200, Sec. 3).
pub(crate) const LONGEST_PACKET: usize = 65_575;
/// Maximum size of a frame, and of the data that waits to be sent, in bytes. Our choice: the limit is far above real
/// sizes, and low enough that sums of sizes cannot overflow.
pub(crate) const LONGEST_FRAME: usize = 1 << 31;
/// Converts a number of bytes from the caller to a size. Returns an error if the number is above `most`.
pub(crate) fn bytes(count: usize, most: usize) -> Result<Size, Fault> {
    if count > most {
        let words = format!("a size of {count} bytes; {most} are the most");
        return Err(Fault::new(eq_error::EQ_E_ARGUMENT, words));
    }
    Ok(Size::from_bytes(count as u64))
}
