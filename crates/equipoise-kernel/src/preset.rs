use std::os::fd::{AsRawFd as _, BorrowedFd};

use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, MapType};

use crate::error::KernelError;
use crate::support::{hook, is_registered, leave_out, maps, open, register};

/// The compiled program.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/preset.o"));
/// Name of the map that has the windows to be set.
const MAP: &str = "window_presets";

/// A congestion control of this kernel with a window that can be set, registered for as long as this lives.
///
/// Linux lets no application write a connection's congestion window. A connection under this control has the law that it
/// is named after, and takes the window that [`set`](Self::set) leaves for it when it next sends with nothing under way.
/// That is what a flow pair asks for at the beginning of a probing period (Tobe 1999, Sec. 4).
#[derive(Debug)]
pub struct PresetWindow {
    name: &'static str,
    /// Not our own alone, where another process has registered it: connections may be of either.
    windows: Vec<MapHandle>,
    /// `None` where another process holds it.
    _link: Option<Link>,
}

impl PresetWindow {
    /// Registers the law of `control`, `reno` or `cubic`, for all network namespaces; `None` for any other law. One that
    /// another process has registered already is used with it.
    ///
    /// # Errors
    /// [`KernelError`]: what the kernel lacks, and a missing right.
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

    /// The name by which a connection asks for it, `setsockopt(TCP_CONGESTION)`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Sets the window of `connection` to `segments`, for the next time that it sends with nothing under way; 0 takes a
    /// window back that was not used yet.
    ///
    /// # Errors
    /// [`KernelError::Refused`] for what is no socket, [`KernelError::Rights`].
    pub fn set(&self, connection: BorrowedFd<'_>, segments: u32) -> Result<(), KernelError> {
        let key = connection.as_raw_fd().to_ne_bytes();
        let set = |map: &MapHandle| map.update(&key, &segments.to_ne_bytes(), MapFlags::ANY);
        self.windows.iter().try_for_each(set).map_err(KernelError::of("set a connection's window"))
    }
}

/// `None` where somebody was quicker.
fn load(name: &str, other: &str) -> Result<Option<Link>, KernelError> {
    let mut open = open(PROGRAM)?;
    leave_out(&mut open, other)?;
    let mut object = open.load().map_err(KernelError::of("load the congestion control"))?;
    register(&mut object, name)
}
