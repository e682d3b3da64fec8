//! Provides hosts whose clocks a test can set while programs run on them.
//!
//! Network namespaces share the kernel's clocks. Therefore a preloaded library (`clocks.c`) simulates separate clocks
//! for the programs of each host. The tested command itself is unchanged.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::SystemTime;

use crate::support::{Folder, skip};

/// Selects one of the clocks of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// `CLOCK_REALTIME`, and the kernel's timestamps of datagrams.
    Wall,
    /// `CLOCK_MONOTONIC`, which stops while a machine is suspended, and jumps if a virtual machine is moved.
    Monotonic,
}

/// The clocks of two hosts: the path of the preloaded library, and a file for each host that contains its clocks.
pub(crate) struct Clocks {
    library: String,
    files: [String; 2],
}

/// Layout of the file that contains a host's clocks: `AT` is the byte offset of the time at which a clock was last set,
/// and `NUMBERS` is the number of 64-bit values.
const AT: u64 = 0;
const NUMBERS: usize = 5;

impl Clocks {
    /// Creates clocks without offsets. If there is no C compiler, prints the reason for skipping and returns `None`.
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

    /// Makes `command` use the clocks of host number `side`.
    pub(crate) fn apply(&self, side: usize, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("EQUIPOISE_CLOCKS", &self.files[side]);
    }

    /// Sets a clock of host number `side` by `seconds`, forwards or (if negative) backwards, at the time of the call.
    pub(crate) fn set(&self, side: usize, which: Which, seconds: i64) {
        let file = File::options().read(true).write(true).open(&self.files[side]).expect("still there");
        let read = |at: u64| {
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, at).expect("whole");
            i64::from_ne_bytes(bytes)
        };
        let write = |at: u64, value: i64| file.write_all_at(&value.to_ne_bytes(), at).expect("written");
        // The file contains two offsets for each clock: one for times before the time stored at `AT`, and one for later
        // times. The two offsets are equal until the last write, so a program that reads the file earlier sees no
        // change.
        for before in [8, 24] {
            write(before, read(before + 8));
        }
        let now = SystemTime::UNIX_EPOCH.elapsed().expect("it is later than 1970");
        write(AT, i64::try_from(now.as_nanos()).expect("it is earlier than 2262"));
        let place = if which == Which::Wall { 16 } else { 32 };
        write(place, read(place) + seconds * 1_000_000_000);
    }
}
