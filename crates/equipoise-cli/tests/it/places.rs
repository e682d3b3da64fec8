//! Three network namespaces in a row: one at each end, and one in the middle with an interface to each end.

use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::machine::Machine;
use crate::support::{NAMESPACES, Running, skip};

/// The names of the three namespaces. When this value is dropped, the namespaces are removed. The namespaces of the two
/// ends each have an interface `eth0`. The middle namespace has the interfaces `near` and `far`.
pub(crate) struct Places {
    pub(crate) near: String,
    pub(crate) middle: String,
    pub(crate) far: String,
}

impl Places {
    /// Creates the namespaces, for a test that has locked the machine. Then runs the commands in `more`, with `NEAR`,
    /// `MIDDLE` and `FAR` replaced by the namespaces' names. If namespaces cannot be created, prints the reason and
    /// returns `None`. The interfaces use the kernel's default offloads.
    pub(crate) fn new(_machine: &Machine, more: &[&str]) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |end: &str| format!("equipoise-{end}-{}-{number}", std::process::id());
        let places = Self { near: name("near"), middle: name("middle"), far: name("far") };
        let made = [
            "ip netns add NEAR",
            "ip netns add MIDDLE",
            "ip netns add FAR",
            "ip -n NEAR link add eth0 type veth peer name near netns MIDDLE",
            "ip -n FAR link add eth0 type veth peer name far netns MIDDLE",
        ];
        if !made.iter().all(|command| places.done(command)) {
            skip(NAMESPACES);
            return None;
        }
        let up = [
            "ip -n NEAR link set eth0 up",
            "ip -n MIDDLE link set near up",
            "ip -n MIDDLE link set far up",
            "ip -n FAR link set eth0 up",
        ];
        for command in up.iter().chain(more) {
            assert!(places.done(command), "{command}");
        }
        Some(places)
    }

    /// Runs a command in which `NEAR`, `MIDDLE` and `FAR` are replaced by the namespaces' names. Returns whether it
    /// succeeds.
    pub(crate) fn done(&self, command: &str) -> bool {
        let named = command.replace("NEAR", &self.near).replace("MIDDLE", &self.middle).replace("FAR", &self.far);
        let mut words = named.split(' ');
        let program = words.next().unwrap_or_default();
        Command::new(program).args(words).output().is_ok_and(|output| output.status.success())
    }

    /// Returns a command that runs a program in a namespace.
    pub(crate) fn command(namespace: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, program]);
        command
    }

    /// Starts the test named `test` as a process in a namespace. The environment variable `variable` tells the process
    /// its role.
    pub(crate) fn end(namespace: &str, test: &str, (variable, role): (&str, &str)) -> Running {
        let program = env::current_exe().expect("a test has a program");
        let mut command = Self::command(namespace, program.to_str().expect("a plain name"));
        Running::start(command.args([test, "--exact", "--quiet"]).env(variable, role))
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        for namespace in [&self.near, &self.middle, &self.far] {
            // If a namespace cannot be removed, it disappears at the next restart of the machine.
            let _ = Command::new("ip").args(["netns", "delete", namespace]).output();
        }
    }
}
