//! Gives the shared library its name among others' (`man 1 ld`, `-soname`): it changes when programs have to be built anew.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libequipoise.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
