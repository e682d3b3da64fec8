//! One lock over the machine for tests that take real time. It holds between threads and between processes, so it does not
//! matter which runner starts the tests. The kernel releases it when its holder drops it, panics or is killed.

use std::env;
use std::fs::File;

/// A test's right to the machine; it ends when this is dropped.
///
/// A test that runs itself again in another process takes it once, in the first process: the two would wait for each
/// other.
#[derive(Debug)]
#[must_use]
pub(crate) struct Machine {
    _file: File,
}

impl Machine {
    /// For a test that may run beside others in real time, as its bounds hold on a busy machine; and for one that computes for
    /// long, so that it keeps away from those that are alone.
    pub(crate) fn shared() -> Self {
        let file = open();
        file.lock_shared().expect("the lock file can be locked");
        Self { _file: file }
    }

    /// For a test that loads the processors, measures short times, or changes what the kernel has only once.
    pub(crate) fn alone() -> Self {
        let file = open();
        file.lock().expect("the lock file can be locked");
        Self { _file: file }
    }
}

fn open() -> File {
    let path = env::temp_dir().join("equipoise-test-machine.lock");
    // Another user may have made the file: then it can be read and locked, but neither written nor created.
    File::open(&path).or_else(|_| File::create(&path)).expect("the temporary folder holds the lock file")
}
