use std::io::IoSliceMut;

use nix::sys::socket::{MultiHeaders, SockaddrStorage};

use crate::datagram::{MAX_PAYLOAD, Received};
use crate::socket::control_buffer;

/// Datagrams read with one system call.
#[derive(Debug)]
pub(crate) struct Batch {
    buffers: Vec<Vec<u8>>,
    pub(crate) received: Vec<Received>,
}

impl Batch {
    /// Maximum number of datagrams in a batch. Our choice: a system call costs as much as handling one datagram, so it
    /// adds about 3% to a full batch.
    pub(crate) const MOST: usize = 32;

    pub(crate) fn new() -> Self {
        Self { buffers: vec![vec![0; MAX_PAYLOAD]; Self::MOST], received: Vec::with_capacity(Self::MOST) }
    }

    /// The datagrams that can be answered, in the order of arrival.
    pub(crate) fn datagrams(&self) -> impl Iterator<Item = (Received, &[u8])> {
        let all = self.received.iter().zip(&self.buffers);
        let answerable = all.filter(|(received, _)| received.from.port() != 0);
        answerable.map(|(received, buffer)| (*received, &buffer[..received.len]))
    }

    /// A buffer for each datagram.
    pub(crate) fn slices(&mut self) -> Vec<[IoSliceMut<'_>; 1]> {
        self.buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect()
    }

    /// A header for each datagram. Headers must not be reused: the kernel shortens the lengths in them.
    pub(crate) fn headers() -> MultiHeaders<SockaddrStorage> {
        MultiHeaders::preallocate(Self::MOST, Some(control_buffer()))
    }
}
