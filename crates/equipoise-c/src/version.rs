//! Which version of the library this is.

use std::ffi::{CStr, c_char};

/// The version of the header: a number of the soname, which changes when programs have to be built anew,
pub const EQ_VERSION_MAJOR: u32 = 0;
/// one that rises with what is added,
pub const EQ_VERSION_MINOR: u32 = 1;
/// and one that rises with what is mended.
pub const EQ_VERSION_PATCH: u32 = 0;

/// The version of the library that is linked, as EQ_VERSION is that of the header. The text is the library's.
#[unsafe(no_mangle)]
pub extern "C" fn eq_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };
    VERSION.as_ptr()
}
