use std::io::{ErrorKind, Read as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nix::poll::{PollFd, PollFlags};

use super::listen::{ReceiveWindow, accept};
use super::socket::failed;
use crate::socket::wait_readable;
use crate::thread::STOP_CHECK;
use crate::{Clock, NetError};

/// Maximum number of bytes per read. Our choice: about 2 ms of data at 1 Gbit/s.
const READ: usize = 256 << 10;

/// The receiving application of a TCP connection: it reads the data and counts the bytes.
pub(super) struct Far {
    pub(super) clock: Clock,
    pub(super) listener: TcpListener,
    pub(super) window: ReceiveWindow,
    pub(super) delivered: Arc<AtomicU64>,
}

impl Far {
    /// Accepts one connection, and reads from it until `stop` is set.
    pub(super) fn run(self, stop: &AtomicBool) -> Result<(), NetError> {
        let mut stream: Option<TcpStream> = None;
        let mut buffer = vec![0; READ];
        let mut ended = false;
        while !stop.load(Ordering::Relaxed) {
            match &mut stream {
                None => stream = accept(&self.listener)?,
                Some(stream) if !ended => ended = self.read(stream, &mut buffer)?,
                Some(_) => {}
            }
            let until = self.clock.now() + STOP_CHECK;
            match &stream {
                // The connection has ended, so no more data will arrive.
                Some(_) if ended => self.clock.sleep_until(until),
                Some(stream) => self.wait(stream, until)?,
                None => self.wait(&self.listener, until)?,
            }
        }
        Ok(())
    }

    /// Reads the waiting data. Returns whether the connection has ended.
    fn read(&self, stream: &mut TcpStream, buffer: &mut [u8]) -> Result<bool, NetError> {
        match stream.read(buffer) {
            Ok(0) => Ok(true),
            Ok(length) => {
                self.window.hold(stream);
                self.delivered.fetch_add(length as u64, Ordering::Relaxed);
                Ok(false)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
            // The sender has closed or lost the connection.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(true),
            Err(source) => Err(failed("receive from")(source)),
        }
    }

    fn wait(&self, socket: &impl AsFd, until: crate::Time) -> Result<(), NetError> {
        wait_readable(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], &self.clock, until)
    }
}
