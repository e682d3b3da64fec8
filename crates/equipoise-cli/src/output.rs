//! Outputs of a command: text on standard output, and files that are opened before a run begins.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::CliError;

/// Where results go.
#[derive(Debug, Args)]
pub(crate) struct Results {
    /// Write the results as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Print only errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// A file that is written completely or not at all.
///
/// The file is opened under a temporary name before the run begins, so that a wrong path is reported early. The
/// file is renamed when its content is complete. If the `Output` is dropped earlier, the temporary file is deleted.
///
/// If the path exists and is not a regular file (`/dev/null`, a pipe, a link to a file), the output is written directly
/// to the path, because renaming the temporary file would replace the path for all other programs.
#[derive(Debug)]
pub(crate) enum Output {
    /// Standard output.
    Stdout,
    /// A file. It has a temporary name until its content is complete, unless it is written directly.
    File {
        /// The final path of the file.
        path: PathBuf,
        /// The temporary path; `None` after the file was renamed, or if the output is written directly to its final
        /// path.
        part: Option<PathBuf>,
        /// The open file.
        file: BufWriter<File>,
    },
}

impl Output {
    /// Opens the file for `path`; `-` stands for standard output.
    pub(crate) fn promise(path: &Path) -> Result<Self, CliError> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdout);
        }
        let failed = |source: io::Error| CliError::Output { path: path.to_path_buf(), source };
        if path.is_dir() {
            return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            let file = BufWriter::new(File::create(path).map_err(failed)?);
            return Ok(Self::File { path: path.to_path_buf(), part: None, file });
        }
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let file = BufWriter::new(File::create(&part).map_err(failed)?);
        Ok(Self::File { path: path.to_path_buf(), part: Some(part), file })
    }

    /// Opens the file at `path` directly, so that it can be read while it is written; `-` stands for standard output.
    #[cfg(feature = "live")]
    pub(crate) fn stream(path: &Path) -> Result<Self, CliError> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdout);
        }
        let file = File::create(path).map_err(|source| CliError::Output { path: path.to_path_buf(), source })?;
        Ok(Self::File { path: path.to_path_buf(), part: None, file: BufWriter::new(file) })
    }

    /// Passes all appended content to the operating system.
    #[cfg(feature = "live")]
    pub(crate) fn flush(&mut self) -> Result<(), CliError> {
        match self {
            Self::Stdout => io::stdout().flush().map_err(|source| CliError::Lost { path: PathBuf::from("-"), source }),
            Self::File { path, file, .. } => {
                file.flush().map_err(|source| CliError::Lost { path: path.clone(), source })
            }
        }
    }

    /// Whether one of the outputs is standard output. If so, no other text may be printed there.
    pub(crate) fn take_stdout<'a>(outputs: impl IntoIterator<Item = &'a Option<Self>>) -> bool {
        outputs.into_iter().any(|output| matches!(output, Some(Self::Stdout)))
    }

    /// Appends `content` to the output.
    pub(crate) fn append(&mut self, content: impl AsRef<[u8]>) -> Result<(), CliError> {
        let content = content.as_ref();
        match self {
            Self::Stdout => {
                io::stdout().write_all(content).map_err(|source| CliError::Lost { path: PathBuf::from("-"), source })
            }
            Self::File { path, file, .. } => {
                file.write_all(content).map_err(|source| CliError::Lost { path: path.clone(), source })
            }
        }
    }

    /// Returns the final path of the file; `-` for standard output.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Stdout => Path::new("-"),
            Self::File { path, .. } => path,
        }
    }

    /// Returns a writer for content that is too large for memory.
    pub(crate) fn writer(&mut self) -> Box<dyn io::Write + Send + '_> {
        match self {
            Self::Stdout => Box::new(io::stdout()),
            Self::File { file, .. } => Box::new(file),
        }
    }

    /// Appends the content, then renames the file to its final path.
    pub(crate) fn fulfil(mut self, content: &str) -> Result<(), CliError> {
        self.append(content)?;
        self.finish()
    }

    /// Writes the appended content to the disk, and renames the file to its final path.
    pub(crate) fn finish(mut self) -> Result<(), CliError> {
        if let Self::File { path, part, file } = &mut self {
            let moved = file.flush().and_then(|()| match part {
                Some(part) => file.get_ref().sync_all().and_then(|()| fs::rename(part, &*path)),
                None => Ok(()),
            });
            moved.map_err(|source| CliError::Lost { path: path.clone(), source })?;
            *part = None;
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Self::File { part: Some(part), .. } = self {
            // An error cannot be reported here, so it is ignored. A file that remains is recognizable by its name,
            // which ends with `.part`.
            let _ = fs::remove_file(part);
        }
    }
}

/// Prints to standard output; a closed pipe is not an error.
pub(crate) fn say(quiet: bool, text: &str) {
    if !quiet {
        let _ = io::stdout().write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_that_is_dropped_leaves_nothing_and_one_that_is_fulfilled_leaves_the_file() {
        let folder = std::env::temp_dir().join(format!("equipoise-output-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        let path = folder.join("out.json");
        drop(Output::promise(&path).expect("writable"));
        assert_eq!(fs::read_dir(&folder).expect("readable").count(), 0);
        Output::promise(&path).expect("writable").fulfil("{}").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("there"), "{}");
        assert!(Output::promise(&folder).is_err(), "a folder is no file");
        assert!(Output::promise(&folder.join("missing/out.json")).is_err());
        let link = folder.join("link.json");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        Output::promise(&link).expect("writable").fulfil("[]").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("there"), "[]");
        assert!(link.is_symlink(), "a link stays a link");
        let device = Path::new("/dev/null");
        Output::promise(device).expect("writable").fulfil("{}").expect("written");
        assert!(!fs::metadata(device).expect("there").is_file(), "a device stays a device");
        fs::remove_dir_all(&folder).expect("removable");
    }
}
