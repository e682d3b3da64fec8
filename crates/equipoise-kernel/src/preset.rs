use std::os::fd::{AsRawFd as _, BorrowedFd};

use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, MapType};

use crate::error::KernelError;
use crate::support::{hook, is_registered, leave_out, maps, open, register};

/// The compiled BPF program with variants of Reno and CUBIC.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/preset.o"));
/// Name of the BPF map that stores the window to be set for each socket.
const MAP: &str = "window_presets";

/// A variant of the kernel's Reno or CUBIC whose congestion window can be set. The variant is registered until this
/// value is dropped. If another process registered the variant first, that process keeps it registered.
///
/// [`set`](Self::set) sets the window of a connection. In all other respects, the variant behaves like the original
/// congestion control. A flow pair sets the window of its TCP connection at the beginning of a probing period (Tobe
/// 1999, Sec. 4).
#[derive(Debug)]
pub struct PresetWindow {
    name: &'static str,
    /// The maps with the stored windows. Each loaded program has its own map, and a connection may use any of them.
    windows: Vec<MapHandle>,
    /// The registration; `None` if another process had registered the variant before.
    _link: Option<Link>,
}

impl PresetWindow {
    /// Registers a variant of the congestion control `control` in all network namespaces. The congestion window of this
    /// variant can be set. Returns `None` if `control` is neither `reno` nor `cubic`. If another process has already
    /// registered the variant, the variant is not registered again.
    ///
    /// # Errors
    /// [`KernelError`] if the kernel does not support the variant, or a privilege is missing.
    pub fn load(control: &str) -> Result<Option<Self>, KernelError> {
        let (name, other) = match control {
            "reno" => ("reno_preset", "cubic_preset"),
            "cubic" => ("cubic_preset", "reno_preset"),
            _ => return Ok(None),
        };
        hook()?;
        let link = if is_registered(name) { None } else { load(name, other)? };
        let windows = maps(MapType::SkStorage, MAP)?;
        if windows.is_empty() { Err(KernelError::Version) } else { Ok(Some(Self { name, windows, _link: link })) }
    }

    /// The variant's name, for `setsockopt(TCP_CONGESTION)`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Stores `segments` as the congestion window of `connection`. The window is applied once, when the connection next
    /// sends while no data is in flight. The value 0 removes a stored window that was not applied yet.
    ///
    /// # Errors
    /// [`KernelError::Refused`] if `connection` is not a socket, or [`KernelError::Rights`] if the kernel denies
    /// permission.
    pub fn set(&self, connection: BorrowedFd<'_>, segments: u32) -> Result<(), KernelError> {
        let key = connection.as_raw_fd().to_ne_bytes();
        let set = |map: &MapHandle| map.update(&key, &segments.to_ne_bytes(), MapFlags::ANY);
        self.windows.iter().try_for_each(set).map_err(KernelError::of("set a connection's window"))
    }
}

/// Loads the program without the variant `other`, and registers the variant `name`. Returns `None` if another process
/// registered `name` first.
fn load(name: &str, other: &str) -> Result<Option<Link>, KernelError> {
    let mut open = open(PROGRAM)?;
    leave_out(&mut open, other)?;
    let mut object = open.load().map_err(KernelError::of("load the congestion control"))?;
    register(&mut object, name)
}
