//! Queries which features the running kernel has, and loads BPF programs into it.

use std::fs;
use std::path::Path;

use libbpf_rs::btf::types::{FuncProto, Ptr, Struct};
use libbpf_rs::btf::{Btf, BtfType};
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{ErrorKind, Link, MapCore, MapHandle, MapType, Object, ObjectBuilder, OpenObject, ReferencesType as _};

use crate::error::KernelError;

/// File with the running kernel's type information (BTF).
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// File with the names of the available congestion controls, for all network namespaces.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// The parameters with which the kernel calls `cong_control` of a congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    /// Four parameters: socket, acknowledgement, flags and rate sample. For Linux 6.10 and newer.
    Four,
    /// `cong_control` has two parameters: socket and rate sample. For Linux before 6.10.
    Two,
}

/// Returns the parameters with which the running kernel calls `cong_control`.
pub(crate) fn hook() -> Result<Hook, KernelError> {
    fs::metadata(BTF).map_err(|source| KernelError::NoBtf { source })?;
    let btf = Btf::from_vmlinux().map_err(KernelError::of("read the kernel's types"))?;
    let missing = |missing| KernelError::NoStructOps { missing };
    // `bpf_struct_ops_tcp_congestion_ops` exists if the kernel supports congestion controls in BPF.
    // `bpf_struct_ops_link` exists if the kernel supports links, which keep a congestion control registered.
    if btf.type_by_name::<Struct<'_>>("bpf_struct_ops_tcp_congestion_ops").is_none() {
        return Err(missing("bpf_struct_ops_tcp_congestion_ops"));
    }
    if btf.type_by_name::<Struct<'_>>("bpf_struct_ops_link").is_none() {
        return Err(missing("bpf_struct_ops_link"));
    }
    let operations = btf.type_by_name::<Struct<'_>>("tcp_congestion_ops").ok_or(missing("tcp_congestion_ops"))?;
    let control = operations.iter().find(|member| member.name.is_some_and(|name| name == "cong_control"));
    let control = control.ok_or(missing("tcp_congestion_ops::cong_control"))?;
    let pointer = btf.type_by_id::<BtfType<'_>>(control.ty).map(|found| found.skip_mods_and_typedefs());
    let pointer = pointer.and_then(|found| Ptr::try_from(found).ok());
    let function = pointer.and_then(|pointer| FuncProto::try_from(pointer.referenced_type()).ok());
    match function.ok_or(missing("tcp_congestion_ops::cong_control"))?.len() {
        4 => Ok(Hook::Four),
        2 => Ok(Hook::Two),
        parameters => Err(KernelError::Hook { parameters }),
    }
}

/// Whether a congestion control of this name is registered.
pub(crate) fn is_registered(control: &str) -> bool {
    fs::read_to_string(AVAILABLE).is_ok_and(|names| names.split_whitespace().any(|name| name == control))
}

/// Opens a compiled BPF program, without loading it into the kernel.
pub(crate) fn open(program: &[u8]) -> Result<OpenObject, KernelError> {
    // Without this call, libbpf would print messages that `KernelError` already contains.
    libbpf_rs::set_print(None);
    ObjectBuilder::default().open_memory(program).map_err(KernelError::of("open the compiled program"))
}

/// Excludes the congestion control `control` from the parts of a BPF program that will be loaded. Functions that only
/// `control` uses are excluded, too.
pub(crate) fn leave_out(open: &mut OpenObject, control: &str) -> Result<(), KernelError> {
    let mut its = open.maps_mut().filter(|map| map.name() == control);
    its.try_for_each(|mut map| map.set_autocreate(false).map_err(KernelError::of("choose the congestion control")))
}

/// Registers the congestion control `control` of a loaded object. Returns `None` if a congestion control with this name
/// is already registered.
pub(crate) fn register(object: &mut Object, control: &str) -> Result<Option<Link>, KernelError> {
    let map = object.maps_mut().find(|map| MapCore::name(map) == control);
    match map.ok_or(KernelError::Version)?.attach_struct_ops() {
        Ok(link) => Ok(Some(link)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(KernelError::of("register the congestion control")(error)),
    }
}

/// Returns all BPF maps with this name and type: the map of the loaded program, and maps of programs that were loaded
/// earlier and that connections still use.
pub(crate) fn maps(kind: MapType, name: &str) -> Result<Vec<MapHandle>, KernelError> {
    let failed = KernelError::of("look at the loaded program");
    // Check the privilege first. Map 0 never exists, so the call always fails; without the privilege the error is
    // `PermissionDenied`.
    if let Err(error) = MapHandle::from_map_id(0)
        && error.kind() == ErrorKind::PermissionDenied
    {
        return Err(failed(error));
    }
    let ours = MapInfoIter::default().filter(|map| map.ty == kind && map.name == name);
    let opened = ours.map(|map| MapHandle::from_map_id(map.id));
    // Ignore a map that was removed after `MapInfoIter` had found it.
    opened
        .filter(|map| !matches!(map, Err(error) if error.kind() == ErrorKind::NotFound))
        .collect::<Result<_, _>>()
        .map_err(failed)
}

/// Whether a BPF file system is mounted at `place`.
pub(crate) fn is_bpf_file_system(place: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|line| {
        let mut words = line.split(' ').skip(1);
        words.next().is_some_and(|at| Path::new(at) == place) && words.next() == Some("bpf")
    })
}
