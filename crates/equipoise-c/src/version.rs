//! The version of the library.

use std::ffi::{CStr, c_char};

/// Major version of the header, part of the soname. It changes when programs have to be rebuilt.
pub const EQ_VERSION_MAJOR: u32 = 0;
/// Minor version of the header. It rises with additions.
pub const EQ_VERSION_MINOR: u32 = 1;
/// Patch version of the header. It rises with fixes.
pub const EQ_VERSION_PATCH: u32 = 0;

/// Returns the version of the linked library; EQ_VERSION is the version of the header. The text belongs to the library.
#[unsafe(no_mangle)]
pub extern "C" fn eq_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };
    VERSION.as_ptr()
}
