//! Writes the seeds of all fuzz targets into `corpus/`.

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    for (target, name, bytes) in equipoise_fuzz::seeds::all() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name).with_extension("bin"), bytes)?;
    }
    Ok(())
}
