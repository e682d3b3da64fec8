//! Checks the live media of a session, and the session's pauses.

use equipoise::units::{Rate, Size, Span};
use equipoise_path::video::{Ladder, Transient, VideoModel};
use toml::{Spanned, Value};

use super::Check;
use crate::scenario::error::{Problem, ScenarioError};
use crate::scenario::raw::RawFlow;
use crate::scenario::raw_source::RawSource;
use crate::scenario::{AudioChoice, LiveChoice, MediaChoice, MediaProblem, Outage, VideoChoice};
use crate::text_file;

/// Maximum pacing factor, which is higher than the factor of any pacer in use.
const MOST_PACING: f64 = 100.0;
/// Default rate of audio (RFC 8867, Sec. 4.3), and default interval of audio frames, which is usual for speech.
const AUDIO_RATE: Rate = Rate::from_bps(20_000);
const AUDIO_INTERVAL: Span = Span::from_millis(20);
const MOST_BURST_FRAMES: f64 = 1000.0;
const ENCODER: &str = "`frame_rate`, `min_rate`, `max_rate`, `reaction`, `burst`, `burst_frames`, `burst_from`, `interval_spread`, `size_spread` and `traces`";
const AUDIO: &str = "it has `kind`, `rate` and `interval`";

/// A live medium of a session.
enum Medium {
    Video(VideoChoice),
    Audio(AudioChoice),
}

impl Check<'_> {
    /// Checks which media a session sends.
    pub(super) fn media(&self, raw: &RawFlow) -> Result<MediaChoice, ScenarioError> {
        let mut live: Option<LiveChoice> = None;
        for source in raw.sources() {
            let Some(medium) = self.medium(source)? else {
                if let Some((key, span)) = raw.live_only() {
                    return Err(self.wrong(key, span, MediaProblem::OnlyLive.into()));
                }
                self.that(raw.sources().len() == 1, "kind", &source.kind, || MediaProblem::WhichSources.into())?;
                return Ok(MediaChoice::Content(self.content(source)?));
            };
            let live = match &mut live {
                Some(live) => live,
                none => none.insert(self.without_media(raw)?),
            };
            let is_first = match medium {
                Medium::Video(video) => live.video.replace(video).is_none(),
                Medium::Audio(audio) => live.audio.replace(audio).is_none(),
            };
            self.that(is_first, "kind", &source.kind, || MediaProblem::WhichSources.into())?;
        }
        match (live, raw.live_only()) {
            (Some(live), _) => Ok(MediaChoice::Live(live)),
            (None, Some((key, span))) => Err(self.wrong(key, span, MediaProblem::OnlyLive.into())),
            (None, None) => Ok(MediaChoice::Unlimited),
        }
    }

    /// Checks how live media are sent. The result does not contain the media themselves.
    fn without_media(&self, raw: &RawFlow) -> Result<LiveChoice, ScenarioError> {
        let pacing = match &raw.pacing {
            None => equipoise_session::rtp::LiveMedia::PACING,
            Some(value) => {
                let right = (1.0..=MOST_PACING).contains(value.get_ref());
                self.that(right, "pacing", value, || MediaProblem::Pacing { most: MOST_PACING }.into())?;
                *value.get_ref()
            }
        };
        let skip_after = raw.skip_after.as_ref().map(|value| self.positive("skip_after", value)).transpose()?;
        let deadline = raw.deadline.as_ref().map_or(Ok(LiveChoice::DEADLINE), |at| self.positive("deadline", at))?;
        Ok(LiveChoice { video: None, audio: None, pacing, skip_after, deadline })
    }

    /// Checks a source of real-time media. Returns `None` if the source is content that is sent without adaptation.
    fn medium(&self, raw: &RawSource) -> Result<Option<Medium>, ScenarioError> {
        Ok(match raw.kind.get_ref().as_str() {
            "encoder" => Some(Medium::Video(VideoChoice::Modelled(Box::new(self.encoder(raw)?)))),
            "audio" => Some(Medium::Audio(self.audio(raw)?)),
            "video" => {
                let quantise = self.word("adapt", raw.video.adapt.as_ref(), &["prolong", "quantise"])?;
                if quantise != Some("quantise") {
                    return Ok(None);
                }
                let (frames, rate, length) = self.video(raw)?;
                Some(Medium::Video(VideoChoice::Quantised { frames, rate, length }))
            }
            _ => None,
        })
    }

    fn audio(&self, raw: &RawSource) -> Result<AudioChoice, ScenarioError> {
        self.no_video(raw)?;
        self.no_length(raw, AUDIO)?;
        let (mut rate, mut interval) = (AUDIO_RATE, AUDIO_INTERVAL);
        if let Some(value) = &raw.rate {
            rate = self.quantity("rate", value)?;
            self.that(rate > Rate::ZERO, "rate", value, || Problem::NotPositive)?;
        }
        for (key, value) in &raw.model {
            if key != "interval" {
                return Err(self.not_of_this(raw, key, value.span(), AUDIO));
            }
            interval = self.quantity(key, value)?;
            let right = (Span::from_millis(1)..=Span::from_secs(1)).contains(&interval);
            self.that(right, key, value, || MediaProblem::AudioInterval.into())?;
        }
        Ok(AudioChoice { rate, interval })
    }

    /// Checks a model of an encoder. The defaults are those of RFC 8593.
    fn encoder(&self, raw: &RawSource) -> Result<VideoModel, ScenarioError> {
        let not_its = || MediaProblem::NotOfAnEncoder { known: ENCODER };
        if let Some(rate) = &raw.rate {
            return Err(self.wrong("rate", rate.span(), not_its().into()));
        }
        self.no_length(raw, ENCODER)?;
        self.only_frame_rate(raw)?;
        let mut model = VideoModel::default();
        let mut transient = Transient::default();
        if let Some(frame_rate) = &raw.video.frame_rate {
            model.frame_rate = *frame_rate.get_ref();
        }
        for (key, value) in &raw.model {
            match key.as_str() {
                "min_rate" => model.min_rate = self.quantity(key, value)?,
                "max_rate" => model.max_rate = self.quantity(key, value)?,
                "reaction" => model.reaction = self.quantity(key, value)?,
                "burst" => transient.burst = self.quantity(key, value)?,
                "burst_frames" => transient.frames = self.burst_frames(key, value)?,
                "burst_from" => transient.threshold = self.plain(key, value)?,
                "interval_spread" => model.interval_spread = self.plain(key, value)?,
                "size_spread" => model.size_spread = self.plain(key, value)?,
                "traces" => model.traces = Some(self.traces(key, value)?),
                _ => return Err(self.wrong(key, value.span(), not_its().into())),
            }
        }
        model.transient = Some(transient).filter(|transient| transient.burst > Size::ZERO);
        model.check().map_err(|problem| self.wrong("source", raw.kind.span(), MediaProblem::from(problem).into()))?;
        Ok(model)
    }

    fn burst_frames(&self, key: &str, value: &Spanned<Value>) -> Result<u32, ScenarioError> {
        let frames = self.plain(key, value)?;
        let right = frames.fract() == 0.0 && (2.0..=MOST_BURST_FRAMES).contains(&frames);
        self.that(right, key, value, || MediaProblem::BurstFrames.into())?;
        Ok(frames as u32)
    }

    /// Checks a plain number, which has no unit.
    fn plain(&self, key: &str, value: &Spanned<Value>) -> Result<f64, ScenarioError> {
        match value.get_ref() {
            Value::Integer(number) => Ok(*number as f64),
            Value::Float(number) => Ok(*number),
            _ => Err(self.wrong(key, value.span(), Problem::NotAParameter)),
        }
    }

    fn traces(&self, key: &str, value: &Spanned<Value>) -> Result<Ladder, ScenarioError> {
        let Value::String(file) = value.get_ref() else {
            return Err(self.wrong(key, value.span(), Problem::NotAParameter));
        };
        let wrong = |why: String| self.wrong(key, value.span(), MediaProblem::Traces { why }.into());
        let text = text_file::read(file.as_ref()).map_err(|error| wrong(format!("it cannot be read: {error}")))?;
        Ladder::parse(text.lines()).map_err(|error| wrong(error.to_string()))
    }

    fn no_length(&self, raw: &RawSource, known: &'static str) -> Result<(), ScenarioError> {
        let step = raw.steps.first().map(|step| ("steps", step.at.span()));
        let stray = raw.length.as_ref().map(|length| ("length", length.span())).or(step);
        stray.map_or(Ok(()), |(key, span)| Err(self.not_of_this(raw, key, span, known)))
    }

    /// Checks the pauses of a session, in which the session has nothing to send.
    pub(super) fn pauses(&self, raw: &RawFlow, start: Span, duration: Span) -> Result<Vec<Outage>, ScenarioError> {
        let Some(first) = raw.pause.first() else { return Ok(Vec::new()) };
        let is_session = raw.controller.is_some() && raw.paths.is_none();
        self.that(is_session, "pause", &first.at, || MediaProblem::PauseOfWhat.into())?;
        let pauses = self.outages(&raw.pause, duration)?;
        let begins = pauses.first().map_or(start, |pause| pause.at);
        self.that(begins > start, "at", &first.at, || MediaProblem::PauseBeforeStart { start }.into())?;
        Ok(pauses)
    }
}
