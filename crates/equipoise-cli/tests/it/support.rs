//! The built command, temporary folders, and waiting for conditions.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than any stall: an event that has not happened after this time will never happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// The permission that most of these tests need, as [`skip`] prints it.
pub(crate) const NAMESPACES: &str = "network namespaces: ip netns add needs root";

/// The built command.
pub(crate) fn equipoise() -> Command {
    Command::new(env!("CARGO_BIN_EXE_equipoise"))
}

/// Runs the command with these arguments.
pub(crate) fn run(arguments: &[&str]) -> Output {
    equipoise().args(arguments).output().expect("the command starts")
}

/// The command's output, on standard output and standard error.
pub(crate) fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The path of one of the project's scenarios.
pub(crate) fn scenario(name: &str) -> String {
    format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// The results of `send` or `receive`: the last line, to which the earlier lines are added as `intervals`.
#[track_caller]
pub(crate) fn results(lines: &str) -> Value {
    let mut all: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let mut last = all.pop().expect("the last line");
    last["intervals"] = all.into();
    last
}

/// Prints that a test, or a part of it, is skipped because this machine lacks `needs`.
///
/// The text is compared with a committed list, so it contains no numbers and no paths.
#[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
pub(crate) fn skip(needs: &str) {
    println!("skipped: {needs}");
}

/// Whether a program is installed; if not, the test is skipped.
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

/// Waits until a process has a UDP socket that receives (`"udp"`) or a TCP socket that listens (`"tcp"`), and returns
/// its local port. The process may be in another network namespace and need not print anything.
pub(crate) fn port_of(process: u32, protocol: &str) -> u16 {
    eventually("the process opens a port", || port_now(process, protocol))
}

fn port_now(process: u32, protocol: &str) -> Option<u16> {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).ok()?;
    let links = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let sockets: Vec<String> = links.map(|link| link.to_string_lossy().into_owned()).collect();
    // The state of the socket: 07 is not connected (UDP), 0A is listening (TCP); see Linux, include/net/tcp_states.h.
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

/// A running command, which is killed if its test ends first.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    /// Starts the command with its standard output in a pipe, which is read all the time, because a full pipe would
    /// block the command.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the command starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (post, lines) = mpsc::channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| post.send(line)));
        Self { child, lines }
    }

    /// Starts the command and waits for the first line that it prints, when it is ready. Returns both.
    #[track_caller]
    pub(crate) fn ready(command: &mut Command) -> (Self, String) {
        let running = Self::start(command);
        let line = running.line();
        (running, line.unwrap_or_else(|| panic!("{command:?} ended and printed nothing")))
    }

    /// The next line that the command prints; `None` if the command ends instead.
    #[track_caller]
    pub(crate) fn line(&self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing is printed within {PATIENCE:?}"),
        }
    }

    /// The rest of the command's output until it ends.
    pub(crate) fn rest(&self) -> String {
        self.lines.iter().map(|line| line + "\n").collect()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the command ends by itself, which must be without an error.
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

    /// Kills the command, so that it cannot clean up.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("a child of ours");
        self.wait();
    }

    /// Waits until the command ends by itself. Returns its exit code and its standard error, which must be piped.
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
        // The command may have ended already; then there is nothing to kill.
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

    /// The path of a file in the folder.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    /// The names of the folder's files, in order.
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
        // Do not fail if a leftover remains in the system's temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running capture by another program.
pub(crate) struct Capture {
    running: Running,
    file: String,
}

impl Capture {
    /// Starts `command`, which captures into `file`, and waits until the capture begins.
    pub(crate) fn start(command: &mut Command, file: &str) -> Self {
        // An old file would be mistaken for the beginning of this capture.
        let _ = fs::remove_file(file);
        let running = Running::start(command.stderr(Stdio::null()));
        // The capture begins when the program has written the file's header.
        eventually("the capture begins", || (length(file) > 0).then_some(()));
        Self { running, file: file.to_owned() }
    }

    /// Ends the capture after the last packets have been written.
    pub(crate) fn stop(mut self) {
        /// Twice the time that the kernel buffers packets for tshark; tcpdump must run with `--immediate-mode`.
        const SETTLED: Duration = Duration::from_millis(500);
        let (mut written, mut since) = (length(&self.file), Instant::now());
        while since.elapsed() < SETTLED {
            sleep(Duration::from_millis(20));
            let now = length(&self.file);
            if now != written {
                (written, since) = (now, Instant::now());
            }
        }
        // `ip netns exec` has replaced itself with the program, which therefore gets the signal.
        self.running.interrupt();
    }
}

fn length(file: &str) -> u64 {
    fs::metadata(file).map_or(0, |file| file.len())
}

/// Generates a key in a file.
pub(crate) fn keygen(path: &str) {
    let output = equipoise().args(["keygen", path]).output().expect("the command starts");
    assert!(output.status.success(), "{}", said(&output));
}
