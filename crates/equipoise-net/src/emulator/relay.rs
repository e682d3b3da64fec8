use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::EmulatorReport;
use super::network::Network;
use crate::lateness::LatenessMeter;
use crate::socket::{MAX_PAYLOAD, wait};
use crate::thread::STOP_CHECK;
use crate::{Clock, NetError, Socket, Time, TimestampSource};

/// One of a route's two sockets.
#[derive(Debug)]
pub(super) struct Gate {
    /// Where datagrams come in and go out.
    pub(super) socket: Socket,
    /// The only one who may send to it, and whom it sends to.
    pub(super) peer: SocketAddr,
}

/// The thread between the sockets and the network.
#[derive(Debug)]
pub(super) struct Relay {
    clock: Clock,
    /// In pairs: what comes in at one goes out at the other. What comes in at the n-th takes the network's n-th way.
    gates: Vec<Gate>,
    network: Network,
    lateness: LatenessMeter,
    foreign: u64,
}

impl Relay {
    /// A relay between pairs of gates.
    pub(super) fn new(clock: Clock, gates: Vec<Gate>, network: Network) -> Self {
        Self { clock, gates, network, lateness: LatenessMeter::new(), foreign: 0 }
    }

    /// Relays until `stop` is set.
    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<EmulatorReport, NetError> {
        let mut buffer = vec![0; MAX_PAYLOAD];
        while !stop.load(Ordering::Relaxed) {
            // What came in until now, and nothing that comes in later, has a place in the order of arrivals.
            let horizon = self.clock.now();
            for (way, gate) in self.gates.iter_mut().enumerate() {
                let enter = |at, payload: &[u8]| self.network.enter(at, way, payload);
                self.foreign += gate.take_in(horizon, &mut buffer, enter)?;
            }
            while let Some(delivery) = self.network.deliver(horizon) {
                self.lateness.record(self.clock.now() - delivery.due);
                if let Some(gate) = self.gates.get_mut(delivery.way ^ 1) {
                    gate.socket.send_to(gate.peer, &delivery.payload, 0)?;
                }
                self.network.recycle(delivery.payload);
            }
            let check = self.clock.now() + STOP_CHECK;
            let until = self.network.next().map_or(check, |next| next.min(check));
            wait(self.gates.iter().map(|gate| &gate.socket), &self.clock, until)?;
        }
        Ok(self.report())
    }

    fn report(&self) -> EmulatorReport {
        let sockets = || self.gates.iter().map(|gate| &gate.socket);
        let kernel = sockets().all(|socket| socket.timestamps() == TimestampSource::Kernel);
        EmulatorReport {
            links: self.network.stats(self.clock.now()),
            foreign: self.foreign,
            refused: self.network.refused(),
            lost_at_sockets: sockets().map(|socket| socket.stats().unsent + socket.stats().overflowed).sum(),
            in_flight: self.network.in_flight(),
            lateness: self.lateness.summary(),
            timestamps: if kernel { TimestampSource::Kernel } else { TimestampSource::UserSpace },
        }
    }
}

impl Gate {
    /// Lets datagrams enter up to the first that came after `horizon`, which waits behind the gate; counts the foreign.
    fn take_in(
        &mut self,
        horizon: Time,
        buffer: &mut [u8],
        mut enter: impl FnMut(Time, &[u8]),
    ) -> Result<u64, NetError> {
        let mut foreign = 0;
        while let Some(received) = self.socket.recv(buffer)? {
            if received.from == self.peer {
                enter(received.at, &buffer[..received.len]);
            } else {
                foreign += 1;
            }
            if received.at > horizon {
                break;
            }
        }
        Ok(foreign)
    }
}
