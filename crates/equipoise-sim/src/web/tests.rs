use equipoise::control::window::Reno;
use equipoise::units::{Rate, Schedule, Size, Span};
use equipoise_path::link::{LinkConfig, Loss, PipeConfig, QueueLimit, Reordering};
use equipoise_path::source::WebConfig;

use super::*;
use crate::{Flow, FlowId, LinkId, PathLinks, Side, World};

/// Size of the IP packet of a full segment.
const PACKET: Size = Size::from_bytes(1500);

fn link(mbps: u64, delay_ms: i64) -> LinkConfig {
    LinkConfig {
        rate: Schedule::constant(Rate::from_bps(mbps * 1_000_000)),
        propagation_delay: Span::from_millis(delay_ms),
        queue: QueueLimit::Packets(1000),
    }
}

fn traffic(config: WebConfig, seed: u64) -> (WebNear, WebFar) {
    let law = |_| Some(Law::Window(Box::new(Reno::new(10.0))));
    let (near, far) = (SenderConfig::new(PACKET), ReceiverConfig::new());
    web(WebParts { web: config, seed, near, far, law: Box::new(law) }).expect("right")
}

/// Creates a simulation of web traffic with one link in each direction.
fn world(config: WebConfig, links: [PipeConfig; 2], seed: u64) -> (World, FlowId) {
    let mut world = World::seeded(seed);
    let [there, back]: [LinkId; 2] = links.map(|link| world.add_link(link).expect("right"));
    let (near, far) = traffic(config, seed);
    let paths = vec![PathLinks::new(vec![there], vec![back]); near.places()];
    let flow = world.add_flow(Flow { near: Box::new(near), far: Box::new(far), paths }).expect("right");
    (world, flow)
}

fn run(world: &mut World, seconds: i64) {
    world.run(
        Time::ZERO + Span::from_secs(seconds),
        &mut |_: Time, _: FlowId, _: Side, _: &equipoise_session::Event| {},
    );
}

fn wide() -> [PipeConfig; 2] {
    [link(1000, 50), link(1000, 50)].map(Into::into)
}

/// RFC 8868, Sec. 5.1 with one connection per burst: each of ten flows fetches 40 kB on average, is idle for 10 s on
/// average, and repeats this. The offered rate is 0.30 to 0.32 Mbit/s, depending on the duration of a fetch.
#[test]
fn ten_flows_of_one_connection_offer_0_31_mbit_a_second_on_a_path_that_is_wide_enough() {
    let (mut world, flow) = world(WebConfig::STANDARD, wide(), 1);
    let lasts = 20_000;
    run(&mut world, lasts);
    let fetched = world.far_mut::<WebFar>(flow).expect("its end").take_fetched();
    let (near, far) = (world.near::<WebNear>(flow).expect("its end"), world.far::<WebFar>(flow).expect("its end"));
    let offered = far.delivered().as_bits() as f64 / lasts as f64 / 1e6;
    assert!((0.30..0.32).contains(&offered), "{offered} Mbit/s");
    // A flow is ON until the last acknowledgement arrives. This acknowledgement arrives half a round-trip time after
    // the last data. If the receiver delays the acknowledgement, the delay is added.
    let took = fetched.iter().map(|fetch| (fetch.completed - fetch.opened).as_secs_f64()).sum::<f64>();
    let mean = took / fetched.len() as f64;
    let share = near.time_on(world.now()).as_secs_f64() / (10.0 * lasts as f64);
    let renewal = |on: f64| on / (on + 10.0);
    assert!((renewal(mean + 0.05) * 0.97..renewal(mean + 0.25) * 1.03).contains(&share), "{share} for {mean} s");
    // SYN and SYN-ACK take one round-trip time of 100 ms. The 21 to 35 segments in slow start take 1.5 or 2.5 more
    // round-trip times.
    assert!((0.24..0.45).contains(&mean), "{mean} s");
}

/// A fetch of one segment: SYN, SYN-ACK and one data segment, each with its transmission time at 1 Mbit/s and a
/// propagation delay of 10 ms.
#[test]
fn a_fetch_takes_the_time_of_its_packets_to_the_nanosecond_and_each_begins_anew() {
    let size = Size::from_bytes(1210);
    let config = WebConfig { flows: 1, on: 1, smallest: size, largest: size, ..WebConfig::STANDARD };
    let (mut one, flow) = world(config, [link(1, 10), link(1, 10)].map(Into::into), 1);
    run(&mut one, 500);
    let fetched = one.far_mut::<WebFar>(flow).expect("its end").take_fetched();
    assert!(fetched.len() > 30, "{}", fetched.len());
    // The IP packets have 52, 52 and 1250 bytes.
    let expected = Span::from_millis(30) + Span::from_micros(416 + 416 + 10_000);
    assert!(fetched.iter().all(|fetch| fetch.completed - fetch.opened == expected), "{fetched:?}");
    // Each fetch has 40 kB. A connection must start without knowledge of the path from earlier connections. So all
    // fetches must take the same time.
    let size = Size::from_bytes(40_000);
    let (mut many, flow) = world(WebConfig { smallest: size, largest: size, ..config }, wide(), 1);
    run(&mut many, 500);
    let fetched = many.far_mut::<WebFar>(flow).expect("its end").take_fetched();
    let first = fetched[0].completed - fetched[0].opened;
    assert!(fetched.len() > 30 && fetched.iter().all(|fetch| fetch.completed - fetch.opened == first), "{fetched:?}");
}

/// If this test fails, segments of one fetch are mistaken for segments of another fetch, or data is counted twice.
#[test]
fn no_byte_is_lost_or_counted_twice_over_links_that_lose_repeat_and_reorder() {
    for (seed, connections) in [(1, 1), (2, 7), (3, 30)] {
        let config = WebConfig { flows: 4, on: 2, connections, idle: Span::from_millis(5), ..WebConfig::STANDARD };
        let rough = || {
            let mut config = PipeConfig::from(link(10, 10));
            config.loss = Loss::Random("2%".parse().expect("a share")).into();
            config.duplication = "2%".parse().expect("a share");
            config.reordering = Some(Reordering { share: "2%".parse().expect("a share"), by: Span::from_millis(300) });
            config
        };
        let (mut world, flow) = world(config, [rough(), rough()], seed);
        run(&mut world, 30);
        let far = world.far_mut::<WebFar>(flow).expect("its end");
        let fetched = far.take_fetched();
        assert!(far.take_fetched().is_empty(), "each is told once");
        let far = world.far::<WebFar>(flow).expect("its end");
        let near = world.near::<WebNear>(flow).expect("its end");
        assert!(fetched.len() > 200, "{}", fetched.len());
        let complete = fetched.iter().map(|fetch| fetch.size.as_bytes()).sum::<u64>();
        let open = near.opened() - fetched.len() as u64;
        assert!(open <= near.places() as u64, "{open}");
        let rest = far.delivered().as_bytes() - complete;
        assert!(rest < open * config.largest.as_bytes() + 1, "{rest} bytes of {open} fetches");
        assert!(fetched.iter().all(|fetch| (config.smallest..=config.largest).contains(&fetch.size)));
        assert!(near.stats().resent_in_recovery > 0 && near.stats().sent >= far.received());
    }
}

#[test]
fn after_its_stop_no_fetch_begins_and_those_that_are_open_are_completed() {
    let config = WebConfig { flows: 3, on: 3, connections: 2, ..WebConfig::STANDARD };
    let mut stopped = World::seeded(1);
    let [there, back] = [(); 2].map(|()| stopped.add_link(link(1, 50)).expect("right"));
    let law = |_| Some(Law::Controller(Box::new(equipoise::control::Cbr::new(Rate::from_bps(1_000_000)))));
    let stop = Some(Time::ZERO + Span::from_millis(200));
    let near = SenderConfig { stop, ..SenderConfig::new(PACKET) };
    let parts = WebParts { web: config, seed: 1, near, far: ReceiverConfig::new(), law: Box::new(law) };
    let (near, far) = web(parts).expect("right");
    let paths = vec![PathLinks::new(vec![there], vec![back]); near.places()];
    let flow = stopped.add_flow(Flow { near: Box::new(near), far: Box::new(far), paths }).expect("right");
    run(&mut stopped, 100);
    let fetched = stopped.far_mut::<WebFar>(flow).expect("its end").take_fetched();
    let near = stopped.near::<WebNear>(flow).expect("its end");
    assert_eq!((near.opened(), fetched.len()), (6, 6));
    assert!(
        fetched.iter().all(|fetch| fetch.opened == Time::ZERO && fetch.completed > Time::ZERO + Span::from_millis(200))
    );
}

#[test]
fn traffic_that_cannot_be_is_refused_by_what_is_wrong() {
    let none = |near: SenderConfig, config: WebConfig, has_law: bool| {
        let law = move |_| has_law.then(|| Law::Controller(Box::new(equipoise::control::Cbr::new(Rate::from_bps(1)))));
        let parts = WebParts { web: config, seed: 1, near, far: ReceiverConfig::new(), law: Box::new(law) };
        web(parts).err().expect("wrong on purpose").to_string()
    };
    let (near, right) = (SenderConfig::new(PACKET), WebConfig::STANDARD);
    assert!(none(near.clone(), WebConfig { on: 11, ..right }, true).contains("its on"));
    assert!(none(SenderConfig::new(Size::from_bytes(40)), right, true).contains("40 B"));
    assert!(none(near, right, false).contains("no law"));
}
