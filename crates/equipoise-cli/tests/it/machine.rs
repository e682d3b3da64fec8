//! A lock on the machine for tests that take real time. The lock works between threads and between processes, so any
//! test runner can start the tests. The kernel releases the lock when the test that has it ends, panics or is killed.

use std::env;
use std::fs::File;

/// A test's lock on the machine, released when this value is dropped.
///
/// A test that starts its own program again in another process must lock only in the first process. Otherwise the two
/// processes would wait for each other.
#[derive(Debug)]
#[must_use]
pub(crate) struct Machine {
    _file: File,
}

impl Machine {
    /// Locks for a test that may run at the same time as other tests, because its bounds hold on a busy machine. A test
    /// that computes for a long time also needs this lock, so that it does not disturb tests that must run alone.
    pub(crate) fn shared() -> Self {
        let file = open();
        file.lock_shared().expect("the lock file can be locked");
        Self { _file: file }
    }

    /// Locks for a test that must run alone: it loads the processors, measures short times, or changes a global setting
    /// of the kernel.
    pub(crate) fn alone() -> Self {
        let file = open();
        file.lock().expect("the lock file can be locked");
        Self { _file: file }
    }
}

fn open() -> File {
    let path = env::temp_dir().join("equipoise-test-machine.lock");
    // If another user created the file, this process can open and lock it, but cannot create it.
    File::open(&path).or_else(|_| File::create(&path)).expect("the temporary folder holds the lock file")
}
