//! A lock on the machine for tests that take real time. It works between threads and between processes, so any test
//! runner can start the tests. The kernel releases it when its holder drops it, panics or is killed.

use std::env;
use std::fs::File;

/// A test's lock on the machine, released when this value is dropped.
///
/// A test that starts itself again in another process locks only in the first process; otherwise both processes would
/// wait for each other.
#[derive(Debug)]
#[must_use]
pub(crate) struct Machine {
    _file: File,
}

impl Machine {
    /// For a test in real time whose bounds hold on a busy machine, so that it may run next to others. Also for a test
    /// that computes for a long time, so that it does not disturb tests that must run alone.
    pub(crate) fn shared() -> Self {
        let file = open();
        file.lock_shared().expect("the lock file can be locked");
        Self { _file: file }
    }

    /// For a test that loads the processors, measures short times, or changes a global setting of the kernel.
    pub(crate) fn alone() -> Self {
        let file = open();
        file.lock().expect("the lock file can be locked");
        Self { _file: file }
    }
}

fn open() -> File {
    let path = env::temp_dir().join("equipoise-test-machine.lock");
    // Another user may have created the file. It can then be opened and locked, but not created.
    File::open(&path).or_else(|_| File::create(&path)).expect("the temporary folder holds the lock file")
}
