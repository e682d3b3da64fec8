use std::io::{ErrorKind, Read as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::poll::{PollFd, PollFlags};

use super::{Request, Shared, WebFetched};
use crate::socket::wait_readable;
use crate::tcp::listen::{ReceiveWindow, accept};
use crate::tcp::socket::failed;
use crate::thread::STOP_CHECK;
use crate::{Clock, NetError};

/// Maximum number of bytes per read. Our choice: more than the size of most fetches.
const READ: usize = 64 << 10;

/// The receiving application of web traffic: it reads the data of all connections, and closes a connection when its
/// fetch is complete.
pub(super) struct Far {
    clock: Clock,
    listener: TcpListener,
    window: ReceiveWindow,
    shared: Shared,
    open: Vec<Fetching>,
}

struct Fetching {
    stream: TcpStream,
    request: Request,
    read: u64,
}

/// The state of a connection after a read.
enum Became {
    Open,
    Complete,
    /// The sender has closed or lost the connection.
    Gone,
}

impl Far {
    pub(super) fn new(clock: Clock, listener: TcpListener, window: ReceiveWindow, shared: Shared) -> Self {
        Self { clock, listener, window, shared, open: Vec::new() }
    }

    /// Accepts connections, and reads from them until `stop` is set.
    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<(), NetError> {
        let mut buffer = vec![0; READ];
        while !stop.load(Ordering::Relaxed) {
            while let Some(stream) = accept(&self.listener)? {
                self.take(stream);
            }
            self.read_all(&mut buffer)?;
            self.wait()?;
        }
        Ok(())
    }

    /// Accepts a connection that the sender has opened for a fetch. Other connections are closed.
    fn take(&mut self, stream: TcpStream) {
        let port = stream.peer_addr().map(|peer| peer.port());
        let request = port.ok().and_then(|port| self.shared.lock().open.get(&port).copied());
        if let Some(request) = request {
            self.open.push(Fetching { stream, request, read: 0 });
        }
    }

    fn read_all(&mut self, buffer: &mut [u8]) -> Result<(), NetError> {
        let mut place = 0;
        while let Some(fetching) = self.open.get_mut(place) {
            let before = fetching.read;
            let became = fetching.read(buffer, self.window)?;
            self.shared.delivered.fetch_add(fetching.read - before, Ordering::Relaxed);
            match became {
                Became::Open => place += 1,
                Became::Gone => drop(self.open.swap_remove(place)),
                Became::Complete => {
                    let Request { opened, size } = self.open.swap_remove(place).request;
                    let completed = self.clock.now();
                    self.shared.lock().fetched.push(WebFetched { opened, completed, size });
                }
            }
        }
        Ok(())
    }

    fn wait(&self) -> Result<(), NetError> {
        let until = self.clock.now() + STOP_CHECK;
        let listener = PollFd::new(self.listener.as_fd(), PollFlags::POLLIN);
        let streams = self.open.iter().map(|fetching| PollFd::new(fetching.stream.as_fd(), PollFlags::POLLIN));
        let mut waiting: Vec<_> = std::iter::once(listener).chain(streams).collect();
        wait_readable(&mut waiting, &self.clock, until)
    }
}

impl Fetching {
    /// Reads the data that is waiting on a connection.
    fn read(&mut self, buffer: &mut [u8], window: ReceiveWindow) -> Result<Became, NetError> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return Ok(Became::Gone),
                Ok(length) => {
                    window.hold(&self.stream);
                    self.read += length as u64;
                    if self.read >= self.request.size.as_bytes() {
                        return Ok(Became::Complete);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Became::Open),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(Became::Gone),
                Err(source) => return Err(failed("receive from")(source)),
            }
        }
    }
}
