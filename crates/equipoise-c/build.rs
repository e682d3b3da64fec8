//! Sets the soname of the shared library (`man 1 ld`, `-soname`). The number in the soname changes when programs must
//! be rebuilt for the new version.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libequipoise.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
