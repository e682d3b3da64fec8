//! Adapter to noq's congestion control, in which a controller sets a window and a pacing rate.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use equipoise::units::Rate;

use crate::config::Config;
use crate::driver::{Driver, Limit};

impl ControllerFactory for Config {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(self.driver(Limit::Pace, now, current_mtu))
    }
}

impl Controller for Driver {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.on_sent(now, u64::from(bytes), Some(pn));
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, bytes: u64, pn: u64, _app_limited: bool, rtt: &RttEstimator) {
        self.on_ack(sent, bytes, Some(pn), (rtt.get(), rtt.min()));
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        self.tell(now, Some(in_flight), app_limited);
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, _now: Instant) {
        self.on_packet_lost(u64::from(lost_bytes), pn);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        _sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        if is_ecn {
            self.on_mark();
        }
        self.tell(now, None, false);
        if is_persistent_congestion {
            self.on_persistent_congestion(now);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.set_mtu(new_mtu);
    }

    fn window(&self) -> u64 {
        self.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.pacing_rate = self.pacing_bytes_per_s();
        metrics.bandwidth_estimate = self.rate().map(Rate::as_bps);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.anew())
    }

    fn initial_window(&self) -> u64 {
        self.anew().window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
