use equipoise::control::{Fate, PacketFeedback};
use equipoise::units::{Instant, SenderClock, Size, Span};
use goog_cc::experiments::FieldTrials;
use goog_cc::network_control::{NetworkControllerConfig, NetworkControllerInterface as _};
use goog_cc::transport::{
    NetworkControlUpdate, PacketResult, ProcessInterval, RoundTripTimeUpdate, SentPacket, TargetRateConstraints,
    TransportLossReport, TransportPacketsFeedback,
};
use goog_cc::units::{DataRate, DataSize, TimeDelta, Timestamp};
use goog_cc::{GoogCcConfig, GoogCcNetworkController, LossBasedBweV2Config};

use super::path::{FROM, MAX_BPS, Peer, START_BPS};

/// Minimum rate of both controllers, in bit/s.
const MIN_BPS: i64 = 30_000;
/// The interval at which libwebrtc calls its controller.
const PROCESS: Span = Span::from_millis(25);

/// The controller of the crate `goog_cc`.
pub(super) struct GoogCc {
    controller: GoogCcNetworkController,
    processed: Instant<SenderClock>,
    /// The last rate of the controller, in bit/s.
    bps: Option<f64>,
}

fn at<C>(instant: Instant<C>) -> Timestamp {
    Timestamp::from_micros((instant.as_nanos() / 1000) as i64)
}

/// Returns libwebrtc's current configuration of the loss-based estimate, except that no padding is sent.
fn losses() -> LossBasedBweV2Config {
    LossBasedBweV2Config {
        bw_rampup_upper_bound_factor: 1.5,
        bw_rampup_upper_bound_in_hold_factor: 1.2,
        loss_threshold_of_high_bandwidth_preference: 0.2,
        inherent_loss_upper_bound_bw_balance: DataRate::from_kilobits_per_sec(100),
        observation_window_size: 15,
        instant_upper_bound_bw_balance: DataRate::from_kilobits_per_sec(100),
        use_in_start_phase: true,
        lower_bound_by_acked_rate_factor: 1.0,
        hold_duration_factor: 2.0,
        use_byte_loss_rate: true,
        bound_best_candidate: true,
        ..LossBasedBweV2Config::default()
    }
}

impl GoogCc {
    pub(super) fn new() -> Self {
        let now = FROM;
        let mut field_trials = FieldTrials { loss_based_bwe_v2: losses(), ..FieldTrials::default() };
        let app_limit = &mut field_trials.alr_detector_parameters;
        app_limit.bandwidth_usage_ratio = 0.65;
        app_limit.start_budget_level_ratio = 0.8;
        app_limit.stop_budget_level_ratio = 0.5;
        let constraints = TargetRateConstraints {
            at_time: at(now),
            min_data_rate: Some(DataRate::from_bits_per_sec(MIN_BPS)),
            max_data_rate: Some(DataRate::from_bits_per_sec(MAX_BPS)),
            starting_rate: Some(DataRate::from_bits_per_sec(START_BPS)),
        };
        let config = NetworkControllerConfig { field_trials, constraints, ..NetworkControllerConfig::default() };
        let controller = GoogCcNetworkController::new(config, GoogCcConfig { feedback_only: false });
        let mut peer = Self { controller, processed: now, bps: None };
        peer.process(now);
        // Without a first loss report, the crate uses only the delay-based estimate.
        let report = TransportLossReport {
            receive_time: at(now),
            start_time: at(now),
            end_time: at(now),
            packets_lost_delta: 0,
            packets_received_delta: 100,
        };
        peer.controller.on_transport_loss_report(report);
        peer
    }

    fn take(&mut self, update: &NetworkControlUpdate) {
        if let Some(target) = &update.target_rate {
            self.bps = Some(target.target_rate.bps_float());
        }
    }

    fn process(&mut self, now: Instant<SenderClock>) {
        let update = self.controller.on_process_interval(ProcessInterval { at_time: at(now), pacer_queue: None });
        self.take(&update);
    }

    fn advance(&mut self, now: Instant<SenderClock>) {
        while self.processed + PROCESS <= now {
            self.processed = self.processed + PROCESS;
            self.process(self.processed);
        }
    }
}

impl Peer for GoogCc {
    fn on_sent(&mut self, now: Instant<SenderClock>, number: u64, size: Size) {
        self.advance(now);
        let update = self.controller.on_sent_packet(sent(now, number, size));
        self.take(&update);
    }

    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>) -> Option<f64> {
        self.advance(now);
        if let Some(round_trip) = feedback.round_trip {
            let round_trip_time = TimeDelta::from_micros(round_trip.as_nanos() / 1000);
            let update = RoundTripTimeUpdate { receive_time: at(now), round_trip_time, smoothed: false };
            self.controller.on_round_trip_time_update(update);
        }
        let results = feedback.packets.iter().map(|packet| {
            let sent_packet = sent(packet.departed, packet.number, packet.size);
            match packet.fate {
                Fate::Arrived { at: Some(arrived), .. } => {
                    PacketResult { sent_packet, receive_time: at(arrived), ..PacketResult::default() }
                }
                _ => PacketResult { sent_packet, ..PacketResult::default() },
            }
        });
        let update = self.controller.on_transport_packets_feedback(TransportPacketsFeedback {
            feedback_time: at(now),
            data_in_flight: DataSize::zero(),
            packet_feedbacks: results.collect(),
            sendless_arrival_times: Vec::new(),
        });
        self.take(&update);
        self.bps
    }
}

fn sent(departed: Instant<SenderClock>, number: u64, size: Size) -> SentPacket {
    SentPacket {
        send_time: at(departed),
        size: DataSize::from_bytes(size.as_bytes() as i64),
        sequence_number: number as i64,
        ..SentPacket::default()
    }
}
