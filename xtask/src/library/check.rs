//! Checks that C programs can use the installed library, and that these programs can exchange data with the project's
//! own programs.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::{Build, PACKAGE, SYSTEM_LIBRARIES, flags, install};
use crate::error::Error;
use crate::process::Process;
use crate::workspace::Workspace;

/// Test programs in C. Each of them ends with an error if a check fails.
const TESTS: [&str; 3] = ["controllers", "media", "pair"];
/// Compilers, each with its options, such as sanitizers.
const COMPILERS: [(&str, &[&str]); 2] = [
    ("gcc", &["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]),
    // clang is used without sanitizers, because the package with clang's sanitizers is rarely installed. The sanitizers
    // of gcc check the same code.
    ("clang", &["-O2"]),
];
const STRICT: [&str; 5] = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// Size of each file that is sent, in bytes. A flow pair sends the file as about 250 data units in 5 s. In this time,
/// the flow changes from TCP to RTP.
const LENGTH: usize = 1_000_000;
/// How long the encoder example sends video, in s.
const ENCODED: usize = 3;

/// Installs the library into a temporary folder, and builds C tests and C examples with it. Runs these tests and
/// examples together with the project's programs.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Error> {
    let folder = std::env::temp_dir().join(format!("equipoise-library-{}", std::process::id()));
    let checked = Stage { workspace, folder: folder.clone() }.check();
    // Remove the folder, even after an error, because this process created it.
    let removed = fs::remove_dir_all(&folder);
    checked?;
    removed.map_err(|source| Error::File { verb: "remove", path: folder, source })
}

/// The folder below which the library is installed.
struct Stage<'a> {
    workspace: &'a Workspace,
    folder: PathBuf,
}

/// The name of a program, for messages, and a path. The path is that of the program, or of the file that the program
/// sent or received.
type Named<'a> = (&'static str, &'a Path);

impl Stage<'_> {
    fn check(&self) -> Result<(), Error> {
        install(self.workspace, Build::Debug, &self.folder)?;
        self.headers_are_of_cplusplus_too()?;
        let shared = flags(&self.folder, &["--cflags", "--libs"], &["equipoise"])?;
        for (compiler, options) in COMPILERS {
            for test in TESTS {
                let program = self.compile(compiler, &format!("tests/c/{test}.c"), options, &shared)?;
                Process::new(&program).run()?;
            }
        }
        let (gcc, sanitizers) = COMPILERS[0];
        Process::new(self.compile(gcc, "examples/controller.c", sanitizers, &shared)?).output()?;
        println!("tests and examples in C run, built by gcc under its sanitizers and by clang");
        self.media(&shared)?;
        self.flow_pairs(&shared)
    }

    fn headers_are_of_cplusplus_too(&self) -> Result<(), Error> {
        let compiler = Process::new("c++").arguments(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]);
        let header = self.folder.join("include/equipoise_pair.h");
        compiler.arguments(["-x", "c++"]).argument(header).run()
    }

    /// Compiles a C program against the installed library. The program contains the path of the shared library.
    fn compile(&self, compiler: &str, source: &str, options: &[&str], link: &[String]) -> Result<PathBuf, Error> {
        let name = source.replace(['/', '.'], "-");
        let program = self.folder.join(format!("{name}-{compiler}"));
        let run_path = format!("-Wl,-rpath,{}", self.folder.join("lib").display());
        let process = Process::new(compiler).arguments(STRICT).arguments(options).argument("-o").argument(&program);
        let process = process.argument(self.workspace.path(format!("{PACKAGE}/{source}")));
        process.arguments(link).arguments(["-pthread", &run_path]).run()?;
        Ok(program)
    }

    /// Sends a file from the command `equipoise` to a C example, and video from the encoder example in C to the
    /// command.
    fn media(&self, shared: &[String]) -> Result<(), Error> {
        let command = self.workspace.build_command()?;
        let (gcc, sanitizers) = COMPILERS[0];
        let key = self.folder.join("key");
        Process::new(&command).argument("keygen").argument(&key).output()?;
        let secret = crate::workspace::read(&key)?;
        let address = |port: u16| format!("127.0.0.1:{port}");

        let (sent, got, port) = (self.folder.join("sent"), self.folder.join("got"), self.free_port()?);
        write_content(&sent)?;
        let receive = self.compile(gcc, "examples/receive.c", sanitizers, shared)?;
        let receiving =
            Receiving::start(Command::new(&receive).arg(address(port)).arg(&got).env("EQUIPOISE_KEY", &secret))?;
        let send =
            Process::new(&command).arguments(["send", "127.0.0.1", "-p", &port.to_string(), "-t", "30", "--file"]);
        send.argument(&sent).argument("--key").argument(&key).output()?;
        receiving.finish()?;
        compare(("equipoise send", &sent), ("C", &got))?;

        let packages = ["equipoise", "libavcodec", "libavutil"];
        let Ok(flags) = flags(&self.folder, &["--cflags", "--libs"], &packages) else {
            println!("skipped: the headers of libavcodec, with which the encoder's example is built");
            return Ok(());
        };
        let encoder = self.compile(gcc, "examples/encoder.c", sanitizers, &flags)?;
        self.compile("clang", "examples/encoder.c", &["-O2"], &flags)?;
        let (video, port) = (self.folder.join("video.h264"), self.free_port()?);
        let mut receive = Command::new(&command);
        receive.args(["receive", "--one-off", "-p", &port.to_string(), "--key"]).arg(&key);
        let receiving = Receiving::start(receive.arg("--output").arg(&video))?;
        let encode = Process::new(&encoder).argument(address(port)).argument(ENCODED.to_string());
        print!("{}", encode.variable("EQUIPOISE_KEY", secret).output()?);
        receiving.finish()?;
        let found = fs::metadata(&video).map_err(|source| Error::File { verb: "read", path: video, source })?.len();
        // The encoder starts at 0.3 Mbit/s. On the loopback interface its rate can only increase.
        let least = ENCODED as u64 * 300_000 / 8;
        if found < least {
            return Err(Error::Video { bytes: found, least });
        }
        println!("the encoder in C sent {found} bytes of video, `equipoise receive` received them");
        Ok(())
    }

    /// Sends files over flow pairs, from C to Rust with the shared library, and from Rust to C with the static library.
    fn flow_pairs(&self, shared: &[String]) -> Result<(), Error> {
        let (gcc, sanitizers) = COMPILERS[0];
        let by_shared = self.compile(gcc, "examples/flow_pair.c", sanitizers, shared)?;
        let mut link = flags(&self.folder, &["--cflags"], &["equipoise"])?;
        link.push(self.folder.join("lib/libequipoise.a").display().to_string());
        link.extend(SYSTEM_LIBRARIES.split(' ').map(str::to_owned));
        let by_static = self.compile("clang", "examples/flow_pair.c", &[], &link)?;
        let rust = self.workspace.build_example("flow_pair")?;
        self.exchange(("C", &by_shared), ("Rust", &rust))?;
        self.exchange(("Rust", &rust), ("C", &by_static))
    }

    /// Sends a file from one example program to another, and compares the received file with the original.
    fn exchange(&self, (sender, sends): Named<'_>, (receiver, receives): Named<'_>) -> Result<(), Error> {
        let (from, to, port) = (self.folder.join("sent"), self.folder.join("received"), self.free_port()?);
        write_content(&from)?;
        let receiving = Receiving::start(Command::new(receives).arg("receive").arg(port.to_string()).arg(&to))?;
        // Connect only to test whether the receiver listens. The receiver closes a connection that begins without a
        // hello message.
        let listens = |_: &u32| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        if !(0..100).inspect(|_| sleep(Duration::from_millis(100))).any(|try_| listens(&try_)) {
            return Err(Error::Deaf { receiver, port });
        }
        Process::new(sends).arguments(["send", "127.0.0.1", &port.to_string()]).argument(&from).run()?;
        receiving.finish()?;
        compare((sender, &from), (receiver, &to))
    }

    /// Returns a TCP port that is free at this moment.
    fn free_port(&self) -> Result<u16, Error> {
        let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr();
        let path = self.folder.clone();
        free().map(|address| address.port()).map_err(|source| Error::File { verb: "listen for", path, source })
    }
}

fn write_content(path: &Path) -> Result<(), Error> {
    let content: Vec<u8> = (0..LENGTH).map(|at| (at * 31 % 251) as u8).collect();
    fs::write(path, content).map_err(|source| Error::File { verb: "write", path: path.to_path_buf(), source })
}

fn compare((sender, from): Named<'_>, (receiver, to): Named<'_>) -> Result<(), Error> {
    let read =
        |path: &Path| fs::read(path).map_err(|source| Error::File { verb: "read", path: path.to_path_buf(), source });
    let (sent, received) = (read(from)?, read(to)?);
    if sent != received {
        return Err(Error::Received { sender, receiver, sent: sent.len(), received: received.len() });
    }
    println!("{sender} sent {LENGTH} bytes, {receiver} received them");
    Ok(())
}

/// A running program, which is killed when this value is dropped.
struct Receiving {
    child: Child,
    command: String,
}

impl Receiving {
    fn start(command: &mut Command) -> Result<Self, Error> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.stdout(Stdio::null()).spawn();
        let child = child.map_err(|source| Error::Start { command: name.clone(), source })?;
        Ok(Self { child, command: name })
    }

    /// Waits until the program exits. Returns an error if the program fails.
    fn finish(mut self) -> Result<(), Error> {
        let ended = self.child.wait().map_err(|source| Error::Start { command: self.command.clone(), source })?;
        if ended.success() { Ok(()) } else { Err(Error::Failed { command: self.command.clone(), status: ended }) }
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        // Errors are ignored, because `drop` cannot return an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
