//! What goes over the wire, as an outside tool reads it.
//!
//! A live run in a network namespace of the test's own, captured by tshark and decoded as RTP with RTCP on the same
//! port. Skipped where there is no tshark or no right to make a namespace.

use std::process::{Command, Stdio};

use crate::support::{Capture, Folder, scenario};

/// A network namespace with its loopback up; it goes with the value.
struct Namespace(String);

impl Namespace {
    fn new() -> Option<Self> {
        let name = format!("equipoise-{}", std::process::id());
        let done =
            |arguments: &[&str]| Command::new("ip").args(arguments).output().is_ok_and(|out| out.status.success());
        if !done(&["netns", "add", &name]) {
            return None;
        }
        let namespace = Self(name);
        done(&["-n", &namespace.0, "link", "set", "lo", "up"]).then_some(namespace)
    }

    /// A command within it.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, program]);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // A namespace that cannot be removed goes with the machine's next start.
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).output();
    }
}

/// Fields of the frames that match a filter, a line a frame.
fn frames(capture: &str, filter: &str, fields: &[&str]) -> Vec<String> {
    let mut tshark = Command::new("tshark");
    // Every port may carry RTP; RTCP on the same port is told by its packet type (RFC 5761). The last report may find its
    // sender gone: the kernel's ICMP answer quotes it and is not ours.
    let filter = format!("({filter}) && !icmp");
    tshark.args(["-r", capture, "-d", "udp.port==1-65535,rtp", "-Y", &filter, "-T", "fields"]);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let read = tshark.stderr(Stdio::null()).output().expect("tshark was there a moment ago");
    assert!(read.status.success(), "tshark does not know a field or cannot read its own capture");
    String::from_utf8_lossy(&read.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn tshark_decodes_every_packet_without_a_complaint() {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("skipped: tshark is not installed");
        return;
    }
    let Some(namespace) = Namespace::new() else {
        println!("skipped: no right to make a network namespace");
        return;
    };
    let folder = Folder::new();
    let capture = folder.file("run.pcapng");
    let mut tshark = namespace.command("tshark");
    let tshark = Capture::start(tshark.args(["-q", "-i", "lo", "-w", &capture]), &capture);
    let live = namespace
        .command(env!("CARGO_BIN_EXE_equipoise"))
        .args(["live", &scenario("demo-short"), "--quiet"])
        .status()
        .expect("ip was there a moment ago");
    assert!(live.success());
    tshark.stop();

    // Warnings are 0x00400000 in tshark's scale, errors 0x00800000.
    let complaints =
        frames(&capture, "_ws.malformed || _ws.expert.severity >= 0x00400000", &["frame.number", "_ws.expert.message"]);
    assert!(complaints.is_empty(), "{complaints:?}");
    let media = frames(&capture, "rtp", &["ip.len"]);
    assert!(media.len() > 1000 && media.iter().all(|len| len == "1000"), "{} media packets", media.len());
    let timed = frames(&capture, "rtp.ext.profile == 0xbede && rtp.p_type == 96", &["frame.number"]);
    assert_eq!(timed.len(), media.len(), "every packet carries its sending time");

    // Requests: SR with an extension of 8 bytes, 64 bytes of IP; each of twenty is seen before and behind the bottleneck,
    // and a machine that is busy may make them fewer.
    let requests =
        frames(&capture, "rtcp.pt == 200 && rtcp.length == 8", &["ip.len", "rtcp.profile-specific-extension"]);
    assert!(requests.len() >= 10, "{requests:?}");
    assert!(requests.iter().all(|fields| fields.starts_with("64\t") && fields.len() > 4), "{requests:?}");
    // Answers: RR with one block and an extension of 12 bytes, 72 bytes of IP.
    let answers = frames(
        &capture,
        "rtcp.pt == 201 && rtcp.length == 10",
        &["ip.len", "rtcp.profile-specific-extension", "rtcp.rc"],
    );
    assert!(answers.len() >= 10, "{answers:?}");
    assert!(answers.iter().all(|fields| fields.starts_with("72\t") && fields.ends_with("\t1")), "{answers:?}");
    // Compounds with a name, and the goodbye.
    assert!(!frames(&capture, "rtcp.pt == 202 && rtcp.sdes.type == 1", &["frame.number"]).is_empty());
    assert!(!frames(&capture, "rtcp.pt == 203", &["frame.number"]).is_empty());
}
