//! Tests that another implementation can parse the reports of endpoints that send and receive.

use equipoise::control::Cbr;
use equipoise::measure::ClockMap;
use equipoise::units::{Instant, Rate, ReceiverClock, SenderClock, Size, Span};
use equipoise_session::rtp::{Clocks, Duplex, DuplexConfig, Pause, SenderConfig, StreamConfig};
use equipoise_session::wire::{JointExtension, is_rtcp};
use equipoise_session::{Endpoint, Input, Output};
use rtc_rtcp::goodbye::Goodbye;
use rtc_rtcp::packet::{Packet, unmarshal};
use rtc_rtcp::receiver_report::ReceiverReport;
use rtc_rtcp::reception_report::ReceptionReport;
use rtc_rtcp::sender_report::SenderReport;
use rtc_rtcp::source_description::SourceDescription;

const SSRCS: [u32; 2] = [0x0E5F_0001, 0x0E5F_0002];
const NAMES: [&str; 2] = ["near@192.0.2.1", "far@192.0.2.2"];

fn config(end: usize) -> DuplexConfig {
    let stream = StreamConfig::new(SSRCS[end], 96, Size::from_bytes(1000), NAMES[end]);
    let start = Instant::ZERO + Span::from_millis(3 * end as i64);
    let sending = SenderConfig::new(stream, Span::from_millis(500), start, end as u64);
    DuplexConfig::new(sending, SSRCS[1 - end], Clocks::Known(ClockMap::SYNCHRONISED))
}

/// The index of an endpoint (0 is near, 1 is far), and an RTCP datagram that it sent.
type Said = (usize, Vec<u8>);

/// Passes an input to an endpoint. Returns the datagrams that the endpoint sends, and the time of its next wake-up in
/// ns.
fn turn<C>(end: &mut Duplex<C>, now: u64, input: Input<'_>) -> (Vec<Vec<u8>>, u64) {
    end.handle(Instant::from_nanos(now), input);
    let mut sent = Vec::new();
    while let Some(output) = end.poll() {
        if let Output::Transmit { transmit, .. } = output {
            let mut bytes = transmit.head.to_vec();
            bytes.resize(transmit.len(), 0);
            sent.push(bytes);
        }
    }
    (sent, end.wake().map_or(u64::MAX, |wake| wake.at.as_nanos()))
}

/// Runs a session for seven seconds over a path with a delay of 20 ms. The endpoint `far` pauses from 3 s on, and the
/// endpoint `near` sends a BYE at the end. Returns all RTCP datagrams.
fn session() -> Vec<Said> {
    let rate = |bps| Box::new(Cbr::new(Rate::from_bps(bps)));
    let mut far = config(1);
    far.sending.pauses = vec![Pause { from: Instant::ZERO + Span::from_secs(3), until: None }];
    let mut near = Duplex::<SenderClock>::new(config(0), rate(800_000)).expect("valid");
    let mut far = Duplex::<ReceiverClock>::new(far, rate(400_000)).expect("valid");
    let (mut said, mut in_flight) = (Vec::new(), Vec::<(u64, usize, Vec<u8>)>::new());
    let mut wakes = [0; 2];
    loop {
        let arrival =
            in_flight.iter().enumerate().min_by_key(|(_, (at, ..))| *at).map(|(place, (at, ..))| (*at, place));
        let timer = if wakes[0] <= wakes[1] { (wakes[0], 0) } else { (wakes[1], 1) };
        let now = timer.0.min(arrival.map_or(u64::MAX, |(at, _)| at));
        let is_over = now > 7_000_000_000;
        let (end, datagram) = match arrival {
            _ if is_over => (0, None),
            Some((at, place)) if at == now => {
                let (_, end, datagram) = in_flight.remove(place);
                (end, Some(datagram))
            }
            _ => (timer.1, None),
        };
        let input = datagram.as_deref().map_or(if is_over { Input::Stop } else { Input::Timer }, Input::datagram);
        let (sent, wake) = if end == 0 { turn(&mut near, now, input) } else { turn(&mut far, now, input) };
        wakes[end] = wake;
        for bytes in sent {
            in_flight.push((now + 20_000_000, 1 - end, bytes.clone()));
            if is_rtcp(&bytes) {
                said.push((end, bytes));
            }
        }
        if is_over {
            return said;
        }
    }
}

/// Returns a report as another implementation parsed it: whether it is an SR, its source, its blocks and its extension.
fn read(packet: &dyn Packet) -> (bool, u32, &[ReceptionReport], &[u8]) {
    if let Some(report) = packet.as_any().downcast_ref::<SenderReport>() {
        return (true, report.ssrc, &report.reports, &report.profile_extensions);
    }
    let report =
        packet.as_any().downcast_ref::<ReceiverReport>().expect("an SR or an RR comes first (RFC 3550, Sec. 6.1)");
    (false, report.ssrc, &report.reports, &report.profile_extensions)
}

/// If this test fails, tools that only support RFC 3550 do not recognise that the reports of both endpoints belong to
/// one session.
#[test]
fn another_implementation_reads_the_reports_of_both_directions() {
    let (mut senders, mut receivers, mut names, mut goodbyes) = ([0; 2], [0; 2], [0; 2], Vec::new());
    let (mut requests, mut answers, mut both) = ([0; 2], [0; 2], 0);
    for (end, bytes) in session() {
        let packets = unmarshal(&mut &bytes[..]).expect("they read what we write");
        let (is_sender, ssrc, blocks, extension) = read(packets[0].as_ref());
        assert_eq!(ssrc, SSRCS[end], "one source number for all that an end says");
        *if is_sender { &mut senders[end] } else { &mut receivers[end] } += 1;
        for block in blocks {
            assert_eq!((block.ssrc, block.fraction_lost, block.total_lost), (SSRCS[1 - end], 0, 0));
        }
        assert!(blocks.len() <= 1);
        let JointExtension { report, request } = JointExtension::parse(extension).expect("ours");
        requests[end] += usize::from(!request.is_empty());
        answers[end] += usize::from(!report.is_empty());
        both += usize::from(!request.is_empty() && !report.is_empty());
        assert!(report.is_empty() || blocks.len() == 1, "what is answered stands in a block");
        if let Some(description) = packets.get(1) {
            let description = description.as_any().downcast_ref::<SourceDescription>().expect("an SDES");
            let chunk = &description.chunks[0];
            assert_eq!((chunk.source, &chunk.items[0].text[..]), (SSRCS[end], NAMES[end].as_bytes()));
            assert!(extension.is_empty(), "compounds are for other tools");
            names[end] += 1;
        }
        if let Some(goodbye) = packets.get(2) {
            goodbyes.extend(goodbye.as_any().downcast_ref::<Goodbye>().expect("a BYE").sources.clone());
        }
    }
    assert_eq!(receivers[0], 0, "the near end sends all the time");
    assert!(receivers[1] >= 7 && senders[1] >= 10, "{receivers:?} {senders:?}");
    // The endpoint `far` pauses its media at 3 s, sends its last request at about 3.5 s, and answers requests all the
    // time.
    assert_eq!((requests, answers), ([14, 7], [7, 13]), "{both} in one datagram");
    assert!(names[0] >= 2 && names[1] >= 1, "{names:?}");
    assert_eq!(goodbyes, [SSRCS[0]]);
}
