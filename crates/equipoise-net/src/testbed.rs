use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use nix::sched::{CloneFlags, setns};

use crate::NetError;

/// A network namespace of the test bed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The host that sends in the forward direction.
    Near,
    /// The network between the hosts.
    Middle,
    /// The host that receives in the forward direction.
    Far,
}

/// One of the two hosts of a test bed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TestHost {
    /// The host that sends in the forward direction.
    #[default]
    Near,
    /// The host that sends in the backward direction.
    Far,
}

impl TestHost {
    /// The network namespace of the host.
    pub const fn place(self) -> Place {
        match self {
            Self::Near => Place::Near,
            Self::Far => Place::Far,
        }
    }

    /// The IP address of the host.
    pub const fn address(self) -> IpAddr {
        match self {
            Self::Near => TestBed::NEAR,
            Self::Far => TestBed::FAR,
        }
    }

    /// The other host of the test bed.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Near => Self::Far,
            Self::Far => Self::Near,
        }
    }
}

/// Three network namespaces in a row: two hosts, and a middle namespace between them. Neighbours are connected by
/// virtual Ethernet interfaces. The middle namespace forwards nothing until an [`Emulator`](crate::Emulator) runs in
/// it.
///
/// A socket that is opened inside a namespace always belongs to this namespace, whichever thread uses the socket. When
/// this value is dropped, the namespaces are removed.
#[derive(Debug)]
pub struct TestBed {
    near: String,
    middle: String,
    far: String,
}

/// Network settings of the three namespaces. IPv6 is switched off, because it sends packets of its own. TCP buffers can
/// grow to twice the bandwidth-delay product of 1 Gbit/s and 250 ms, so that they do not limit the rate. The amount of
/// unsent data is limited. A connection does not reuse measurements of earlier connections.
const SETTINGS: [(&str, &str); 5] = [
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv4/tcp_rmem", "4096 16777216 67108864"),
    ("net/ipv4/tcp_wmem", "4096 1048576 67108864"),
    ("net/ipv4/tcp_notsent_lowat", "262144"),
    ("net/ipv4/tcp_no_metrics_save", "1"),
];

impl TestBed {
    /// The names of the two interfaces in the middle namespace: to the sending host, and to the receiving host.
    pub(crate) const MIDDLE: [&'static str; 2] = ["near", "far"];

    /// Creates the namespaces with the command `ip`, which needs root.
    ///
    /// # Errors
    /// [`NetError::TestBed`] with the command that failed and the output of this command.
    pub fn new() -> Result<Self, NetError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let id = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let [near, middle, far] = ["near", "middle", "far"].map(|place| format!("equipoise-{place}-{id}"));
        // If a later step fails, `bed` is dropped, and the namespaces that were already created are removed.
        let bed = Self { near, middle, far };
        let Self { near, middle, far } = &bed;
        for name in [near, middle, far] {
            ip(&format!("netns add {name}"))?;
        }
        for place in [Place::Near, Place::Middle, Place::Far] {
            bed.inside(place, || {
                for (name, value) in SETTINGS {
                    // The kernel may not have this setting, so errors are ignored.
                    let _ = fs::write(format!("/proc/sys/{name}"), value);
                }
                Ok(())
            })?;
        }
        for command in [
            format!("-n {near} link add host type veth peer name near netns {middle}"),
            format!("-n {far} link add host type veth peer name far netns {middle}"),
            format!("-n {near} addr add {}/24 dev host", TestBed::NEAR),
            format!("-n {far} addr add {}/24 dev host", TestBed::FAR),
            format!("-n {near} link set host up"),
            format!("-n {middle} link set near up"),
            format!("-n {middle} link set far up"),
            format!("-n {far} link set host up"),
        ] {
            ip(&command)?;
        }
        Ok(bed)
    }

    /// The IP address of the host that sends (RFC 2544, App. C.2.2 reserves this block of addresses for tests of
    /// networks).
    pub const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1));
    /// The IP address of the host that receives.
    pub const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2));

    /// Runs `body` inside a namespace, for example to open a socket there.
    ///
    /// # Errors
    /// [`NetError::TestBed`] if the namespace cannot be entered, [`NetError::Panicked`] if `body` panics, and the
    /// errors of `body`.
    pub fn inside<T: Send>(
        &self,
        place: Place,
        body: impl FnOnce() -> Result<T, NetError> + Send,
    ) -> Result<T, NetError> {
        self.namespace(place)?.inside(body)
    }

    /// The network namespace for `place`. A thread can enter this namespace later.
    pub(crate) fn namespace(&self, place: Place) -> Result<Namespace, NetError> {
        let name = match place {
            Place::Near => &self.near,
            Place::Middle => &self.middle,
            Place::Far => &self.far,
        };
        let path = format!("/run/netns/{name}");
        let file = File::open(&path).map_err(|error| refused(&path, &error.to_string()))?;
        Ok(Namespace { path, file })
    }
}

/// An open network namespace, which a thread can enter.
#[derive(Debug)]
pub(crate) struct Namespace {
    path: String,
    file: File,
}

impl Namespace {
    /// Runs `body` inside this namespace, like [`TestBed::inside`].
    pub(crate) fn inside<T: Send>(&self, body: impl FnOnce() -> Result<T, NetError> + Send) -> Result<T, NetError> {
        // A separate thread enters the namespace and then ends, so that this thread stays in its own namespace.
        let enter = || {
            setns(&self.file, CloneFlags::CLONE_NEWNET).map_err(|errno| refused(&self.path, &errno.to_string()))?;
            body()
        };
        thread::scope(|scope| scope.spawn(enter).join())
            .map_err(|_| NetError::Panicked { name: "test bed".to_owned() })?
    }
}

fn refused(path: &str, said: &str) -> NetError {
    NetError::TestBed { command: format!("enter {path}"), said: said.to_owned() }
}

impl TestBed {
    /// Sets a kernel network setting in one of the namespaces, such as `net/ipv4/tcp_rmem`. This must be called before
    /// the affected sockets are opened.
    ///
    /// # Errors
    /// [`NetError::TestBed`] if the kernel has no such setting or does not accept the value.
    pub fn set(&self, place: Place, name: &str, value: &str) -> Result<(), NetError> {
        self.inside(place, || {
            let path = format!("/proc/sys/{name}");
            let failed = |error: std::io::Error| NetError::TestBed {
                command: format!("write {value:?} into {path}"),
                said: error.to_string(),
            };
            fs::write(&path, value).map_err(failed)
        })
    }
}

impl Drop for TestBed {
    fn drop(&mut self) {
        for name in [&self.near, &self.middle, &self.far] {
            // An error is ignored: either the namespace was never created, or it cannot be removed.
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
