use std::os::fd::{AsRawFd as _, BorrowedFd};

use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, MapType};

use crate::error::KernelError;
use crate::support::{hook, is_registered, leave_out, maps, open, register};

/// The compiled program.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/preset.o"));
/// Name of the map with the windows to be set.
const MAP: &str = "window_presets";

/// A variant of a kernel congestion control whose window can be set. It is registered while this value lives.
///
/// Linux does not let applications set a connection's congestion window. A connection with this control behaves like
/// the original control, but takes the window that [`set`](Self::set) stored when it next sends with no data in flight.
/// A flow pair needs this at the beginning of a probing period (Tobe 1999, Sec. 4).
#[derive(Debug)]
pub struct PresetWindow {
    name: &'static str,
    /// There may be several maps if another process has also registered the control: a connection may belong to any of
    /// them.
    windows: Vec<MapHandle>,
    /// The registration; `None` if another process has registered the control.
    _link: Option<Link>,
}

impl PresetWindow {
    /// Registers a variant of `control`, `reno` or `cubic`, for all network namespaces; returns `None` for any other
    /// name. If another process has already registered the variant, this registration is used.
    ///
    /// # Errors
    /// [`KernelError`] if the kernel lacks support, or a privilege is missing.
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

    /// The name for `setsockopt(TCP_CONGESTION)`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Sets the window of `connection` to `segments`, for the next time that it sends with no data in flight; 0 removes
    /// a window that was not used yet.
    ///
    /// # Errors
    /// [`KernelError::Refused`] if it is not a socket, [`KernelError::Rights`].
    pub fn set(&self, connection: BorrowedFd<'_>, segments: u32) -> Result<(), KernelError> {
        let key = connection.as_raw_fd().to_ne_bytes();
        let set = |map: &MapHandle| map.update(&key, &segments.to_ne_bytes(), MapFlags::ANY);
        self.windows.iter().try_for_each(set).map_err(KernelError::of("set a connection's window"))
    }
}

/// Registers the variant; returns `None` if another process registered it first.
fn load(name: &str, other: &str) -> Result<Option<Link>, KernelError> {
    let mut open = open(PROGRAM)?;
    leave_out(&mut open, other)?;
    let mut object = open.load().map_err(KernelError::of("load the congestion control"))?;
    register(&mut object, name)
}
