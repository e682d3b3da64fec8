//! Prepares compiled WebAssembly for a web page: `web WASM FOLDER`. This program is not part of `xtask`, because its
//! dependencies take long to build, and `xtask` is built before every command.
#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "talking to the person at the terminal is its job")]

use std::env::args_os;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    match bind() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bind() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = args_os().skip(1).collect();
    let [wasm, folder] = arguments.as_slice() else { return Err("usage: web WASM FOLDER".into()) };
    // Do not generate JavaScript modules, because the page creates its worker as a classic script, which has no import
    // statements.
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(Path::new(wasm))
        .no_modules(true)?
        .typescript(false)
        .remove_name_section(true)
        .remove_producers_section(true);
    Ok(bindgen.generate(Path::new(folder))?)
}
