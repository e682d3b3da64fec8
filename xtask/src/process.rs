use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::error::Error;

/// A program with its arguments and its environment, which can be run in several ways.
#[derive(Debug)]
pub(crate) struct Process {
    program: OsString,
    arguments: Vec<OsString>,
    command: Command,
}

impl Process {
    /// Creates a process of `program` without arguments, which runs in the current folder of this process.
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        Self { program: program.as_ref().to_owned(), arguments: Vec::new(), command: Command::new(program) }
    }

    /// Adds an argument.
    pub(crate) fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub(crate) fn arguments<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Inserts an option with its value after the first argument. For cargo, the first argument is the subcommand.
    pub(crate) fn option(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let at = self.arguments.len().min(1);
        self.arguments.splice(at..at, [OsString::from(name), value.as_ref().to_owned()]);
        self
    }

    /// Sets an environment variable.
    pub(crate) fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Removes an environment variable.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Sets the working folder.
    pub(crate) fn folder(mut self, folder: impl AsRef<std::path::Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Makes the program run in the folder in which the user called this program, not in the workspace's root.
    pub(crate) fn in_callers_folder(mut self) -> Self {
        self.command.current_dir(".");
        self
    }

    /// Runs the program until it ends.
    pub(crate) fn run(mut self) -> Result<(), Error> {
        self.command.args(&self.arguments);
        let status = self.command.status().map_err(|source| self.start_error(source))?;
        if status.success() { Ok(()) } else { Err(Error::Failed { command: self.line(), status }) }
    }

    /// Runs the program until it ends, and passes every line of its standard output to `take`.
    pub(crate) fn run_lines(mut self, mut take: impl FnMut(&str)) -> Result<(), Error> {
        self.command.args(&self.arguments).stdout(Stdio::piped());
        let mut child = self.command.spawn().map_err(|source| self.start_error(source))?;
        if let Some(output) = child.stdout.take() {
            let mut reader = BufReader::new(output);
            let mut line = Vec::new();
            // Lines may contain bytes that are not UTF-8, because a test may print anything.
            while reader.read_until(b'\n', &mut line).map_err(|source| self.start_error(source))? > 0 {
                take(String::from_utf8_lossy(&line).trim_end_matches('\n'));
                line.clear();
            }
        }
        let status = child.wait().map_err(|source| self.start_error(source))?;
        if status.success() { Ok(()) } else { Err(Error::Failed { command: self.line(), status }) }
    }

    /// Runs the program without standard input until it ends, and returns its standard output.
    pub(crate) fn output(mut self) -> Result<String, Error> {
        self.command.args(&self.arguments).stdin(Stdio::null());
        let output = self.command.output().map_err(|source| self.start_error(source))?;
        if !output.status.success() {
            return Err(Error::Failed { command: self.line(), status: output.status });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs the program and discards its output. Returns whether it could be started and succeeded.
    pub(crate) fn succeeds(self) -> bool {
        self.output().is_ok()
    }

    /// Replaces this process with the program. Returns only if the program cannot be started.
    pub(crate) fn become_it(mut self) -> Result<(), Error> {
        self.command.args(&self.arguments);
        let source = self.command.exec();
        Err(self.start_error(source))
    }

    fn start_error(&self, source: io::Error) -> Error {
        Error::Start { command: self.line(), source }
    }

    fn line(&self) -> String {
        let words: Vec<_> =
            std::iter::once(&self.program).chain(&self.arguments).map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }
}
