//! A lock on the machine for tests that take real time. The lock works between threads and between processes, so any
//! test runner can start the tests. The kernel releases the lock when the test that has it ends, panics or is killed.
//!
//! The lock consists of two files, so that two tests that each need half of the machine can run at the same time. All
//! tests lock the files in the same order, so that no two tests wait for each other.

use std::env;
use std::fs::File;

/// A test's lock on the machine, released when this value is dropped.
///
/// A test that starts its own program again in another process must lock only in the first process. Otherwise the two
/// processes would wait for each other.
#[derive(Debug)]
#[must_use]
pub(crate) struct Machine {
    _halves: Vec<File>,
}

impl Machine {
    /// Takes a shared lock. Tests with this lock may run at the same time, because the limits that they check hold even
    /// on a busy machine. A test that checks no limits still needs this lock if it computes for a long time. Otherwise,
    /// the test would disturb tests that must run alone.
    pub(crate) fn shared() -> Self {
        let halves = halves();
        for half in &halves {
            half.lock_shared().expect("the lock file can be locked");
        }
        Self { _halves: halves.into() }
    }

    /// Takes a lock for a test that needs a machine with little load and that causes little load itself. One other test
    /// of this kind may run at the same time.
    pub(crate) fn half() -> Self {
        let [first, second] = halves();
        if first.try_lock().is_ok() {
            return Self { _halves: vec![first] };
        }
        second.lock().expect("the lock file can be locked");
        Self { _halves: vec![second] }
    }

    /// Takes an exclusive lock for a test that must run alone. Such a test loads the processors, measures short times,
    /// or changes a global setting of the kernel.
    pub(crate) fn alone() -> Self {
        let halves = halves();
        for half in &halves {
            half.lock().expect("the lock file can be locked");
        }
        Self { _halves: halves.into() }
    }
}

fn halves() -> [File; 2] {
    ["first", "second"].map(|half| {
        let path = env::temp_dir().join(format!("equipoise-test-machine-{half}.lock"));
        // If another user created the file, this process can open and lock it, but cannot create it.
        File::open(&path).or_else(|_| File::create(&path)).expect("the temporary folder holds the lock file")
    })
}
