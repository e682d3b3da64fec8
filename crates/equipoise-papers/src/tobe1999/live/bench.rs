//! One live run: the emulator, two connections and a flow pair, and what their applications tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender as Post};
use std::thread;

use equipoise::units::{Size, Span};
use equipoise_net::flow_pair::{PairConfig, PairListener, PairReceiver, PairSender, PairState, WindowControl};
use equipoise_net::{
    Clock, Emulator, EmulatorConfig, Lateness, NetError, Place, Protocol, Route, RunningTcp, TcpEnds, TcpPlan,
    TcpSupply, TestBed, Time,
};
use equipoise_pair::Event;
use equipoise_pair::tpba::Period;

use equipoise_lab::result::PairTransport;
use equipoise_lab::scenario::Scenario;

use super::super::fig10::{ADU2, Visit};
use super::super::setting::{AduSeen, Began, FIG10, Trace};
use super::{Case, PAIR_START_S};
use crate::experiment::parse;

/// From the first socket to the first packet: the kernel needs some milliseconds to begin stamping arrivals.
const LEAD: Span = Span::from_millis(100);
/// How often the interrupt and the progress are looked at.
const TICK: Span = Span::from_millis(50);
/// The pair's port at both hosts: nobody else is in its namespaces.
const PORT: u16 = 5004;
/// IP packets of TCP, and of RTP with 512 bytes of an ADU: 28 of IP and UDP, 28 of RTP with the sending time, 20 of the part.
const SEGMENT: Size = Size::from_bytes(1500);
const RTP_PACKET: Size = Size::from_bytes(588);
/// Of a segment of 1500 bytes: headers and timestamps take the rest.
const SEGMENT_DATA: f64 = 1448.0;
/// What stands before an ADU over TCP.
const ADU_HEADER: u64 = 12;
/// Bytes of an ADU in an RTP packet.
const PART: u64 = 512;

/// What was seen of a live run.
pub(super) struct Seen {
    pub(super) trace: Trace,
    pub(super) missing: u64,
    /// Most segments in flight of a TCP flow.
    pub(super) in_flight: u32,
    pub(super) state: PairState,
    pub(super) late: Option<Lateness>,
}

/// What the applications of a run tell.
enum Note {
    Tcp { flow: usize, at: Time, delivered: Size, in_flight: u32 },
    Adu { at: Time, number: u64, missing: u64, over: Period, bytes: u64 },
    Began { at: Time, period: Period, adu: u64 },
}

/// One run; `None` where it was interrupted.
pub(super) fn live(
    case: Case,
    visit: Visit,
    window_control: Option<WindowControl>,
    (stop, progress): (&AtomicBool, &dyn Fn(f64)),
) -> Result<Option<Seen>, NetError> {
    let (clock, bed) = (Clock::new(), TestBed::new()?);
    bed.set(Place::Near, "net/ipv4/tcp_slow_start_after_idle", "0")?;
    if let Some(buffers) = case.receive_buffers() {
        bed.set(Place::Far, "net/ipv4/tcp_rmem", buffers)?;
    }
    let open = || TcpEnds::open(&bed, case.control, SEGMENT);
    let ends = [open()?, open()?];
    let (post, notes) = mpsc::channel();
    let origin = clock.now() + LEAD;
    let emulator = Emulator::start_in(&bed, &clock, emulated(origin, &ends))?;
    let mut listener = bed.inside(Place::Far, || PairListener::bind((TestBed::FAR, PORT).into()))?;
    let streams = start_tcp(ends, &clock, origin, visit, &post)?;
    clock.sleep_until(origin + seconds(PAIR_START_S));
    let sender = connect((case, window_control), &bed, &post)?;
    let over = Arc::new(AtomicBool::new(false));
    let sending = thread::spawn({
        let over = over.clone();
        move || supply(sender, &over)
    });
    let receiving = listener.accept().map(|receiver| {
        let clock = clock.clone();
        thread::spawn(move || consume(receiver, &clock, &post))
    });
    let end = origin + seconds(visit.duration_s);
    while clock.now() < end && !stop.load(Ordering::Relaxed) && emulator.is_running() {
        clock.sleep_until(end.min(clock.now() + TICK));
        progress(((clock.now() - origin).as_secs_f64() / visit.duration_s).min(1.0));
    }
    let complete = clock.now() >= end;
    over.store(true, Ordering::Relaxed);
    let lost = || NetError::Panicked { name: "application".to_owned() };
    let state = sending.join().map_err(|_| lost())??;
    if let Some(receiving) = receiving {
        receiving.join().map_err(|_| lost())?;
    }
    for stream in streams {
        stream.stop()?;
    }
    let late = emulator.stop()?.lateness;
    let notes: Vec<_> = notes.try_iter().collect();
    let (trace, missing, in_flight) = read(&notes, origin, visit);
    Ok(complete.then_some(Seen { trace, missing, in_flight, state, late }))
}

/// Starts the TCP flows, each at its time.
fn start_tcp(
    ends: [TcpEnds; 2],
    clock: &Clock,
    origin: Time,
    visit: Visit,
    post: &Post<Note>,
) -> Result<Vec<RunningTcp>, NetError> {
    let times = [(0.0, None), (visit.second.0, Some(visit.second.1))];
    let start = |(flow, (ends, (start, end))): (usize, (TcpEnds, (f64, Option<f64>)))| {
        let (start, stop) = (origin + seconds(start), end.map(|end| origin + seconds(end)));
        let plan = TcpPlan { start, stop, supply: TcpSupply::Unlimited, sample_interval: Span::from_secs(1), origin };
        let post = post.clone();
        ends.run(clock, plan, move |at, state| {
            let (delivered, in_flight) = (state.delivered, state.in_flight);
            tell(&post, Note::Tcp { flow, at, delivered, in_flight });
        })
    };
    ends.into_iter().zip(times).enumerate().map(start).collect()
}

/// Opens the pair.
fn connect(
    (case, window_control): (Case, Option<WindowControl>),
    bed: &TestBed,
    post: &Post<Note>,
) -> Result<PairSender, NetError> {
    let config = PairConfig {
        packet_size: RTP_PACKET,
        congestion_control: Some(case.control.to_owned()),
        window_control,
        local: Some((TestBed::NEAR, PORT).into()),
        ..PairConfig::default()
    };
    let post = post.clone();
    bed.inside(Place::Near, || {
        PairSender::connect_observed((TestBed::FAR, PORT).into(), &config, move |at, event| {
            if let Event::Began { period, adu, .. } = *event {
                tell(&post, Note::Began { at, period, adu });
            }
        })
    })
}

fn seconds(seconds: f64) -> Span {
    Span::from_secs_f64(seconds).unwrap_or(Span::ZERO)
}

fn tell(post: &Post<Note>, note: Note) {
    // The main thread outlives the ends; if it is gone, there is nobody to tell.
    let _ = post.send(note);
}

/// The application that sends: it always has another ADU.
fn supply(mut sender: PairSender, over: &AtomicBool) -> Result<PairState, NetError> {
    let adu = vec![0; ADU2.as_bytes() as usize];
    while !over.load(Ordering::Relaxed) {
        if sender.send(&adu).is_err() {
            return sender.close();
        }
    }
    Ok(sender.state())
}

/// The application that receives.
fn consume(mut receiver: PairReceiver, clock: &Clock, post: &Post<Note>) {
    while let Some(adu) = receiver.recv() {
        let (number, missing, over, bytes) = (adu.number, adu.missing, adu.over, adu.data.len() as u64);
        tell(post, Note::Adu { at: clock.now(), number, missing, over, bytes });
    }
}

/// The links of the simulated setting (bottleneck, way back, access of each flow, and one for noise), and a way over them for each flow: two of TCP, and the pair's two.
fn emulated(origin: Time, ends: &[TcpEnds; 2]) -> EmulatorConfig {
    let Scenario { links, .. } = parse(FIG10);
    let links = links.into_iter().map(|link| link.config).collect();
    let route = |access, protocol, sender, receiver| {
        let (forward, backward) = (vec![access, 0], vec![1]);
        Route { forward, backward, protocol, sender, receiver }
    };
    let tcp = Protocol::Tcp { packet: SEGMENT };
    let (near, far) = ((TestBed::NEAR, PORT).into(), (TestBed::FAR, PORT).into());
    let [first, second] = ends;
    let routes = vec![
        route(2, tcp, first.sender(), first.receiver()),
        route(3, tcp, second.sender(), second.receiver()),
        route(4, tcp, near, far),
        route(4, Protocol::Udp, near, far),
    ];
    EmulatorConfig::new(origin, links, routes)
}

/// Rates by the second; ADUs that are missing; most segments that a TCP flow had in flight.
fn read(notes: &[Note], origin: Time, visit: Visit) -> (Trace, u64, u32) {
    let length = visit.duration_s as usize;
    let mut trace = Trace { rates: vec![vec![0.0; length]; 3], ..Trace::default() };
    let (mut missing_adus, mut most) = (0, 0);
    let mut before = [Size::ZERO; 2];
    for note in notes {
        match *note {
            Note::Tcp { flow, at, delivered, in_flight } => {
                let news = delivered - std::mem::replace(&mut before[flow], delivered);
                let bits = news.as_bytes() as f64 * 8.0 * SEGMENT.as_bytes() as f64 / SEGMENT_DATA;
                let second = ((at - origin).as_secs_f64().round() as usize).checked_sub(1);
                if let Some(rate) = second.and_then(|second| trace.rates[flow].get_mut(second)) {
                    *rate += bits;
                }
                most = most.max(in_flight);
            }
            Note::Adu { at, number, missing, over, bytes } => {
                let at = (at - origin).as_secs_f64().max(0.0);
                if let Some(rate) = trace.rates[2].get_mut(at as usize) {
                    *rate += 8.0 * ip_bytes(over, bytes);
                }
                missing_adus += missing;
                trace.adus.push(AduSeen { at_s: at, number, over: transport(over) });
            }
            Note::Began { at, period, adu } => {
                let at_s = (at - origin).as_secs_f64();
                trace.began.push(Began { at_s, over: transport(period), first_adu: adu });
            }
        }
    }
    (trace, missing_adus, most)
}

const fn transport(period: Period) -> PairTransport {
    match period {
        Period::Probing => PairTransport::Tcp,
        Period::Running => PairTransport::Rtp,
    }
}

/// Bytes of the IP packets that carry an ADU.
fn ip_bytes(over: Period, bytes: u64) -> f64 {
    match over {
        Period::Probing => (bytes + ADU_HEADER) as f64 * SEGMENT.as_bytes() as f64 / SEGMENT_DATA,
        Period::Running => {
            let parts = bytes.div_ceil(PART).max(1);
            (bytes + parts * (RTP_PACKET.as_bytes() - PART)) as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{VISIT, response_s};
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::ZERO + super::seconds(seconds)
    }

    #[test]
    fn rates_are_of_ip_packets_by_the_second() {
        let tcp = |at_s, flow, segments: u64| {
            let delivered = Size::from_bytes(segments * 1448);
            Note::Tcp { flow, at: at(at_s), delivered, in_flight: segments as u32 }
        };
        let adu = |at_s, number, missing, over| Note::Adu { at: at(at_s), number, missing, over, bytes: 5120 };
        let notes = [
            tcp(1.0, 0, 10),
            tcp(2.0, 0, 30),
            tcp(2.0, 1, 5),
            adu(0.5, 0, 0, Period::Running),
            adu(1.5, 3, 2, Period::Probing),
            Note::Began { at: at(1.2), period: Period::Probing, adu: 3 },
        ];
        let (trace, missing, in_flight) = read(&notes, Time::ZERO, VISIT);
        assert!((trace.rates[0][0] - 120_000.0).abs() < 1e-6 && (trace.rates[0][1] - 240_000.0).abs() < 1e-6);
        assert!((trace.rates[1][1] - 60_000.0).abs() < 1e-6);
        // Ten packets of 588 bytes; 5132 bytes of TCP's data.
        assert!((trace.rates[2][0] - 47_040.0).abs() < 1e-6);
        assert!((trace.rates[2][1] - 8.0 * 5132.0 * 1500.0 / 1448.0).abs() < 1e-6);
        assert_eq!((missing, in_flight, trace.began.len()), (2, 30, 1));
        assert_eq!(response_s(&trace, 1.0), None, "probing is no answer yet");
    }
}
