//! Two network namespaces, and a path between them whose faults are defined by the test.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use equipoise::units::{Rate, ReceiverClock, Schedule, Size, Span};
use equipoise_path::link::{FifoLink, LinkConfig, Passage, QueueLimit};

use crate::machine::Machine;
use crate::places::Places;
use crate::support::{NAMESPACES, skip};

/// Two namespaces (hosts), each with a link to the namespace of this process.
pub(crate) struct Hosts {
    names: [String; 2],
    /// The number in the names of the links and in the subnets. It must be unique among tests that run at the same
    /// time, because one end of each link is in this process's namespace.
    number: u32,
}

/// Number of possible values of `number`. Each value stands for two subnets.
const NUMBERS: u32 = 1 << 14;

impl Hosts {
    /// Creates the hosts, for a test that has locked the machine. If namespaces cannot be created, prints the reason
    /// and returns `None`.
    pub(crate) fn new(_machine: &Machine) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut hosts =
            Self { names: ["sender", "receiver"].map(|host| format!("equipoise-{host}-{process}-{count}")), number: 0 };
        // Some numbers may be in use by other processes, or by tests that were killed.
        let first = process.wrapping_mul(16).wrapping_add(count) % NUMBERS;
        let free = hosts.names.iter().all(|name| done(&format!("ip netns add {name}")))
            && (0..20).any(|next| {
                hosts.number = (first + next) % NUMBERS;
                hosts.link()
            });
        if !free {
            skip(NAMESPACES);
            return None;
        }
        Some(hosts)
    }

    /// Links both hosts to this process's namespace. Returns false if links with this `number` already exist.
    fn link(&self) -> bool {
        let made = (0..2).take_while(|&side| {
            let (name, outer) = (&self.names[side as usize], self.outer(side));
            done(&format!("ip link add {outer} type veth peer name eth0 netns {name}"))
        });
        let made = made.count() as u32;
        if made < 2 {
            (0..made).for_each(|side| assert!(done(&format!("ip link delete {}", self.outer(side)))));
            return false;
        }
        for (side, name) in (0..).zip(&self.names) {
            let (subnet, outer) = (self.subnet(side), self.outer(side));
            for command in [
                format!("ip addr add {subnet}.254/24 dev {outer}"),
                format!("ip link set {outer} up"),
                format!("ip -n {name} addr add {subnet}.1/24 dev eth0"),
                format!("ip -n {name} link set eth0 up"),
                format!("ip -n {name} link set lo up"),
            ] {
                assert!(done(&command), "{command}");
            }
        }
        true
    }

    /// Returns the name of this process's interface to the sender's host (0) or to the receiver's host (1).
    fn outer(&self, side: u32) -> String {
        format!("equi{}{}", self.number, ["s", "r"][side as usize])
    }

    /// Returns the first three bytes, as text, of the addresses on the link to host number `side`.
    fn subnet(&self, side: u32) -> String {
        format!("10.{}.{}", 64 + self.number / 128, self.number % 128 * 2 + side)
    }

    /// Returns the address of this process on the link to the sender's host (0) or to the receiver's host (1).
    pub(crate) fn middle(&self, side: u32) -> String {
        format!("{}.254", self.subnet(side))
    }

    /// Returns the address of the sender's host (0) or of the receiver's host (1).
    pub(crate) fn address(&self, side: u32) -> String {
        format!("{}.1", self.subnet(side))
    }

    /// Returns the command `equipoise` of this build, to run on the sender's host (0) or on the receiver's host (1).
    pub(crate) fn equipoise(&self, side: usize, arguments: &[&str]) -> Command {
        let mut command = self.command(side, env!("CARGO_BIN_EXE_equipoise"));
        command.args(arguments);
        command
    }

    /// Returns the namespace of the sender's host (0) or of the receiver's host (1).
    pub(crate) fn name(&self, side: usize) -> &str {
        &self.names[side]
    }

    /// Returns a command that runs any program on host number `side`.
    pub(crate) fn command(&self, side: usize, program: &str) -> Command {
        Places::command(&self.names[side], program)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            // If a namespace cannot be removed, it disappears at the next restart of the machine.
            done(&format!("ip netns delete {name}"));
        }
    }
}

fn done(command: &str) -> bool {
    let mut words = command.split(' ');
    let program = words.next().unwrap_or_default();
    Command::new(program).args(words).output().is_ok_and(|output| output.status.success())
}

/// The kind of a datagram, as far as its unencrypted bytes show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Media,
    SenderReport,
    ReceiverReport,
    Handshake,
}

/// A datagram that passes through the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing {
    pub(crate) kind: Kind,
    pub(crate) to_receiver: bool,
    /// The number of the datagram among those with the same direction, from 0.
    pub(crate) number: u64,
    /// Time since the first datagram arrived at the path.
    pub(crate) at: Duration,
}

/// The counters of the path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    /// Number of media packets that arrived at the path, and number of media packets that it forwarded at least once.
    pub(crate) media: u64,
    pub(crate) media_passed: u64,
}

/// An emulated path with a delay of 10 ms in each direction, and a rate of 5 Mbit/s towards the receiver. For each
/// datagram, the test's function `fate` returns a list of additional delays in ms, one for each copy: `[]` drops the
/// datagram, `[0]` forwards it, `[0, 0]` duplicates it, `[50]` delays it by 50 ms.
pub(crate) struct Middle {
    stop: Arc<AtomicBool>,
    counted: Arc<Mutex<Counted>>,
    thread: Option<JoinHandle<()>>,
    address: SocketAddr,
}

impl Middle {
    pub(crate) fn start(hosts: &Hosts, mut fate: impl FnMut(&Passing) -> Vec<u64> + Send + 'static) -> Self {
        let near = UdpSocket::bind((hosts.middle(0), 0)).expect("a port");
        let (address, target) = (near.local_addr().expect("bound"), format!("{}:5004", hosts.address(1)));
        let far_address = hosts.middle(1);
        let (stop, counted) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Counted::default())));
        let (stopped, shared) = (stop.clone(), counted.clone());
        let thread = thread::spawn(move || {
            let mut relay = Relay::new(near, &far_address, target);
            while !stopped.load(Ordering::Relaxed) {
                relay.turn(&mut fate, &shared);
            }
        });
        Self { stop, counted, thread: Some(thread), address }
    }

    pub(crate) fn port(&self) -> String {
        self.address.port().to_string()
    }

    pub(crate) fn counted(&self) -> Counted {
        *self.counted.lock().expect("no panic while counting")
    }
}

impl Drop for Middle {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// If `fate` returns a delay of at least this value, the receiver sees the sender at a new port from then on. The delay
/// in ms is then the remainder after division by this value.
pub(crate) const NEW_ADDRESS: u64 = 1_000_000;

const RATE: u64 = 5_000_000;
const WAY: Duration = Duration::from_millis(10);

/// A datagram in flight: the time at which it leaves the path, a number that orders datagrams with the same time,
/// whether it is sent to the receiver, and its bytes.
type UnderWay = (Instant, u64, bool, Vec<u8>);

struct Relay {
    near: UdpSocket,
    far: UdpSocket,
    far_address: String,
    target: String,
    sender: Option<SocketAddr>,
    /// Arrival time of the first datagram; `None` before it arrives.
    start: Option<Instant>,
    link: FifoLink<ReceiverClock>,
    under_way: BinaryHeap<Reverse<UnderWay>>,
    order: u64,
    counts: [u64; 2],
}

impl Relay {
    fn new(near: UdpSocket, far_address: &str, target: String) -> Self {
        let config = LinkConfig {
            rate: Schedule::constant(Rate::from_bps(RATE)),
            propagation_delay: Span::ZERO,
            queue: QueueLimit::Packets(500),
        };
        near.set_nonblocking(true).expect("a socket can");
        Self {
            near,
            far: outer(far_address),
            far_address: far_address.to_owned(),
            target,
            sender: None,
            start: None,
            link: FifoLink::new(config, equipoise::units::Instant::ZERO).expect("a link"),
            under_way: BinaryHeap::new(),
            order: 0,
            counts: [0; 2],
        }
    }

    fn turn(&mut self, fate: &mut impl FnMut(&Passing) -> Vec<u64>, counted: &Mutex<Counted>) {
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = self.near.recv_from(&mut buffer) {
            self.sender = Some(from);
            self.pass(&buffer[..length], true, fate, counted);
        }
        while let Ok(length) = self.far.recv(&mut buffer) {
            self.pass(&buffer[..length], false, fate, counted);
        }
        while self.under_way.peek().is_some_and(|Reverse((at, ..))| *at <= Instant::now()) {
            let Some(Reverse((_, _, to_receiver, datagram))) = self.under_way.pop() else { break };
            let sent = match (to_receiver, self.sender) {
                (true, _) => self.far.send_to(&datagram, &self.target),
                (false, Some(sender)) => self.near.send_to(&datagram, sender),
                (false, None) => Ok(0),
            };
            // Errors, such as an unreachable port, are ignored: a real path does not know whether the port is open.
            let _ = sent;
        }
        thread::sleep(Duration::from_micros(500));
    }

    fn pass(
        &mut self,
        datagram: &[u8],
        to_receiver: bool,
        fate: &mut impl FnMut(&Passing) -> Vec<u64>,
        counted: &Mutex<Counted>,
    ) {
        let kind = match datagram {
            [b'e', ..] => Kind::Handshake,
            [_, 200, ..] => Kind::SenderReport,
            [_, 201, ..] => Kind::ReceiverReport,
            _ => Kind::Media,
        };
        let start = *self.start.get_or_insert_with(Instant::now);
        let at = start.elapsed();
        let number = &mut self.counts[usize::from(to_receiver)];
        let copies = fate(&Passing { kind, to_receiver, number: *number, at });
        *number += 1;
        let mut passed = false;
        for held in copies {
            if held >= NEW_ADDRESS {
                self.far = outer(&self.far_address);
            }
            let held = Duration::from_millis(held % NEW_ADDRESS);
            let size = Size::from_bytes(datagram.len() as u64) + Size::IPV4_UDP;
            let now = equipoise::units::Instant::from_nanos(at.as_nanos() as u64);
            let due = match to_receiver.then(|| self.link.offer(now, size)) {
                Some(None) => continue,
                Some(Some(Passage { arrives_at, .. })) => start + Duration::from_nanos(arrives_at.as_nanos()),
                None => start + at,
            };
            passed = true;
            self.order += 1;
            self.under_way.push(Reverse((due + WAY + held, self.order, to_receiver, datagram.to_vec())));
        }
        if kind == Kind::Media {
            let mut counted = counted.lock().expect("no panic while counting");
            counted.media += 1;
            counted.media_passed += u64::from(passed);
        }
    }
}

fn outer(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).expect("a port");
    socket.set_nonblocking(true).expect("a socket can");
    socket
}
