use std::collections::BTreeMap;
use std::ffi::c_int;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use super::handle::Handle;
use crate::error::{Fault, eq_error};
use crate::signal::locked;

/// All open handles of flow pairs, by number.
static TABLE: Mutex<BTreeMap<c_int, Arc<Handle>>> = Mutex::new(BTreeMap::new());

/// Opens a handle and returns its number: the lowest number that is not in use, as for file descriptors.
pub(super) fn open(local: Option<SocketAddr>) -> Result<c_int, Fault> {
    let handle = Arc::new(Handle::new(local)?);
    let mut table = locked(&TABLE);
    let free = (0..).zip(table.keys()).find(|(free, taken)| free != *taken);
    let number = free.map_or(table.len() as c_int, |(free, _)| free);
    table.insert(number, handle);
    Ok(number)
}

/// Returns the open handle with this number.
pub(super) fn get(number: c_int) -> Result<Arc<Handle>, Fault> {
    locked(&TABLE).get(&number).cloned().ok_or_else(|| unknown(number))
}

/// Removes the handle with this number and returns it. The number may be used again for a new handle.
pub(super) fn remove(number: c_int) -> Result<Arc<Handle>, Fault> {
    locked(&TABLE).remove(&number).ok_or_else(|| unknown(number))
}

fn unknown(number: c_int) -> Fault {
    Fault::new(eq_error::EQ_E_HANDLE, format!("{number} is no handle of a flow pair, or it was closed"))
}
