//! Builds a container image in the format of the Open Container Initiative (OCI). The image contains the files of the
//! command `equipoise` and the libraries that the command needs to run, such as the C library.

use std::path::{Path, PathBuf};

use super::machine::Machine;
use super::{Dist, make_anew};
use crate::error::Error;
use crate::process::Process;

/// The release of Debian from which the image takes the C library.
const DEBIAN: &str = "bookworm";

/// Creates an image with the files in `tree`, as an archive that `podman load` and `skopeo copy oci-archive:` accept.
pub(super) fn image(dist: &Dist<'_>, machine: Machine, tree: &Path) -> Result<(), Error> {
    let folder = dist.work.join(format!("image-{}", machine.debian()));
    make_anew(&folder)?;
    let (root, layout, bundle) = (folder.join("root"), folder.join("layout"), folder.join("bundle"));
    // Debian packages are extracted, but their install scripts are not run, because programs for another architecture
    // cannot run on this machine.
    let bare = Process::new("mmdebstrap").arguments(["--quiet", "--variant=extract", "--include=libc6,libgcc-s1"]);
    let bare = bare.argument(format!("--architectures={}", machine.debian())).argument(DEBIAN).argument(&root);
    bare.variable("SOURCE_DATE_EPOCH", &dist.date).run()?;
    Process::new("cp")
        .arguments(["--recursive", "--no-target-directory"])
        .argument(tree)
        .argument(root.join("usr"))
        .run()?;
    let umoci = || Process::new("umoci").variable("SOURCE_DATE_EPOCH", &dist.date);
    let named = named(&layout, dist);
    umoci().arguments(["init", "--layout"]).argument(&layout).run()?;
    umoci().arguments(["new", "--image", &named]).run()?;
    let settings = ["--config.entrypoint=/usr/bin/equipoise", "--config.cmd=--help", "--config.user=65534:65534"];
    let configure = umoci().arguments(["config", "--image", &named, "--architecture", machine.debian()]);
    configure.arguments(settings).run()?;
    umoci().arguments(["unpack", "--image", &named]).argument(&bundle).run()?;
    Process::new("cp")
        .arguments(["--archive", "--no-target-directory"])
        .argument(&root)
        .argument(bundle.join("rootfs"))
        .run()?;
    umoci().arguments(["repack", "--image", &named]).argument(&bundle).run()?;
    Process::new("tar")
        .arguments(["--create", "--file"])
        .argument(file(dist, machine))
        .argument("--directory")
        .argument(&layout)
        .argument(".")
        .run()
}

/// Tests an image: unpacks it, and runs `equipoise --version` inside.
pub(super) fn runs(dist: &Dist<'_>, machine: Machine) -> Result<(), Error> {
    let folder = dist.work.join("image-trial");
    make_anew(&folder)?;
    let (layout, bundle) = (folder.join("layout"), folder.join("bundle"));
    make_anew(&layout)?;
    let tar = Process::new("tar").arguments(["--extract", "--file"]).argument(file(dist, machine));
    tar.argument("--directory").argument(&layout).run()?;
    let named = named(&layout, dist);
    Process::new("umoci").arguments(["unpack", "--image", &named]).argument(&bundle).run()?;
    println!("image: equipoise --version");
    Process::new("chroot").argument(bundle.join("rootfs")).arguments(["/usr/bin/equipoise", "--version"]).run()
}

/// Returns umoci's argument for the image: the layout's folder, then the image's name and tag.
fn named(layout: &Path, dist: &Dist<'_>) -> String {
    format!("{}:equipoise:{}", layout.display(), dist.version)
}

/// Returns the path of the image's archive.
fn file(dist: &Dist<'_>, machine: Machine) -> PathBuf {
    dist.out.join(format!("equipoise-{}-{}.oci.tar", dist.version, machine.name()))
}
