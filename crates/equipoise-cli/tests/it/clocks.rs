//! Hosts whose clocks a test can set while programs run on them.
//!
//! Namespaces share the kernel's clocks. So a preloaded library (`clocks.c`) shows separate clocks to the programs of each
//! host; the tested command itself is unchanged.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::SystemTime;

use crate::support::{Folder, skip};

/// The clock of a host to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// `CLOCK_REALTIME`, and the kernel's timestamps of datagrams.
    Wall,
    /// `CLOCK_MONOTONIC`, which changes when a machine is suspended or moved.
    Monotonic,
}

/// The clocks of two hosts.
pub(crate) struct Clocks {
    library: String,
    files: [String; 2],
}

/// Byte offset of the setting time in the file, and the count of numbers.
const AT: u64 = 0;
const NUMBERS: usize = 5;

impl Clocks {
    /// Clocks without offsets; `None`, with the reason printed, if there is no C compiler.
    pub(crate) fn new(folder: &Folder) -> Option<Self> {
        let (library, source) = (folder.file("clocks.so"), concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/clocks.c"));
        let compiled = Command::new("cc").args(["-O2", "-shared", "-fPIC", "-o", &library, source]).status();
        if !compiled.is_ok_and(|status| status.success()) {
            skip("cc: no C compiler");
            return None;
        }
        let files = ["clocks-0", "clocks-1"].map(|name| folder.file(name));
        for file in &files {
            fs::write(file, [0; 8 * NUMBERS]).expect("written");
        }
        Some(Self { library, files })
    }

    /// Makes the command use the clocks of host `side`.
    pub(crate) fn apply(&self, side: usize, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("EQUIPOISE_CLOCKS", &self.files[side]);
    }

    /// Sets a clock of host `side` forwards or backwards by `seconds`, now.
    pub(crate) fn set(&self, side: usize, which: Which, seconds: i64) {
        let file = File::options().read(true).write(true).open(&self.files[side]).expect("still there");
        let read = |at: u64| {
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, at).expect("whole");
            i64::from_ne_bytes(bytes)
        };
        let write = |at: u64, value: i64| file.write_all_at(&value.to_ne_bytes(), at).expect("written");
        // A read between these two writes returns the previous clocks.
        for before in [8, 24] {
            write(before, read(before + 8));
        }
        let now = SystemTime::UNIX_EPOCH.elapsed().expect("it is later than 1970");
        write(AT, i64::try_from(now.as_nanos()).expect("it is earlier than 2262"));
        let place = if which == Which::Wall { 16 } else { 32 };
        write(place, read(place) + seconds * 1_000_000_000);
    }
}
