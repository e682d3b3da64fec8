//! Loads the BPF program into this machine's kernel. Tests that need network namespaces are in `equipoise-cli`.

use std::thread::sleep;
use std::time::{Duration, Instant};

use equipoise_kernel::{KernelError, Parameters, load};

use crate::machine::Machine;
use crate::skip;

/// Checks that this kernel's BPF verifier accepts the program. If this test fails, nobody can load the congestion
/// control.
#[test]
fn the_kernel_takes_the_program_once_and_its_parameters() {
    let _machine = Machine::alone();
    let loaded = match load(Parameters::default()) {
        Ok(loaded) => loaded,
        Err(reason) => return skip(&reason),
    };
    assert!(equipoise_kernel::is_loaded());
    assert!(matches!(load(Parameters::default()), Err(KernelError::Loaded)));
    let other = Parameters { gamma: 0.5, oscillation: 0.3, ..Parameters::default() };
    equipoise_kernel::set_parameters(other).expect("it is loaded");
    let read = equipoise_kernel::parameters().expect("it is loaded");
    assert!((read.gamma - 0.5).abs() < 1e-5 && (read.oscillation - 0.3).abs() < 1e-5, "{read:?}");
    // The BPF program that `sockets` loads must also work while connections that used an earlier congestion control
    // program are still closing.
    equipoise_kernel::sockets().expect("the reader loads too");
    drop(loaded);
    // The kernel removes the congestion control shortly after `loaded` is dropped.
    let begin = Instant::now();
    while equipoise_kernel::is_loaded() {
        assert!(begin.elapsed() < Duration::from_secs(5), "it is still there");
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn wrong_parameters_are_refused_before_the_kernel_is_asked() {
    let wrong = Parameters { gamma: 1.5, ..Parameters::default() };
    assert!(matches!(load(wrong), Err(KernelError::Parameter { name: "gamma", .. })));
}
