use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::time::Duration;

use libbpf_rs::{Iter, MapType};

use crate::error::KernelError;
use crate::support::{maps, open};

/// The compiled BPF program that reads the state of all sockets.
const READER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/reader.o"));
/// Name of the BPF map with the congestion control's state for each socket.
const MAP: &str = "symb_flows";

/// The state of a TCP connection that uses the congestion control `symbiosis`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Local address and port of the connection.
    pub local: SocketAddr,
    /// Remote address and port of the connection.
    pub peer: SocketAddr,
    /// Congestion window, in segments.
    pub window: u32,
    /// Payload of a full segment, in bytes.
    pub segment_bytes: u16,
    /// K, the capacity of the bottleneck link, in segments/s; `None` without a measurement.
    pub capacity: Option<f64>,
    /// A, the available bandwidth, in segments/s; `None` without a measurement.
    pub available: Option<f64>,
    /// γ, the weight of the rate of other flows. The noisier the measurements are, the lower is γ. `None` while Reno
    /// controls the window.
    pub gamma: Option<f64>,
    /// Minimum round-trip time; `None` without a measurement.
    pub min_round_trip: Option<Duration>,
    /// Smoothed round-trip time; zero before the first measurement.
    pub smoothed_round_trip: Duration,
    /// Number of trains of segments that were sent to measure the capacity and the available bandwidth.
    pub trains: u32,
    /// Number of trains of segments from which a new value of `available` was accepted.
    pub trains_judged: u32,
    /// Number of losses that halved the window.
    pub losses: u32,
    /// Number of timeouts. Each timeout discards all measurements except `smoothed_round_trip`.
    pub timeouts: u32,
}

/// Returns the state of all connections that use the congestion control, in all network namespaces.
///
/// The result includes connections that still use the congestion control after it was unloaded.
///
/// # Errors
/// [`KernelError::Rights`]; [`KernelError::Version`] if the loaded program is from another version of this crate;
/// [`KernelError::Refused`] for all other errors of the kernel.
pub fn sockets() -> Result<Vec<Flow>, KernelError> {
    let mut found = Vec::new();
    let mut maps = maps(MapType::SkStorage, MAP)?;
    let all = maps.len();
    // Skip the maps of another version of the program. Such a map exists until its last connection is closed.
    maps.retain(|map| libbpf_rs::MapCore::value_size(map) as usize == FLOW_BYTES);
    match (all, maps.len()) {
        (0, _) => return Ok(found),
        (_, 0) => return Err(KernelError::Version),
        _ => {}
    }
    let failed = KernelError::of("read the connections");
    let object = open(READER)?.load().map_err(&failed)?;
    let reader = object.progs_mut().next().ok_or(KernelError::Version)?;
    for map in maps {
        let link = reader.attach_iter(map.as_fd()).map_err(&failed)?;
        let mut bytes = Vec::new();
        let mut reports = Iter::new(&link).map_err(&failed)?;
        reports.read_to_end(&mut bytes).map_err(|error| failed(error.into()))?;
        for report in bytes.chunks_exact(REPORT_BYTES) {
            found.push(Flow::read(report).ok_or(KernelError::Version)?);
        }
    }
    found.sort_by_key(|flow| (flow.local, flow.peer));
    Ok(found)
}

/// Sizes of `struct flow` and `struct report` in `flow.h`, in bytes.
const FLOW_BYTES: usize = 272;
const REPORT_BYTES: usize = 56 + FLOW_BYTES;
/// The number 1 in the formats Q10 (rates) and Q20 (parameters), as in `symbiosis::fixed`.
const RATE_ONE: f64 = 1024.0;
const PARAMETER_ONE: f64 = 1_048_576.0;
/// The value of the address family `AF_INET`.
const IPV4: u16 = 2;

impl Flow {
    /// Parses a `struct report`, which the BPF program writes for each socket. Returns `None` if `report` is too short.
    fn read(report: &[u8]) -> Option<Self> {
        let mut fields = Fields(report);
        let [family, port, peer_port, segment_bytes] = [fields.u16()?, fields.u16()?, fields.u16()?, fields.u16()?];
        let (address, peer_address) = (fields.bytes::<16>()?, fields.bytes::<16>()?);
        let [window, _threshold, smoothed_us, _unused] = [fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?];
        let [law_window, capacity, available, gamma] = [fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?];
        let _noise_and_last_step = [fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?];
        let min_round_trip = fields.u64()?;
        let rate = |rate: u64| (rate > 0).then_some(rate as f64 / RATE_ONE);
        Some(Self {
            local: SocketAddr::new(ip(family, address), port),
            peer: SocketAddr::new(ip(family, peer_address), peer_port),
            window,
            segment_bytes,
            capacity: rate(capacity),
            available: rate(available),
            gamma: (law_window > 0).then_some(gamma as f64 / PARAMETER_ONE),
            min_round_trip: (min_round_trip > 0).then(|| Duration::from_micros(min_round_trip)),
            smoothed_round_trip: Duration::from_micros(smoothed_us.into()),
            trains_judged: fields.u32()?,
            trains: fields.u32()?,
            losses: fields.u32()?,
            timeouts: fields.u32()?,
        })
    }
}

fn ip(family: u16, address: [u8; 16]) -> IpAddr {
    if family == IPV4 {
        let [a, b, c, d, ..] = address;
        return Ipv4Addr::new(a, b, c, d).into();
    }
    // An IPv4 connection of an IPv6 socket has an IPv4-mapped address.
    Ipv6Addr::from(address).to_canonical()
}

/// Reads the fields of a structure in order.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_ne_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_ne_bytes)
    }
}
