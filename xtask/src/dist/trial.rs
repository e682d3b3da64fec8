//! Tests distributions on this machine and on a minimal Debian system.

use std::path::{Path, PathBuf};

use super::machine::Machine;
use super::stage::place;
use super::{Dist, container, debian, make_anew};
use crate::error::Error;
use crate::process::Process;

/// A scenario in the archive that is quick to simulate.
const SCENARIO: &str = "share/equipoise/scenarios/demo-short.toml";
/// Packages that are added to the minimal Debian system.
const BARE: &str = "--include=systemd,gcc,libc6-dev,clang,pkg-config";
/// C programs that are built on the minimal Debian system.
const EXAMPLES: [&str; 3] = ["controller.c", "receive.c", "flow_pair.c"];

/// Tests the files for both architectures. If the user is root, the files for this machine's architecture are also
/// tested in the container image and on a minimal Debian system.
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
        println!("skipped: the test of the container image and the trial on a bare Debian need root");
        return Ok(());
    }
    container::runs(dist, dist.here)?;
    on_bare_debian(dist, dist.here)
}

/// Returns the command line that runs the program of an architecture on this machine.
fn program(machine: Machine, tree: &Path) -> Vec<PathBuf> {
    let program = tree.join("bin/equipoise");
    if machine.is_here() {
        vec![program]
    } else {
        // Do not set qemu's option `-L` to the cross compiler's folder, because threads never start with the C library
        // in this folder. Without `-L`, qemu uses the C library of Debian's package for the other architecture.
        vec!["qemu-aarch64-static".into(), program]
    }
}

/// Returns the output of three runs of the command: its version, the check of a scenario, and the results of the
/// scenario.
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

/// Runs `packaging/trial.sh` on a minimal Debian system. The system has C compilers, and systemd, which checks the
/// service.
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
    // /proc is mounted, because sanitizers read it. The trial runs in a new PID namespace. When the trial ends, the
    // kernel kills all other processes in the namespace.
    let inside = Process::new("unshare").arguments(["--mount", "--pid", "--fork", "--mount-proc", "--wd", "/root"]);
    let inside = inside.argument("--root").argument(&root).argument("./trial.sh");
    inside.arguments([&dist.version, machine.name(), machine.debian()]).run()
}
