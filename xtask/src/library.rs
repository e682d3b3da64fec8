//! The library for C: its header, its installation, and whether C and Rust understand each other.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::Duration;

use crate::dist::Machine;
use crate::error::Error;
use crate::process::Process;
use crate::workspace::Workspace;

/// The header, below the workspace.
pub(crate) const HEADER: &str = "crates/equipoise-c/include/equipoise.h";
/// What it is made from.
const CALLS: &str = "crates/equipoise-c/src/lib.rs";
const SETTINGS: &str = "crates/equipoise-c/cbindgen.toml";
const EXAMPLE: &str = "crates/equipoise-c/examples/flow_pair.c";
/// What the static library wants beside itself (`rustc --print native-static-libs`).
const SYSTEM_LIBRARIES: [&str; 5] = ["-lgcc_s", "-lutil", "-lpthread", "-lm", "-ldl"];

/// A file of some 250 units: five seconds, so that a flow that is steady changes its transport once.
const LENGTH: usize = 1_000_000;

/// How the library is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// As the tests are.
    Debug,
    /// For use.
    Release,
    /// For use on a kind of machine, without symbols for debuggers.
    For(Machine),
}

/// The header as it should be.
pub(crate) fn header(workspace: &Workspace) -> Result<String, Error> {
    let run = workspace.cargo(["run", "--quiet", "--package", "header", "--"]);
    run.argument(workspace.path(SETTINGS)).argument(workspace.path(CALLS)).output()
}

/// Builds the library and puts it and its header below `prefix`.
pub(crate) fn install(workspace: &Workspace, build: Build, prefix: &Path) -> Result<(), Error> {
    let cargo = workspace.cargo(["build", "--package", "equipoise-c"]);
    let folder = match build {
        Build::Debug => cargo.run().map(|()| workspace.target("debug"))?,
        Build::Release => cargo.argument("--release").run().map(|()| workspace.target("release"))?,
        Build::For(machine) => machine.build(workspace, "equipoise-c", &[])?,
    };
    for (from, to) in [
        (workspace.path(HEADER), prefix.join("include/equipoise.h")),
        (folder.join("libequipoise.so"), prefix.join("lib/libequipoise.so")),
        (folder.join("libequipoise.a"), prefix.join("lib/libequipoise.a")),
    ] {
        let failed = |verb, path: &Path| {
            let path = path.to_path_buf();
            move |source| Error::File { verb, path, source }
        };
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(failed("make", folder))?;
        }
        fs::copy(&from, &to).map_err(failed("copy", &from))?;
        println!("{}", to.display());
    }
    Ok(())
}

/// Installs the library into a folder of its own, builds the C example from there, and has it talk to the Rust example.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Error> {
    let folder = std::env::temp_dir().join(format!("equipoise-library-{}", std::process::id()));
    let checked = check_in(workspace, &folder);
    // Whatever was found, the folder is ours and has served.
    let removed = fs::remove_dir_all(&folder);
    checked?;
    removed.map_err(|source| Error::File { verb: "remove", path: folder, source })
}

fn check_in(workspace: &Workspace, folder: &Path) -> Result<(), Error> {
    install(workspace, Build::Debug, folder)?;
    let shared = compile(workspace, folder, "shared", |process| {
        let run_path = format!("-Wl,-rpath,{}", folder.join("lib").display());
        process.argument("-L").argument(folder.join("lib")).arguments(["-lequipoise", &run_path])
    })?;
    let fixed = compile(workspace, folder, "static", |process| {
        process.argument(folder.join("lib/libequipoise.a")).arguments(SYSTEM_LIBRARIES)
    })?;
    workspace.cargo(["build", "--quiet", "--package", "equipoise-net", "--example", "flow_pair"]).run()?;
    let rust = workspace.target("debug/examples/flow_pair");
    exchange(folder, ("C", &shared), ("Rust", &rust))?;
    exchange(folder, ("Rust", &rust), ("C", &fixed))
}

/// The C example, linked as `link` says.
fn compile(
    workspace: &Workspace,
    prefix: &Path,
    name: &str,
    link: impl FnOnce(Process) -> Process,
) -> Result<PathBuf, Error> {
    let program = prefix.join(name);
    let compiler = Process::new("cc").arguments(["-std=c99", "-Wall", "-Wextra", "-Werror", "-o"]).argument(&program);
    let compiler = compiler.argument("-I").argument(prefix.join("include")).argument(workspace.path(EXAMPLE));
    link(compiler).run()?;
    Ok(program)
}

/// A program that ends with its owner.
struct Receiving(Child);

impl Drop for Receiving {
    fn drop(&mut self) {
        // One that has ended needs neither.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Has one example send a file to another.
fn exchange(
    folder: &Path,
    (sender, sends): (&'static str, &Path),
    (receiver, receives): (&'static str, &Path),
) -> Result<(), Error> {
    let content: Vec<u8> = (0..LENGTH).map(|at| (at * 31 % 251) as u8).collect();
    let (from, to) = (folder.join("sent"), folder.join("received"));
    fs::write(&from, &content).map_err(|source| Error::File { verb: "write", path: from.clone(), source })?;
    let port = free_port().map_err(|source| Error::File { verb: "listen for", path: to.clone(), source })?;
    let started = Command::new(receives).arg("receive").arg(port.to_string()).arg(&to).spawn();
    let started = started.map_err(|source| Error::Start { command: receives.display().to_string(), source })?;
    let mut receiving = Receiving(started);
    // A connection that says nothing is turned away.
    let listens = |_: &u32| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
    if !(0..100).inspect(|_| sleep(Duration::from_millis(100))).any(|try_| listens(&try_)) {
        return Err(Error::Deaf { receiver, port });
    }
    Process::new(sends).arguments(["send", "127.0.0.1", &port.to_string()]).argument(&from).run()?;
    let ended =
        receiving.0.wait().map_err(|source| Error::Start { command: receives.display().to_string(), source })?;
    if !ended.success() {
        return Err(Error::Failed { command: format!("{} receive", receives.display()), status: ended });
    }
    let found = fs::read(&to).map_err(|source| Error::File { verb: "read", path: to, source })?;
    if found != content {
        return Err(Error::Received { sender, receiver, sent: content.len(), received: found.len() });
    }
    println!("{sender} sent {LENGTH} bytes, {receiver} received them");
    Ok(())
}

/// A port that was free a moment ago.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
