//! Gives the shared library its name among others' (`man 1 ld`, `-soname`).

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libequipoise.so");
    println!("cargo::rerun-if-changed=build.rs");
}
