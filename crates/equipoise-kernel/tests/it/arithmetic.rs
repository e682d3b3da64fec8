//! Compiles the arithmetic of the BPF program as an ordinary C program for this machine, and checks that its results
//! are exactly those of the `equipoise` crate.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use equipoise::control::window::symbiosis::fixed::{FixedLaw, FixedNoise, FixedPath, oscillated};
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// Compiles `arithmetic.c` and runs it with the input `lines`. Each line has a letter that selects a function, and the
/// function's arguments. Returns the function's result for each line.
fn answers(lines: &str) -> Vec<u64> {
    let folder = std::env::temp_dir().join(format!("equipoise-arithmetic-{}-{}", std::process::id(), lines.len()));
    fs::create_dir_all(&folder).expect("a temporary folder");
    let program = folder.join("arithmetic");
    let here = env!("CARGO_MANIFEST_DIR");
    let compiled = Command::new("cc")
        .args([
            "-O1",
            "-Wall",
            "-Werror",
            "-I",
            &format!("{here}/src/bpf"),
            &format!("{here}/tests/it/arithmetic.c"),
            "-o",
        ])
        .arg(&program)
        .output()
        .expect("a C compiler is there: it links Rust's programs");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let mut child = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("compiled");
    let mut input = child.stdin.take().expect("piped");
    let lines = lines.to_owned();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("a child of ours");
    writer.join().expect("it does not panic").expect("written");
    fs::remove_dir_all(&folder).expect("ours");
    String::from_utf8_lossy(&output.stdout).lines().map(|line| line.parse().expect("a number")).collect()
}

/// A generator of random numbers of all magnitudes.
struct Numbers(Pcg64Mcg);

impl Numbers {
    fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    fn below(&mut self, bits: u32) -> u64 {
        let size = self.0.next_u32() % (bits + 1);
        if size == 0 { 0 } else { self.0.next_u64() >> (64 - size) }
    }
}

#[test]
fn the_windows_of_kernel_and_heart_are_the_same_bits() {
    let (mut numbers, mut lines, mut expected) = (Numbers::new(1), String::new(), Vec::new());
    for _ in 0..200_000 {
        let law = FixedLaw { gamma: numbers.below(21), epsilon_per_s: numbers.below(28) };
        let path = FixedPath {
            capacity: numbers.below(37),
            available: numbers.below(37),
            min_round_trip_us: numbers.below(26),
        };
        let (window, elapsed_us) = (numbers.below(42), numbers.below(32) as u32);
        for kind in ["w", "c"] {
            lines.push_str(&format!(
                "{kind} {} {} {} {} {} {window} {elapsed_us}\n",
                law.gamma, law.epsilon_per_s, path.capacity, path.available, path.min_round_trip_us
            ));
        }
        expected.push(law.window(window, &path, elapsed_us).unwrap_or(0));
        expected.push(law.converged(&path).unwrap_or(0));
    }
    assert!(expected.iter().filter(|window| **window > 0).count() > 100_000, "most inputs have a law");
    assert_eq!(answers(&lines), expected);
}

#[test]
fn noise_and_oscillation_of_kernel_and_heart_are_the_same_bits() {
    let (mut numbers, mut lines, mut expected) = (Numbers::new(2), String::new(), Vec::new());
    let mut noise = FixedNoise::default();
    for _ in 0..50_000 {
        let (gamma, weight, sample) = (numbers.below(21), numbers.below(28), numbers.below(37));
        noise.push(sample);
        lines.push_str(&format!("n {gamma} {weight} {sample} 0 0 0 0\n"));
        expected.push(noise.gamma(gamma, weight));
        let (window, strength, elapsed_us) = (numbers.below(42), numbers.below(21), numbers.below(32));
        let random = std::array::from_fn(|_| numbers.0.next_u32());
        let sum: u64 = random.iter().map(|bits| u64::from(bits & 0xFFFF) + u64::from(bits >> 16)).sum();
        lines.push_str(&format!("o {window} {strength} {elapsed_us} {sum} 0 0 0\n"));
        expected.push(oscillated(window, strength, elapsed_us, random));
    }
    assert_eq!(answers(&lines), expected);
}

/// Compares the integer functions with a fluid model in floating point. In the model, a train of segments and other
/// flows share a link of capacity K.
#[test]
fn a_train_finds_what_a_fluid_link_leaves() {
    const SEGMENT: u64 = 1448;
    let (mut lines, mut expected) = (String::new(), Vec::new());
    for capacity in [100.0, 8000.0, 80_000.0, 800_000.0] {
        for (others, own) in [(0.0, 1.2), (0.3, 0.8), (0.5, 1.0), (0.7, 2.0), (0.9, 0.3)] {
            let (others, own) = (others * capacity, own * capacity);
            let segments = 60.0_f64;
            let sent_us = segments / own * 1e6;
            // While the train is sent, both the train and the other flows arrive at the link, which forwards them
            // together at rate K.
            let acked_us = sent_us * (own + others) / capacity;
            let bytes = segments as u64 * SEGMENT;
            lines.push_str(&format!(
                "a {} {bytes} {SEGMENT} {} {} 0 0\n",
                (capacity * 1024.0) as u64,
                sent_us.round() as u64,
                acked_us.round() as u64
            ));
            lines.push_str(&format!("r {bytes} {SEGMENT} {} 0 0 0 0\n", sent_us.round() as u64));
            expected.push((capacity - others, capacity / sent_us * capacity / own));
            expected.push((own, own / sent_us));
        }
    }
    for (found, (expected, rounding)) in answers(&lines).iter().zip(expected) {
        let found = *found as f64 / 1024.0;
        // Times are rounded to 1 µs, and rates to a thousandth of a segment per second.
        assert!((found - expected).abs() <= 2.0 * rounding + expected * 1e-3 + 0.01, "{found} {expected}");
    }
}

/// Tests trains of segments from which nothing can be computed, and trains with impossible numbers. A program in the
/// kernel must return a result for any numbers, without a trap such as a division by zero.
#[test]
fn trains_that_tell_nothing_and_absurd_ones_have_an_answer() {
    let (mut numbers, mut lines) =
        (Numbers::new(3), String::from("a 1024 0 0 0 0 0 0\na 1024 1448 1448 0 5 0 0\nr 5 0 5 0 0 0 0\n"));
    for _ in 0..50_000 {
        let [capacity, bytes, segment, sent, acked] = [40, 36, 16, 30, 30].map(|bits| numbers.below(bits));
        lines.push_str(&format!("a {capacity} {bytes} {segment} {sent} {acked} 0 0\n"));
    }
    let answers = answers(&lines);
    assert_eq!(answers.get(..3), Some(&[0, 0, 0][..]));
    assert_eq!(answers.len(), 50_003);
    assert!(answers.iter().all(|available| *available <= 1 << 35));
}
