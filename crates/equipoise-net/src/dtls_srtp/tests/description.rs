//! Tests of parsing a peer's SDP, fingerprints and certificates.

use super::*;

const PRINT: &str =
    "sha-256 4A:AD:B9:B1:3F:82:18:3B:54:02:12:DF:3E:5D:49:6B:19:E5:7C:AB:3E:4B:65:2E:7D:46:3F:54:42:CD:54:F1";

fn sdp(session: &str, media: &str) -> String {
    format!("v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\n{session}t=0 0\r\n{media}")
}

#[test]
fn an_offer_names_its_peer() {
    let media = format!(
        "m=video 5004 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 192.0.2.9\r\na=fingerprint:{PRINT}\r\na=setup:actpass\r\n"
    );
    let peer = PeerConfig::from_sdp(&sdp("", &media)).expect("whole");
    let fingerprint: Fingerprint = PRINT.parse().expect("a fingerprint");
    let address = "192.0.2.9:5004".parse().expect("an address");
    assert_eq!(peer, PeerConfig { address, fingerprint, setup: Setup::Active });
    assert_eq!(fingerprint.to_string(), PRINT);
    assert_eq!(PRINT.to_lowercase().parse(), Ok(fingerprint));
}

#[test]
fn what_the_media_does_not_say_the_session_does() {
    let session =
        format!("c=IN IP6 2001:db8::7\r\na=fingerprint:sha-1 4A:AD\r\na=fingerprint:{PRINT}\r\na=setup:active\r\n");
    let media = "m=audio 9 RTP/AVP 0\r\nm=audio 6000 UDP/TLS/RTP/SAVP 0\r\n";
    let peer = PeerConfig::from_sdp(&sdp(&session, media)).expect("whole");
    assert_eq!((peer.address.to_string().as_str(), peer.setup), ("[2001:db8::7]:6000", Setup::Passive));
    let passive = sdp(&session, &format!("{media}a=setup:passive\r\n"));
    assert_eq!(PeerConfig::from_sdp(&passive).map(|peer| peer.setup), Ok(Setup::Active));
}

#[test]
fn what_is_missing_or_of_no_use_is_named() {
    let media = |lines: &str| format!("m=video 5004 UDP/TLS/RTP/SAVPF 96\r\n{lines}");
    let full = format!("c=IN IP4 192.0.2.9\r\na=fingerprint:{PRINT}\r\n");
    let of = |media: &str| PeerConfig::from_sdp(&sdp("", media)).expect_err("not whole");
    assert!(matches!(PeerConfig::from_sdp("hello"), Err(PeerError::Sdp { .. })));
    assert_eq!(of("m=video 5004 RTP/AVP 96\r\n"), PeerError::NoMedia { found: "RTP/AVP".to_owned() });
    assert_eq!(of(""), PeerError::NoMedia { found: "none at all".to_owned() });
    assert_eq!(of(&media("c=IN IP4 192.0.2.9\r\n")), PeerError::NoFingerprint);
    let sha1 = of(&media("c=IN IP4 192.0.2.9\r\na=fingerprint:sha-1 4A:AD\r\n"));
    assert_eq!(sha1, PeerError::from(FingerprintError::Function { function: "sha-1".to_owned() }));
    for (line, found) in [
        ("", ""),
        ("c=IN IP4 0.0.0.0\r\n", "0.0.0.0"),
        ("c=IN IP4 a.example\r\n", "a.example"),
        ("c=IN IP4 233.252.0.1\r\n", "233.252.0.1"),
    ] {
        let lines = format!("{line}a=fingerprint:{PRINT}\r\n");
        assert_eq!(of(&media(&lines)), PeerError::Address { found: found.to_owned() });
    }
    // If both ends became passive because `a=setup` is missing, both would wait for the handshake forever.
    assert_eq!(of(&media(&full)), PeerError::NoSetup);
    assert_eq!(of(&media(&format!("{full}a=setup:holdconn\r\n"))), PeerError::Setup { found: "holdconn".to_owned() });
    let zero = format!("m=video 0 UDP/TLS/RTP/SAVPF 96\r\n{full}a=setup:passive\r\n");
    assert_eq!(of(&zero), PeerError::NoPort);
}

#[test]
fn a_text_that_is_no_fingerprint_is_refused() {
    for text in [
        "",
        "sha-256",
        "sha-256 ",
        "4A:AD",
        "sha-256 4A:AD",
        &PRINT[..PRINT.len() - 3],
        &format!("{PRINT}:00"),
        &PRINT.replace("4A", "+A"),
        &PRINT.replace(':', "-"),
    ] {
        assert!(matches!(text.parse::<Fingerprint>(), Err(FingerprintError::Bytes { .. })), "{text:?}");
    }
}

/// Trap 11 of the DTLS library (see `traps.rs`): if the library derived identities from a common secret, all endpoints
/// would have the same identity.
#[test]
fn trap_11_two_identities_are_two() {
    let [one, other] = [Identity::generate(), Identity::generate()];
    assert_ne!(one.fingerprint(), other.fingerprint());
    assert!(!format!("{one:?}").contains("private_key: ["), "a key is not shown");
    assert!(matches!(Identity::from_pem(""), Err(IdentityError::NoCertificate)));
}
