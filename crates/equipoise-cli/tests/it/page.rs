//! Runs commands of the book's pages exactly as printed.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::places::Places;
use crate::support::Folder;

/// The commands in a page's blocks of this kind, such as `sh,receiver`, in order.
pub(crate) fn blocks(page: &str, kind: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/src/{page}.md"));
    let text = fs::read_to_string(file).expect("the book has the page");
    let opening = format!("```{kind}\n");
    let blocks = text.split(&opening).skip(1).filter_map(|rest| rest.split_once("```"));
    let all: String = blocks.map(|(block, _)| block).collect();
    assert!(!all.is_empty(), "{page} has no block of {kind}");
    all
}

/// A shell that runs a page's commands in the folder, with the built command in the `PATH`.
pub(crate) fn shell(mut shell: Command, folder: &Folder, commands: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_equipoise")).parent().expect("a folder").display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    shell.args(["-e", "-c", commands]).current_dir(folder.file("")).stdin(Stdio::null());
    shell.env("PATH", format!("{program}:{path}"));
    shell
}

/// A terminal on a host: a shell that runs commands, and all its processes.
pub(crate) struct Terminal {
    shell: Child,
}

impl Terminal {
    /// Starts a terminal on a host, in the folder, for these commands. Their output goes to the file `name` in the
    /// folder.
    pub(crate) fn open(host: &str, folder: &Folder, name: &str, commands: &str) -> Self {
        let said = File::create(folder.file(name)).expect("writable");
        let mut shell = shell(Places::command(host, "bash"), folder, commands);
        shell.process_group(0);
        shell.stdout(said.try_clone().expect("a file")).stderr(said);
        Self { shell: shell.spawn().expect("ip is there") }
    }

    /// Sends a signal to the shell, also to its processes in the background.
    pub(crate) fn signal(&self, name: &str) -> bool {
        let group = format!("-{}", self.shell.id());
        Command::new("kill")
            .args([&format!("-{name}"), "--", &group])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|it| it.success())
    }

    /// Waits until all commands have ended. Returns whether they succeeded.
    pub(crate) fn wait(&mut self) -> bool {
        self.shell.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Kill the remaining processes, which are in a separate process group.
        self.signal("KILL");
        let _ = self.shell.wait();
    }
}
