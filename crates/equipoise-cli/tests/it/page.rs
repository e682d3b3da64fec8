//! Runs the commands in the pages of the book exactly as they are printed.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::places::Places;
use crate::support::Folder;

/// Returns the commands of the page's code blocks that are marked with `kind`, such as `sh,receiver`, in order.
pub(crate) fn blocks(page: &str, kind: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/src/{page}.md"));
    let text = fs::read_to_string(file).expect("the book has the page");
    let opening = format!("```{kind}\n");
    let blocks = text.split(&opening).skip(1).filter_map(|rest| rest.split_once("```"));
    let all: String = blocks.map(|(block, _)| block).collect();
    assert!(!all.is_empty(), "{page} has no block of {kind}");
    all
}

/// Makes `shell` run `commands`, the commands of a page. The working directory is `folder`. The `PATH` begins with the
/// folder of this build's `equipoise` command.
pub(crate) fn shell(mut shell: Command, folder: &Folder, commands: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_equipoise")).parent().expect("a folder").display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    shell.args(["-e", "-c", commands]).current_dir(folder.file("")).stdin(Stdio::null());
    shell.env("PATH", format!("{program}:{path}"));
    shell
}

/// A terminal on a host: a shell that runs commands, and all processes that the shell started.
pub(crate) struct Terminal {
    shell: Child,
}

impl Terminal {
    /// Opens a terminal on `host` and runs `commands` in `folder`. The output of `commands` is written to the file
    /// `name` in `folder`.
    pub(crate) fn open(host: &str, folder: &Folder, name: &str, commands: &str) -> Self {
        let said = File::create(folder.file(name)).expect("writable");
        let mut shell = shell(Places::command(host, "bash"), folder, commands);
        shell.process_group(0);
        shell.stdout(said.try_clone().expect("a file")).stderr(said);
        Self { shell: shell.spawn().expect("ip is there") }
    }

    /// Sends a signal to the shell and to all its processes, including those in the background.
    pub(crate) fn signal(&self, name: &str) -> bool {
        let group = format!("-{}", self.shell.id());
        Command::new("kill")
            .args([&format!("-{name}"), "--", &group])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|it| it.success())
    }

    /// Waits until the shell has ended. Returns whether it succeeded.
    pub(crate) fn wait(&mut self) -> bool {
        self.shell.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Remaining processes are killed. They have a process group of their own, so this test is not killed.
        self.signal("KILL");
        let _ = self.shell.wait();
    }
}
