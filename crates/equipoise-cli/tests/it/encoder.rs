//! Tests a session between an encoder and a decoder: the decoder's requests must reach the encoder.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Folder, Running, equipoise, eventually, results, said};

const SSRC: u32 = 0xCAFE_0001;

/// Opens a socket that simulates an encoder or a decoder on this host. Its receive timeout is `wait`. Returns the
/// socket and its port.
fn program(wait: Duration) -> (UdpSocket, u16) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    socket.set_read_timeout(Some(wait)).expect("a timeout");
    let port = socket.local_addr().expect("bound").port();
    (socket, port)
}

/// Returns a port that was free a moment ago.
fn free_port() -> u16 {
    program(Duration::from_secs(1)).1
}

/// Returns an RTP packet as an encoder sends it.
fn packet(ssrc: u32, number: u16, length: usize) -> Vec<u8> {
    let mut packet = vec![0x80, 96];
    packet.extend(number.to_be_bytes());
    packet.extend(u32::from(number).to_be_bytes());
    packet.extend(ssrc.to_be_bytes());
    packet.resize(12 + length, 7);
    packet
}

/// Returns the compound packet with which a decoder requests a key frame: a receiver report, a CNAME, and a picture
/// loss indication.
fn picture_loss(media: u32) -> Vec<u8> {
    let mut compound = vec![0x80, 201, 0, 1, 0, 0, 0, 9, 0x81, 202, 0, 2, 0, 0, 0, 9, 1, 1, b'd', 0];
    compound.extend([0x81, 206, 0, 2, 0, 0, 0, 9]);
    compound.extend(media.to_be_bytes());
    compound
}

fn receive(socket: &UdpSocket) -> Option<(Vec<u8>, SocketAddr)> {
    let mut buffer = [0; 2000];
    let (length, from) = socket.recv_from(&mut buffer).ok()?;
    Some((buffer[..length].to_vec(), from))
}

/// If this test fails, a picture that was damaged by a loss stays damaged until the encoder's next regular key frame,
/// which may take minutes.
#[test]
fn what_a_decoder_asks_for_comes_to_the_encoder_and_a_flood_does_not() {
    let folder = Folder::new();
    let [rates, sent, received] = ["rates", "sent", "received"].map(|name| folder.file(name));
    let short = Duration::from_millis(10);
    let ((encoder, _), (decoder, decoder_port)) = (program(short), program(short));
    let (relay, rtcp) = (free_port(), free_port());
    let mut receiver = equipoise();
    receiver.args(["receive", "-p", "0", "-B", "127.0.0.1", "-1", "--insecure", "-J", &received]);
    receiver.args(["--rtp", &decoder_port.to_string(), "--rtcp", &rtcp.to_string()]);
    let (mut receiver, line) = Running::ready(&mut receiver);
    let (_, port) = line.rsplit_once(':').expect("an address");
    let mut sender = equipoise();
    sender.args(["send", "127.0.0.1", "-p", port, "--insecure", "-b", "2M", "-J", &sent]);
    let mut sender = Running::start(sender.args(["--rtp", &relay.to_string(), "--rate-socket", &rates]));
    // The session opens when the encoder's first packet arrives. The decoder sends its requests to the address from
    // which it receives RTP packets.
    let mut numbers = 0..;
    let mut send = || {
        let packet = packet(SSRC, numbers.next().expect("one more"), 100);
        encoder.send_to(&packet, (Ipv4Addr::LOCALHOST, relay)).expect("sent");
    };
    let source = eventually("the first packet", || {
        send();
        receive(&decoder)
    });
    assert_eq!(source.1, (Ipv4Addr::LOCALHOST, rtcp).into());
    let steering = eventually("the socket of the rates", || UnixStream::connect(&rates).ok());
    let (post, lines) = mpsc::channel();
    thread::spawn(move || BufReader::new(steering).lines().map_while(Result::ok).try_for_each(|line| post.send(line)));
    // For one second, the encoder sends at most 500 media packets per second, and the decoder sends a request for a key
    // frame with each packet.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(1) {
        decoder.send_to(&picture_loss(SSRC), source.1).expect("sent");
        send();
        thread::sleep(Duration::from_millis(2));
    }
    let mut asked = Vec::new();
    while let Some((datagram, from)) = receive(&encoder) {
        assert_eq!(from, (Ipv4Addr::LOCALHOST, relay).into(), "it comes from where the RTP goes to");
        asked.push(datagram);
    }
    assert!((1..=8).contains(&asked.len()), "{} requests came to the encoder", asked.len());
    // The picture loss indication is the last part of a compound packet that begins with a report (RFC 3550, Sec. 6.1).
    let indication = [&[0x81, 206, 0, 2][..], &SSRC.wrapping_add(1).to_be_bytes(), &SSRC.to_be_bytes()].concat();
    assert!(asked.iter().all(|datagram| datagram[1] == 201 && datagram.ends_with(&indication)), "{asked:02X?}");
    thread::sleep(Duration::from_millis(500));
    while receive(&encoder).is_some() {}
    let stranger = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 9), 0)).expect("the loopback network");
    stranger.send_to(&picture_loss(SSRC), source.1).expect("sent");
    decoder.send_to(&picture_loss(SSRC ^ 1), source.1).expect("sent");
    thread::sleep(Duration::from_millis(500));
    assert_eq!(receive(&encoder), None, "neither of them is the decoder's word on this stream");
    assert_eq!(sender.interrupt(), Some(130));
    receiver.finish();
    let [sent, received] = [sent, received].map(|file| results(&fs::read_to_string(file).expect("written")));
    let wanted = sent["end"]["key_frames_wanted"].as_u64().expect("a count");
    assert!(wanted >= asked.len() as u64, "{wanted} wanted");
    assert!(received["sessions"][0]["end"]["key_frames_asked"].as_u64() >= Some(wanted), "{received}");
    let told = lines.iter().filter(|line| line == "keyframe").count() as u64;
    // The first line `keyframe` may be missing, because the sender may have written it before the test was connected.
    assert!((1..=wanted).contains(&told), "{told} lines of {wanted}");
}

/// If this test fails, the session does not accept the packets of a restarted encoder, or it accepts the packets of a
/// second program within two seconds after the last packet of the first program.
#[test]
fn an_encoder_that_restarts_with_another_source_goes_on_after_two_seconds() {
    let folder = Folder::new();
    let [sent, received] = ["sent", "received"].map(|name| folder.file(name));
    let short = Duration::from_millis(10);
    let ((first, _), (second, _), (decoder, decoder_port)) = (program(short), program(short), program(short));
    let relay = free_port();
    let mut receiver = equipoise();
    receiver.args(["receive", "-p", "0", "-B", "127.0.0.1", "-1", "--insecure", "-J", &received]);
    let (mut receiver, line) = Running::ready(receiver.args(["--rtp", &decoder_port.to_string()]));
    let (_, port) = line.rsplit_once(':').expect("an address");
    let mut sender = equipoise();
    sender.args(["send", "127.0.0.1", "-p", port, "--insecure", "-b", "1M", "-J", &sent]);
    let mut sender = Running::start(sender.args(["--rtp", &relay.to_string()]));
    let send = |socket: &UdpSocket, ssrc, number| {
        socket.send_to(&packet(ssrc, number, 100), (Ipv4Addr::LOCALHOST, relay)).expect("sent");
    };
    let mut number = 0;
    let source = eventually("the first packet", || {
        number += 1;
        send(&first, SSRC, number);
        receive(&decoder)
    });
    // The second encoder sends its first packet directly after the last packet of the first encoder. It then sends
    // packets until one of them is accepted.
    send(&first, SSRC, number + 1);
    send(&second, SSRC ^ 1, 30_000);
    let silent = Instant::now();
    let mut next = 30_001;
    let (arrived, _) = eventually("a packet of the second encoder", || {
        send(&second, SSRC ^ 1, next);
        next += 1;
        receive(&decoder).filter(|(packet, _)| u16::from_be_bytes([packet[2], packet[3]]) >= 30_000)
    });
    assert!(silent.elapsed() >= Duration::from_millis(1900), "after {:?}", silent.elapsed());
    assert_eq!(arrived[8..12], SSRC.to_be_bytes(), "the decoder knows this source");
    // The request for a key frame reaches the second encoder, with the SSRC of the second encoder.
    let asked = eventually("a request", || {
        decoder.send_to(&picture_loss(SSRC), source.1).expect("sent");
        send(&second, SSRC ^ 1, next);
        next += 1;
        receive(&second)
    });
    assert!(asked.0.ends_with(&(SSRC ^ 1).to_be_bytes()), "{asked:02X?}");
    assert_eq!(sender.interrupt(), Some(130));
    receiver.finish();
    let sent = results(&fs::read_to_string(sent).expect("written"));
    assert!(sent["end"]["ignored"]["foreign"].as_u64() >= Some(10), "{sent}");
}

/// If this test fails, the audio of a call reaches the video decoder, or the rate that the video encoder receives
/// includes the audio's rate.
#[test]
fn audio_goes_beside_video_to_its_own_decoder_and_video_has_what_is_left_of_the_rate() {
    const AUDIO: u32 = 0xCAFE_0002;
    let folder = Folder::new();
    let [rates, sent, received] = ["rates", "sent", "received"].map(|name| folder.file(name));
    let short = Duration::from_millis(10);
    let ((video, _), (audio, _)) = (program(short), program(short));
    let ((pictures, pictures_port), (sound, sound_port)) = (program(short), program(short));
    let [relay, audio_relay] = [free_port(), free_port()];
    let mut receiver = equipoise();
    receiver.args(["receive", "-p", "0", "-B", "127.0.0.1", "-1", "--insecure", "-J", &received]);
    receiver.args(["--rtp", &pictures_port.to_string(), "--audio", &sound_port.to_string()]);
    let (mut receiver, line) = Running::ready(&mut receiver);
    let (_, port) = line.rsplit_once(':').expect("an address");
    let mut sender = equipoise();
    sender.args(["send", "127.0.0.1", "-p", port, "--insecure", "-b", "1M", "-J", &sent, "--rate-socket", &rates]);
    sender.args(["--report-interval", "200 ms", "--rtp", &relay.to_string(), "--audio", &audio_relay.to_string()]);
    let mut sender = Running::start(&mut sender);
    let mut frames = 0;
    eventually("the first picture", || {
        video.send_to(&packet(SSRC, frames, 500), (Ipv4Addr::LOCALHOST, relay)).expect("sent");
        frames += 1;
        receive(&pictures)
    });
    let steering = eventually("the socket of the rates", || UnixStream::connect(&rates).ok());
    let (post, lines) = mpsc::channel();
    thread::spawn(move || BufReader::new(steering).lines().map_while(Result::ok).try_for_each(|line| post.send(line)));
    // The audio has 50 packets per second, 64 kbit/s with RTP headers. If the machine stalls, fewer packets are sent
    // per second.
    let (begin, mut sounds) = (Instant::now(), Vec::new());
    for number in 0..150 {
        audio.send_to(&packet(AUDIO, number, 148), (Ipv4Addr::LOCALHOST, audio_relay)).expect("sent");
        video.send_to(&packet(SSRC, frames + number, 500), (Ipv4Addr::LOCALHOST, relay)).expect("sent");
        thread::sleep(
            (begin + Duration::from_millis(20) * u32::from(number)).saturating_duration_since(Instant::now()),
        );
        sounds.extend(receive(&sound));
        while receive(&pictures).is_some_and(|(packet, _)| packet[8..12] == SSRC.to_be_bytes()) {}
    }
    while let Some(packet) = receive(&sound) {
        sounds.push(packet);
    }
    assert_eq!(sender.interrupt(), Some(130));
    receiver.finish();
    assert!(sounds.len() >= 140 && sounds.iter().all(|(it, _)| it[8..12] == AUDIO.to_be_bytes()), "{}", sounds.len());
    assert!(sounds.iter().all(|(it, _)| *it == packet(AUDIO, u16::from_be_bytes([it[2], it[3]]), 148)), "as it was");
    let [sent, received] = [sent, received].map(|file| results(&fs::read_to_string(file).expect("written")));
    assert_eq!(sent["end"]["audio_packets"], 150, "{sent}");
    assert!(received["sessions"][0]["end"]["audio_packets"].as_u64() >= Some(sounds.len() as u64), "{received}");
    let told: Vec<u64> = lines.iter().filter_map(|line| line.strip_prefix("rate ")?.parse().ok()).collect();
    // The first rate is 1 Mbit/s minus 4.7 % for headers. Later, the audio takes 64 kbit/s, plus 21 kbit/s for the IP
    // and UDP headers and the header extension of its packets.
    let (first, last) = (told.first().copied().unwrap_or(0), told.last().copied().unwrap_or(u64::MAX));
    assert!((930_000..970_000).contains(&first) && (800_000..910_000).contains(&last), "{told:?}");
}

/// If this test fails, a session is opened before the rate socket, and the user is told that nothing was run although a
/// receiver may have received media. The test has no receiver.
#[test]
fn a_rate_socket_that_cannot_be_made_is_refused_before_a_session_is_opened() {
    let mut command = equipoise();
    command.args(["send", "127.0.0.1", "-p", "9", "--insecure", "--rate-socket", "/no/such/folder/rates"]);
    let output = command.output().expect("the command starts");
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert!(said(&output).contains("cannot write /no/such/folder/rates"), "{}", said(&output));
}
