use gst::glib;

/// The status of a packet in a feedback event of `rtpsession`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    /// The packet's transport-wide sequence number.
    pub(crate) sequence: u16,
    /// Size in bytes of the packet's payload or, depending on GStreamer's version, of the whole packet.
    pub(crate) size: u32,
    /// When `rtpsession` sent the packet, in ns of GStreamer's system clock.
    pub(crate) left_ns: u64,
    /// When the packet arrived, in ns of the receiver's clock; `None` if it did not arrive.
    pub(crate) arrived_ns: Option<u64>,
}

/// Name of the event with which `rtpsession` sends feedback upstream.
const NAME: &str = "RTPTWCCPackets";
/// A report has fewer packets than this, because their count has 16 bits
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01, Sec. 3.1).
const MOST: usize = 1 << 16;

/// Returns the packet statuses in a feedback event; `None` for other events.
///
/// Packets that `rtpsession` has forgotten, and entries with a missing field or a wrong type, are left out.
pub(crate) fn statuses(event: &gst::EventRef) -> Option<Vec<Status>> {
    let structure = event.structure().filter(|structure| structure.name() == NAME)?;
    let packets = structure.get::<glib::ValueArray>("packets").ok();
    let packets = packets.iter().flat_map(|packets| packets.iter().take(MOST));
    Some(packets.filter_map(|packet| packet.get::<gst::Structure>().ok().and_then(|packet| status(&packet))).collect())
}

fn status(packet: &gst::StructureRef) -> Option<Status> {
    let time = |field| packet.get::<Option<gst::ClockTime>>(field).ok().flatten().map(gst::ClockTime::nseconds);
    let arrived_ns = time("remote-ts");
    let is_lost = packet.get::<bool>("lost").ok()?;
    if !is_lost && arrived_ns.is_none() {
        return None;
    }
    Some(Status {
        sequence: u16::try_from(packet.get::<u32>("seqnum").ok()?).ok()?,
        size: packet.get::<u32>("size").ok()?,
        left_ns: time("local-ts")?,
        arrived_ns: arrived_ns.filter(|_| !is_lost),
    })
}
