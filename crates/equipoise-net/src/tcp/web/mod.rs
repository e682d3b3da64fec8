//! Web traffic over kernel TCP: one connection for each fetch, started by on/off flows (RFC 8868, Sec. 5.1).
//!
//! One thread opens all connections and another accepts them. As in the simulator's `web`, the sending host has the
//! data and opens the connection. A fetch begins when its connection is opened, and is complete when its last data has
//! been read. The reader then closes the connection, which tells the sender that the fetch is complete.

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

/// Both ends of web traffic before any connection is opened.
#[derive(Debug)]
pub struct WebEnds {
    namespace: Namespace,
    hosts: TcpHosts,
    listener: TcpListener,
    receiver: SocketAddr,
}

/// The traffic, and how often its state is sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WebPlan {
    /// The flows, sizes and times of the fetches.
    pub web: WebConfig,
    /// Seed of its random numbers.
    pub seed: u64,
    /// When it begins.
    pub start: Time,
    /// No burst begins at or after this time; `None` for no end.
    pub stop: Option<Time>,
    /// Time between samples, and from [`origin`](Self::origin) to the first; above zero.
    pub sample_interval: Span,
    /// The time from which samples are counted.
    pub origin: Time,
}

/// State of web traffic at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WebLook<'a> {
    /// All its connections together. Counters are sums over all connections opened so far; windows and data in flight
    /// are sums over the open connections. The round-trip time is the minimum.
    pub tcp: &'a TcpState,
    /// Fetches begun so far.
    pub begun: u64,
    /// Total time that its on/off flows were ON so far.
    pub time_on: Span,
    /// Fetches completed since the last sample.
    pub fetched: &'a [WebFetched],
}

/// A completed fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebFetched {
    /// When its connection was opened.
    pub opened: Time,
    /// When its last data was read.
    pub completed: Time,
    /// Its amount of data.
    pub size: Size,
}

impl WebEnds {
    /// A socket that listens on a free port.
    ///
    /// # Errors
    /// As [`TcpEnds::open`](super::TcpEnds::open).
    pub fn open(bed: &TestBed, hosts: TcpHosts) -> Result<Self, NetError> {
        bed.inside(hosts.sender.place(), || check_congestion_control(&hosts.congestion_control))?;
        let listener = listen(bed, hosts.sender.peer(), 0, hosts.window())?;
        let receiver = listener.local_addr().map_err(failed("listen"))?;
        Ok(Self { namespace: bed.namespace(hosts.sender.place())?, hosts, listener, receiver })
    }

    /// The sender's address, without a port: each connection has its own port.
    pub const fn sender(&self) -> SocketAddr {
        SocketAddr::new(self.hosts.sender.address(), 0)
    }

    /// The receiver's address.
    pub const fn receiver(&self) -> SocketAddr {
        self.receiver
    }

    /// Runs a plan on a separate thread; `observe` is called with each sample.
    ///
    /// # Errors
    /// [`NetError::Web`] for invalid settings, and [`NetError::Spawn`] if no thread can be started.
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

/// State shared by both ends.
#[derive(Clone, Debug, Default)]
struct Shared {
    /// Bytes read.
    delivered: Arc<AtomicU64>,
    ledger: Arc<Mutex<Ledger>>,
}

#[derive(Debug, Default)]
struct Ledger {
    /// The open fetches by the sender's port; at most one for each connection.
    open: BTreeMap<u16, Request>,
    /// Fetches completed since the last sample.
    fetched: Vec<WebFetched>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    opened: Time,
    size: Size,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Ledger> {
        // The ledger is consistent even if a thread panicked: each change is one step.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
