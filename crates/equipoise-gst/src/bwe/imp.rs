use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use equipoise::error::Chain;
use equipoise::units::{Instant, SenderClock, Span};
use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

use super::properties::PROPERTIES;
use crate::config::{Settings, SettingsError};
use crate::event::statuses;
use crate::flow::{Flow, Turn, time};
use crate::packet::{PacketInfo, TRANSPORT_WIDE, extension_of};

static CATEGORY: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    let about = "Equipoise's rate controllers over RTP";
    gst::DebugCategory::new("rtpequipoisebwe", gst::DebugColorFlags::empty(), Some(about))
});

/// The element's state, which three threads share. The upstream thread adds packets to the flow, a task of the source
/// pad removes them, and feedback arrives on a third thread.
#[derive(Debug)]
pub(crate) struct Bwe {
    sink: gst::Pad,
    src: gst::Pad,
    settings: Mutex<Settings>,
    state: Mutex<State>,
    /// Signalled when a packet, an event or feedback has arrived, when the task has pushed an item, or when the pads
    /// were stopped.
    changed: Condvar,
    /// The clock that `rtpsession` uses to timestamp outgoing packets.
    clock: gst::Clock,
}

#[derive(Debug)]
struct State {
    /// The flow; `None` until the element changes to the state PAUSED.
    flow: Option<Flow>,
    /// The result that is returned to the upstream element. The task runs only while this result is `Ok`.
    result: Result<gst::FlowSuccess, gst::FlowError>,
    /// The identifier of the header extension with the transport-wide sequence number.
    extension: Option<u8>,
    /// Whether the warning about packets without transport-wide sequence numbers was posted.
    has_warned: bool,
    /// Whether the task is pushing an item downstream. That item is no longer in the queue.
    is_passing: bool,
}

impl Default for State {
    fn default() -> Self {
        let result = Err(gst::FlowError::Flushing);
        Self { flow: None, result, extension: None, has_warned: false, is_passing: false }
    }
}

impl Bwe {
    fn now(&self) -> Instant<SenderClock> {
        time(self.clock.time().nseconds())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, buffers: impl Iterator<Item = gst::Buffer>) -> Result<gst::FlowSuccess, gst::FlowError> {
        let mut state = self.state();
        state.result?;
        let extension = state.extension;
        let flow = state.flow.as_mut().ok_or(gst::FlowError::Flushing)?;
        for buffer in buffers {
            let info = PacketInfo::of(&buffer, extension);
            flow.on_packet(self.now(), buffer, info);
        }
        drop(state);
        self.changed.notify_all();
        Ok(gst::FlowSuccess::Ok)
    }

    fn sink_event(&self, pad: &gst::Pad, event: gst::Event) -> bool {
        match event.view() {
            gst::EventView::FlushStart(_) => {
                self.stop(gst::FlowError::Flushing);
                let is_taken = self.src.push_event(event);
                let _ = self.src.pause_task();
                return is_taken;
            }
            gst::EventView::FlushStop(_) => {
                let is_taken = self.src.push_event(event);
                return self.start().is_ok() && is_taken;
            }
            gst::EventView::Caps(caps) => {
                let mut state = self.state();
                // A funnel may combine several streams of one session. The caps of some streams may lack the extension.
                // Such caps must not erase the identifier that earlier caps contained.
                state.extension = extension_of(caps.caps()).or(state.extension);
            }
            _ => {}
        }
        if !event.is_serialized() {
            return gst::Pad::event_default(pad, Some(&*self.obj()), event);
        }
        let mut state = self.state();
        let (true, Some(flow)) = (state.result.is_ok(), state.flow.as_mut()) else { return false };
        flow.on_event(event);
        drop(state);
        self.changed.notify_all();
        true
    }

    fn sink_query(&self, pad: &gst::Pad, query: &mut gst::QueryRef) -> bool {
        if query.is_serialized() {
            // The query must stay in order with the data, so it is passed on only when the queue is empty.
            let waits = |state: &mut State| {
                let is_empty = state.flow.as_ref().is_none_or(Flow::is_empty) && !state.is_passing;
                state.result.is_ok() && !is_empty
            };
            let state = self.changed.wait_while(self.state(), waits).unwrap_or_else(PoisonError::into_inner);
            if state.result.is_err() {
                return false;
            }
        }
        gst::Pad::query_default(pad, Some(&*self.obj()), query)
    }

    fn src_event(&self, pad: &gst::Pad, event: gst::Event) -> bool {
        if let Some(statuses) = statuses(&event) {
            let mut state = self.state();
            let tells = state.flow.as_mut().is_some_and(|flow| {
                let now = self.now();
                flow.on_statuses(now, &statuses);
                flow.tells(now)
            });
            drop(state);
            self.changed.notify_all();
            if tells {
                self.obj().notify("estimated-bitrate");
            }
        }
        gst::Pad::event_default(pad, Some(&*self.obj()), event)
    }

    fn activate_src(&self, mode: gst::PadMode, is_active: bool) -> Result<(), gst::LoggableError> {
        if mode != gst::PadMode::Push {
            return Err(gst::loggable_error!(CATEGORY, "the pad can be pushed only, and not {mode:?}"));
        }
        if is_active {
            self.start()?;
        } else {
            self.stop(gst::FlowError::Flushing);
            self.src.stop_task()?;
        }
        Ok(())
    }

    fn start(&self) -> Result<(), glib::BoolError> {
        self.state().result = Ok(gst::FlowSuccess::Ok);
        let weak = self.obj().downgrade();
        self.src.start_task(move || {
            // The upgrade does not fail while the task runs: the task is stopped before the element is freed.
            if let Some(element) = weak.upgrade() {
                element.imp().turn();
            }
        })
    }

    /// Stops passing data, and discards all queued data.
    fn stop(&self, why: gst::FlowError) {
        let mut state = self.state();
        state.result = Err(why);
        let events = state.flow.as_mut().map(Flow::flush).unwrap_or_default();
        drop(state);
        self.changed.notify_all();
        // The sticky events in the queue are stored on the source pad, except Segment and Eos. GStreamer's element
        // `queue` does the same.
        let is_kept = |event: &&gst::Event| {
            event.is_sticky() && !matches!(event.type_(), gst::EventType::Segment | gst::EventType::Eos)
        };
        for event in events.iter().filter(is_kept) {
            // `store_sticky_event` fails if the pad is stopped. A stopped pad has no stream, so it needs no event.
            let _ = self.src.store_sticky_event(event);
        }
    }

    /// One iteration of the task: waits for the next item, and pushes it.
    fn turn(&self) {
        let mut state = self.state();
        let now = self.now();
        let is_open = state.result.is_ok();
        let Some(flow) = state.flow.as_mut().filter(|_| is_open) else {
            drop(state);
            let _ = self.src.pause_task();
            return;
        };
        let (turn, tells, is_unnumbered) = (flow.turn(now), flow.tells(now), flow.is_unnumbered());
        let warns = is_unnumbered && !state.has_warned;
        if let Turn::Wait(until) = turn
            && !tells
            && !warns
        {
            // The lock has been held since the flow was checked, so no change is missed.
            self.wait(state, until.map(|until| until - now));
            return;
        }
        state.has_warned |= warns;
        state.is_passing = true;
        drop(state);
        if tells {
            self.obj().notify("estimated-bitrate");
        }
        if warns {
            self.warn_of_no_numbers();
        }
        let result = match turn {
            Turn::Buffer(buffer) => self.src.push(buffer),
            Turn::Event(event) => {
                // The result is ignored, because after an error downstream the push of the next buffer fails, too.
                self.src.push_event(event);
                Ok(gst::FlowSuccess::Ok)
            }
            Turn::Wait(_) => Ok(gst::FlowSuccess::Ok),
        };
        self.passed(result);
    }

    fn wait(&self, state: MutexGuard<'_, State>, time: Option<Span>) {
        match time {
            None => drop(self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)),
            Some(time) => {
                let time = Duration::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(0));
                drop(self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    /// Handles the result of pushing an item downstream.
    fn passed(&self, result: Result<gst::FlowSuccess, gst::FlowError>) {
        let mut state = self.state();
        state.is_passing = false;
        let mut was_ending = false;
        if let Err(error) = result
            && state.result.is_ok()
        {
            state.result = Err(error);
            if let Some(flow) = &mut state.flow {
                was_ending = flow.is_ending();
                flow.flush();
            }
        }
        drop(state);
        // A query may be waiting until this item is pushed.
        self.changed.notify_all();
        // Upstream gets the error as the result of its next buffer. If the end of the stream has already arrived, there
        // is no next buffer, so the error is posted on the bus.
        if let Err(error) = result
            && was_ending
            && !matches!(error, gst::FlowError::Flushing | gst::FlowError::Eos)
        {
            gst::element_imp_error!(self, gst::StreamError::Failed, ("data cannot be passed on"), ["{error:?}"]);
        }
    }

    fn warn_of_no_numbers(&self) {
        gst::element_imp_warning!(
            self,
            gst::StreamError::Format,
            ("packets have no room for a transport-wide number, so that no feedback will come"),
            [
                "caps behind the payloader with the field extmap-1={TRANSPORT_WIDE} make it add the number's header extension"
            ]
        );
    }

    /// Posts an error on the bus: the properties are invalid.
    fn refuse(&self, error: &SettingsError) -> gst::StateChangeError {
        gst::element_imp_error!(self, gst::LibraryError::Settings, ("{}", Chain(error)));
        gst::StateChangeError
    }
}

#[glib::object_subclass]
impl ObjectSubclass for Bwe {
    const NAME: &'static str = "GstRtpEquipoiseBwe";
    type Type = super::Bwe;
    type ParentType = gst::Element;

    fn with_class(class: &Self::Class) -> Self {
        let pad = |name| {
            let template = class.pad_template(name).unwrap_or_else(|| unreachable!("both templates are given below"));
            gst::Pad::builder_from_template(&template)
                .flags(gst::PadFlags::PROXY_CAPS | gst::PadFlags::PROXY_ALLOCATION)
        };
        let failed = || Err(gst::FlowError::Error);
        let sink = pad("sink")
            .chain_function(move |_, parent, buffer| {
                Self::catch_panic_pad_function(parent, failed, |it| it.take(std::iter::once(buffer)))
            })
            .chain_list_function(move |_, parent, list| {
                Self::catch_panic_pad_function(parent, failed, |it| it.take(list.iter_owned()))
            })
            .event_function(|pad, parent, event| {
                Self::catch_panic_pad_function(parent, || false, |it| it.sink_event(pad, event))
            })
            .query_function(|pad, parent, query| {
                Self::catch_panic_pad_function(parent, || false, |it| it.sink_query(pad, query))
            })
            .build();
        let src = pad("src")
            .event_function(|pad, parent, event| {
                Self::catch_panic_pad_function(parent, || false, |it| it.src_event(pad, event))
            })
            .activatemode_function(|_, parent, mode, is_active| {
                let failed = || Err(gst::loggable_error!(CATEGORY, "a panic as the pad was activated"));
                Self::catch_panic_pad_function(parent, failed, |it| it.activate_src(mode, is_active))
            })
            .build();
        Self {
            sink,
            src,
            settings: Mutex::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
            clock: gst::SystemClock::obtain(),
        }
    }
}

impl ObjectImpl for Bwe {
    fn constructed(&self) {
        self.parent_constructed();
        for pad in [&self.sink, &self.src] {
            // `add_pad` fails only if the element already has a pad with this name.
            let _ = self.obj().add_pad(pad);
        }
    }

    fn properties() -> &'static [glib::ParamSpec] {
        PROPERTIES.as_ref()
    }

    fn set_property(&self, _: usize, value: &glib::Value, property: &glib::ParamSpec) {
        let mut settings = self.settings();
        let text = || value.get::<Option<String>>().ok().flatten().unwrap_or_default();
        // GObject has already checked the types and ranges.
        let bps = |now| value.get::<u32>().unwrap_or(now);
        match property.name() {
            "estimated-bitrate" => settings.estimated_bps = bps(settings.estimated_bps),
            "min-bitrate" => settings.min_bps = bps(settings.min_bps),
            "max-bitrate" => settings.max_bps = bps(settings.max_bps),
            "estimator" => settings.estimator = value.get().unwrap_or_default(),
            "controller" => settings.controller = text(),
            "controller-params" => settings.parameters = text(),
            _ => {}
        }
    }

    fn property(&self, _: usize, property: &glib::ParamSpec) -> glib::Value {
        if property.name() == "stats" {
            let stats = self.state().flow.as_ref().map(|flow| flow.stats(self.now()));
            return stats.unwrap_or_else(|| gst::Structure::new_empty("equipoise-stats")).to_value();
        }
        if property.name() == "estimated-bitrate" {
            let told_bps = self.state().flow.as_ref().map(Flow::told_bps);
            return told_bps.unwrap_or_else(|| self.settings().estimated_bps).to_value();
        }
        let settings = self.settings();
        match property.name() {
            "min-bitrate" => settings.min_bps.to_value(),
            "max-bitrate" => settings.max_bps.to_value(),
            "estimator" => settings.estimator.to_value(),
            "controller" => settings.controller.to_value(),
            _ => settings.parameters.to_value(),
        }
    }
}

impl GstObjectImpl for Bwe {}

impl ElementImpl for Bwe {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Equipoise bandwidth estimator",
                "Network/WebRTC/RTP/Filter",
                "Paces RTP and finds the bitrate that the path takes, from transport-wide feedback, by any of Equipoise's controllers",
                "The authors of Equipoise",
            )
        });
        Some(&*METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let caps = gst::Caps::builder("application/x-rtp").build();
            let always = gst::PadPresence::Always;
            [("sink", gst::PadDirection::Sink), ("src", gst::PadDirection::Src)]
                .into_iter()
                .filter_map(|(name, direction)| gst::PadTemplate::new(name, direction, always, &caps).ok())
                .collect()
        });
        TEMPLATES.as_ref()
    }

    fn change_state(&self, change: gst::StateChange) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        match change {
            // Invalid properties are reported before anything starts.
            gst::StateChange::NullToReady => {
                let settings = self.settings().clone();
                settings.guest(self.now()).map_err(|error| self.refuse(&error))?;
            }
            gst::StateChange::ReadyToPaused => {
                let settings = self.settings().clone();
                let flow = Flow::new(&settings, self.now()).map_err(|error| self.refuse(&error))?;
                *self.state() = State { flow: Some(flow), ..State::default() };
            }
            _ => {}
        }
        let success = self.parent_change_state(change)?;
        if change == gst::StateChange::PausedToReady {
            self.state().flow = None;
        }
        Ok(success)
    }
}
