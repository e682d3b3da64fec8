//! The folder of a sweep: what it runs, and a file for each part that is done.
//!
//! A part appears under its name when it is whole and on the disk. What is there after a kill is therefore right, and what is not there
//! is run again: no row is lost and none is there twice.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process;

use equipoise::random::stream_seed;
use serde::{Deserialize, Serialize};

use super::error::SweepError;
use super::part::{Reader, Writer};
use super::plan::{Design, Plan};
use super::run::{Progress, Shard, each};
use super::table::Table;
use crate::sim::Execution;

/// The file that says what the folder's sweep runs.
pub(super) const MANIFEST: &str = "sweep.json";
/// The folder of the parts.
const PARTS: &str = "parts";
/// The key under which a part says what it is of, and the merged file what was run.
const ABOUT: &str = "equipoise.sweep";
/// Rows of a row group of the merged file; the last one has fewer.
const ROWS_PER_GROUP: usize = 16_384;

/// What a folder's sweep runs, as its file has it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    version: String,
    design: Design,
}

/// A sweep in its folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    plan: Plan,
    /// The manifest as this version writes it.
    manifest: String,
}

impl Folder {
    /// A folder for a plan: a new one, or the one in which this plan was begun.
    ///
    /// # Errors
    /// [`SweepError::OtherSweep`] and [`SweepError::OtherVersion`] if it has something else, and [`SweepError::File`].
    pub fn create(path: &Path, plan: &Plan) -> Result<Self, SweepError> {
        fs::create_dir_all(path.join(PARTS)).map_err(|source| SweepError::File { path: path.join(PARTS), source })?;
        let file = path.join(MANIFEST);
        if !file.exists() {
            let written = write_whole(&file, manifest(plan).as_bytes());
            // Another process, perhaps of another machine, may have been faster; what it has written is looked at below.
            written.or_else(|error| if file.exists() { Ok(()) } else { Err(error) })?;
        }
        let found = Self::open(path)?;
        match difference(found.plan.design(), plan.design()) {
            Some(difference) => Err(SweepError::OtherSweep { folder: path.to_path_buf(), difference }),
            None => Ok(found),
        }
    }

    /// The sweep that a folder has.
    ///
    /// # Errors
    /// [`SweepError::NoSweep`], [`SweepError::Manifest`], [`SweepError::OtherVersion`], [`SweepError::File`], and as [`Plan::new`].
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

    /// What is run.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs what is not there yet of a share of the parts, on so many threads or all cores. The files do not depend on the number of
    /// threads, on the shares, or on how often it was interrupted. `progress` is told after each run; the last one is returned.
    ///
    /// # Errors
    /// [`SweepError::Point`] before anything is run, [`SweepError::StrangePart`], [`SweepError::File`] and [`SweepError::Run`].
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

    /// Puts a part into its place that another folder of the same sweep has made: the bytes of its file.
    ///
    /// # Errors
    /// [`SweepError::StrangePart`] if it is none, and [`SweepError::File`].
    pub fn put(&self, part: u64, bytes: &[u8]) -> Result<(), SweepError> {
        let path = self.file(part);
        write_whole(&path, bytes)?;
        if matches!(self.is_done(part), Ok(true)) {
            return Ok(());
        }
        fs::remove_file(&path).map_err(|source| SweepError::File { path: path.clone(), source })?;
        Err(SweepError::StrangePart { path, part })
    }

    /// The parts of a share that are not there yet.
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

    /// Writes the rows of all runs, in their order, into one file of Parquet, as CSV, or both. The bytes follow from the design alone.
    ///
    /// # Errors
    /// [`SweepError::Incomplete`] if a part is missing, [`SweepError::StrangePart`], [`SweepError::Parquet`], [`SweepError::Output`] and
    /// [`SweepError::Csv`].
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

    /// What a part says of itself: the sweep that it is of, and its runs.
    fn about(&self, part: u64) -> String {
        let runs = self.plan.part(part);
        format!("{:016x} {}..{}", fingerprint(&self.manifest), runs.start, runs.end)
    }

    /// Opens a part; `None` if it is not there, or was cut short by a machine that lost its power.
    fn opened(&self, part: u64) -> Result<Option<Reader>, SweepError> {
        let path = self.file(part);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(SweepError::File { path, source }),
        };
        let Ok(reader) = Reader::new(file) else { return Ok(None) };
        if reader.about(ABOUT) != Some(self.about(part).as_str()) {
            return Err(SweepError::StrangePart { path, part });
        }
        Ok(Some(reader))
    }

    fn is_done(&self, part: u64) -> Result<bool, SweepError> {
        Ok(self.opened(part)?.is_some())
    }

    /// The rows of a part, which are of each of its runs, in their order.
    fn read(&self, part: u64) -> Result<Table, SweepError> {
        let strange = || SweepError::StrangePart { path: self.file(part), part };
        let table = self.opened(part)?.ok_or_else(strange)?.read(self.plan.columns())?.ok_or_else(strange)?;
        let mut runs = table.runs().to_vec();
        runs.dedup();
        if runs.iter().copied().eq(self.plan.part(part)) { Ok(table) } else { Err(strange()) }
    }

    /// Writes a part, which appears under its name as a whole.
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

/// A hash of 64 bits that identifies a design. It is not cryptographic: collisions can be constructed.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(text.len() as u64, |hash, byte| stream_seed(hash, u64::from(byte)))
}

/// In what a folder's design differs from the one that is wanted.
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

/// Writes a file beside its place, and moves it there when it is on the disk.
fn write_whole(path: &Path, content: &[u8]) -> Result<(), SweepError> {
    let mut beside = path.as_os_str().to_owned();
    // Two processes that write the same file do not write into each other's.
    beside.push(format!(".{}.part", process::id()));
    let beside = PathBuf::from(beside);
    let write = || -> io::Result<()> {
        let mut file = File::create(&beside)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().map_err(|source| {
        // A full disk is not filled further by every attempt; that it cannot be removed changes nothing.
        let _ = fs::remove_file(&beside);
        SweepError::File { path: path.to_path_buf(), source }
    })
}
