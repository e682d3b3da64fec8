//! Prints a C header: `header SETTINGS CALLS...`. SETTINGS is a configuration file of cbindgen, and CALLS are Rust
//! source files. This program is not part of `xtask`, because its dependencies take long to build, and `xtask` is built
//! before every command.
#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "talking to the person at the terminal is its job")]

use std::env::args_os;
use std::error::Error;
use std::io::stdout;
use std::path::Path;
use std::process::ExitCode;

use cbindgen::{Builder, Config};

fn main() -> ExitCode {
    match write() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = args_os().skip(1).collect();
    let [settings, calls @ ..] = arguments.as_slice() else { return Err("usage: header SETTINGS CALLS...".into()) };
    let builder = Builder::new().with_config(Config::from_file(Path::new(settings))?);
    let bindings = calls.iter().fold(builder, Builder::with_src).generate()?;
    bindings.write(stdout().lock());
    Ok(())
}
