use super::*;

const LINK: &str = "name = \"phases\"\nduration = \"100 s\"\n[[link]]\nname = \"path\"\nrate = \"1 Mbit/s\"\ndelay = \"50 ms\"\nqueue = \"300 ms\"\n";

fn plan(text: &str) -> Plan {
    let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    Plan::new(&scenario).expect("media")
}

/// Returns the text of a session over the link `path`, with the additional keys in `keys`.
fn session(name: &str, keys: &str) -> String {
    format!(
        "[[flow]]\nname = \"{name}\"\npath = [\"path\"]\npacket_size = \"1200 B\"\nreport_interval = \"100 ms\"\n\
         controller = {{ name = \"cbr\", rate = \"800 kbit/s\" }}\n{keys}\n"
    )
}

fn secs(phases: &[Phase]) -> Vec<[f64; 2]> {
    phases.iter().map(|phase| [phase.start.as_secs_f64(), phase.end.as_secs_f64()]).collect()
}

/// RFC 8867, Sec. 5.1: capacities of 1, 2.5, 0.6 and 1 Mbit/s.
#[test]
fn steps_of_the_link_bound_phases_and_its_falls_are_known() {
    let steps = "steps = [{ at = \"40 s\", rate = \"2.5 Mbit/s\" }, { at = \"60 s\", rate = \"0.6 Mbit/s\" }, { at = \"80 s\", rate = \"1 Mbit/s\" }]\n";
    let found = plan(&format!("{LINK}{steps}{}", session("media", "")));
    assert_eq!(secs(&found.phases), [[0.0, 40.0], [40.0, 60.0], [60.0, 80.0], [80.0, 100.0]]);
    assert_eq!(found.falls, [Span::from_secs(60)]);
    let bottlenecks: Vec<_> = found.phases.iter().map(|phase| phase.bottlenecks.as_slice()).collect();
    for (bottlenecks, (capacity, usable)) in bottlenecks.iter().zip([(1.0, 0.8), (2.5, 0.8), (0.6, 0.6), (1.0, 0.8)]) {
        let [only] = bottlenecks else { panic!("{bottlenecks:?}") };
        assert_eq!((only.link.as_str(), only.ways.as_slice()), ("path", [Way { flow: 0, path: 0 }].as_slice()));
        assert!((only.capacity_bps / 1e6 - capacity).abs() < 1e-9 && (only.usable_bps / 1e6 - usable).abs() < 1e-9);
    }
}

#[test]
fn flows_that_come_pause_and_stop_bound_phases() {
    let tcp = "[[flow]]\nname = \"tcp\"\npath = [\"path\"]\npacket_size = \"1500 B\"\nstart = \"10 s\"\nstop = \"30 s\"\nwindow = { name = \"reno\" }\n";
    let late = session("late", "start = \"20 s\"\npause = [{ at = \"50 s\", until = \"60 s\" }]");
    let found = plan(&format!("{LINK}{}{tcp}{late}", session("early", "")));
    assert_eq!(
        secs(&found.phases),
        [[0.0, 10.0], [10.0, 20.0], [20.0, 30.0], [30.0, 50.0], [50.0, 60.0], [60.0, 100.0]]
    );
    let there: Vec<_> = found.phases.iter().map(|phase| (phase.media.as_slice(), phase.tcp.as_slice())).collect();
    let expected: [(&[usize], &[usize]); 6] =
        [(&[0], &[]), (&[0], &[1]), (&[0, 2], &[1]), (&[0, 2], &[]), (&[0], &[]), (&[0, 2], &[])];
    assert_eq!(there, expected);
    assert!(found.falls.is_empty(), "TCP takes what it takes");
}

/// RFC 8867, Sec. 4.2: traffic that does not adapt its rate may change the capacity that is left to media.
#[test]
fn planned_background_traffic_takes_its_part_of_the_capacity() {
    let load = "[[flow]]\nname = \"load\"\npath = [\"path\"]\npacket_size = \"1000 B\"\nstart = \"5 s\"\n\
                source = { kind = \"constant\", rate = \"250 kbit/s\", steps = [{ at = \"20 s\", rate = \"100 kbit/s\" }, { at = \"40 s\", rate = \"700 kbit/s\" }] }\n";
    let found = plan(&format!("{LINK}{load}{}", session("media", "")));
    let left: Vec<_> = found
        .phases
        .iter()
        .map(|phase| (phase.start.as_secs_f64(), phase.bottlenecks[0].capacity_bps.round() as u64))
        .collect();
    // The times of a flow's rate steps are relative to the start of the flow.
    assert_eq!(left, [(0.0, 1_000_000), (5.0, 750_000), (25.0, 900_000), (45.0, 300_000)]);
    assert_eq!(found.falls, [Span::from_secs(5), Span::from_secs(45)]);
}

/// Video: 30 frames/s of 50 000 bits, each in six packets with 56 bytes of headers per packet. Audio: 50 frames/s of
/// 400 bits, each in one packet.
#[test]
fn live_media_use_no_more_than_their_greatest_rate_with_its_headers() {
    let live =
        session("call", "source = [{ kind = \"encoder\" }, { kind = \"audio\" }]").replace("800 kbit", "5000 kbit");
    let found = plan(&format!("{}{live}", LINK.replace("1 Mbit/s", "4 Mbit/s")));
    let headers = 56.0 * 8.0 * (30.0 * 6.0 + 50.0);
    let usable = found.phases[0].bottlenecks[0].usable_bps;
    assert!((usable - (1.5e6 + 20e3 + headers)).abs() < 1.0, "{usable}");
}

/// RFC 8867, Sec. 5.3: one media flow in each direction. Each direction of the link is the bottleneck of one flow.
#[test]
fn flows_both_ways_have_a_bottleneck_each() {
    let back = session("back", "direction = \"back\"").replace("800", "300");
    let found = plan(&format!("{LINK}back = {{ rate = \"0.5 Mbit/s\" }}\n{}{back}", session("there", "")));
    let found: Vec<_> = found.phases[0]
        .bottlenecks
        .iter()
        .map(|link| (link.link.as_str(), (link.capacity_bps / 1e3).round(), (link.usable_bps / 1e3).round()))
        .collect();
    assert_eq!(found, [("path", 1000.0, 800.0), ("path (back)", 500.0, 300.0)]);
}

/// RFC 8867, Sec. 6.3: a flow passes two narrow links, and the second one is another flow's bottleneck. The first flow
/// is counted at both links.
#[test]
fn each_flows_narrowest_link_is_a_bottleneck() {
    let wide = "[[link]]\nname = \"wide\"\nrate = \"8 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"300 ms\"\n";
    let second = wide.replace("wide", "second").replace("8 Mbit/s", "1.5 Mbit/s");
    let over = |name: &str, path: &str| session(name, "").replace("[\"path\"]", path);
    let flows = [over("all", "[\"path\", \"wide\", \"second\"]"), over("last", "[\"wide\", \"second\"]")].concat();
    let found = plan(&format!("{LINK}{wide}{second}{flows}"));
    let ways: Vec<_> = found.phases[0]
        .bottlenecks
        .iter()
        .map(|link| (link.link.as_str(), link.ways.iter().map(|way| way.flow).collect::<Vec<_>>()))
        .collect();
    assert_eq!(ways, [("path", vec![0]), ("second", vec![0, 1])]);
}

#[test]
fn a_capacity_that_changes_all_the_time_bounds_no_phase() {
    let steps: Vec<_> = (1..100)
        .map(|at| format!("{{ at = \"{at} s\", rate = \"{} Mbit/s\" }}", if at % 2 == 0 { 1 } else { 2 }))
        .collect();
    let found = plan(&format!("{LINK}steps = [{}]\n{}", steps.join(", "), session("media", "")));
    assert_eq!((secs(&found.phases), found.falls.len()), (vec![[0.0, 100.0]], 0));
    assert!((found.phases[0].bottlenecks[0].capacity_bps - 1.5e6).abs() < 1.0, "its mean");
}

#[test]
fn without_media_there_are_no_phases() {
    let tcp = "[[flow]]\nname = \"tcp\"\npath = [\"path\"]\npacket_size = \"1500 B\"\nwindow = { name = \"reno\" }\n";
    let scenario = Scenario::parse(&format!("{LINK}{tcp}")).expect("a right scenario");
    assert_eq!(Plan::new(&scenario), None);
}
