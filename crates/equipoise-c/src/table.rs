use std::collections::BTreeMap;
use std::ffi::c_int;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use equipoise_net::flow_pair::{PairConfig, PairListener, PairReceiver, PairSender};

use crate::error::Error;

/// Every open handle by its number.
static TABLE: Mutex<BTreeMap<c_int, Arc<Mutex<Handle>>>> = Mutex::new(BTreeMap::new());

/// What a handle stands for.
pub(crate) struct Handle {
    local: Option<SocketAddr>,
    role: Role,
    /// A unit that did not fit into the reader's buffer.
    unread: Option<Vec<u8>>,
}

enum Role {
    /// Not known yet, or none could be had.
    None,
    Sender(PairSender),
    Listener(PairListener),
    Receiver(PairReceiver),
}

/// What a panic left behind is still whole: whatever changes does so at once.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A new handle: the lowest number that is free, as with descriptors.
pub(crate) fn open(local: Option<SocketAddr>) -> Result<c_int, Error> {
    let listener = local.map(PairListener::bind).transpose()?;
    let local = listener.as_ref().map(PairListener::local_address);
    let role = listener.map_or(Role::None, Role::Listener);
    let mut table = locked(&TABLE);
    let free = (0..).zip(table.keys()).find(|(free, taken)| free != *taken);
    let number = free.map_or(table.len() as c_int, |(free, _)| free);
    table.insert(number, Arc::new(Mutex::new(Handle { local, role, unread: None })));
    Ok(number)
}

/// Does something with a handle; others go on meanwhile.
pub(crate) fn with<T>(number: c_int, body: impl FnOnce(&mut Handle) -> Result<T, Error>) -> Result<T, Error> {
    let handle = locked(&TABLE).get(&number).cloned().ok_or(Error::Handle)?;
    let mut handle = locked(&handle);
    body(&mut handle)
}

/// Closes a handle.
pub(crate) fn close(number: c_int) -> Result<(), Error> {
    let handle = locked(&TABLE).remove(&number).ok_or(Error::Handle)?;
    let role = std::mem::replace(&mut locked(&handle).role, Role::None);
    match role {
        Role::Sender(sender) => match sender.close()? {
            state if state.ended_by_peer => Err(Error::Over),
            _ => Ok(()),
        },
        Role::Receiver(receiver) => Ok(receiver.close()?),
        Role::Listener(listener) => Ok(listener.close()?),
        Role::None => Ok(()),
    }
}

impl Handle {
    /// Becomes a sender.
    pub(crate) fn connect(&mut self, remote: SocketAddr) -> Result<(), Error> {
        match std::mem::replace(&mut self.role, Role::None) {
            Role::None => {}
            // Its port is wanted.
            Role::Listener(listener) => listener.close()?,
            role @ (Role::Sender(_) | Role::Receiver(_)) => {
                self.role = role;
                return Err(Error::State);
            }
        }
        let config = PairConfig { local: self.local, ..PairConfig::default() };
        self.role = Role::Sender(PairSender::connect(remote, &config)?);
        Ok(())
    }

    /// Sends bytes of a unit.
    pub(crate) fn send(&mut self, data: &[u8], end: bool) -> Result<(), Error> {
        let Role::Sender(sender) = &mut self.role else { return Err(Error::State) };
        Ok(if end { sender.send(data) } else { sender.send_part(data) }?)
    }

    /// The next unit, of `most` bytes at most.
    pub(crate) fn recv(&mut self, most: usize) -> Result<Vec<u8>, Error> {
        let data = match self.unread.take() {
            Some(data) => data,
            None => self.receiver()?.recv().ok_or(Error::Over)?.data,
        };
        if data.len() > most {
            self.unread = Some(data);
            return Err(Error::Buffer);
        }
        Ok(data)
    }

    /// The flow that arrived first.
    fn receiver(&mut self) -> Result<&mut PairReceiver, Error> {
        if let Role::Listener(listener) = &mut self.role {
            self.role = Role::Receiver(listener.accept().ok_or(Error::System)?);
        }
        match &mut self.role {
            Role::Receiver(receiver) => Ok(receiver),
            Role::None | Role::Sender(_) | Role::Listener(_) => Err(Error::State),
        }
    }
}
