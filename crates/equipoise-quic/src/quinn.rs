//! Adapter to quinn's congestion control, in which a controller sets only a window.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use equipoise::units::Rate;

use crate::config::Config;
use crate::driver::{Driver, Limit};

impl ControllerFactory for Config {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(self.driver(Limit::Window, now, current_mtu))
    }
}

impl Controller for Driver {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        self.on_sent(now, bytes, None);
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, bytes: u64, _app_limited: bool, rtt: &RttEstimator) {
        self.on_ack(sent, bytes, None, (rtt.get(), rtt.min()));
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        self.tell(now, Some(in_flight), app_limited);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, lost_bytes: u64) {
        // quinn reports an ECN congestion mark as a congestion event without lost bytes.
        if lost_bytes == 0 {
            self.on_mark();
        } else {
            self.on_bytes_lost(sent, lost_bytes);
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
        metrics.pacing_rate = self.rate().map(Rate::as_bps);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// If this test fails, a monitor shows a window that quinn does not use.
    #[test]
    fn the_monitor_shows_the_window_that_limits_the_rate() {
        let config = Config::named("cbr", &[("rate", "2 Mbit/s")]).expect("right");
        let (monitor, now) = (config.monitor(), Instant::now());
        let mut controller = Arc::new(config).build(now, 1200);
        controller.on_sent(now, 1200, 0);
        controller.on_congestion_event(now, now, false, 1200);
        let shown = monitor.paths().first().expect("a path").window;
        assert_eq!(shown.as_bytes(), controller.window());
        assert!(controller.window() > 50_000, "333 ms at 2 Mbit/s are 83 kB, headers included");
    }

    /// The last packet before an idle time is lost, so no feedback arrives during the idle time. If the test fails, the
    /// first packet after this time halves the rate.
    #[test]
    fn an_idle_time_after_a_loss_does_not_lower_the_rate() {
        let config =
            Config::named("aimd", &[("target", "50 ms"), ("initial_rate", "1 Mbit/s"), ("max_rate", "1 Mbit/s")])
                .expect("right");
        let (start, round_trip) = (Instant::now(), Duration::from_millis(20));
        let at = |millis| start + Duration::from_millis(millis);
        let mut driver = config.driver(Limit::Window, start, 1200);
        for millis in (0..2000).step_by(10) {
            driver.on_sent(at(millis), 1200, None);
            driver.on_ack(at(millis), 1200, None, (round_trip, round_trip));
            driver.tell(at(millis + 9), Some(0), false);
        }
        let before = driver.rate();
        driver.on_sent(at(2000), 1200, None);
        driver.on_sent(at(20_000), 1200, None);
        assert_eq!(driver.rate(), before);
        (20_010..22_000).step_by(10).for_each(|millis| driver.on_sent(at(millis), 1200, None));
        assert!(driver.rate() < before, "packets without feedback lower the rate");
    }
}
