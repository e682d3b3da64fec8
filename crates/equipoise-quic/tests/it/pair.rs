//! The client, the server, and the path between them.

use std::time::Duration;

use equipoise::units::{Instant, Rate, ReceiverClock, Schedule, Size, Span};
use equipoise_path::link::{FifoLink, LinkConfig, QueueLimit};

/// Properties of the path between both endpoints.
#[derive(Clone, Debug)]
pub(crate) struct Between {
    pub(crate) bps: u64,
    /// Round-trip time without queueing delay.
    pub(crate) round_trip: Duration,
    pub(crate) queue: Span,
    /// A packet to the server is lost if the packet's number is a multiple of this value. Zero means no such losses.
    pub(crate) lose_one_in: u64,
    /// Every tenth packet to the server is delayed by this time.
    pub(crate) late: Duration,
    /// Datagrams to the server with a UDP payload of more than this number of bytes are dropped.
    pub(crate) mtu: usize,
    /// Whether all packets to the server are lost.
    pub(crate) is_black: bool,
}

impl Default for Between {
    fn default() -> Self {
        Self {
            bps: 5_000_000,
            round_trip: Duration::from_millis(40),
            queue: Span::from_millis(200),
            lose_one_in: 0,
            late: Duration::ZERO,
            mtu: 1500,
            is_black: false,
        }
    }
}

/// The path from the client to the server, and a log of the packets sent over it.
pub(crate) struct Way {
    pub(crate) between: Between,
    link: FifoLink<ReceiverClock>,
    count: u64,
    /// For each packet: the sending time, the size of the IP packet, and the waiting time in the queue if it arrived.
    pub(crate) log: Vec<(Duration, u64, Option<Duration>)>,
}

impl Way {
    pub(crate) fn new(between: Between) -> Self {
        let rate = Schedule::constant(Rate::from_bps(between.bps));
        let config = LinkConfig { rate, propagation_delay: Span::ZERO, queue: QueueLimit::Time(between.queue) };
        let link = FifoLink::new(config, Instant::ZERO).expect("a valid link");
        Self { between, link, count: 0, log: Vec::new() }
    }

    /// Returns the arrival time of a datagram that is sent at `at`; `None` if the datagram is lost.
    pub(crate) fn take(&mut self, at: Duration, bytes: usize) -> Option<Duration> {
        self.count += 1;
        let size = Size::from_bytes(bytes as u64 + 28);
        let lose = self.between.lose_one_in;
        let is_lost = bytes > self.between.mtu || self.between.is_black || lose > 0 && self.count.is_multiple_of(lose);
        let entered = Instant::from_nanos(at.as_nanos() as u64);
        let passage = if is_lost { None } else { self.link.offer(entered, size) };
        let through = passage.map(|passage| Duration::from_nanos(passage.arrives_at.as_nanos()));
        let own = Duration::from_secs_f64(size.as_bits() as f64 / self.between.bps as f64);
        self.log.push((at, size.as_bytes(), through.map(|through| through.saturating_sub(at + own))));
        let late = if self.count.is_multiple_of(10) { self.between.late } else { Duration::ZERO };
        through.map(|through| through + self.between.round_trip / 2 + late)
    }

    /// Returns the sending rate between two times in s, in bit/s, counting whole IP packets.
    pub(crate) fn rate_bps(&self, from_s: f64, to_s: f64) -> f64 {
        self.bytes(from_s, to_s, false) as f64 * 8.0 / (to_s - from_s)
    }

    /// Returns the rate of the packets that were sent from `from_s` to `to_s` and arrived, in bit/s, counting whole IP
    /// packets.
    pub(crate) fn delivered_bps(&self, from_s: f64, to_s: f64) -> f64 {
        self.bytes(from_s, to_s, true) as f64 * 8.0 / (to_s - from_s)
    }

    fn bytes(&self, from_s: f64, to_s: f64, only_arrived: bool) -> u64 {
        let within = |at: &Duration| (from_s..to_s).contains(&at.as_secs_f64());
        let of = self.log.iter().filter(|(at, _, waited)| within(at) && (waited.is_some() || !only_arrived));
        of.map(|(_, bytes, _)| bytes).sum()
    }

    /// Returns two values for the packets that were sent from `from_s` to `to_s`: the 95th percentile of the waiting
    /// time in ms, and the share of lost packets.
    pub(crate) fn waiting(&self, from_s: f64, to_s: f64) -> (f64, f64) {
        let within: Vec<_> = self.log.iter().filter(|it| (from_s..to_s).contains(&it.0.as_secs_f64())).collect();
        let mut waits: Vec<_> = within.iter().filter_map(|(_, _, waited)| *waited).collect();
        waits.sort_unstable();
        let p95 = waits.get(waits.len() * 95 / 100).map_or(0.0, |wait| wait.as_secs_f64() * 1e3);
        (p95, 1.0 - waits.len() as f64 / within.len().max(1) as f64)
    }
}

/// Defines a client and a server for one of two QUIC stacks, noq and quinn. The stacks' interfaces are nearly equal, so
/// one macro serves both.
macro_rules! stack {
    ($stack:ident, $proto:ident, $endpoint:expr, $handle:expr, $one:expr, $moved:expr, $at_server:expr) => {
        pub(crate) mod $stack {
            use std::collections::BTreeMap;
            use std::net::{IpAddr, Ipv4Addr, SocketAddr};
            use std::sync::Arc;
            use std::time::{Duration, Instant};

            use bytes::{Bytes, BytesMut};
            use $proto::congestion::ControllerFactory;
            use $proto::{
                AckFrequencyConfig, ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint,
                EndpointConfig, Event, ServerConfig, StreamId, TransportConfig,
            };

            use super::{Between, Way};

            struct End {
                endpoint: Endpoint,
                connection: Option<(ConnectionHandle, Connection)>,
                inbound: BTreeMap<(Duration, u64), (SocketAddr, IpAddr, BytesMut)>,
            }

            /// A client and a server.
            pub(crate) struct Pair {
                epoch: Instant,
                pub(crate) now: Duration,
                client: End,
                server: End,
                /// The client's address. If it changes, the connection migrates.
                pub(crate) client_address: SocketAddr,
                pub(crate) way: Way,
                /// The path to the server's second address; `None` if the test uses only one path.
                pub(crate) other_way: Option<Way>,
                count: u64,
                stream: Option<StreamId>,
                /// Whether the client writes to a stream as fast as possible.
                pub(crate) is_bulk: bool,
                pub(crate) is_connected: bool,
                /// Bytes that the server's application read, in datagrams and on the stream.
                pub(crate) read: u64,
            }

            const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);
            /// The server's other address.
            pub(crate) const OTHER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)), 443);

            /// Writes as many bytes to the stream as the stack accepts.
            fn fill(connection: &mut Connection, stream: &mut Option<StreamId>) {
                *stream = stream.or_else(|| connection.streams().open(Dir::Uni));
                if let Some(stream) = *stream {
                    while connection.send_stream(stream).write(&[0; 4096]).is_ok() {}
                }
            }

            /// Reads all datagrams and all data of the stream that have arrived. Returns the number of bytes.
            fn read(connection: &mut Connection, stream: &mut Option<StreamId>) -> u64 {
                let mut bytes = 0;
                while let Some(datagram) = connection.datagrams().recv() {
                    bytes += datagram.len() as u64;
                }
                *stream = stream.or_else(|| connection.streams().accept(Dir::Uni));
                let Some(stream) = *stream else { return bytes };
                let mut receiving = connection.recv_stream(stream);
                if let Ok(mut chunks) = receiving.read(true) {
                    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                        bytes += chunk.bytes.len() as u64;
                    }
                    let _ = chunks.finalize();
                }
                bytes
            }

            impl Pair {
                /// Creates a client, whose connection uses the congestion control of `factory`, and a server.
                pub(crate) fn new(factory: Arc<dyn ControllerFactory + Send + Sync>, between: Between) -> Self {
                    Self::with(factory, between, |_| {})
                }

                /// The same as `new`, with further settings of the client's transport.
                pub(crate) fn with(
                    factory: Arc<dyn ControllerFactory + Send + Sync>,
                    between: Between,
                    set: impl FnOnce(&mut TransportConfig),
                ) -> Self {
                    let _ = rustls::crypto::ring::default_provider().install_default();
                    let cert = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
                    let key =
                        rustls::pki_types::PrivateKeyDer::try_from(cert.signing_key.serialize_der()).expect("a key");
                    let mut server = ServerConfig::with_single_cert(vec![cert.cert.der().clone()], key).expect("right");
                    let mut transport = TransportConfig::default();
                    transport.receive_window((1u32 << 30).into()).stream_receive_window((1u32 << 30).into());
                    let at_server: fn(&mut TransportConfig) = $at_server;
                    at_server(&mut transport);
                    server.transport_config(Arc::new(transport));
                    let mut roots = rustls::RootCertStore::empty();
                    roots.add(cert.cert.der().clone()).expect("a certificate");
                    let mut client = ClientConfig::with_root_certificates(Arc::new(roots)).expect("right");
                    let mut transport = TransportConfig::default();
                    let mut prompt = AckFrequencyConfig::default();
                    prompt.ack_eliciting_threshold(0u32.into()).max_ack_delay(Some(Duration::from_millis(1)));
                    transport.send_window(1 << 24).congestion_controller_factory(factory).max_idle_timeout(None);
                    transport.ack_frequency_config(Some(prompt));
                    set(&mut transport);
                    client.transport_config(Arc::new(transport));
                    let (epoch, new) = (Instant::now(), $endpoint);
                    let mut endpoint: Endpoint = new(EndpointConfig::default(), None);
                    let connection = endpoint.connect(epoch, client, SERVER, "localhost").expect("it connects");
                    let server = new(EndpointConfig::default(), Some(Arc::new(server)));
                    let end = |endpoint, connection| End { endpoint, connection, inbound: BTreeMap::new() };
                    Self {
                        epoch,
                        now: Duration::ZERO,
                        client: end(endpoint, Some(connection)),
                        server: end(server, None),
                        client_address: (Ipv4Addr::new(192, 0, 2, 2), 1000).into(),
                        way: Way::new(between),
                        other_way: None,
                        count: 0,
                        stream: None,
                        is_bulk: true,
                        is_connected: false,
                        read: 0,
                    }
                }

                /// Returns the client's connection.
                pub(crate) fn client(&mut self) -> &mut Connection {
                    &mut self.client.connection.as_mut().expect("it was made at the beginning").1
                }

                /// Changes the client's port and informs the client's stack.
                pub(crate) fn migrate(&mut self, port: u16) {
                    self.client_address.set_port(port);
                    let now = self.instant();
                    let moved: fn(&mut Connection, Instant) = $moved;
                    moved(self.client(), now);
                }

                /// Sends a frame as datagrams of at most 1000 bytes.
                pub(crate) fn send_frame(&mut self, bytes: usize) {
                    for at in (0..bytes).step_by(1000) {
                        let datagram = Bytes::from(vec![0; (bytes - at).min(1000)]);
                        let _ = self.client().datagrams().send(datagram, true);
                    }
                }

                /// Advances the time until `end`.
                pub(crate) fn run_until(&mut self, end: Duration) {
                    while self.now < end {
                        self.work();
                        let timeout = |end: &mut End| end.connection.as_mut().and_then(|(_, it)| it.poll_timeout());
                        let timers = [timeout(&mut self.client), timeout(&mut self.server)];
                        let timers = timers.into_iter().flatten().map(|at| at.saturating_duration_since(self.epoch));
                        let inbound =
                            [&self.client, &self.server].map(|it| it.inbound.first_key_value().map(|((at, _), _)| *at));
                        let next = timers.chain(inbound.into_iter().flatten()).min().unwrap_or(end);
                        self.now = next.max(self.now + Duration::from_micros(1)).min(end);
                    }
                }

                fn work(&mut self) {
                    let now = self.epoch + self.now;
                    for is_client in [true, false] {
                        let end = if is_client { &mut self.client } else { &mut self.server };
                        let mut replies = Vec::new();
                        while let Some(entry) = end.inbound.first_entry() {
                            if entry.key().0 > self.now {
                                break;
                            }
                            let (source, local, datagram) = entry.remove();
                            let mut buffer = Vec::new();
                            let handle: fn(
                                &mut Endpoint,
                                Instant,
                                (SocketAddr, IpAddr),
                                BytesMut,
                                &mut Vec<u8>,
                            ) -> Option<DatagramEvent> = $handle;
                            match handle(&mut end.endpoint, now, (source, local), datagram, &mut buffer) {
                                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                                    if let Some((_, connection)) = &mut end.connection {
                                        connection.handle_event(event);
                                    }
                                }
                                Some(DatagramEvent::NewConnection(incoming)) if end.connection.is_none() => {
                                    end.connection = end.endpoint.accept(incoming, now, &mut buffer, None).ok();
                                }
                                Some(DatagramEvent::Response(transmit)) => {
                                    replies.push((local, buffer[..transmit.size].to_vec()));
                                }
                                Some(DatagramEvent::NewConnection(_)) | None => {}
                            }
                        }
                        let Some((handle, connection)) = &mut end.connection else { continue };
                        if connection.poll_timeout().is_some_and(|at| at <= now) {
                            connection.handle_timeout(now);
                        }
                        while let Some(event) = connection.poll() {
                            self.is_connected |= matches!(event, Event::Connected);
                        }
                        if !is_client {
                            self.read += read(connection, &mut self.stream);
                        } else if self.is_bulk && self.is_connected {
                            fill(connection, &mut self.stream);
                        }
                        while let Some(event) = connection.poll_endpoint_events() {
                            if let Some(event) = end.endpoint.handle_event(*handle, event) {
                                connection.handle_event(event);
                            }
                        }
                        let mut outbound = replies;
                        loop {
                            let mut buffer = Vec::new();
                            let Some(transmit) = connection.poll_transmit(now, $one, &mut buffer) else { break };
                            let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
                            let peer = if is_client {
                                transmit.destination.ip()
                            } else {
                                transmit.src_ip.unwrap_or(SERVER.ip())
                            };
                            outbound.extend(buffer[..transmit.size].chunks(segment).map(|it| (peer, it.to_vec())));
                        }
                        // `peer` is the server's address: the destination of a datagram from the client, or the source
                        // of a datagram from the server.
                        for (peer, datagram) in outbound {
                            self.count += 1;
                            let way = if peer == OTHER.ip() { self.other_way.as_mut() } else { Some(&mut self.way) };
                            let Some(way) = way else { continue };
                            let datagram = BytesMut::from(&datagram[..]);
                            if is_client {
                                if let Some(at) = way.take(self.now, datagram.len()) {
                                    self.server.inbound.insert((at, self.count), (self.client_address, peer, datagram));
                                }
                            } else {
                                let at = self.now + way.between.round_trip / 2;
                                let from = (SocketAddr::new(peer, SERVER.port()), self.client_address.ip(), datagram);
                                self.client.inbound.insert((at, self.count), from);
                            }
                        }
                    }
                }

                /// Returns the current simulated time as a time for the stack.
                pub(crate) fn instant(&self) -> Instant {
                    self.epoch + self.now
                }

                /// Whether the connection has ended.
                pub(crate) fn is_dead(&mut self) -> bool {
                    self.client().is_closed()
                }
            }
        }
    };
}

stack!(
    noq,
    noq_proto,
    |config: EndpointConfig, server| Endpoint::new(Arc::new(config), server, true),
    |endpoint, now, (remote, local), datagram, buffer| {
        endpoint.handle(now, noq_proto::FourTuple::new(remote, Some(local)), None, datagram, buffer)
    },
    std::num::NonZeroUsize::MIN,
    |connection, now| connection.handle_network_change(None, now),
    |transport| {
        transport.max_concurrent_multipath_paths(2);
    }
);
stack!(
    quinn,
    quinn_proto,
    |config: EndpointConfig, server| Endpoint::new(Arc::new(config), server, true, None),
    |endpoint, now, (remote, local), datagram, buffer| {
        endpoint.handle(now, remote, Some(local), None, datagram, buffer)
    },
    1,
    |connection, _| connection.local_address_changed(),
    |_| {}
);
