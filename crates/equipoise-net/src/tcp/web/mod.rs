//! Web traffic over kernel TCP: flows are alternately ON and OFF, and open one connection for each fetch (RFC 8868,
//! Sec. 5.1).
//!
//! One thread opens all connections, and another thread accepts them. As in the simulator's `web`, the sending host has
//! the data and opens the connections. A fetch begins when its connection is opened. It is complete when its last data
//! has been read. Then the receiver closes the connection, so that the sender detects that the fetch is complete.

mod far;
mod near;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use equipoise::units::{Size, Span};
use equipoise_path::source::{Web, WebConfig};

use super::socket::{check_congestion_control, failed};
use super::{RunningTcp, TcpHosts, TcpState, listen};
use crate::testbed::Namespace;
use crate::thread::Worker;
use crate::{Clock, HostClock, NetError, TestBed, Time};
use far::Far;
use near::Near;

/// The two endpoints of web traffic, before any connection is opened.
#[derive(Debug)]
pub struct WebEnds {
    namespace: Namespace,
    hosts: TcpHosts,
    listener: TcpListener,
    receiver: SocketAddr,
}

/// The configuration of web traffic, and how often its state is sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WebPlan {
    /// The flows, sizes and times of the fetches.
    pub web: WebConfig,
    /// Seed of the random numbers for the fetches.
    pub seed: u64,
    /// When the web traffic begins.
    pub start: Time,
    /// No flow turns ON at or after this time; `None` for no end.
    pub stop: Option<Time>,
    /// Time between two samples; less than 1 ms counts as 1 ms.
    pub sample_interval: Span,
    /// When the first sample interval begins. The first sample is taken at the end of this interval.
    pub origin: Time,
}

/// A sample of the state of web traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WebLook<'a> {
    /// The state of all connections together. Counters and the minimum round-trip time are over all connections that
    /// were opened so far. Windows and data in flight are sums over the open connections. The slow start threshold, the
    /// smoothed round-trip time and the finish time are `None`.
    pub tcp: &'a TcpState,
    /// Number of fetches that have begun so far.
    pub begun: u64,
    /// Total time that flows were ON so far, as the sum over all flows.
    pub time_on: Span,
    /// The fetches that were completed since the previous sample.
    pub fetched: &'a [WebFetched],
}

/// A fetch that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebFetched {
    /// When the fetch's connection was opened.
    pub opened: Time,
    /// When the last data of the fetch was read.
    pub completed: Time,
    /// The size of the fetched data.
    pub size: Size,
}

impl WebEnds {
    /// Opens a listening socket on a free port of the receiver.
    ///
    /// # Errors
    /// The errors of [`TcpEnds::open`](super::TcpEnds::open).
    pub fn open(bed: &TestBed, hosts: TcpHosts) -> Result<Self, NetError> {
        bed.inside(hosts.sender.place(), || check_congestion_control(&hosts.congestion_control))?;
        let listener = listen(bed, hosts.sender.peer(), 0, hosts.window())?;
        let receiver = listener.local_addr().map_err(failed("listen"))?;
        Ok(Self { namespace: bed.namespace(hosts.sender.place())?, hosts, listener, receiver })
    }

    /// The sender's address with port 0, because each connection has its own port.
    pub const fn sender(&self) -> SocketAddr {
        SocketAddr::new(self.hosts.sender.address(), 0)
    }

    /// The address of the receiver.
    pub const fn receiver(&self) -> SocketAddr {
        self.receiver
    }

    /// Runs web traffic on separate threads. `observe` is called with each sample.
    ///
    /// # Errors
    /// [`NetError::Web`] if the settings are invalid, and [`NetError::Spawn`] if a thread cannot be started.
    pub fn run(
        self,
        clock: &Clock,
        plan: WebPlan,
        observe: impl FnMut(Time, &WebLook<'_>) + Send + 'static,
    ) -> Result<RunningTcp, NetError> {
        let Self { namespace, hosts, listener, receiver } = self;
        let web = Web::<HostClock>::new(plan.web, plan.start, plan.seed)?;
        let shared = Shared::default();
        let far = Far::new(clock.clone(), listener, hosts.window(), shared.clone());
        let far = Worker::spawn("web far", move |stop| far.run(stop))?;
        let near = Near::new(clock.clone(), (hosts, receiver), (web, plan), shared, observe);
        let near = Worker::spawn("web near", move |stop| namespace.inside(|| near.run(stop)))?;
        Ok(RunningTcp { near, far })
    }
}

/// State that the threads of the sender and of the receiver share.
#[derive(Clone, Debug, Default)]
struct Shared {
    /// Number of bytes that the receiver has read.
    delivered: Arc<AtomicU64>,
    ledger: Arc<Mutex<Ledger>>,
}

#[derive(Debug, Default)]
struct Ledger {
    /// The fetches in progress, by the sender's port of their connection.
    open: BTreeMap<u16, Request>,
    /// The fetches that were completed since the previous sample.
    fetched: Vec<WebFetched>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    opened: Time,
    size: Size,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Ledger> {
        // Each change of the ledger is one step. Therefore the ledger is consistent even if a thread panicked.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
