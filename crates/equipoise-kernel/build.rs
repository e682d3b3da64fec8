//! Compiles the BPF programs with clang. The library embeds the resulting object files.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: [&str; 3] = ["symbiosis", "reader", "preset"];
const HINT: &str = "the kernel's part is built by `apt-get install clang libelf-dev zlib1g-dev pkg-config`, or what your \
                    distribution calls these; $CLANG names another clang";

fn main() -> Result<(), String> {
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    let variable = |name: &str| env::var(name).map_err(|_| format!("cargo did not set {name}"));
    let (out, headers) = (PathBuf::from(variable("OUT_DIR")?), variable("DEP_BPF_INCLUDE")?);
    let machine = match variable("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        "riscv64" => "riscv",
        "s390x" => "s390",
        "powerpc64" => "powerpc",
        other => return Err(format!("no BPF programs are built for the architecture {other}")),
    };
    for source in SOURCES {
        compile(source, &out, &headers, machine)?;
    }
    Ok(())
}

fn compile(name: &str, out: &Path, headers: &str, machine: &str) -> Result<(), String> {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let full = out.join(format!("{name}.full.o"));
    let output = Command::new(&clang)
        .args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3"])
        .args([&format!("-D__TARGET_ARCH_{machine}"), "-I", headers, "-c", &format!("src/bpf/{name}.bpf.c"), "-o"])
        .arg(&full)
        .output()
        .map_err(|error| format!("`{clang}` does not start ({error}); {HINT}"))?;
    if !output.status.success() {
        return Err(format!("src/bpf/{name}.bpf.c: {}\n{HINT}", String::from_utf8_lossy(&output.stderr)));
    }
    // The BPF linker removes debug information, so the object file is about half as large.
    let linked = libbpf_rs::Linker::new(out.join(format!("{name}.o")))
        .and_then(|mut linker| linker.add_file(&full).and_then(|()| linker.link()));
    linked.map_err(|error| format!("{name}: {error}"))
}
