//! Tests distributions on a bare system.

use std::path::{Path, PathBuf};

use super::machine::Machine;
use super::stage::place;
use super::{Dist, container, debian, make_anew};
use crate::error::Error;
use crate::process::Process;

/// A scenario of the archive whose run takes one second.
const SCENARIO: &str = "share/equipoise/scenarios/demo-short.toml";
/// Packages of the bare Debian system.
const BARE: &str = "--include=systemd,gcc,libc6-dev,clang,pkg-config";
/// C programs that are built on the bare system.
const EXAMPLES: [&str; 3] = ["controller.c", "receive.c", "flow_pair.c"];

/// Tests the files of both machines. This machine's files are tested on a bare Debian system, which needs root.
pub(super) fn run(dist: &Dist<'_>) -> Result<(), Error> {
    println!("\n== trials");
    let tree = |machine: Machine| dist.work.join(format!("equipoise-{}-{}", dist.version, machine.name()));
    let said = |machine: Machine| {
        let tree = tree(machine);
        words(&program(machine, &tree), &tree)
    };
    let expected = said(dist.here)?;
    for machine in Machine::ALL.into_iter().filter(|machine| *machine != dist.here) {
        same_bytes(&tree(machine), &said(machine)?, &expected)?;
        println!("{}: --version, check and sim say the same as here", machine.name());
    }
    if !Process::new("id").argument("-u").output()?.trim().eq("0") {
        println!("skipped: the trial on a bare Debian needs root");
        return Ok(());
    }
    container::runs(dist, dist.here)?;
    on_bare_debian(dist, dist.here)
}

/// The command line that runs a machine's program on this machine.
fn program(machine: Machine, tree: &Path) -> Vec<PathBuf> {
    let program = tree.join("bin/equipoise");
    if machine.is_here() {
        vec![program]
    } else {
        // qemu uses the other machine's C library that was installed with libelf, at its usual path. The folder of the
        // cross compilers has an older library with a mismatching loader, with which threads never start.
        vec!["qemu-aarch64-static".into(), program]
    }
}

/// The output of a command: its version, and the check and the results of a scenario.
fn words(program: &[PathBuf], tree: &Path) -> Result<Vec<String>, Error> {
    let scenario = tree.join(SCENARIO);
    let scenario = scenario.to_string_lossy();
    let asked: [&[&str]; 3] =
        [&["--version"], &["check", &scenario], &["sim", &scenario, "--runs", "2", "--json", "-", "--quiet"]];
    let Some((first, rest)) = program.split_first() else { return Ok(Vec::new()) };
    asked.iter().map(|arguments| Process::new(first).arguments(rest).arguments(*arguments).output()).collect()
}

fn same_bytes(tree: &Path, found: &[String], expected: &[String]) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::OtherBytes { tree: tree.to_path_buf() }) }
}

/// Runs `packaging/trial.sh` on a bare Debian system with compilers, and with systemd, which checks the service.
fn on_bare_debian(dist: &Dist<'_>, machine: Machine) -> Result<(), Error> {
    let root = dist.work.join("bare");
    make_anew(&root)?;
    let bare = Process::new("mmdebstrap").arguments(["--quiet", "--variant=apt", BARE]);
    bare.argument("bookworm").argument(&root).run()?;
    let into = |name: &str| root.join("root").join(name);
    let library = format!("libequipoise-{}-{}.tar.gz", dist.version, machine.name());
    let archive = format!("equipoise-{}-{}.tar.gz", dist.version, machine.name());
    for name in [&debian::name(dist, machine), &archive, &library] {
        place(&dist.out.join(name), &into(name))?;
    }
    place(&dist.workspace.path("packaging/trial.sh"), &into("trial.sh"))?;
    for example in EXAMPLES {
        place(&dist.workspace.path("crates/equipoise-c/examples").join(example), &into(example))?;
    }
    // Sanitizers read /proc, so it is mounted. All processes end with the trial because of the new PID namespace.
    let inside = Process::new("unshare").arguments(["--mount", "--pid", "--fork", "--mount-proc", "--wd", "/root"]);
    let inside = inside.argument("--root").argument(&root).argument("./trial.sh");
    inside.arguments([&dist.version, machine.name(), machine.debian()]).run()
}
