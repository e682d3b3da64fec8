//! Kernel TCP connections between the hosts of a test bed.
//!
//! ```text
//!   near thread ── socket ══ emulator ══ socket ── far thread
//!        │                                             │
//!        └── the kernel's account (sock_diag)          └── bytes that came
//! ```
//!
//! The kernel runs TCP. This module is an application at each end, and reads the state of the connection at intervals.

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

/// Both ends of a connection before the connection is opened.
#[derive(Debug)]
pub struct TcpEnds {
    near: NearEnd,
    listener: TcpListener,
    window: ReceiveWindow,
    sender: SocketAddr,
}

/// A connection with an application at each end. It ends, at the latest, when it is dropped.
#[derive(Debug)]
pub struct RunningTcp {
    near: Worker<Result<(), NetError>>,
    far: Worker<Result<(), NetError>>,
}

impl TcpEnds {
    /// Sockets on free ports of both hosts.
    ///
    /// # Errors
    /// [`NetError::NoCongestionControl`] if the kernel has none of this name, [`NetError::Tcp`] if another system call
    /// fails, and the errors of [`TestBed::inside`].
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

    /// The sender's address.
    pub const fn sender(&self) -> SocketAddr {
        self.sender
    }

    /// The receiver's address.
    pub const fn receiver(&self) -> SocketAddr {
        self.near.receiver
    }

    /// Runs a plan on a separate thread; `observe` is called with each state of the connection.
    ///
    /// # Errors
    /// [`NetError::Spawn`] if no thread can be started.
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
    /// Whether it failed: after the last data the application still reads the state, so it does not finish by itself.
    pub fn is_finished(&self) -> bool {
        self.near.is_finished() || self.far.is_finished()
    }

    /// Ends the connection, after a last sample if a sample is due.
    ///
    /// # Errors
    /// The error that ended it early, if any.
    pub fn stop(self) -> Result<(), NetError> {
        self.near.request_stop();
        self.near.join()??;
        self.far.request_stop();
        self.far.join()?
    }
}
