//! Compares the arithmetic of the BPF programs with the arithmetic of the `equipoise` crate, and runs the BPF programs
//! in this machine's kernel.

mod arithmetic;
mod kernel;
/// A lock that only one test process of the machine can hold. Tests of `equipoise-cli` load the same BPF program, which
/// can be loaded only once per machine.
#[expect(dead_code, reason = "what is registered once per kernel cannot be shared")]
#[path = "../../../equipoise-cli/tests/it/machine.rs"]
mod machine;
mod preset;

use equipoise_kernel::KernelError;

/// Prints that a test is skipped if `reason` is missing kernel support, a missing privilege, or a congestion control
/// that is already loaded; panics for any other `reason`.
#[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
fn skip(reason: &KernelError) {
    let lacks = match reason {
        KernelError::Rights { .. } => "CAP_BPF",
        KernelError::NoBtf { .. } => "BTF",
        KernelError::NoStructOps { .. } => "struct_ops",
        KernelError::Loaded => "loaded already",
        other => panic!("{other}: {:?}", std::error::Error::source(other)),
    };
    println!("skipped: kernel congestion control: {lacks}");
}
