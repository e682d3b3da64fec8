//! Sessions between hosts: `equipoise send` and `equipoise receive`.

pub(crate) mod args;
mod input;
mod lines;
mod rate_socket;
pub(crate) mod receive;
pub(crate) mod results;
mod rtcp;
pub(crate) mod send;

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use equipoise_net::Key;
use tempfile::NamedTempFile;

use self::args::{Ends, Keygen};
use crate::error::{CliError, RealError};
use crate::outcome::Outcome;

/// The environment variable that contains the key, if the user names no key file.
const KEY_VARIABLE: &str = "EQUIPOISE_KEY";
/// The permission bits of a file's group and of all other users.
const OTHERS: u32 = 0o077;

/// Returns the key of the session; `None` for a session without encryption.
fn key(ends: &Ends) -> Result<Option<Key>, RealError> {
    if ends.insecure {
        return Ok(None);
    }
    let (from, text) = if let Some(path) = &ends.key {
        (path.display().to_string(), read_key(path)?)
    } else {
        let text = env::var(KEY_VARIABLE).map_err(|_| RealError::NoKey)?;
        (format!("the environment variable {KEY_VARIABLE}"), text)
    };
    Key::from_base64(&text).map(Some).map_err(|source| RealError::Key { from, source })
}

/// Reads a key file. A file that gives other users any permission is refused. A pipe, as created by `<(…)` in a shell,
/// is private and is accepted.
fn read_key(path: &Path) -> Result<String, RealError> {
    let unreadable = |source| RealError::KeyFile { path: path.to_path_buf(), source };
    let metadata = fs::metadata(path).map_err(unreadable)?;
    let mode = metadata.permissions().mode() & 0o777;
    if metadata.is_file() && mode & OTHERS != 0 {
        return Err(RealError::KeyIsOpen { path: path.to_path_buf(), mode });
    }
    fs::read_to_string(path).map_err(unreadable)
}

/// Runs `equipoise keygen`.
pub(crate) fn keygen(options: &Keygen) -> Result<Outcome, CliError> {
    write_key(&options.file, options.force).map_err(|source| {
        let path = options.file.clone();
        CliError::from(RealError::KeyNotWritten { path, source })
    })?;
    Ok(Outcome::Complete)
}

fn write_key(path: &Path, force: bool) -> io::Result<()> {
    let text = Key::generate().to_base64();
    if path.as_os_str() == "-" {
        return writeln!(io::stdout(), "{}", *text);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The key is written to a temporary file with mode 0600, which is then renamed. If the disk is full, the previous
    // key is kept.
    let mut file = NamedTempFile::new_in(folder)?;
    writeln!(file, "{}", *text)?;
    file.as_file().sync_all()?;
    if force {
        file.persist(path)?
    } else {
        file.persist_noclobber(path)?
    };
    Ok(())
}
