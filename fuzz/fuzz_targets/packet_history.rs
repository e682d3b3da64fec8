//! Runs `equipoise_fuzz::packet_history` with inputs from the fuzzer or, if built without the fuzzer, with the files on
//! the command line.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| equipoise_fuzz::packet_history(bytes));

#[cfg(not(fuzzing))]
fn main() {
    equipoise_fuzz::replay(equipoise_fuzz::packet_history);
}
