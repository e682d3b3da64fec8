//! `equipoise_fuzz::transport_feedback` under the fuzzer; built without it, over the files that are named.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| equipoise_fuzz::transport_feedback(bytes));

#[cfg(not(fuzzing))]
fn main() {
    equipoise_fuzz::replay(equipoise_fuzz::transport_feedback);
}
