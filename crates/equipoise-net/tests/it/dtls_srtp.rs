//! Tests with GStreamer as the peer of DTLS-SRTP: GStreamer decodes this side's video, and this side decodes
//! GStreamer's video.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use equipoise_net::Clock;
use equipoise_net::dtls_srtp::{DtlsSrtp, Identity, PeerConfig, Profile, Setup, Standing};
use tokio::time::{sleep, timeout};

/// The example program that is tested.
#[path = "../../examples/dtls_srtp.rs"]
#[allow(dead_code, reason = "its main function")]
mod example;

/// Number of frames that must be decoded in each direction; there are 30 frames per second.
const FRAMES: usize = 40;
const SOURCE: &str = "videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=30/1 \
                      ! vp8enc deadline=1 keyframe-max-dist=15 ! rtpvp8pay pt=96";
const CAPS: &str =
    "application/x-rtp,media=(string)video,clock-rate=(int)90000,encoding-name=(string)VP8,payload=(int)96";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("equipoise-gstreamer-{}-{name}", std::process::id()));
        for side in ["theirs", "ours"] {
            fs::create_dir_all(path.join(side)).expect("a folder");
        }
        Self(path)
    }

    /// Number of frames that were decoded and written in the folder `side`.
    fn frames(&self, side: &str) -> usize {
        fs::read_dir(self.0.join(side)).expect("a folder").count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Pipeline(Child);

impl Pipeline {
    fn start(elements: &str, error: &Path) -> Self {
        let error = fs::File::create(error).expect("a file");
        // `gst-launch-1.0` expects text in quotation marks in one argument, even if the text contains line breaks.
        let mut command = Command::new("gst-launch-1.0");
        command.arg("-q").args(words(elements)).stdout(Stdio::null()).stderr(error);
        Self(command.spawn().expect("it starts"))
    }
}

/// Splits a text at spaces that are not within quotation marks. The quotation marks are kept.
fn words(elements: &str) -> Vec<String> {
    let mut is_quoted = false;
    let at_space = |letter: char| {
        is_quoted ^= letter == '"';
        letter == ' ' && !is_quoted
    };
    elements.split(at_space).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The name of a program or element that is missing on this machine; `None` if nothing is missing.
fn lacks() -> Option<String> {
    for element in ["dtlssrtpdec", "dtlssrtpenc", "vp8enc", "rtpvp8pay", "rtpjitterbuffer", "jpegenc", "multifilesink"]
    {
        match Command::new("gst-inspect-1.0").arg(element).output() {
            Err(error) => return Some(format!("gst-inspect-1.0: {error}")),
            Ok(output) if !output.status.success() => return Some(format!("the element {element}")),
            Ok(_) => {}
        }
    }
    None
}

/// Creates a P-256 key and a certificate with OpenSSL, and returns both as PEM text; `None` if OpenSSL fails.
fn certificate(folder: &Path) -> Option<String> {
    let mut request = Command::new("openssl");
    request.args(["req", "-x509", "-nodes", "-subj", "/CN=interop", "-days", "2", "-newkey", "ec"]);
    request.args(["-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", "key.pem", "-out", "certificate.pem"]);
    request.current_dir(folder).output().ok()?;
    let read = |name| fs::read_to_string(folder.join(name)).ok();
    Some(read("certificate.pem")? + &read("key.pem")?)
}

fn free() -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    socket.local_addr().expect("bound")
}

/// Exchanges media in both directions with GStreamer, which is active or passive in the handshake. Returns what is
/// missing on this machine for the test; `None` if nothing is missing.
async fn exchange(setup: Setup) -> Option<String> {
    if let Some(lacks) = lacks() {
        return Some(lacks);
    }
    let is_client = setup == Setup::Passive;
    let folder = Folder::new(if is_client { "client" } else { "server" });
    let Some(pem) = certificate(&folder.0) else { return Some("openssl".to_owned()) };
    let fingerprint = *Identity::from_pem(&pem).expect("of P-256").fingerprint();
    let [theirs, ours, plain_in, plain_out] = [(); 4].map(|()| free());
    let decoded = |side: &str| {
        let place = folder.0.join(side).join("%05d.jpg");
        format!(
            "rtpjitterbuffer ! rtpvp8depay ! vp8dec ! videoconvert ! jpegenc ! multifilesink async=false sync=false location={}",
            place.display()
        )
    };
    // The decoder must be first: in another order, this version of GStreamer fails. The sinks must not wait for a first
    // frame (`async=false`): frames arrive only after the handshake, and `udpsink` sends the handshake.
    let secured = format!(
        "udpsrc address=127.0.0.1 port={} ! dtlssrtpdec name=d connection-id=a pem=\"{pem}\" d.rtp_src ! {CAPS} ! {} \
         {SOURCE} ssrc=77 ! e.rtp_sink_0 dtlssrtpenc name=e connection-id=a is-client={is_client} e.src \
         ! udpsink async=false sync=false host=127.0.0.1 port={}",
        theirs.port(),
        decoded("theirs"),
        ours.port()
    );
    let plain = format!(
        "udpsrc address=127.0.0.1 port={} caps={CAPS} ! {} {SOURCE} ssrc=88 ! udpsink async=false sync=false host=127.0.0.1 port={}",
        plain_out.port(),
        decoded("ours"),
        plain_in.port()
    );
    let log = |name: &str| folder.0.join(name);
    let _pipelines = [Pipeline::start(&secured, &log("secured")), Pipeline::start(&plain, &log("plain"))];
    let clock = Clock::new();
    // GStreamer sends from another port than the port at which it receives.
    let peer = PeerConfig { address: theirs, fingerprint, setup };
    let mut session = DtlsSrtp::new(peer, Identity::generate(), clock.now()).expect("a configuration");
    let outer = tokio::net::UdpSocket::bind(ours).await.expect("free a moment ago");
    let inner = tokio::net::UdpSocket::bind(plain_in).await.expect("free a moment ago");
    let enough = async {
        while ["theirs", "ours"].iter().any(|side| folder.frames(side) < FRAMES) {
            sleep(Duration::from_millis(100)).await;
        }
    };
    let relay = example::relay(&mut session, &clock, (&outer, &inner), plain_out);
    tokio::select! {
        ended = relay => panic!("the association ended: {ended:?}"),
        waited = timeout(Duration::from_secs(40), enough) => {
            let read = |name| fs::read_to_string(log(name)).unwrap_or_default();
            let frames = ["theirs", "ours"].map(|side| folder.frames(side));
            assert!(waited.is_ok(), "frames behind them, behind us: {frames:?}\n{}\n{}", read("secured"), read("plain"));
        }
    }
    // `SRTP_AES128_CM_SHA1_80` is the profile that GStreamer supports.
    assert_eq!(session.standing(), Standing::Open(Profile::Aes128CmSha1));
    None
}

#[tokio::test]
#[ignore = "slow: real video for some seconds"]
async fn gstreamer_that_begins_exchanges_video_with_us() {
    if let Some(lacks) = exchange(Setup::Passive).await {
        println!("skipped: interop with GStreamer, without {lacks}");
    }
}

#[tokio::test]
#[ignore = "slow: real video for some seconds"]
async fn gstreamer_that_waits_exchanges_video_with_us() {
    if let Some(lacks) = exchange(Setup::Active).await {
        println!("skipped: interop with GStreamer, without {lacks}");
    }
}
