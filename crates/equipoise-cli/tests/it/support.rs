//! Helpers for tests: the built command, temporary folders, and waiting for conditions.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Maximum time to wait for an event. This time is longer than any stall of the machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The permission that most skipped tests lack, as text for [`skip`].
pub(crate) const NAMESPACES: &str = "network namespaces: ip netns add needs root";

/// Returns the `equipoise` command of this build.
pub(crate) fn equipoise() -> Command {
    Command::new(env!("CARGO_BIN_EXE_equipoise"))
}

/// Runs the `equipoise` command with the arguments `arguments`.
pub(crate) fn run(arguments: &[&str]) -> Output {
    equipoise().args(arguments).output().expect("the command starts")
}

/// Returns what the command printed: its standard output followed by its standard error.
pub(crate) fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Returns the path of one of this repository's scenario files.
pub(crate) fn scenario(name: &str) -> String {
    format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// Parses the JSON results of `send` or `receive`. Returns the last line, with all earlier lines added as `intervals`.
#[track_caller]
pub(crate) fn results(lines: &str) -> Value {
    let mut all: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let mut last = all.pop().expect("the last line");
    last["intervals"] = all.into();
    last
}

/// Prints that a test, or a part of it, is skipped because this machine lacks `needs`.
///
/// The printed line is compared with a committed list, so it must not contain numbers or paths that differ between
/// machines.
#[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
pub(crate) fn skip(needs: &str) {
    println!("skipped: {needs}");
}

/// Whether a program is installed. If not, prints that the test is skipped.
pub(crate) fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdin(Stdio::null()).output().is_ok();
    if !found {
        skip(&format!("{program}: it is not installed"));
    }
    found
}

/// Polls `look` every 10 ms until it returns a value; panics with `what` after [`PATIENCE`].
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Waits until a process has a UDP socket (`"udp"`), or a TCP socket that listens (`"tcp"`), and returns the socket's
/// local port. The process may be in another network namespace, and need not print anything.
pub(crate) fn port_of(process: u32, protocol: &str) -> u16 {
    eventually("the process opens a port", || port_now(process, protocol))
}

fn port_now(process: u32, protocol: &str) -> Option<u16> {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).ok()?;
    let links = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let sockets: Vec<String> = links.map(|link| link.to_string_lossy().into_owned()).collect();
    // The state of the socket, as in Linux, include/net/tcp_states.h: 07 for a UDP socket that is not connected, 0A for
    // a TCP socket that listens.
    let open = if protocol == "udp" { "07" } else { "0A" };
    ["", "6"].iter().find_map(|version| {
        let table = fs::read_to_string(format!("/proc/{process}/net/{protocol}{version}")).ok()?;
        table.lines().find_map(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let (local, state, inode) = (columns.get(1)?, columns.get(3)?, columns.get(9)?);
            let ours = *state == open && sockets.contains(&format!("socket:[{inode}]"));
            let (_, port) = local.rsplit_once(':').filter(|_| ours)?;
            u16::from_str_radix(port, 16).ok()
        })
    })
}

/// A running command. If its test ends first, the command is killed.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    /// Starts the command with its standard output in a pipe. A thread reads the pipe all the time, because a full pipe
    /// would block the command.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the command starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (post, lines) = mpsc::channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| post.send(line)));
        Self { child, lines }
    }

    /// Starts the command, and waits for the command's first line of output. The command prints this line when it is
    /// ready. Returns the running command and the line.
    #[track_caller]
    pub(crate) fn ready(command: &mut Command) -> (Self, String) {
        let running = Self::start(command);
        let line = running.line();
        (running, line.unwrap_or_else(|| panic!("{command:?} ended and printed nothing")))
    }

    /// Waits for the next line that the command prints, and returns it; `None` if the command ends instead.
    #[track_caller]
    pub(crate) fn line(&self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing is printed within {PATIENCE:?}"),
        }
    }

    /// Waits until the command ends, and returns the output that was not read yet.
    pub(crate) fn rest(&self) -> String {
        self.lines.iter().map(|line| line + "\n").collect()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the command ends by itself. It must end without an error.
    #[track_caller]
    pub(crate) fn finish(&mut self) {
        let status = self.wait();
        assert!(status.success(), "{status}");
    }

    /// Ends the command with Ctrl-C, and returns its exit code.
    pub(crate) fn interrupt(&mut self) -> Option<i32> {
        self.signal("INT");
        self.wait().code()
    }

    pub(crate) fn signal(&self, name: &str) {
        let killed = Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status();
        assert!(killed.expect("kill is there").success());
    }

    /// Kills the command, so that the command cannot clean up.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("a child of ours");
        self.wait();
    }

    /// Waits until the command ends by itself. Returns its exit code and its standard error, which must be a pipe.
    pub(crate) fn complaint(&mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        (self.wait().code(), said)
    }

    /// Waits until the command ends.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("a child of ours")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The errors are ignored, because the command may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A temporary folder of a test, which is removed when the test ends.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("equipoise-cli-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    /// Returns the path of the file `name` in the folder.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    /// Returns the names of the folder's files in alphabetical order.
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
        // If the folder cannot be removed, the test does not fail. The folder stays in the system's temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A program that captures packets, such as tcpdump, and the file of its capture.
pub(crate) struct Capture {
    running: Running,
    file: String,
}

impl Capture {
    /// Starts `command`, which captures packets into `file`, and waits until the capture has begun.
    pub(crate) fn start(command: &mut Command, file: &str) -> Self {
        // An old file with this name would look as if the capture had begun.
        let _ = fs::remove_file(file);
        let running = Running::start(command.stderr(Stdio::null()));
        // The capture has begun when the program has written the header of the file.
        eventually("the capture begins", || (length(file) > 0).then_some(()));
        Self { running, file: file.to_owned() }
    }

    /// Waits until no more packets are written to the file, then ends the capture.
    pub(crate) fn stop(mut self) {
        /// If nothing is written for this time, all packets have been written. For tshark, the kernel buffers packets
        /// for half of this time. For tcpdump, the kernel buffers packets longer, so tcpdump must run with
        /// `--immediate-mode`.
        const SETTLED: Duration = Duration::from_millis(500);
        let (mut written, mut since) = (length(&self.file), Instant::now());
        while since.elapsed() < SETTLED {
            sleep(Duration::from_millis(20));
            let now = length(&self.file);
            if now != written {
                (written, since) = (now, Instant::now());
            }
        }
        // The signal reaches the program, because `ip netns exec` has replaced itself with the program.
        self.running.interrupt();
    }
}

fn length(file: &str) -> u64 {
    fs::metadata(file).map_or(0, |file| file.len())
}

/// Generates a key, and writes it to the file `path`.
pub(crate) fn keygen(path: &str) {
    let output = equipoise().args(["keygen", path]).output().expect("the command starts");
    assert!(output.status.success(), "{}", said(&output));
}
