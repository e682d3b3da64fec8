//! Builds the package for Debian and its derivatives. The package includes a systemd service for the receiver.

use std::path::Path;

use super::machine::Machine;
use super::stage::{place, write};
use super::{Dist, make_anew};
use crate::error::Error;
use crate::process::Process;

/// The package's install and removal scripts, in `packaging/`.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Returns the package's file name.
pub(super) fn name(dist: &Dist<'_>, machine: Machine) -> String {
    format!("equipoise_{}_{}.deb", dist.version, machine.debian())
}

/// Builds a package with the files in `tree`, in the format of deb(5) and the Debian Policy.
pub(super) fn package(dist: &Dist<'_>, machine: Machine, tree: &Path) -> Result<(), Error> {
    let root = dist.work.join(format!("deb-{}", machine.debian()));
    make_anew(&root)?;
    Process::new("cp")
        .arguments(["--recursive", "--no-target-directory"])
        .argument(tree)
        .argument(root.join("usr"))
        .run()?;
    let packaging = |name: &str| dist.workspace.path("packaging").join(name);
    let unit = "equipoise-receive.service";
    place(&packaging(unit), &root.join("usr/lib/systemd/system").join(unit))?;
    place(&packaging("copyright"), &root.join("usr/share/doc/equipoise/copyright"))?;
    for script in SCRIPTS {
        // The scripts stay executable, because `fs::copy` copies the permissions.
        place(&packaging(script), &root.join("DEBIAN").join(script))?;
    }
    write(&root.join("DEBIAN/control"), &control(&dist.version, machine))?;
    let build = Process::new("dpkg-deb").arguments(["--build", "--root-owner-group"]).argument(&root);
    build.argument(dist.out.join(name(dist, machine))).variable("SOURCE_DATE_EPOCH", &dist.date).run()
}

/// Returns the package's control file. libelf and zlib are no dependencies, because they are linked into the command
/// statically.
fn control(version: &str, machine: Machine) -> String {
    format!(
        "Package: equipoise\nVersion: {version}\nArchitecture: {}\nMaintainer: The authors of Equipoise <security@equipoise.invalid>\n\
         Section: net\nPriority: optional\nDepends: libc6 (>= 2.36), libgcc-s1\n\
         Description: end-to-end rate control for real-time media\n \
         A sender and a receiver that hold the delay of a path at a target, a simulator that runs the\n \
         same control code, an emulated link, and a suite that compares controllers.\n",
        machine.debian()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this test fails, the version or the architecture in the control file is wrong, or a line of the file is not a
    /// field.
    #[test]
    fn the_control_file_has_every_field_on_a_line_of_its_own() {
        let text = control("1.2.3", Machine::Aarch64);
        let fields: Vec<_> = text.lines().filter(|line| !line.starts_with(' ')).collect();
        assert!(fields.contains(&"Version: 1.2.3") && fields.contains(&"Architecture: arm64"), "{text}");
        assert!(fields.iter().all(|line| line.split_once(": ").is_some()), "{text}");
    }
}
