//! Tests that a simulation allocates no memory for packets after its queues have been full for the first time, and that
//! its memory use does not grow.

mod laws;
mod sessions;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use equipoise::control::Cbr;
use equipoise::control::adapt::Windowed;
use equipoise::control::window::Reno;
use equipoise::measure::ClockMap;
use equipoise::units::{Instant, Rate, Schedule, Size, Span};
use equipoise_path::link::{LinkConfig, QueueLimit};
use equipoise_path::source::{Source, Traffic};
use equipoise_session::Event;
use equipoise_session::rtp::{Receiver, ReceiverConfig, Sender, SenderConfig, StreamConfig};
use equipoise_sim::tcp::{self, LossRecovery};
use equipoise_sim::{Flow, FlowId, LinkId, Side, Stream, Time, World};

/// Counts the allocations of each thread, and the bytes that the thread has allocated minus the bytes that it has
/// freed. Each test runs in its own thread, together with its simulation.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static HELD_BYTES: Cell<i64> = const { Cell::new(0) };
}

fn hold(bytes: i64) {
    // A thread may free memory after its own counters are destroyed; such memory is not counted.
    let _ = HELD_BYTES.try_with(|held| held.set(held.get() + bytes));
}

// SAFETY: every call is passed on to the system's allocator unchanged.
#[expect(unsafe_code, reason = "counting allocations takes an allocator, whose trait is unsafe")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        hold(layout.size() as i64);
        // SAFETY: the caller's guarantee about `layout` is passed on to the system's allocator.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        hold(-(layout.size() as i64));
        // SAFETY: the caller's guarantee about `pointer` and `layout` is passed on to the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const PACKET: Size = Size::from_bytes(1000);

fn mbps(mbps: u64) -> Rate {
    Rate::from_bps(mbps * 1_000_000)
}

fn add_link(world: &mut World, rate: Rate, queue: u32) -> LinkId {
    let propagation_delay = Span::from_millis(1);
    let queue = QueueLimit::Packets(queue);
    world.add_link(LinkConfig { rate: Schedule::constant(rate), propagation_delay, queue }).expect("a valid link")
}

fn ends(ssrc: u32) -> (StreamConfig, Receiver) {
    let stream = StreamConfig::new(ssrc, 96, PACKET, "s");
    let clocks = ClockMap::SYNCHRONISED;
    let far = ReceiverConfig::new(ssrc + 1, "r", ssrc, clocks, 1);
    (stream, Receiver::new(far).expect("a valid configuration"))
}

/// A session and background traffic over one bottleneck. Each sender has its own access link, whose counters are the
/// exact numbers of packets sent.
struct Dumbbell {
    world: World,
    access: [LinkId; 3],
    bottleneck: LinkId,
}

impl Dumbbell {
    /// For two seconds, background traffic floods the bottleneck, so that all buffers reach their maximum size. After
    /// this, media and background traffic overload the bottleneck slightly, so that packets are dropped. A memory leak
    /// in a drop is detected only after many drops, because leaked packets first use the spare capacity of the buffers.
    fn new() -> Self {
        let mut world = World::new();
        let access = [(); 3].map(|()| add_link(&mut world, mbps(1000), 1000));
        let bottleneck = add_link(&mut world, mbps(15), 100);
        let [there, cross, back] = access;

        let (stream, far) = ends(10);
        let config = SenderConfig::new(stream, Span::from_secs(1), Instant::ZERO, 1);
        let near = Sender::new(config, Box::new(Cbr::new(mbps(3)))).expect("a valid configuration");
        let (forward, backward) = (vec![there, bottleneck], vec![back]);
        world.add_flow(Flow::new(near, far, forward, backward)).expect("links of this world");

        let rate = Schedule::new(mbps(40), vec![(Span::from_secs(2), mbps(14))]);
        let source = Source::new(Traffic::Poisson, rate, PACKET, Instant::ZERO, (1, 1));
        world.add_stream(Stream { source, forward: vec![cross, bottleneck] }).expect("links of this world");
        Self { world, access, bottleneck }
    }

    /// Runs the simulation until the time `millis`, in ms. Returns three numbers: media packets sent, including those
    /// of background traffic; RTCP packets sent; and allocations.
    fn run(&mut self, millis: u64) -> (u64, u64, u64) {
        let mut media = 0;
        let (sent, allocations) = (self.sent(), ALLOCATIONS.get());
        self.world.run(Time::from_nanos(millis * 1_000_000), &mut |_: Time, _: FlowId, _: Side, event: &Event| {
            media += u64::from(matches!(event, Event::MediaSent { .. }));
        });
        let allocations = ALLOCATIONS.get() - allocations;
        (media, self.sent() - sent - media, allocations)
    }

    fn dropped(&self) -> u64 {
        self.world.link_stats(self.bottleneck).map_or(0, |stats| stats.dropped())
    }

    fn sent(&self) -> u64 {
        let stats = self.access.iter().filter_map(|link| self.world.link_stats(*link));
        stats.map(|stats| stats.left + stats.dropped()).sum()
    }
}

/// A session allocates one buffer for each RTCP packet that it writes. If the test fails, the simulation allocates more
/// than these buffers, or its memory use grows.
#[test]
fn a_warm_world_allocates_for_reports_alone_and_does_not_grow() {
    let mut dumbbell = Dumbbell::new();
    dumbbell.run(20_000);
    let (held, dropped) = (HELD_BYTES.get(), dumbbell.dropped());
    let (mut packets, mut quiet_packets, mut reports) = (0, 0, 0);
    for step in 1..=4_000 {
        let (media, sent_reports, allocations) = dumbbell.run(20_000 + 20 * step);
        assert!(allocations <= sent_reports, "step {step}: {allocations} allocations for {sent_reports} reports");
        packets += media;
        reports += sent_reports;
        quiet_packets += if sent_reports == 0 { media } else { 0 };
    }
    assert!(reports > 160, "80 requests and their answers, and compounds: {reports}");
    assert!(packets > 165_000 && quiet_packets * 10 > packets * 9, "{quiet_packets} of {packets} beside no report");
    assert!(dumbbell.dropped() - dropped > 10_000, "this dumbbell is overloaded");
    let growth = HELD_BYTES.get() - held;
    assert!(growth <= 0, "{growth} bytes more after 80 s than before them");
}

/// The first congestion windows are larger than all later ones, so all buffers in memory reach their maximum size at
/// the start. Later recoveries and timeouts must not allocate.
#[test]
fn warm_connections_allocate_nothing_and_do_not_grow() {
    let law = || tcp::Law::Window(Box::new(Reno::new(100.0)));
    let kinds = [LossRecovery::Sack, LossRecovery::NewReno, LossRecovery::Sack];
    nothing_is_allocated(kinds.map(|recovery| (recovery, law())));
}

/// If this test fails, TCP connections with a controller that gets feedback on each packet allocate memory.
#[test]
fn warm_connections_under_controllers_allocate_nothing_for_a_packet() {
    let law = || tcp::Law::Controller(Box::new(Windowed::new(Reno::new(100.0), SEGMENT)));
    nothing_is_allocated([LossRecovery::Sack, LossRecovery::NewReno].map(|recovery| (recovery, law())));
}

const SEGMENT: Size = Size::from_bytes(1500);

/// Runs TCP connections over one bottleneck for 20 s, until all buffers have their maximum size. Then checks that
/// nothing is allocated in the next 100 s.
fn nothing_is_allocated<const N: usize>(connections: [(LossRecovery, tcp::Law); N]) {
    let mut world = World::new();
    let (there, back) = (add_link(&mut world, mbps(10), 50), add_link(&mut world, mbps(10), 1000));
    let flows = connections.map(|(recovery, law)| {
        let config = tcp::SenderConfig { recovery, ..tcp::SenderConfig::new(SEGMENT) };
        let near = tcp::Sender::new(config, law).expect("a valid configuration");
        let far = tcp::Receiver::new(tcp::ReceiverConfig::new()).expect("a valid configuration");
        world.add_flow(Flow::new(near, far, vec![there], vec![back])).expect("links of this world")
    });
    let mut run = |secs: i64| {
        world.run(Time::ZERO + Span::from_secs(secs), &mut |_: Time, _: FlowId, _: Side, _: &Event| {});
        let stats = flows.map(|flow| world.near::<tcp::Sender>(flow).expect("a connection").stats());
        stats.iter().fold((0, 0), |(sent, lost), stats| (sent + stats.sent, lost + stats.recoveries))
    };
    let before = run(20);
    let (held, allocations) = (HELD_BYTES.get(), ALLOCATIONS.get());
    let after = run(120);
    assert_eq!((ALLOCATIONS.get() - allocations, HELD_BYTES.get() - held), (0, 0));
    assert!(after.0 - before.0 > 80_000 && after.1 - before.1 > 100, "{before:?} {after:?}");
}
