//! The folder of a sweep, which contains the sweep's design and a file for each completed part.
//!
//! The file of a part appears under its final name only when the file is complete and stored on disk. After an
//! interruption, every existing part is therefore valid, and every missing part is run again, so no row is lost or
//! duplicated.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use equipoise::random::stream_seed;
use serde::{Deserialize, Serialize};

use super::error::SweepError;
use super::part::{Reader, Writer};
use super::plan::{Design, Plan};
use super::run::{Progress, Shard, each};
use super::table::Table;
use crate::sim::Execution;

/// Name of the manifest file, which contains the design of the folder's sweep.
pub(super) const MANIFEST: &str = "sweep.json";
/// Name of the subfolder that contains the results, with one file for each completed part of the sweep.
const PARTS: &str = "parts";
/// Key of the metadata in Parquet files. In a part, the value identifies the sweep and the runs; in the merged file,
/// the value is the manifest.
const ABOUT: &str = "equipoise.sweep";
/// Number of rows in a row group of the merged file; the last row group may have fewer rows.
const ROWS_PER_GROUP: usize = 16_384;

/// The content of the manifest file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    version: String,
    design: Design,
}

/// A sweep that is stored in a folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    plan: Plan,
    /// The manifest as JSON. Its fingerprint identifies the sweep in each part.
    manifest: String,
}

impl Folder {
    /// Returns the folder of a plan: either a new folder, or the folder in which the same plan was started.
    ///
    /// # Errors
    /// [`SweepError::OtherSweep`] if the folder contains another sweep, [`SweepError::File`] if the folder or its
    /// manifest cannot be written, and the errors of [`open`](Self::open).
    pub fn create(path: &Path, plan: &Plan) -> Result<Self, SweepError> {
        fs::create_dir_all(path.join(PARTS)).map_err(|source| SweepError::File { path: path.join(PARTS), source })?;
        let file = path.join(MANIFEST);
        if !file.exists() {
            let written = write_whole(&file, manifest(plan).as_bytes());
            // Another process, perhaps on another machine, may have written the manifest at the same time. Therefore,
            // the manifest is read back and checked below.
            written.or_else(|error| if file.exists() { Ok(()) } else { Err(error) })?;
        }
        let found = Self::open(path)?;
        match difference(found.plan.design(), plan.design()) {
            Some(difference) => Err(SweepError::OtherSweep { folder: path.to_path_buf(), difference }),
            None => Ok(found),
        }
    }

    /// Opens the sweep that is stored in a folder.
    ///
    /// # Errors
    /// [`SweepError::NoSweep`], [`SweepError::Manifest`], [`SweepError::OtherVersion`], [`SweepError::File`], and the
    /// errors of [`Plan::new`].
    pub fn open(path: &Path) -> Result<Self, SweepError> {
        let file = path.join(MANIFEST);
        let text = fs::read_to_string(&file).map_err(|source| match source.kind() {
            ErrorKind::NotFound => SweepError::NoSweep { folder: path.to_path_buf() },
            _ => SweepError::File { path: file.clone(), source },
        })?;
        let found: Manifest =
            serde_json::from_str(&text).map_err(|source| SweepError::Manifest { path: file.clone(), source })?;
        if found.version != crate::VERSION {
            return Err(SweepError::OtherVersion { folder: path.to_path_buf(), found: found.version });
        }
        let plan = Plan::new(found.design)?;
        Ok(Self { path: path.to_path_buf(), manifest: manifest(&plan), plan })
    }

    /// Returns the plan of the sweep.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs the missing parts of a shard, on the given number of threads or on all cores. The content of the files does
    /// not depend on the number of threads, on the shards, or on interruptions. `progress` is called after each run.
    /// Returns the last progress.
    ///
    /// # Errors
    /// [`SweepError::Point`] before any run starts, [`SweepError::StrangePart`], [`SweepError::File`],
    /// [`SweepError::Parquet`] and [`SweepError::Run`].
    pub fn run(
        &self,
        shard: Shard,
        execution: impl Into<Execution>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Progress, SweepError> {
        let execution = execution.into();
        let left = self.missing(shard)?;
        let runs: Vec<_> = left.iter().map(|part| self.plan.part(*part)).collect();
        self.plan.check(&runs, execution.threads)?;
        let keep = |place: usize, table: Table| left.get(place).map_or(Ok(()), |part| self.keep(*part, &table));
        each(&self.plan, &runs, &execution, &keep, progress)
    }

    /// Stores a part that was produced in another folder of the same sweep. `bytes` are the content of the part's file.
    /// If the bytes are refused, a part that is already stored remains.
    ///
    /// # Errors
    /// [`SweepError::StrangePart`] if the bytes are not those of this part, and [`SweepError::File`].
    pub fn put(&self, part: u64, bytes: &[u8]) -> Result<(), SweepError> {
        let path = self.file(part);
        write_checked(&path, bytes, |written| match self.opened(part, written) {
            Ok(Some(_)) => Ok(()),
            Err(error @ SweepError::File { .. }) => Err(error),
            Ok(None) | Err(_) => Err(SweepError::StrangePart { path: path.clone(), part }),
        })
    }

    /// Returns the numbers of the missing parts of a shard.
    ///
    /// # Errors
    /// [`SweepError::StrangePart`] and [`SweepError::File`].
    pub fn missing(&self, shard: Shard) -> Result<Vec<u64>, SweepError> {
        let mut missing = Vec::new();
        for part in shard.parts(self.plan.parts()) {
            if !self.is_done(part)? {
                missing.push(part);
            }
        }
        Ok(missing)
    }

    /// Writes the rows of all runs, in order, to a Parquet file, a CSV file, or both. The bytes depend only on the
    /// design and on the version of Equipoise.
    ///
    /// # Errors
    /// [`SweepError::Incomplete`] if a part is missing, [`SweepError::StrangePart`], [`SweepError::File`],
    /// [`SweepError::Parquet`], [`SweepError::Output`] and [`SweepError::Csv`].
    pub fn merge(
        &self,
        parquet: Option<Box<dyn Write + Send + '_>>,
        mut csv: Option<Box<dyn Write + Send + '_>>,
    ) -> Result<(), SweepError> {
        self.check_complete()?;
        let columns = self.plan.columns();
        let mut file = parquet.map(|out| Writer::new(out, columns, (ABOUT, &self.manifest))).transpose()?;
        if let Some(csv) = &mut csv {
            csv.write_all(Table::csv_head(columns).as_bytes()).map_err(SweepError::Csv)?;
        }
        let mut rows = Table::new(columns);
        for part in 0..self.plan.parts() {
            let table = self.read(part)?;
            if let Some(csv) = &mut csv {
                csv.write_all(table.csv_rows().as_bytes()).map_err(SweepError::Csv)?;
            }
            rows.append(table)?;
            while rows.rows() >= ROWS_PER_GROUP {
                let group = rows.take(ROWS_PER_GROUP);
                file.as_mut().map_or(Ok(()), |file| file.write(&group))?;
            }
        }
        if let Some(mut file) = file {
            if rows.rows() > 0 {
                file.write(&rows)?;
            }
            file.finish()?.flush().map_err(SweepError::Output)?;
        }
        csv.map_or(Ok(()), |mut csv| csv.flush().map_err(SweepError::Csv))
    }

    fn check_complete(&self) -> Result<(), SweepError> {
        let (mut missing, mut first) = (0, None);
        for part in 0..self.plan.parts() {
            if !self.is_done(part)? {
                missing += 1;
                first = first.or(Some(self.plan.part(part).start));
            }
        }
        first.map_or(Ok(()), |first| Err(SweepError::Incomplete { missing, parts: self.plan.parts(), first }))
    }

    fn file(&self, part: u64) -> PathBuf {
        self.path.join(PARTS).join(format!("runs-{:012}.parquet", self.plan.part(part).start))
    }

    /// Returns the metadata of a part, which identifies its sweep and its runs.
    fn about(&self, part: u64) -> String {
        let runs = self.plan.part(part);
        format!("{:016x} {}..{}", fingerprint(&self.manifest), runs.start, runs.end)
    }

    /// Opens the file at `path` as part number `part` of the sweep. Returns `None` if the file is missing or is not a
    /// complete Parquet file.
    fn opened(&self, part: u64, path: &Path) -> Result<Option<Reader>, SweepError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(SweepError::File { path: path.to_path_buf(), source }),
        };
        let Ok(reader) = Reader::new(file) else { return Ok(None) };
        if reader.about(ABOUT) != Some(self.about(part).as_str()) {
            return Err(SweepError::StrangePart { path: path.to_path_buf(), part });
        }
        Ok(Some(reader))
    }

    fn is_done(&self, part: u64) -> Result<bool, SweepError> {
        Ok(self.opened(part, &self.file(part))?.is_some())
    }

    /// Reads the rows of a part, and checks that they belong to the runs of this part, in order.
    fn read(&self, part: u64) -> Result<Table, SweepError> {
        let strange = || SweepError::StrangePart { path: self.file(part), part };
        let table =
            self.opened(part, &self.file(part))?.ok_or_else(strange)?.read(self.plan.columns())?.ok_or_else(strange)?;
        let mut runs = table.runs().to_vec();
        runs.dedup();
        if runs.iter().copied().eq(self.plan.part(part)) { Ok(table) } else { Err(strange()) }
    }

    /// Writes the file of a part. The file appears under its final name only when it is complete.
    fn keep(&self, part: u64, table: &Table) -> Result<(), SweepError> {
        let mut writer = Writer::new(Vec::new(), self.plan.columns(), (ABOUT, &self.about(part)))?;
        writer.write(table)?;
        write_whole(&self.file(part), &writer.finish()?)
    }
}

fn manifest(plan: &Plan) -> String {
    let found = Manifest { version: crate::VERSION.to_owned(), design: plan.design().clone() };
    crate::result::json(&found)
}

/// Returns a 64-bit hash that identifies a design. The hash is not cryptographic: collisions can be constructed.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(text.len() as u64, |hash, byte| stream_seed(hash, u64::from(byte)))
}

/// Describes how the design in a folder differs from the requested design; `None` if they are equal.
fn difference(found: &Design, wanted: &Design) -> Option<String> {
    let list = |name: &str, found: &[String], wanted: &[String]| {
        (found != wanted).then(|| format!("there, {name} is [{}], and here [{}]", found.join("; "), wanted.join("; ")))
    };
    let number = |name: &str, found: u64, wanted: u64| {
        (found != wanted).then(|| format!("there, {name} is {found}, and here {wanted}"))
    };
    if found.scenarios != wanted.scenarios {
        return Some("its scenarios have other texts or names".to_owned());
    }
    list("what is set", &found.set, &wanted.set)
        .or_else(|| list("what is varied", &found.vary, &wanted.vary))
        .or_else(|| list("what is drawn", &found.draw, &wanted.draw))
        .or_else(|| number("the number of points", found.random_points.into(), wanted.random_points.into()))
        .or_else(|| number("the seed", found.seed, wanted.seed))
        .or_else(|| number("the number of runs", found.runs.into(), wanted.runs.into()))
}

/// Writes a temporary file next to the target file, and renames the temporary file when it is stored on disk.
fn write_whole(path: &Path, content: &[u8]) -> Result<(), SweepError> {
    write_checked(path, content, |_| Ok(()))
}

/// Number in the name of this process's next temporary file.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Returns the path of the temporary file with this number. Its name begins with a dot, so programs that read a folder
/// of Parquet files ignore it.
fn beside(path: &Path, number: u64) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}-{number}.part", process::id()))
}

/// Creates a temporary file next to the target file `path`.
///
/// The file belongs to this call alone. The name of the file contains the process number and a number from `NEXT`, so
/// the calls of one process use different names. A process on another host may have the same process number. Therefore
/// a file that already exists is left alone, and the next number is tried.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    loop {
        let beside = beside(path, NEXT.fetch_add(1, Ordering::Relaxed));
        match File::create_new(&beside) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (file, beside)),
        }
    }
}

/// Writes a temporary file next to the target file, stores it on disk, and checks it. If there is no error, the
/// temporary file then replaces the target file. Otherwise, the target file remains as it was.
fn write_checked(
    path: &Path,
    content: &[u8],
    check: impl FnOnce(&Path) -> Result<(), SweepError>,
) -> Result<(), SweepError> {
    let failed = |source| SweepError::File { path: path.to_path_buf(), source };
    let (mut file, beside) = create_beside(path).map_err(failed)?;
    let stored = file.write_all(content).and_then(|()| file.sync_all());
    drop(file);
    let written = stored.map_err(failed).and_then(|()| check(&beside));
    written.and_then(|()| fs::rename(&beside, path).map_err(failed)).inspect_err(|_| {
        // The temporary file is removed, so that repeated attempts do not fill the disk. If the removal fails, the
        // first error is still the one to report.
        let _ = fs::remove_file(&beside);
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// If this test fails, two threads that store the same part write to one temporary file. The part is then broken,
    /// or one of the threads gets an error.
    #[test]
    fn threads_that_write_one_target_do_not_touch_each_others_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("part");
        thread::scope(|scope| {
            for letter in [b'a', b'b', b'c', b'd'] {
                let target = &target;
                scope.spawn(move || {
                    for _ in 0..50 {
                        write_whole(target, &vec![letter; 10_000]).expect("nobody else has this file");
                        let found = fs::read(target).expect("written");
                        assert!(found.len() == 10_000 && found.iter().all(|byte| *byte == found[0]));
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "no temporary file is left");
    }

    /// Two hosts can share a folder, and two processes on these hosts can have the same process ID. If the test fails,
    /// one of these processes can destroy the temporary file of the other process.
    #[test]
    fn a_temporary_file_of_another_host_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("part");
        let next = NEXT.load(Ordering::Relaxed);
        let others: Vec<_> = (next..next + 1000).map(|number| beside(&target, number)).collect();
        for other in &others {
            fs::write(other, b"half of one").expect("room");
        }
        write_whole(&target, b"whole").expect("another name is free");
        assert_eq!(fs::read(&target).expect("written"), b"whole");
        assert!(others.iter().all(|other| fs::read(other).is_ok_and(|found| found == b"half of one")));
    }
}
