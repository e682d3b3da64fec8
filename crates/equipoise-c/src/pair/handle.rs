use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use equipoise::units::{Rate, Size};
use equipoise_net::flow_pair::{Adu, PairConfig, PairListener, PairReceiver, PairSender};
use equipoise_pair::tpba::Period;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use super::{eq_pair_status, settings};
use crate::border::Growing as _;
use crate::error::{Fault, eq_error};
use crate::runtime;
use crate::signal::{Deadline, Inbox, Source, locked};

/// The state of a flow-pair handle. One thread may send on it while another thread receives.
pub(super) struct Handle {
    local: Option<SocketAddr>,
    arriving: Option<Inbox<Arriving>>,
    sending: Mutex<Sending>,
    is_shut: AtomicBool,
    shut: Notify,
    runtime: Arc<Runtime>,
}

/// The receiving part of a handle: the flow that arrives at the local address.
enum Arriving {
    /// No flow has arrived yet.
    Listener(PairListener),
    Receiver(PairReceiver),
    /// The handle was closed.
    Closed,
}

/// The sending part of a handle: the flow to the destination.
enum Sending {
    /// No flow is open yet. The value is the configuration for the flow that `connect` opens.
    Not(PairConfig),
    Flow(PairSender),
    /// The handle was closed.
    Closed,
}

impl Source for Arriving {
    type Item = Adu;

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Adu>> {
        if let Self::Listener(listener) = self {
            match listener.poll_accept(context) {
                Poll::Ready(Some(receiver)) => *self = Self::Receiver(receiver),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
        if let Self::Receiver(receiver) = self { receiver.poll_recv(context) } else { Poll::Ready(None) }
    }
}

impl Handle {
    pub(super) fn new(local: Option<SocketAddr>) -> Result<Self, Fault> {
        let listener = local.map(PairListener::bind).transpose()?;
        let local = listener.as_ref().map(PairListener::local_address);
        let arriving = listener.map(|listener| Inbox::new(Arriving::Listener(listener))).transpose()?;
        Ok(Self {
            local,
            arriving,
            sending: Mutex::new(Sending::Not(PairConfig::default())),
            is_shut: AtomicBool::new(false),
            shut: Notify::new(),
            runtime: runtime::shared()?,
        })
    }

    pub(super) fn port(&self) -> u16 {
        self.local.map_or(0, |local| local.port())
    }

    /// Sets a parameter of the flow that `connect` will open.
    pub(super) fn set(&self, parameter: &str) -> Result<(), Fault> {
        match &mut *locked(&self.sending) {
            Sending::Not(config) => settings::set(config, parameter),
            _ => Err(Fault::new(eq_error::EQ_E_STATE, "parameters are set before eq_dst")),
        }
    }

    /// Opens the flow to `remote`.
    pub(super) fn connect(&self, remote: SocketAddr) -> Result<(), Fault> {
        let mut sending = locked(&self.sending);
        let Sending::Not(config) = &*sending else {
            return Err(Fault::new(eq_error::EQ_E_STATE, "the handle has a destination already"));
        };
        let local = self.local.filter(|local| !local.ip().is_unspecified() && local.is_ipv4() == remote.is_ipv4());
        let local = local.map(|local| SocketAddr::new(local.ip(), 0));
        *sending = Sending::Flow(PairSender::connect(remote, &PairConfig { local, ..config.clone() })?);
        Ok(())
    }

    /// Sends the next bytes of an application data unit. `end` says whether they are the last bytes of the unit.
    pub(super) fn send(&self, data: &[u8], end: bool) -> Result<(), Fault> {
        let mut sending = locked(&self.sending);
        let sender = match &mut *sending {
            Sending::Flow(sender) => sender,
            Sending::Not(_) => return Err(Fault::new(eq_error::EQ_E_STATE, "eq_send wants eq_dst before it")),
            Sending::Closed => return Err(shut()),
        };
        self.runtime.block_on(async {
            let stopped = self.shut.notified();
            if self.is_shut.load(Ordering::SeqCst) {
                return Err(shut());
            }
            let send = async { if end { sender.send_async(data).await } else { sender.send_part_async(data).await } };
            tokio::select! {
                sent = send => Ok(sent?),
                () = stopped => Err(shut()),
            }
        })
    }

    /// Waits for the next application data unit until `deadline`. Returns an error if the unit is longer than `most`
    /// bytes.
    pub(super) fn recv(&self, most: usize, deadline: Deadline) -> Result<Vec<u8>, Fault> {
        let fits = |adu: &Adu| {
            if adu.data.len() > most {
                let words = format!("a unit of {} bytes is to be received, and the buffer has {most}", adu.data.len());
                return Err(Fault::new(eq_error::EQ_E_BUFFER, words));
            }
            Ok(())
        };
        Ok(self.inbox()?.take(deadline, fits)?.data)
    }

    pub(super) fn descriptor(&self) -> Result<i32, Fault> {
        Ok(self.inbox()?.descriptor())
    }

    fn inbox(&self) -> Result<&Inbox<Arriving>, Fault> {
        let words = "the handle has no local address, so that nothing arrives: give one to eq_fsocket";
        self.arriving.as_ref().ok_or_else(|| Fault::new(eq_error::EQ_E_STATE, words))
    }

    pub(super) fn status(&self) -> Result<eq_pair_status, Fault> {
        let sending = locked(&self.sending);
        let Sending::Flow(sender) = &*sending else {
            return Err(Fault::new(eq_error::EQ_E_STATE, "nothing is sent before eq_dst"));
        };
        let state = sender.state();
        Ok(eq_pair_status {
            rate_bps: state.rate.map_or(0, Rate::as_bps),
            window_bytes: Size::as_bytes(state.window),
            waiting_bytes: sender.waiting() as u64,
            running_periods: state.running_periods,
            is_running: (state.period == Period::Running).into(),
            ended_by_peer: state.ended_by_peer.into(),
            ..eq_pair_status::standard()
        })
    }

    /// Makes every waiting and every later call of `send` and `recv` return an error.
    pub(super) fn shut_down(&self) {
        self.is_shut.store(true, Ordering::SeqCst);
        self.shut.notify_waiters();
        if let Some(inbox) = &self.arriving {
            inbox.stop();
        }
    }

    /// Ends the flow that the handle receives and the flow that it sends.
    pub(super) fn close(&self) -> Result<(), Fault> {
        let leaves_unsent = self.is_shut.load(Ordering::SeqCst);
        self.shut_down();
        let received = match &self.arriving {
            Some(inbox) => match inbox.source(|arriving| std::mem::replace(arriving, Arriving::Closed)) {
                Arriving::Listener(listener) => listener.close(),
                Arriving::Receiver(receiver) => receiver.close(),
                Arriving::Closed => Ok(()),
            },
            None => Ok(()),
        };
        let sending = std::mem::replace(&mut *locked(&self.sending), Sending::Closed);
        if let Sending::Flow(sender) = sending
            && !leaves_unsent
            && sender.close()?.ended_by_peer
        {
            return Err(Fault::new(eq_error::EQ_END, "the receiver ended the flow before all was sent"));
        }
        Ok(received?)
    }
}

fn shut() -> Fault {
    Fault::new(eq_error::EQ_END, "the handle was shut down or closed")
}
