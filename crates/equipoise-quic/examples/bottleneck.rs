//! Sends a stream over noq through an emulated bottleneck on loopback, with real sockets: `bottleneck [LAW [MBPS
//! [SECONDS]]]`.
//!
//! LAW is a controller of Equipoise, or `noq-cubic` or `noq-bbr3`. Each second the program prints the controller's
//! rate, the rate at which the server read data, and the 95th percentile of the packets' waiting time in the queue.
#![allow(clippy::print_stdout, reason = "it talks to a person")]

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use equipoise::units::{Rate, Schedule, Span};
use equipoise_net::{Clock, Emulator, EmulatorConfig, Protocol, Route, Watcher};
use equipoise_path::link::{LinkConfig, QueueLimit};
use equipoise_quic::{Config, Monitor};
use noq::congestion::{Bbr3Config, ControllerFactory, CubicConfig};
use noq::{AckFrequencyConfig, ClientConfig, Endpoint, ServerConfig, TransportConfig};

const LOOPBACK: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let law = words.first().map_or("equipoise", String::as_str);
    let mbps: f64 = words.get(1).map_or(Ok(10.0), |word| word.parse())?;
    let seconds: u64 = words.get(2).map_or(Ok(10), |word| word.parse())?;
    let (factory, monitor) = factory(law)?;
    let (server, client) = configurations(factory)?;

    let server = Endpoint::server(server, LOOPBACK.into())?;
    let endpoint = Endpoint::client(LOOPBACK.into())?;
    let waits = Arc::new(Mutex::new(Vec::new()));
    let path = path(mbps, (endpoint.local_addr()?, server.local_addr()?), &waits)?;
    let entrance = path.entrance(0).ok_or("the path has no entrance")?;

    let read = Arc::new(AtomicU64::new(0));
    tokio::spawn(take(server.clone(), Arc::clone(&read)));
    let connection = endpoint.connect_with(client, entrance, "localhost")?.await?;
    let mut stream = connection.open_uni().await?;
    let sending = tokio::spawn(async move { while stream.write_all(&[0; 16_384]).await.is_ok() {} });
    println!("  time   allowed      read   waited p95");
    let mut before = 0;
    for second in 1..=seconds {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = read.load(Ordering::Relaxed);
        let allowed = monitor.paths().first().and_then(|path| path.rate);
        let allowed = allowed.map_or("-".to_owned(), |rate| format!("{:.2} M", rate.as_mbps_f64()));
        let mut waited = std::mem::take(&mut *waits.lock().map_err(|_| "a panic")?);
        waited.sort_unstable();
        let p95 = waited.get(waited.len() * 95 / 100).copied().unwrap_or(Span::ZERO);
        println!("{second:4} s  {allowed:>8}  {:6.2} M  {:8.1} ms", (now - before) as f64 * 8e-6, p95.as_millis_f64());
        before = now;
    }
    connection.close(0u32.into(), b"done");
    sending.await?;
    path.stop()?;
    Ok(())
}

fn factory(law: &str) -> Result<(Arc<dyn ControllerFactory + Send + Sync>, Monitor), Box<dyn Error>> {
    Ok(match law {
        "noq-cubic" => (Arc::new(CubicConfig::default()), Monitor::default()),
        "noq-bbr3" => (Arc::new(Bbr3Config::default()), Monitor::default()),
        name => {
            let config = Config::named(name, &[])?;
            let monitor = config.monitor();
            (Arc::new(config), monitor)
        }
    })
}

/// Returns the configurations of a server with a self-signed certificate, and of a client that trusts this certificate
/// and uses the congestion control of `factory`.
fn configurations(
    factory: Arc<dyn ControllerFactory + Send + Sync>,
) -> Result<(ServerConfig, ClientConfig), Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let server = ServerConfig::with_single_cert(vec![made.cert.der().clone()], key)?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone())?;
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots))?;
    // The times of acknowledgements are used as arrival times, so the server must send acknowledgements at once.
    let mut prompt = AckFrequencyConfig::default();
    prompt.ack_eliciting_threshold(0u32.into()).max_ack_delay(Some(Duration::from_millis(1)));
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(factory).ack_frequency_config(Some(prompt));
    client.transport_config(Arc::new(transport));
    Ok((server, client))
}

/// Starts an emulated path with a delay of 20 ms in each direction, and a queue of 200 ms.
fn path(
    mbps: f64,
    (sender, receiver): (SocketAddr, SocketAddr),
    waits: &Arc<Mutex<Vec<Span>>>,
) -> Result<Emulator, Box<dyn Error>> {
    let clock = Clock::new();
    let link = |mbps: f64| -> Result<LinkConfig, Box<dyn Error>> {
        let rate = Rate::from_bps_f64(mbps * 1e6).ok_or("a link has a rate above zero")?;
        let queue = QueueLimit::Time(Span::from_millis(200));
        Ok(LinkConfig { rate: Schedule::constant(rate), propagation_delay: Span::from_millis(20), queue })
    };
    let links = vec![link(mbps)?.into(), link(1000.0)?.into()];
    let route = Route { forward: vec![0], backward: vec![1], protocol: Protocol::Udp, sender, receiver };
    let book = Arc::clone(waits);
    let watcher = Watcher::new(move |passed| {
        if let (false, Ok(mut waits)) = (passed.is_back, book.lock()) {
            waits.push(passed.waited);
        }
    });
    let config = EmulatorConfig { watcher: Some(watcher), ..EmulatorConfig::new(clock.now(), links, vec![route]) };
    Ok(Emulator::start(&clock, config)?)
}

/// Reads all data at the server, and counts the bytes in `read`.
async fn take(server: Endpoint, read: Arc<AtomicU64>) -> Option<()> {
    let connection = server.accept().await?.await.ok()?;
    let mut stream = connection.accept_uni().await.ok()?;
    while let Some(chunk) = stream.read_chunk(usize::MAX).await.ok()? {
        read.fetch_add(chunk.len() as u64, Ordering::Relaxed);
    }
    Some(())
}
