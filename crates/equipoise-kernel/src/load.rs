use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, io};

use libbpf_rs::{Link, Object};

use crate::error::KernelError;
use crate::parameters::{self, Parameters};
use crate::support::{Hook, hook, is_bpf_file_system, is_registered, leave_out, open, register};

/// The compiled BPF program with the congestion control.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/symbiosis.o"));
/// Usual mount point of the BPF file system. It contains the file (pin) that keeps the congestion control registered.
const FILE_SYSTEM: &str = "/sys/fs/bpf";
/// File name of the pin, which keeps the congestion control registered.
const PIN: &str = "equipoise-symbiosis";
/// How long [`unload`] waits until the kernel has removed the congestion control. The kernel needs a short time after
/// the pin is removed.
const PATIENCE: Duration = Duration::from_secs(5);

/// The registration of the congestion control. The registration ends when this value is dropped.
#[derive(Debug)]
pub struct Loaded {
    link: Link,
    _object: Object,
}

/// Registers the congestion control `symbiosis`, for all network namespaces.
///
/// When the returned [`Loaded`] is dropped, or the process ends for any reason, the kernel removes the congestion
/// control.
///
/// # Errors
/// [`KernelError`] if a parameter is out of range, if the kernel lacks support for the program, or if the process lacks
/// a privilege. [`KernelError::Loaded`] if `symbiosis` is already registered. [`KernelError::Refused`] if the kernel
/// refuses for another reason.
pub fn load(parameters: Parameters) -> Result<Loaded, KernelError> {
    parameters.check()?;
    let hook = hook()?;
    if is_registered(crate::NAME) {
        return Err(KernelError::Loaded);
    }
    let mut open = open(PROGRAM)?;
    let (ours, others) = match hook {
        Hook::Four => ("symbiosis", "symbiosis_old"),
        Hook::Two => ("symbiosis_old", "symbiosis"),
    };
    leave_out(&mut open, others)?;
    let mut object = open.load().map_err(KernelError::of("load the congestion control"))?;
    let map = object.maps_mut().find(|map| libbpf_rs::MapCore::name(map) == parameters::MAP);
    parameters.write(&map.ok_or(KernelError::Version)?)?;
    let link = register(&mut object, ours)?.ok_or(KernelError::Loaded)?;
    Ok(Loaded { link, _object: object })
}

impl Loaded {
    /// Keeps the congestion control registered after this process has ended, until [`unload`] or the next boot.
    ///
    /// # Errors
    /// [`KernelError::NoFileSystem`], [`KernelError::Pin`]. After an error the congestion control is no longer
    /// registered.
    pub fn pin(mut self) -> Result<(), KernelError> {
        let place = Path::new(FILE_SYSTEM);
        if !is_bpf_file_system(place) {
            return Err(KernelError::NoFileSystem { place: place.to_path_buf() });
        }
        let path = pin_path();
        let failed = |source| KernelError::Pin { path: path.clone(), source };
        // Remove a stale pin, if any. No congestion control is registered through this pin, because `load` fails if one
        // is registered.
        remove(&path).map_err(failed)?;
        self.link.pin(&path).map_err(|error| failed(io::Error::other(error)))
    }
}

/// Removes a pinned congestion control. Connections that use it continue to use it until they close.
///
/// # Errors
/// [`KernelError::NotLoaded`] if the congestion control is not loaded. [`KernelError::Held`] if a running process keeps
/// the congestion control loaded. [`KernelError::Pin`] if the pin cannot be read or removed.
pub fn unload() -> Result<(), KernelError> {
    let path = pin_path();
    let there = match fs::symlink_metadata(&path) {
        Ok(_) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(source) => return Err(KernelError::Pin { path, source }),
    };
    if !there {
        return Err(if is_registered(crate::NAME) { KernelError::Held } else { KernelError::NotLoaded });
    }
    remove(&path).map_err(|source| KernelError::Pin { path, source })?;
    let begin = Instant::now();
    while is_registered(crate::NAME) {
        if begin.elapsed() > PATIENCE {
            return Err(KernelError::Held);
        }
        sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Whether the congestion control `symbiosis` is registered.
pub fn is_loaded() -> bool {
    is_registered(crate::NAME)
}

fn pin_path() -> PathBuf {
    Path::new(FILE_SYSTEM).join(PIN)
}

/// Removes a file if it exists.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
