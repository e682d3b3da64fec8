//! The version of the library.

use std::ffi::{CStr, c_char};

/// Major version of the header. The soname contains the same number. The number increases when programs must be rebuilt
/// for the new version.
pub const EQ_VERSION_MAJOR: u32 = 0;
/// Minor version of the header. It increases when calls or fields are added.
pub const EQ_VERSION_MINOR: u32 = 1;
/// Patch version of the header. It increases when a version only corrects errors.
pub const EQ_VERSION_PATCH: u32 = 0;

/// Returns the version of the library at run time; EQ_VERSION is the version of the header. The text belongs to the
/// library.
#[unsafe(no_mangle)]
pub extern "C" fn eq_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };
    VERSION.as_ptr()
}
