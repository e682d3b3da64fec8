//! Web traffic over the kernel's TCP: a connection for each fetch, by on/off flows (RFC 8868, Sec. 5.1).
//!
//! One thread opens all connections and one takes them, as `web` of the simulator does: the sending host has the data and opens the
//! connection. A fetch begins when its connection is opened, and is complete when its last data were read; the reader then closes the
//! connection, which is how the sender knows.

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

/// Both ends of web traffic of which nothing is opened yet.
#[derive(Debug)]
pub struct WebEnds {
    namespace: Namespace,
    hosts: TcpHosts,
    listener: TcpListener,
    receiver: SocketAddr,
}

/// What is fetched, and how often one looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WebPlan {
    /// Who fetches how much, and when.
    pub web: WebConfig,
    /// Of its random numbers.
    pub seed: u64,
    /// When it begins.
    pub start: Time,
    /// From when on no burst begins; `None` to go on.
    pub stop: Option<Time>,
    /// The first look is this long after [`origin`](Self::origin); above zero.
    pub sample_interval: Span,
    /// Whence looks are counted.
    pub origin: Time,
}

/// Web traffic at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WebLook<'a> {
    /// All its connections together: counters are sums over all that were opened, windows and what is in flight over those that are
    /// open. Of round trips there is the least.
    pub tcp: &'a TcpState,
    /// Fetches that were begun so far.
    pub begun: u64,
    /// Time that all its on/off flows together were ON so far.
    pub time_on: Span,
    /// The fetches that were completed since the last look.
    pub fetched: &'a [WebFetched],
}

/// A fetch that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebFetched {
    /// When its connection was opened.
    pub opened: Time,
    /// When its last data were read.
    pub completed: Time,
    /// Its data.
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

    /// The sender's address, without a port: each connection has its own.
    pub const fn sender(&self) -> SocketAddr {
        SocketAddr::new(self.hosts.sender.address(), 0)
    }

    /// The receiver's address.
    pub const fn receiver(&self) -> SocketAddr {
        self.receiver
    }

    /// Carries a plan out; `observe` is told what there was to see, on a thread of the traffic's own.
    ///
    /// # Errors
    /// [`NetError::Web`] for traffic that cannot be, and [`NetError::Spawn`] where the system has no threads to give.
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

/// What both ends know.
#[derive(Clone, Debug, Default)]
struct Shared {
    /// Bytes that were read.
    delivered: Arc<AtomicU64>,
    ledger: Arc<Mutex<Ledger>>,
}

#[derive(Debug, Default)]
struct Ledger {
    /// The fetches that are open, by the port that the sender has for them: as many as there are connections.
    open: BTreeMap<u16, Request>,
    /// The fetches that were completed since the last look.
    fetched: Vec<WebFetched>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    opened: Time,
    size: Size,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Ledger> {
        // The ledger is whole between any two of its changes.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
