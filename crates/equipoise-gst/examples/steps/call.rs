//! A call through GStreamer: video over a bottleneck whose capacity changes in steps. The element that estimates the
//! rate can be chosen.

use std::collections::VecDeque;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use equipoise::units::Span;
use equipoise_net::{Clock, Time};
use gst::glib;
use gst::prelude::*;

use crate::path::{Path, STEPS_BPS, Seen};

/// The sender's pipeline. `{bwe}` is replaced by the name of the element that estimates the rate. Properties of the
/// element may follow its name.
const SENDER: &str = "
    rtpbin name=rtp rtp-profile=avpf
    videotestsrc is-live=true pattern=zone-plate kx2=20 ky2=20 kt=1 ! video/x-raw,width=640,height=360,framerate=25/1
        ! videoconvert ! queue ! vp8enc name=encoder target-bitrate=300000 end-usage=cbr deadline=1 cpu-used=8 lag-in-frames=0
            keyframe-max-dist=3000 error-resilient=partitions undershoot=100 overshoot=15 buffer-size=1000 buffer-initial-size=500 buffer-optimal-size=600 dropframe-threshold=30
        ! rtpvp8pay mtu=1200
        ! application/x-rtp,extmap-1=http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
        ! {bwe} name=bwe estimated-bitrate=300000 min-bitrate=100000 max-bitrate=5000000
        ! rtp.send_rtp_sink_0
    rtp.send_rtp_src_0 ! udpsink name=out host=127.0.0.1 close-socket=false sync=false async=false
    rtp.send_rtcp_src_0 ! fakesink sync=false async=false
    udpsrc name=in address=127.0.0.1 port=0 ! application/x-rtcp ! rtp.recv_rtcp_sink_0
";

/// The receiver's pipeline, which sends transport-wide feedback.
const RECEIVER: &str = "
    rtpbin name=rtp rtp-profile=avpf latency=200
    udpsrc name=in address=127.0.0.1 port=0
        ! application/x-rtp,media=video,clock-rate=90000,encoding-name=VP8,payload=96,rtcp-fb-transport-cc=true,extmap-1=http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
        ! rtp.recv_rtp_sink_0
    rtp. ! rtpvp8depay ! vp8dec ! fakesink name=shown sync=false
    rtp.send_rtcp_src_0 ! udpsink name=out host=127.0.0.1 close-socket=false sync=false async=false
";

/// Time that a call needs to adapt to the capacity of a phase.
pub(crate) const SETTLING: Span = Span::from_secs(5);

/// Results of a call.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) phases: Vec<Phase>,
    /// Queueing delay at the bottleneck in s: mean and 95th percentile over all packets.
    pub(crate) queueing_mean_s: f64,
    pub(crate) queueing_p95_s: f64,
    /// 95th percentile of the time that packets wait in the element `bwe`, in s.
    pub(crate) pacing_p95_s: f64,
    pub(crate) dropped: u64,
    pub(crate) encoded: usize,
    pub(crate) decoded: usize,
}

/// A phase of constant capacity. All values except the queueing delay are measured after [`SETTLING`].
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub(crate) capacity_bps: f64,
    /// The bitrate that is requested from the encoder when the phase has lasted for [`SETTLING`].
    pub(crate) asked_then_bps: f64,
    /// The mean bitrate requested from the encoder.
    pub(crate) asked_bps: f64,
    /// The mean bitrate that the encoder produces.
    pub(crate) made_bps: f64,
    /// The mean bitrate through the bottleneck, including IP headers.
    pub(crate) delivered_bps: f64,
    /// 95th percentile of the queueing delay over all packets of the phase, in s.
    pub(crate) queueing_p95_s: f64,
}

/// Values recorded while a call runs.
#[derive(Default)]
struct Notes {
    /// Bitrates requested from the encoder, in bit/s, with the times of the requests.
    asked: Vec<(Time, f64)>,
    /// Sizes of the encoded frames in bits, with the times at which they were encoded.
    made: Vec<(Time, f64)>,
    /// Entry times of the packets that are still in the element `bwe`.
    within: VecDeque<Time>,
    paced: Vec<Span>,
    decoded: usize,
}

type Book = Arc<Mutex<Notes>>;

/// Runs a call with the element `bwe` at the sender. Each phase of constant capacity has the length `phase`.
pub(crate) fn run(bwe: &str, phase: Span) -> Result<Report, Box<dyn Error>> {
    let clock = Clock::new();
    let sender = Pipeline::new(&SENDER.replace("{bwe}", bwe))?;
    let receiver = Pipeline::new(RECEIVER)?;
    let book = Book::default();
    watch(&sender, &receiver, &clock, &book)?;
    // The first frame needs a second to arrive, so the phases begin after a second.
    let begin = clock.now() + Span::from_secs(1);
    let path = Path::new(&clock, (begin, phase), (sender.address()?, receiver.address()?))?;
    let (entrance, exit) = path.ends()?;
    receiver.play(exit)?;
    sender.play(entrance)?;
    let end = begin + phase * 4;
    while clock.now() < end {
        let left = (end - clock.now()).min(Span::from_millis(100));
        std::thread::sleep(std::time::Duration::from_nanos(u64::try_from(left.as_nanos()).unwrap_or(0)));
        sender.check()?;
        receiver.check()?;
    }
    drop((sender, receiver));
    let (seen, dropped) = path.stop()?;
    let notes = book.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(report(&notes, &seen, dropped, (begin, phase)))
}

/// Makes the encoder follow the element's estimate, and records the requested and the produced bitrate.
fn watch(sender: &Pipeline, receiver: &Pipeline, clock: &Clock, book: &Book) -> Result<(), Box<dyn Error>> {
    let (encoder, bwe) = (sender.element("encoder")?, sender.element("bwe")?);
    let note = |then: fn(&mut Notes, Time, f64)| {
        let (book, clock) = (Arc::clone(book), clock.clone());
        move |value: f64| then(&mut book.lock().unwrap_or_else(PoisonError::into_inner), clock.now(), value)
    };
    let asked = note(|notes, now, bps| notes.asked.push((now, bps)));
    asked(300e3);
    bwe.connect_notify(Some("estimated-bitrate"), move |bwe, _| {
        let bps = bwe.property::<u32>("estimated-bitrate");
        asked(f64::from(bps));
        encoder.set_property("target-bitrate", i32::try_from(bps).unwrap_or(i32::MAX));
    });
    let probe = |element: &gst::Element, pad: &str, then: fn(&mut Notes, Time, f64)| {
        let (note, pad) = (note(then), element.static_pad(pad).ok_or("no such pad")?);
        let kinds = gst::PadProbeType::BUFFER | gst::PadProbeType::BUFFER_LIST;
        pad.add_probe(kinds, move |_, info| {
            match &info.data {
                Some(gst::PadProbeData::Buffer(buffer)) => note(buffer.size() as f64 * 8.0),
                Some(gst::PadProbeData::BufferList(list)) => list.iter().for_each(|it| note(it.size() as f64 * 8.0)),
                _ => {}
            }
            gst::PadProbeReturn::Ok
        });
        Ok::<_, &str>(())
    };
    probe(&sender.element("encoder")?, "src", |notes, now, bits| notes.made.push((now, bits)))?;
    probe(&bwe, "sink", |notes, now, _| notes.within.push_back(now))?;
    probe(&bwe, "src", |notes, now, _| {
        let came = notes.within.pop_front().unwrap_or(now);
        notes.paced.push(now - came);
    })?;
    probe(&receiver.element("shown")?, "sink", |notes, _, _| notes.decoded += 1)?;
    Ok(())
}

fn report(notes: &Notes, seen: &[Seen], dropped: u64, (begin, phase): (Time, Span)) -> Report {
    let phases = (0i64..).zip(STEPS_BPS).map(|(number, capacity_bps)| {
        let (from, end) = (begin + phase * number, begin + phase * (number + 1));
        let settled = from + SETTLING;
        let seconds = (end - settled).as_secs_f64();
        let is_settled = |at: Time| at >= settled && at < end;
        let delivered: u64 = seen.iter().filter(|it| is_settled(it.at)).map(|it| it.bits).sum();
        let made: f64 = notes.made.iter().filter(|(at, _)| is_settled(*at)).map(|(_, bits)| bits).sum();
        let at = |time: Time| notes.asked.iter().rev().find(|(at, _)| *at <= time).map_or(0.0, |(_, bps)| *bps);
        let step = Span::from_nanos((end - settled).as_nanos() / STEPS);
        let asked: f64 = (0..STEPS).map(|number| at(settled + step * number)).sum();
        Phase {
            capacity_bps: capacity_bps as f64,
            asked_then_bps: at(settled),
            asked_bps: asked / STEPS as f64,
            made_bps: made / seconds,
            delivered_bps: delivered as f64 / seconds,
            queueing_p95_s: p95(seen.iter().filter(|it| it.at >= from && it.at < end).map(|it| it.waited)),
        }
    });
    let waits = || seen.iter().map(|it| it.waited);
    Report {
        phases: phases.collect(),
        queueing_mean_s: waits().map(Span::as_secs_f64).sum::<f64>() / seen.len().max(1) as f64,
        queueing_p95_s: p95(waits()),
        pacing_p95_s: p95(notes.paced.iter().copied()),
        dropped,
        encoded: notes.made.len(),
        decoded: notes.decoded,
    }
}

/// Number of times per phase at which the requested bitrate is sampled.
const STEPS: i64 = 100;

/// Returns the 95th percentile, in s.
fn p95(of: impl Iterator<Item = Span>) -> f64 {
    let mut sorted: Vec<_> = of.collect();
    sorted.sort_unstable();
    let at = (0.95 * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(at).map_or(0.0, |wait| wait.as_secs_f64())
}

/// A pipeline whose elements `in` and `out` share one UDP socket. Dropping this value stops the pipeline.
struct Pipeline(gst::Pipeline);

impl Pipeline {
    fn new(launch: &str) -> Result<Self, Box<dyn Error>> {
        let pipeline = gst::parse::launch(launch)?.downcast::<gst::Pipeline>().map_err(|_| "no pipeline")?;
        let pipeline = Self(pipeline);
        // The receiving element `in` opens the socket first. Otherwise the sending element `out` would open its own
        // socket.
        let source = pipeline.element("in")?;
        source.set_state(gst::State::Ready)?;
        pipeline.element("out")?.set_property("socket", source.property::<glib::Object>("used-socket"));
        pipeline.0.set_state(gst::State::Ready).or_else(|error| pipeline.check().and(Err(error.into())))?;
        Ok(pipeline)
    }

    fn element(&self, name: &str) -> Result<gst::Element, String> {
        self.0.by_name(name).ok_or_else(|| format!("no element {name:?}"))
    }

    /// Returns the address of the pipeline's socket.
    fn address(&self) -> Result<SocketAddr, Box<dyn Error>> {
        let port: i32 = self.element("in")?.property("port");
        Ok((Ipv4Addr::LOCALHOST, u16::try_from(port)?).into())
    }

    fn play(&self, to: SocketAddr) -> Result<(), Box<dyn Error>> {
        let out = self.element("out")?;
        out.set_property("host", to.ip().to_string());
        out.set_property("port", i32::from(to.port()));
        self.0.set_state(gst::State::Playing).map_err(|_| "the pipeline does not start")?;
        Ok(())
    }

    /// Returns the first error that an element posted, if any.
    fn check(&self) -> Result<(), Box<dyn Error>> {
        let error = self.0.bus().and_then(|bus| bus.pop_filtered(&[gst::MessageType::Error]));
        match error.as_ref().map(|message| message.view()) {
            Some(gst::MessageView::Error(error)) => Err(format!("{}: {:?}", error.error(), error.debug()).into()),
            _ => Ok(()),
        }
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        // An error cannot be reported from `drop`.
        let _ = self.0.set_state(gst::State::Null);
    }
}
