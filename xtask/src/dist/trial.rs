//! Whether what is distributed works where nothing else is installed.

use std::path::{Path, PathBuf};

use super::machine::Machine;
use super::{Dist, container, debian, make_anew};
use crate::error::Error;
use crate::process::Process;

/// A scenario that takes a second, as the archive has it.
const SCENARIO: &str = "share/equipoise/scenarios/demo-short.toml";
/// The C library of the other machine, with which qemu runs its programs.
const OTHER_ROOT: &str = "/usr/aarch64-linux-gnu";

/// Tries the files of both machines; those of this one on a bare Debian, which needs root.
pub(super) fn run(dist: &Dist<'_>) -> Result<(), Error> {
    println!("\n== trials");
    let here: Vec<_> = Machine::ALL.into_iter().filter(|machine| machine.is_here()).collect();
    let tree = |machine: Machine| dist.work.join(format!("equipoise-{}-{}", dist.version, machine.name()));
    for machine in Machine::ALL {
        let same = tree(machine);
        let words = words(&program(machine, &same), &same)?;
        for machine in &here {
            let expected = tree(*machine);
            same_bytes(&same, &words, &self::words(&program(*machine, &expected), &expected)?)?;
        }
        println!("{}: --version, check and sim say the same as here", machine.name());
    }
    if !Process::new("id").argument("-u").output()?.trim().eq("0") {
        println!("skipped: the trial on a bare Debian needs root");
        return Ok(());
    }
    for machine in here {
        container::runs(dist, machine)?;
        on_bare_debian(dist, machine)?;
    }
    Ok(())
}

/// How a program of a machine is run here.
fn program(machine: Machine, tree: &Path) -> Vec<PathBuf> {
    let program = tree.join("bin/equipoise");
    if machine.is_here() {
        vec![program]
    } else {
        vec!["qemu-aarch64-static".into(), "-L".into(), OTHER_ROOT.into(), program]
    }
}

/// What a command prints for its version, of a scenario, and as its results.
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

/// Installs the package into a Debian without anything, runs what it installed, and has systemd read the service.
fn on_bare_debian(dist: &Dist<'_>, machine: Machine) -> Result<(), Error> {
    let root = dist.work.join("bare");
    make_anew(&root)?;
    let package = debian::name(dist, machine);
    let bare = Process::new("mmdebstrap").arguments([
        "--quiet",
        "--variant=apt",
        "--include=systemd,gcc,clang,libc6-dev,pkg-config",
    ]);
    bare.argument("bookworm").argument(&root).run()?;
    let into = |name: &str| root.join("root").join(name);
    let library = format!("libequipoise-{}-{}", dist.version, machine.name());
    let archive = format!("equipoise-{}-{}.tar.gz", dist.version, machine.name());
    for name in [&package, &archive, &format!("{library}.tar.gz")] {
        super::stage::place(&dist.out.join(name), &into(name))?;
    }
    let commands = [
        format!("dpkg --install {package}"),
        "equipoise --version && test -n \"$(equipoise keygen -)\"".to_owned(),
        "test \"$(stat -c %a /etc/equipoise/receive.conf)\" = 600".to_owned(),
        "systemd-analyze verify --man=no /usr/lib/systemd/system/equipoise-receive.service".to_owned(),
        format!("equipoise sim /usr/{SCENARIO} --quiet --json /dev/null"),
        format!(
            "tar --extract --file {archive} && ./{}/bin/equipoise check /usr/{SCENARIO} >/dev/null",
            archive.trim_end_matches(".tar.gz")
        ),
        "dpkg --purge equipoise && test ! -e /etc/equipoise".to_owned(),
    ];
    for command in commands {
        println!("bare Debian: {command}");
        Process::new("chroot").argument(&root).arguments(["sh", "-ec", &format!("cd /root; {command}")]).run()?;
    }
    Ok(())
}
