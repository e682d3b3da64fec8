//! Tests that tshark, an independent program, can decode the packets of a session.
//!
//! A live run in a separate network namespace is captured by tshark, and decoded as RTP with RTCP on the same port. The
//! tests are skipped if tshark is not installed, or without the permission to create a namespace.

use std::fs;
use std::process::{Command, Stdio};

use crate::machine::Machine;
use crate::places::Places;
use crate::support::{Capture, Folder, Running, installed, scenario};

/// The lowest severity that fails a test: tshark's number for a note. A warning has the number 0x00600000.
const NOTE: u32 = 0x0040_0000;

/// Replacements in the scenario of the short demo that make its run even shorter.
const SHORTER: [(&str, &str); 4] = [
    ("duration = \"10 s\"", "duration = \"1500 ms\""),
    ("warm_up = \"2 s\"", "warm_up = \"500 ms\""),
    ("report_interval = \"500 ms\"", "report_interval = \"200 ms\""),
    ("at = \"5 s\"", "at = \"1 s\""),
];

/// Returns the values of `fields` for the frames of a capture that match a filter, one line per frame.
fn frames(capture: &str, filter: &str, fields: &[&str]) -> Vec<String> {
    let mut tshark = Command::new("tshark");
    // Every port may carry RTP. RTCP on the same port is recognised by its packet type (RFC 5761). The last report may
    // arrive after its destination has ended. The kernel then sends an ICMP message that quotes the report, so ICMP
    // messages are ignored.
    let filter = format!("({filter}) && !icmp");
    tshark.args(["-r", capture, "-d", "udp.port==1-65535,rtp", "-Y", &filter, "-T", "fields"]);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let read = tshark.stderr(Stdio::null()).output().expect("tshark was there a moment ago");
    assert!(read.status.success(), "tshark does not know a field or cannot read its own capture");
    String::from_utf8_lossy(&read.stdout).lines().map(str::to_owned).collect()
}

/// Captures the packets of a live run of `scenario`, and passes the path of the capture to `judge`.
fn captured(scenario: &str, judge: impl FnOnce(&str)) {
    if !installed("tshark") {
        return;
    }
    let machine = Machine::shared();
    let Some(places) = Places::new(&machine, &["ip -n NEAR link set lo up"]) else { return };
    let folder = Folder::new();
    let capture = folder.file("run.pcapng");
    let mut tshark = Places::command(&places.near, "tshark");
    let tshark = Capture::start(tshark.args(["-q", "-i", "lo", "-w", &capture]), &capture);
    let mut live = Places::command(&places.near, env!("CARGO_BIN_EXE_equipoise"));
    Running::start(live.args(["live", scenario, "--quiet"])).finish();
    tshark.stop();
    judge(&capture);
}

/// The fast test of this file: a run of 1.5 s, and one check of all frames.
#[test]
fn tshark_decodes_a_short_run_without_a_complaint() {
    let folder = Folder::new();
    let mut text = fs::read_to_string(scenario("demo-short")).expect("readable");
    for (long, short) in SHORTER {
        assert!(text.contains(long), "{long}");
        text = text.replace(long, short);
    }
    let file = folder.file("shorter.toml");
    fs::write(&file, text).expect("writable");
    captured(&file, judge_at_one_look);
}

fn judge_at_one_look(capture: &str) {
    let fields = ["_ws.malformed", "_ws.expert.severity", "ip.len", "rtcp.pt", "rtp.p_type", "rtp.ext.profile"];
    let frames = frames(capture, "rtp || rtcp", &fields);
    let (mut media, mut requests, mut answers, mut goodbyes) = (0, 0, 0, 0);
    for frame in &frames {
        let columns: Vec<&str> = frame.split('\t').collect();
        let worst = columns[1].split(',').filter_map(|severity| severity.parse::<u32>().ok()).max();
        assert!(columns[0].is_empty() && worst.is_none_or(|severity| severity < NOTE), "{frame}");
        match (columns[3], columns[2]) {
            ("", length) => {
                assert_eq!((length, &columns[4..]), ("1000", &["96", "0xbede"][..]), "media with its sending time");
                media += 1;
            }
            ("200", "64") => requests += 1,
            ("201", "72") => answers += 1,
            (kinds, _) => goodbyes += u32::from(kinds.split(',').any(|kind| kind == "203")),
        }
    }
    assert!(media > 100 && requests >= 4 && answers >= 4 && goodbyes > 0, "{media} media packets: {frames:?}");
}

#[test]
#[ignore = "real time: 16 s"]
fn tshark_decodes_every_packet_without_a_complaint() {
    captured(&scenario("demo-short"), judge);
}

fn judge(capture: &str) {
    let complaints = format!("_ws.malformed || _ws.expert.severity >= {NOTE:#010x}");
    let complaints = frames(capture, &complaints, &["frame.number", "_ws.expert.message"]);
    assert!(complaints.is_empty(), "{complaints:?}");
    let media = frames(capture, "rtp", &["ip.len"]);
    assert!(media.len() > 1000 && media.iter().all(|len| len == "1000"), "{} media packets", media.len());
    let timed = frames(capture, "rtp.ext.profile == 0xbede && rtp.p_type == 96", &["frame.number"]);
    assert_eq!(timed.len(), media.len(), "every packet carries its sending time");

    // Report requests are sender reports (SR) with an extension of 8 bytes. The IP packet of a request has 64 bytes.
    // Each of 20 requests is captured twice, before and after the bottleneck. On a busy machine there may be fewer
    // requests.
    let requests =
        frames(capture, "rtcp.pt == 200 && rtcp.length == 8", &["ip.len", "rtcp.profile-specific-extension"]);
    assert!(requests.len() >= 10, "{requests:?}");
    assert!(requests.iter().all(|fields| fields.starts_with("64\t") && fields.len() > 4), "{requests:?}");
    // Reports are receiver reports (RR) with one report block and an extension of 12 bytes. The IP packet of a report
    // has 72 bytes.
    let answers = frames(
        capture,
        "rtcp.pt == 201 && rtcp.length == 10",
        &["ip.len", "rtcp.profile-specific-extension", "rtcp.rc"],
    );
    assert!(answers.len() >= 10, "{answers:?}");
    assert!(answers.iter().all(|fields| fields.starts_with("72\t") && fields.ends_with("\t1")), "{answers:?}");
    // The capture must contain compound packets with a CNAME, and packets with a BYE.
    assert!(!frames(capture, "rtcp.pt == 202 && rtcp.sdes.type == 1", &["frame.number"]).is_empty());
    assert!(!frames(capture, "rtcp.pt == 203", &["frame.number"]).is_empty());
}
