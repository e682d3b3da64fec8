use equipoise::units::Span;
use gst::prelude::*;

use crate::{call, init};

/// Returns the name of a GStreamer element that a call needs and that this machine lacks, if any.
fn missing() -> Option<&'static str> {
    init();
    let needed = ["videotestsrc", "vp8enc", "rtpvp8pay", "rtpbin", "udpsink"];
    needed.into_iter().find(|name| gst::ElementFactory::find(name).is_none())
}

/// Each phase has a length of 7 s, of which the last 2 s count. The test checks that the bitrate decreases when the
/// capacity decreases from 2.5 to 0.6 Mbit/s. The required bitrates are about half of those of a long run, because an
/// encoder lags on a slow machine.
#[test]
#[ignore = "real time: 29 s"]
fn an_encoder_follows_a_path_in_steps() {
    if let Some(missing) = missing() {
        println!("skipped: no element {missing}");
        return;
    }
    let report = call::run("rtpequipoisebwe", Span::from_secs(7)).expect("a call");
    println!("{report:?}");
    let shares: Vec<_> = report.phases.iter().map(|phase| phase.asked_bps / phase.capacity_bps).collect();
    assert!(shares.iter().all(|share| (0.2..1.3).contains(share)), "{report:?}");
    assert!(shares.iter().sum::<f64>() / 4.0 > 0.4, "{report:?}");
    assert!(report.phases.iter().all(|phase| phase.delivered_bps > 0.2 * phase.capacity_bps), "{report:?}");
    assert!(report.phases[1].asked_bps > report.phases[2].asked_bps, "{report:?}");
    assert!(report.queueing_p95_s < 0.12, "{report:?}");
    assert!(report.decoded * 10 > report.encoded * 9, "{report:?}");
}

/// If this test fails, the element does not work as the result of `request-aux-sender` of `rtpbin`.
#[test]
fn rtpbin_takes_the_element_as_its_auxiliary_sender() {
    if let Some(missing) = missing() {
        println!("skipped: no element {missing}");
        return;
    }
    let pipeline = gst::Pipeline::new();
    let rtp = gst::ElementFactory::make("rtpbin").name("rtp").build().expect("rtpbin");
    rtp.connect("request-aux-sender", false, |_| {
        let bwe = gst::ElementFactory::make("rtpequipoisebwe").build().expect("the element");
        let bin = gst::Bin::new();
        bin.add(&bwe).expect("into a bin");
        for (pad, name) in [("sink", "sink_0"), ("src", "src_0")] {
            let pad = bwe.static_pad(pad).expect("its pad");
            let ghost = gst::GhostPad::builder_with_target(&pad).expect("a ghost").name(name).build();
            bin.add_pad(&ghost).expect("a pad of the bin");
        }
        Some(bin.to_value())
    });
    pipeline.add(&rtp).expect("into the pipeline");
    let media = "videotestsrc num-buffers=20 ! vp8enc ! rtpvp8pay";
    let media = gst::parse::bin_from_description(media, true).expect("the media");
    let out = gst::ElementFactory::make("fakesink").property("sync", false).build().expect("fakesink");
    pipeline.add_many([media.upcast_ref(), &out]).expect("into the pipeline");
    media.link_pads(Some("src"), &rtp, Some("send_rtp_sink_0")).expect("linked");
    rtp.link_pads(Some("send_rtp_src_0"), &out, Some("sink")).expect("linked");
    pipeline.set_state(gst::State::Playing).expect("it plays");
    let bus = pipeline.bus().expect("a bus");
    let kinds = [gst::MessageType::Eos, gst::MessageType::Error];
    let end = bus.timed_pop_filtered(gst::ClockTime::from_seconds(60), &kinds).expect("an end");
    assert_eq!(end.type_(), gst::MessageType::Eos, "{end:?}");
    pipeline.set_state(gst::State::Null).expect("it stops");
}
