//! Tests with a controller instead of a window law: its feedback, computed from acknowledgements, and the effect of its
//! window and rate.

use equipoise::control::{Allowance, Controller, Ecn, Fate, Feedback, Needs, SentPacket};

use super::*;
use crate::tcp::{Supply, TcpError};

/// A recorded call of a controller's function. `size` is in bytes, and `in_flight` is in full packets.
#[derive(Clone, Debug, PartialEq)]
enum News {
    Sent { number: u64, size: u64, in_flight: u64 },
    Packets { arrived: Vec<u64>, lost: Vec<u64>, round_trip: Option<Span>, in_flight: u64, app_limited: bool },
    TimedOut { in_flight: u64 },
    Timer,
}

/// A controller with a constant window and rate, which records its feedback.
#[derive(Clone, Debug)]
struct Steady {
    allowance: Allowance,
    needs: Needs,
    timer: Option<Instant<SenderClock>>,
    news: Arc<Mutex<Vec<News>>>,
}

impl Steady {
    fn new(allowance: Allowance) -> Self {
        Self { allowance, needs: Needs::PACKETS, timer: None, news: Arc::default() }
    }

    fn window(segments: u64) -> Self {
        Self::new(Allowance::window(Size::from_bytes(1500 * segments)))
    }

    fn tell(&self, news: News) {
        self.news.lock().unwrap().push(news);
    }

    /// Returns the feedback since the last call, without the reports of sent packets.
    fn news(&self) -> Vec<News> {
        let news = std::mem::take(&mut *self.news.lock().unwrap());
        news.into_iter().filter(|news| !matches!(news, News::Sent { .. })).collect()
    }
}

impl Controller for Steady {
    fn on_feedback(&mut self, _: Instant<SenderClock>, feedback: &Feedback<'_>) {
        match feedback {
            Feedback::Packets(feedback) => {
                let numbers = |fate| {
                    let packets = feedback.packets.iter().filter(move |packet| packet.fate == fate);
                    packets.map(|packet| packet.number).collect()
                };
                self.tell(News::Packets {
                    arrived: numbers(Fate::Arrived { at: None, ecn: Ecn::NotEct }),
                    lost: numbers(Fate::Lost),
                    round_trip: feedback.round_trip,
                    in_flight: feedback.in_flight.as_bytes() / 1500,
                    app_limited: feedback.app_limited,
                });
            }
            Feedback::TimedOut { in_flight } => self.tell(News::TimedOut { in_flight: in_flight.as_bytes() / 1500 }),
            other => panic!("{other:?} from TCP"),
        }
    }
    fn allowance(&self) -> Allowance {
        self.allowance
    }
    fn needs(&self) -> Needs {
        self.needs
    }
    fn on_sent(&mut self, _: Instant<SenderClock>, packet: &SentPacket) {
        let (size, in_flight) = (packet.size.as_bytes(), packet.in_flight.as_bytes() / 1500);
        self.tell(News::Sent { number: packet.number, size, in_flight });
    }
    fn on_timer(&mut self, _: Instant<SenderClock>) {
        self.tell(News::Timer);
    }
    fn next_timer(&self) -> Option<Instant<SenderClock>> {
        self.timer
    }
}

fn talk(config: SenderConfig, law: &Steady) -> Talk {
    Talk::of(Sender::new(config, Law::Controller(Box::new(law.clone()))).unwrap())
}

fn arrived(numbers: std::ops::Range<u64>, round_trip_ms: i64, in_flight: u64) -> News {
    let (arrived, round_trip) = (numbers.collect(), Some(ms(round_trip_ms)));
    News::Packets { arrived, lost: vec![], round_trip, in_flight, app_limited: false }
}

#[test]
fn each_acknowledgement_is_one_feedback_on_the_packets_that_it_covers() {
    let law = Steady::window(4);
    let mut talk = talk(bulk(LossRecovery::Sack), &law);
    talk.sends(0..4);
    let sent = std::mem::take(&mut *law.news.lock().unwrap());
    let expected = (0..4).map(|number| News::Sent { number, size: 1500, in_flight: number + 1 });
    assert_eq!(sent, expected.collect::<Vec<_>>());
    talk.after(100).ack(1).sends([4]).after(20).ack(3).sends([5, 6]);
    assert_eq!(law.news(), [arrived(0..1, 100, 4), arrived(1..3, 120, 4)]);
    // An acknowledgement without new information must cause no feedback.
    talk.ack(3).is_quiet();
    assert_eq!(law.news(), []);
}

/// A retransmission counts as a new packet. Its acknowledgement does not measure the round-trip time (Karn 1987).
#[test]
fn losses_and_what_came_behind_them_are_told_once_each_in_the_order_of_departure() {
    let law = Steady::window(6);
    let mut talk = talk(SenderConfig { limited_transmit: false, ..bulk(LossRecovery::Sack) }, &law);
    talk.sends(0..6).after(100);
    talk.sack(0, &[(1, 2)]).sack(0, &[(3, 4), (1, 2)]).sack(0, &[(3, 5), (1, 2)]);
    let of = |arrived: &[u64], lost: &[u64], in_flight| News::Packets {
        arrived: arrived.to_vec(),
        lost: lost.to_vec(),
        round_trip: None,
        in_flight,
        app_limited: false,
    };
    assert_eq!(law.news(), [of(&[1], &[], 6), of(&[3], &[], 5), of(&[4], &[0], 4)]);
    // Packet 6 is the retransmission of segment 0. The next three packets carry the new segments 6, 7 and 8.
    talk.sends([0, 6, 7, 8]).after(100).sack(3, &[(3, 5)]);
    assert_eq!(law.news(), [of(&[2, 6], &[], 6)]);
}

#[test]
fn a_timeout_is_told_and_what_it_gives_up() {
    let law = Steady::window(3);
    let mut talk = talk(bulk(LossRecovery::Sack), &law);
    talk.sends(0..3).after(1000).sends([0]);
    let lost = |lost: &[u64]| News::Packets {
        arrived: vec![],
        lost: lost.to_vec(),
        round_trip: None,
        in_flight: if lost.len() > 1 { 3 } else { 1 },
        app_limited: false,
    };
    assert_eq!(law.news(), [News::TimedOut { in_flight: 3 }, lost(&[0, 1, 2])]);
    // The timer expires again: packet 3 is lost, but the timeout is not reported again. Only one segment is sent until
    // an acknowledgement arrives.
    talk.after(2000).sends([0]);
    assert_eq!(law.news(), [lost(&[3])]);
    talk.ack(1).sends([1, 2, 3]);
}

/// If this test fails, a controller with a rate and no window sends at its full rate into a broken path.
#[test]
fn after_a_timeout_a_rate_sends_one_segment_at_a_time_until_an_acknowledgement() {
    let law = Steady::new(Allowance::rate(Rate::from_bps(1_200_000)));
    let mut talk = talk(bulk(LossRecovery::Sack), &law);
    // A segment leaves every 10 ms, until the retransmission timer expires after 1 s.
    talk.after(995).sends(0..100);
    talk.after(2900);
    assert_eq!(talk.out.len(), 1 + 1, "one at 1 s and one at 3 s");
    assert_eq!(talk.stats().timeouts, 2);
    talk.out.clear();
    talk.ack(1).after(95);
    assert_eq!(talk.out.len(), 10, "the rate holds again");
}

#[test]
fn a_rate_paces_and_a_window_in_bytes_limits_what_is_under_way() {
    let rate = Rate::from_bps(1_200_000);
    let both = Steady::new(Allowance::paced_window(rate, Size::from_bytes(4 * 1500 + 1499)));
    let mut talk = talk(bulk(LossRecovery::Sack), &both);
    talk.sends([0]).after(9).is_quiet().after(1).sends([1]).after(500).sends([2, 3]);
    assert!((talk.stats().window - 4.999).abs() < 0.001);
    talk.ack(4).sends([4]);
    let open = Steady::new(Allowance::rate(rate));
    let mut talk = self::talk(bulk(LossRecovery::Sack), &open);
    talk.after(495).sends(0..50);
    assert!((talk.stats().window - 50.0).abs() < 1e-9, "an open window is shown as what is in flight");
    talk.ack(50).after(5);
    assert_eq!(open.news(), [arrived(0..50, 495 - 490, 50)], "the pace limits, not the application");
}

#[test]
fn an_application_that_leaves_room_is_named() {
    let law = Steady::window(10);
    let supply = Supply::Transfer(Size::from_bytes(2 * FULL + 60));
    let mut talk = talk(SenderConfig { supply, ..bulk(LossRecovery::Sack) }, &law);
    talk.sends(0..3);
    assert_eq!(
        law.news.lock().unwrap()[2],
        News::Sent { number: 2, size: 100, in_flight: 3 },
        "the size of its packet"
    );
    law.news();
    talk.after(50).ack(3);
    let limited = News::Packets {
        arrived: vec![0, 1, 2],
        lost: vec![],
        round_trip: Some(ms(50)),
        in_flight: 3,
        app_limited: true,
    };
    assert_eq!(law.news(), [limited]);
}

#[test]
fn a_timer_is_served_once_for_each_time_that_is_asked_for() {
    let law = Steady { timer: Some(Instant::from_nanos(30_000_000)), ..Steady::window(1) };
    let mut talk = talk(bulk(LossRecovery::Sack), &law);
    talk.after(29);
    assert_eq!((law.news(), talk.sender.wake()), (vec![], Some(Time::from_nanos(30_000_000))));
    talk.after(1);
    assert_eq!(law.news(), [News::Timer]);
    assert!(talk.sender.wake().is_some_and(|wake| wake > Time::from_nanos(30_000_000)), "it was not put off");
}

/// If this test fails, the sender accepts a controller that needs feedback that TCP never provides.
#[test]
fn what_acknowledgements_do_not_tell_is_refused_by_name() {
    for needs in [Needs::INTERVALS, Needs::PACKETS.and(Needs::ECN)] {
        let law = Steady { needs, ..Steady::window(1) };
        let refused = Sender::new(bulk(LossRecovery::Sack), Law::Controller(Box::new(law))).err();
        let Some(TcpError::Needs(unmet)) = refused else { panic!("{refused:?}") };
        assert_eq!((unmet.missing, unmet.provided), (needs.without(Needs::PACKETS), Needs::PACKETS));
    }
    let fixed = Steady { needs: Needs::NOTHING, ..Steady::window(1) };
    assert!(Sender::new(bulk(LossRecovery::Sack), Law::Controller(Box::new(fixed))).is_ok());
}
