//! Runs the fuzz targets with their seeds, on stable Rust.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use equipoise_fuzz::{TARGETS, Target, seeds};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Returns name and content of every file in the target's folder: the seeds, and files that the fuzzer has written.
fn files(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = corpus().join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("the folder can be read").path();
            let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
            (name, fs::read(&path).expect("the file can be read"))
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

/// Runs the target. If it panics, prints the name and the bytes of the input, and continues the panic.
#[expect(clippy::print_stdout, reason = "it says what the finding was")]
fn run(target: Target, name: &str, bytes: &[u8]) {
    if let Err(panic) = std::panic::catch_unwind(|| target(bytes)) {
        println!("{name}: {bytes:02X?}");
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn every_target_holds_over_its_corpus() {
    for (name, target) in TARGETS {
        for (file, bytes) in files(name) {
            run(*target, &format!("{name}/{file}"), &bytes);
        }
    }
}

/// Several threads share the seeds, because one thread would need 40 s for all seeds.
#[test]
fn every_target_holds_over_its_seeds_cut_short_and_with_any_bit_turned() {
    const THREADS: usize = 4;
    let all = seeds::all();
    let next = AtomicUsize::new(0);
    let take = || {
        while let Some((target, seed, bytes)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            holds_if_damaged(target, seed, bytes);
        }
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(take);
        }
    });
}

/// Runs the target called `name` with damaged copies of the seed: cut to each shorter length, or with one bit inverted.
fn holds_if_damaged(name: &str, seed: &str, bytes: &[u8]) {
    let (_, target) = TARGETS.iter().find(|(of, _)| *of == name).expect("each seed is one of a target");
    for end in 0..bytes.len() {
        run(*target, &format!("{name}/{seed} to byte {end}"), &bytes[..end]);
    }
    for bit in 0..8 * bytes.len() {
        let mut turned = bytes.to_vec();
        turned[bit / 8] ^= 1 << (bit % 8);
        run(*target, &format!("{name}/{seed} with bit {bit} turned"), &turned);
    }
}

#[test]
fn the_seeds_are_those_that_are_written() {
    for (target, name, bytes) in seeds::all() {
        let path = corpus().join(target).join(name).with_extension("bin");
        let found = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(found, bytes, "{}: cargo run --example seeds", path.display());
    }
    let seeds = seeds::all().len();
    let found = TARGETS.iter().flat_map(|(name, _)| files(name));
    let found = found.filter(|(name, _)| Path::new(name).extension() == Some(OsStr::new("bin"))).count();
    assert_eq!(found, seeds, "a seed in corpus/ that src/seeds.rs does not know");
}

#[test]
fn every_target_has_a_binary_and_every_binary_a_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz_targets");
    let mut binaries: Vec<_> = fs::read_dir(folder)
        .expect("the folder of the binaries")
        .map(|entry| entry.expect("the folder can be read").path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    binaries.sort();
    let targets: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(binaries, targets);
}
