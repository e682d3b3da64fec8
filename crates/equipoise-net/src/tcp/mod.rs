//! Kernel TCP connections between the hosts of a test bed.
//!
//! ```text
//!   near thread ── socket ══ emulator ══ socket ── far thread
//!        │                                             │
//!        └── the kernel's connection state (sock_diag) └── number of bytes received
//! ```
//!
//! The kernel runs TCP. This module is the sending and the receiving application. It reads the state of the connection
//! at regular intervals.

pub(crate) mod diagnosis;
mod far;
mod hosts;
mod listen;
mod near;
mod plan;
mod socket;
mod state;
mod web;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::thread::Worker;
use crate::{Clock, NetError, TestBed, Time};
use diagnosis::Diagnosis;
use far::Far;
use near::{Near, NearEnd};
use socket::near_socket;

pub use hosts::TcpHosts;
pub(crate) use listen::{ReceiveWindow, accept, listen};
pub use plan::{TcpPlan, TcpSupply};
pub(crate) use socket::{check_congestion_control, failed, is_gone, set_congestion_control, set_packet_size};
pub use state::TcpState;
pub use web::{WebEnds, WebFetched, WebLook, WebPlan};

/// The two endpoints of a connection, before the connection is opened.
#[derive(Debug)]
pub struct TcpEnds {
    near: NearEnd,
    listener: TcpListener,
    window: ReceiveWindow,
    sender: SocketAddr,
}

/// The sending and the receiving application of a TCP connection or of web traffic. Dropping this value ends both.
#[derive(Debug)]
pub struct RunningTcp {
    near: Worker<Result<(), NetError>>,
    far: Worker<Result<(), NetError>>,
}

impl TcpEnds {
    /// Opens sockets on free ports of both hosts.
    ///
    /// # Errors
    /// [`NetError::NoCongestionControl`] if the kernel does not have the requested congestion control, or does not
    /// permit its use, [`NetError::Tcp`] if another system call fails, and the errors of [`TestBed::inside`].
    pub fn open(bed: &TestBed, hosts: &TcpHosts) -> Result<Self, NetError> {
        let listener = listen(bed, hosts.sender.peer(), 0, hosts.window())?;
        let receiver = listener.local_addr().map_err(failed("listen"))?;
        let (socket, sender, diagnosis) = bed.inside(hosts.sender.place(), || {
            let (socket, sender) = near_socket(hosts)?;
            Ok((socket, sender, Diagnosis::open(sender, receiver)?))
        })?;
        let segment = hosts.segment().as_bytes();
        Ok(Self { near: NearEnd { socket, diagnosis, receiver, segment }, listener, window: hosts.window(), sender })
    }

    /// The address of the sender.
    pub const fn sender(&self) -> SocketAddr {
        self.sender
    }

    /// The address of the receiver.
    pub const fn receiver(&self) -> SocketAddr {
        self.near.receiver
    }

    /// Runs a plan on separate threads. `observe` is called with each sample of the connection's state.
    ///
    /// # Errors
    /// [`NetError::Spawn`] if a thread cannot be started.
    pub fn run(
        self,
        clock: &Clock,
        plan: TcpPlan,
        observe: impl FnMut(Time, &TcpState) + Send + 'static,
    ) -> Result<RunningTcp, NetError> {
        let Self { near, listener, window, .. } = self;
        let delivered = Arc::new(AtomicU64::new(0));
        let far = Far { clock: clock.clone(), listener, window, delivered: delivered.clone() };
        let far = Worker::spawn("tcp far", move |stop| far.run(stop))?;
        let near = Near::new(clock.clone(), near, plan, delivered, observe);
        let near = Worker::spawn("tcp near", move |stop| near.run(stop))?;
        Ok(RunningTcp { near, far })
    }
}

impl RunningTcp {
    /// Whether the sending or the receiving application has failed. Without a failure, both applications run until
    /// [`stop`](Self::stop), because the state of the connection is sampled even after the last data.
    pub fn is_finished(&self) -> bool {
        self.near.is_finished() || self.far.is_finished()
    }

    /// Takes the samples that are due, and ends both applications.
    ///
    /// # Errors
    /// The error that ended an application early, if any.
    pub fn stop(self) -> Result<(), NetError> {
        self.near.request_stop();
        self.near.join()??;
        self.far.request_stop();
        self.far.join()?
    }
}
