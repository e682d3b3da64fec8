//! Tests of DTLS 1.2 with OpenSSL as the peer: both endpoints must compute the same keys.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use super::*;
use crate::Clock;

/// A folder with a certificate and a key of a given kind, created by OpenSSL.
struct Maker {
    folder: PathBuf,
}

impl Maker {
    /// Creates the folder. If OpenSSL is not installed, prints a note and returns `None`.
    fn new(name: &str, kind: &[&str]) -> Option<Self> {
        let folder = std::env::temp_dir().join(format!("equipoise-dtls-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let maker = Self { folder };
        let mut request = Command::new("openssl");
        request.args(["req", "-x509", "-nodes", "-subj", "/CN=interop", "-days", "2", "-newkey"]).args(kind);
        request.args(["-keyout", "key.pem", "-out", "certificate.pem"]).current_dir(&maker.folder);
        match request.output() {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => {
                println!("{error}\nskipped: openssl is not installed");
                return None;
            }
        }
        Some(maker)
    }

    fn p256(name: &str) -> Option<Self> {
        Self::new(name, &["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
    }

    fn identity(&self) -> Result<Identity, IdentityError> {
        let text = ["certificate.pem", "key.pem"].map(|name| self.read(name)).concat();
        Identity::from_pem(&text)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).expect("a file")
    }

    /// Starts `openssl` as a DTLS client or server. A thread reads its output lines.
    fn run(&self, arguments: &[&str]) -> (Process, Receiver<String>) {
        let mut command = Command::new("openssl");
        command.args(arguments).args(["-dtls1_2", "-keymatexport", "EXTRACTOR-dtls_srtp"]).current_dir(&self.folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        (Process(child), lines)
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        // A folder that cannot be removed does not affect other tests.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The endpoint under test, with a socket.
struct End {
    session: DtlsSrtp,
    socket: UdpSocket,
    clock: Clock,
}

impl End {
    fn new(socket: UdpSocket, peer: PeerConfig, identity: Identity) -> Self {
        socket.set_read_timeout(Some(Duration::from_millis(5))).expect("a timeout");
        let clock = Clock::new();
        let session = DtlsSrtp::new(peer, identity, clock.now()).expect("a configuration");
        Self { session, socket, clock }
    }

    /// Runs the endpoint until `is_so` is true, for at most `seconds`. Returns whether `is_so` is true.
    fn run(&mut self, seconds: u32, is_so: impl Fn(&DtlsSrtp) -> bool) -> bool {
        let end = self.clock.now() + Span::from_secs(i64::from(seconds));
        let (mut buffer, mut plain) = ([0; 2000], Vec::new());
        while self.clock.now() < end && !is_so(&self.session) {
            self.session.on_timer(self.clock.now());
            if let Ok((length, from)) = self.socket.recv_from(&mut buffer) {
                self.session.handle(self.clock.now(), from, &buffer[..length], &mut plain);
            }
            while let Some((to, bytes)) = self.session.poll() {
                // The kernel may refuse a datagram while the peer is not running yet. The datagram then counts as lost.
                let _ = self.socket.send_to(&bytes, to);
            }
        }
        is_so(&self.session)
    }
}

fn here() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket")
}

fn port(socket: &UdpSocket) -> u16 {
    socket.local_addr().expect("bound").port()
}

fn is_open(session: &DtlsSrtp) -> bool {
    matches!(session.standing(), Standing::Open(_))
}

/// The keys that OpenSSL prints, in hexadecimal.
fn exported(lines: &Receiver<String>) -> String {
    loop {
        let line = lines.recv_timeout(Duration::from_secs(5)).expect("it tells its keys");
        if let Some((_, keys)) = line.split_once("Keying material: ") {
            return keys.trim().to_owned();
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}

/// Each SRTP profile, and the total length of the keys and salts of both directions in bytes (RFC 5764, Sec. 4.1.2; RFC
/// 7714, Sec. 12).
const PROFILES: [(Profile, &str); 3] =
    [(Profile::Aes128CmSha1, "60"), (Profile::Aes128Gcm, "56"), (Profile::Aes256Gcm, "88")];

fn free_port() -> u16 {
    port(&here())
}

#[test]
fn openssl_as_client_has_the_same_keys() {
    let Some(maker) = Maker::p256("client") else { return };
    let fingerprint = *maker.identity().expect("of P-256").fingerprint();
    for (profile, length) in PROFILES {
        let socket = here();
        let connect = format!("127.0.0.1:{}", port(&socket));
        let peer = PeerConfig { address: (Ipv4Addr::LOCALHOST, 0).into(), fingerprint, setup: Setup::Passive };
        let mut end = End::new(socket, peer, Identity::generate());
        let arguments = ["s_client", "-connect", &connect, "-cert", "certificate.pem", "-key", "key.pem"];
        let export = ["-use_srtp", profile.name(), "-keymatexportlen", length];
        let (_client, lines) = maker.run(&[&arguments[..], &export].concat());
        assert!(end.run(10, is_open), "{profile:?}: {:?}", end.session.trouble());
        assert_eq!(end.session.standing(), Standing::Open(profile));
        // OpenSSL may still need messages from the endpoint under test before it prints its keys.
        end.run(1, |_| false);
        assert_eq!(exported(&lines), hex(end.session.keys().expect("open").material()), "{profile:?}");
    }
}

#[test]
fn openssl_as_server_has_the_same_keys_with_a_cookie_and_without() {
    let Some(maker) = Maker::p256("server") else { return };
    let identity = maker.identity().expect("of P-256");
    for ((profile, length), cookie) in PROFILES.into_iter().zip([&["-listen"][..], &[], &[]]) {
        let port = free_port();
        let accept = format!("127.0.0.1:{port}");
        let arguments = ["s_server", "-accept", &accept, "-cert", "certificate.pem", "-key", "key.pem", "-Verify", "1"];
        let export = ["-use_srtp", profile.name(), "-keymatexportlen", length];
        let (server, lines) = maker.run(&[&arguments[..], &export, cookie].concat());
        let address = (Ipv4Addr::LOCALHOST, port).into();
        let peer = PeerConfig { address, fingerprint: *identity.fingerprint(), setup: Setup::Active };
        let mut end = End::new(here(), peer, Identity::generate());
        assert!(end.run(10, is_open), "{profile:?}: {:?}", end.session.trouble());
        assert_eq!(end.session.standing(), Standing::Open(profile));
        end.run(1, |_| false);
        assert_eq!(exported(&lines), hex(end.session.keys().expect("open").material()), "{profile:?}");
        drop(server);
    }
}

/// Trap 2 of the DTLS library (see `traps.rs`): if the library does not request a certificate, a handshake yields keys
/// although the peer is not authenticated.
#[test]
fn trap_2_who_shows_no_certificate_has_no_keys() {
    let Some(maker) = Maker::p256("nobody") else { return };
    let socket = here();
    let connect = format!("127.0.0.1:{}", port(&socket));
    let fingerprint = *maker.identity().expect("of P-256").fingerprint();
    let peer = PeerConfig { address: (Ipv4Addr::LOCALHOST, 0).into(), fingerprint, setup: Setup::Passive };
    let mut end = End::new(socket, peer, Identity::generate());
    let export = ["-use_srtp", Profile::Aes128Gcm.name(), "-keymatexportlen", "56"];
    let (_client, _lines) = maker.run(&[&["s_client", "-connect", &connect][..], &export].concat());
    assert!(end.run(10, |session| session.trouble().is_some()), "it is told why");
    assert_eq!(end.session.standing(), Standing::Opening);
    // A second client, which has a certificate, must succeed.
    let arguments = ["s_client", "-connect", &connect, "-cert", "certificate.pem", "-key", "key.pem"];
    let (_client, _lines) = maker.run(&[&arguments[..], &export].concat());
    assert!(end.run(10, is_open), "{:?}", end.session.trouble());
}

#[test]
fn an_end_that_cannot_protect_media_is_told_of() {
    let Some(maker) = Maker::p256("no-srtp") else { return };
    let socket = here();
    let connect = format!("127.0.0.1:{}", port(&socket));
    let fingerprint = *maker.identity().expect("of P-256").fingerprint();
    let peer = PeerConfig { address: (Ipv4Addr::LOCALHOST, 0).into(), fingerprint, setup: Setup::Passive };
    let mut end = End::new(socket, peer, Identity::generate());
    let arguments = ["s_client", "-connect", &connect, "-cert", "certificate.pem", "-key", "key.pem"];
    let (_client, _lines) = maker.run(&arguments);
    assert!(end.run(10, |session| session.trouble().is_some()));
    assert!(matches!(end.session.trouble(), Some(HandshakeError::NoKeys)), "{:?}", end.session.trouble());
    assert_eq!((end.session.standing(), end.session.half_open()), (Standing::Opening, 0));
}

#[test]
fn a_certificate_is_read_as_openssl_writes_it_and_others_are_refused() {
    let Some(maker) = Maker::p256("identity") else { return };
    let shown = run(&maker.folder, &["x509", "-in", "certificate.pem", "-noout", "-fingerprint", "-sha256"]);
    let (_, bytes) = shown.trim().split_once('=').expect("a fingerprint");
    let identity = maker.identity().expect("of P-256");
    assert_eq!(identity.fingerprint().to_string(), format!("sha-256 {bytes}"));
    // Here, the key is in the older PEM format and stands before the certificate.
    let key = run(&maker.folder, &["ec", "-in", "key.pem"]);
    assert!(key.contains("BEGIN EC PRIVATE KEY"));
    let older = Identity::from_pem(&[&key, &maker.read("certificate.pem")[..]].concat()).expect("the same");
    assert_eq!(older.fingerprint(), identity.fingerprint());

    let refused = |text: String| Identity::from_pem(&text).expect_err("it is of no use");
    assert_eq!(refused(maker.read("key.pem")), IdentityError::NoCertificate);
    assert_eq!(refused(maker.read("certificate.pem")), IdentityError::NoKey);
    let other = Maker::p256("other").expect("there is one");
    assert_eq!(refused(maker.read("certificate.pem") + &other.read("key.pem")), IdentityError::OtherKey);
    for (name, kind) in [("rsa", &["rsa:2048"][..]), ("p384", &["ec", "-pkeyopt", "ec_paramgen_curve:secp384r1"])] {
        let other = Maker::new(name, kind).expect("there is one");
        assert_eq!(other.identity().expect_err("another kind"), IdentityError::Curve, "{name}");
    }
}

fn run(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("openssl").args(arguments).current_dir(folder).output().expect("it starts");
    String::from_utf8(output.stdout).expect("text")
}
