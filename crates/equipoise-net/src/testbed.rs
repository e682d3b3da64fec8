use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use nix::sched::{CloneFlags, setns};

use crate::{Clock, NetError, Socket};

/// A place of the test bed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The host that sends.
    Near,
    /// The middle, on the side of the host that sends.
    Entrance,
    /// The middle, on the side of the host that receives.
    Exit,
    /// The host that receives.
    Far,
}

/// Three network namespaces in a row, each pair joined by a virtual Ethernet: two hosts and the middle between them.
///
/// Sockets that are bound here belong to their namespace for good, wherever their threads run. The namespaces go when
/// this is dropped.
#[derive(Debug)]
pub struct TestBed {
    near: String,
    middle: String,
    far: String,
}

impl TestBed {
    /// Makes the namespaces with `ip`, which needs root.
    ///
    /// # Errors
    /// [`NetError::TestBed`] with the command that failed, and what it said.
    pub fn new() -> Result<Self, NetError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let id = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let [near, middle, far] = ["near", "middle", "far"].map(|place| format!("equipoise-{place}-{id}"));
        // Dropped on the way out, it takes away what was made so far.
        let bed = Self { near, middle, far };
        let Self { near, middle, far } = &bed;
        for command in [
            format!("netns add {near}"),
            format!("netns add {middle}"),
            format!("netns add {far}"),
            format!("-n {near} link add host type veth peer name near netns {middle}"),
            format!("-n {far} link add host type veth peer name far netns {middle}"),
            format!("-n {near} addr add {}/24 dev host", Place::Near.address()),
            format!("-n {middle} addr add {}/24 dev near", Place::Entrance.address()),
            format!("-n {middle} addr add {}/24 dev far", Place::Exit.address()),
            format!("-n {far} addr add {}/24 dev host", Place::Far.address()),
            format!("-n {near} link set host up"),
            format!("-n {middle} link set near up"),
            format!("-n {middle} link set far up"),
            format!("-n {far} link set host up"),
        ] {
            ip(&command)?;
        }
        Ok(bed)
    }

    /// A socket on a free port of a place.
    ///
    /// # Errors
    /// [`NetError::TestBed`] where the namespace cannot be entered, and as [`Socket::bind`].
    pub fn bind(&self, place: Place, clock: &Clock) -> Result<Socket, NetError> {
        let name = match place {
            Place::Near => &self.near,
            Place::Entrance | Place::Exit => &self.middle,
            Place::Far => &self.far,
        };
        let path = format!("/run/netns/{name}");
        let failed = |said: String| NetError::TestBed { command: format!("enter {path}"), said };
        let namespace = File::open(&path).map_err(|error| failed(error.to_string()))?;
        // A thread of its own enters the namespace and ends there; the socket comes back.
        let enter = || {
            setns(&namespace, CloneFlags::CLONE_NEWNET).map_err(|errno| failed(errno.to_string()))?;
            Socket::bind((place.address(), 0).into(), clock)
        };
        thread::scope(|scope| scope.spawn(enter).join())
            .map_err(|_| NetError::Panicked { name: "test bed".to_owned() })?
    }
}

impl Place {
    /// Its address (RFC 2544, App. C.2.2 sets this block aside for tests of networks).
    pub const fn address(self) -> IpAddr {
        IpAddr::V4(match self {
            Self::Near => Ipv4Addr::new(198, 18, 0, 1),
            Self::Entrance => Ipv4Addr::new(198, 18, 0, 254),
            Self::Exit => Ipv4Addr::new(198, 18, 1, 254),
            Self::Far => Ipv4Addr::new(198, 18, 1, 1),
        })
    }
}

impl Drop for TestBed {
    fn drop(&mut self) {
        for name in [&self.near, &self.middle, &self.far] {
            // What was never made, or cannot be removed, is nobody's business any more.
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

fn ip(arguments: &str) -> Result<(), NetError> {
    let failed = |said: String| NetError::TestBed { command: format!("ip {arguments}"), said };
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}
