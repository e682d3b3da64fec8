//! Sets the soname of the shared library (`man 1 ld`, `-soname`). Its number changes when programs have to be rebuilt.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libequipoise.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
