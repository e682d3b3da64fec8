//! The built command, and folders that go away again.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The built command.
pub(crate) fn equipoise() -> Command {
    Command::new(env!("CARGO_BIN_EXE_equipoise"))
}

/// What it did with these arguments.
pub(crate) fn run(arguments: &[&str]) -> Output {
    equipoise().args(arguments).output().expect("the command starts")
}

/// What it said, on both streams.
pub(crate) fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A scenario of the project.
pub(crate) fn scenario(name: &str) -> String {
    format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// A running command, which is killed when its test ends before it.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn new(child: Child) -> Self {
        Self(child)
    }

    /// Ends it as a person does; its exit code.
    pub(crate) fn interrupt(mut self) -> Option<i32> {
        let killed = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status().expect("kill is there");
        assert!(killed.success());
        self.wait().code()
    }

    /// Ends it without a chance to clean up.
    #[cfg(feature = "kernel")]
    pub(crate) fn kill(mut self) {
        self.0.kill().expect("a child of ours");
        self.wait();
    }

    /// Its exit code when it ends by itself, and what it said on standard error, which must be piped.
    pub(crate) fn complaint(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.0.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        (self.wait().code(), said)
    }

    /// Until it ends.
    fn wait(&mut self) -> ExitStatus {
        self.0.wait().expect("a child of ours")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended, and a test that fails has said why.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder of a test's own, which goes when the test ends.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("equipoise-cli-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    /// A file in it.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    /// Names of what it holds, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("readable");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A leftover in the system's temporary folder is no reason to fail.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A capture by another's program.
pub(crate) struct Capture(Child);

impl Capture {
    /// Starts `command`, which captures into `file`, and waits until it does.
    pub(crate) fn start(command: &mut Command, file: &str) -> Self {
        // What an earlier one left there would be taken for the beginning of this one.
        let _ = fs::remove_file(file);
        let capturing = Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it is installed"));
        // One that listens has written its header.
        let patience = Instant::now() + Duration::from_mins(1);
        while !fs::metadata(file).is_ok_and(|file| file.len() > 0) {
            assert!(Instant::now() < patience, "{command:?} captures nothing");
            sleep(Duration::from_millis(50));
        }
        capturing
    }

    /// Ends it when what came last has been written, too.
    pub(crate) fn stop(mut self) {
        sleep(Duration::from_secs(1));
        // `ip netns exec` has become the program itself.
        let stopped = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status().expect("kill is there");
        assert!(stopped.success());
        self.0.wait().expect("a child of ours");
    }
}
