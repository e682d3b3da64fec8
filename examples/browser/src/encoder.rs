//! A live H.264 encoder (`OpenH264`) for a generated moving picture. Its bitrate can be changed while it runs.

use std::error::Error;

use openh264::encoder::{BitRate, Encoder, EncoderConfig, FrameRate, RateControlMode};
use openh264::formats::YUVBuffer;
use openh264::{OpenH264API, Timestamp};
use openh264_sys2::{ENCODER_OPTION_BITRATE, SBitrateInfo, SPATIAL_LAYER_ALL};

pub(crate) const FRAMES_PER_SECOND: u32 = 25;
const WIDTH: usize = 640;
const HEIGHT: usize = 360;
/// Maximum bitrate of the encoder.
const MOST_BPS: u32 = 5_000_000;

/// A generated video with its encoder. `number` is the number of the next picture.
pub(crate) struct Camera {
    encoder: Encoder,
    number: u32,
    bitrate: u32,
}

impl Camera {
    pub(crate) fn new(bps: u32) -> Result<Self, Box<dyn Error>> {
        let config = EncoderConfig::new()
            .rate_control_mode(RateControlMode::Bitrate)
            .bitrate(BitRate::from_bps(MOST_BPS))
            .max_frame_rate(FrameRate::from_hz(FRAMES_PER_SECOND as f32))
            // Without this setting, the encoder skips frames for seconds after the rate has fallen. Instead, this
            // program skips frames if too much data waits for the pacer.
            .skip_frames(false);
        Ok(Self { encoder: Encoder::with_api_config(OpenH264API::from_source(), config)?, number: 0, bitrate: bps })
    }

    /// Encodes the next picture, and sets the average bitrate of the pictures after it to `bps`. Returns no bytes if
    /// the encoder skips the frame.
    pub(crate) fn frame(&mut self, bps: u32, is_key: bool) -> Result<Vec<u8>, Box<dyn Error>> {
        if is_key {
            self.encoder.force_intra_frame();
        }
        let at = Timestamp::from_millis(u64::from(self.number * 1000 / FRAMES_PER_SECOND));
        let mut bytes = Vec::new();
        self.encoder.encode_at(&picture(self.number as usize), at)?.write_vec(&mut bytes);
        // The encoder accepts a bitrate only after its first frame.
        if self.number == 0 || bps != self.bitrate {
            self.set_bitrate(bps)?;
        }
        self.number += 1;
        Ok(bytes)
    }

    /// Advances to the next picture without encoding it.
    pub(crate) fn skip(&mut self) {
        self.number += 1;
    }

    fn set_bitrate(&mut self, bps: u32) -> Result<(), Box<dyn Error>> {
        let bps = bps.min(MOST_BPS);
        let mut bitrate = SBitrateInfo { iLayer: SPATIAL_LAYER_ALL, iBitrate: i32::try_from(bps)? };
        // SAFETY: the encoder exists, and no other code uses it during the call. For this option the encoder reads one
        // `SBitrateInfo` and keeps no pointer to it. (The safe interface of the crate can only set the initial
        // bitrate.)
        let refused = unsafe { self.encoder.raw_api().set_option(ENCODER_OPTION_BITRATE, (&raw mut bitrate).cast()) };
        self.bitrate = bps;
        if refused == 0 { Ok(()) } else { Err(format!("the encoder refuses {bps} bit/s").into()) }
    }
}

/// Returns picture `number`: a moving texture, a bright bar that crosses the texture, and noise, which needs a high
/// bitrate.
fn picture(number: usize) -> YUVBuffer {
    let mut grain = number as u32;
    let mut yuv = vec![128; WIDTH * HEIGHT * 3 / 2];
    for (at, luma) in yuv.iter_mut().take(WIDTH * HEIGHT).enumerate() {
        let (x, y) = (at % WIDTH + 3 * number, at / WIDTH + number);
        let texture = ((x / 12).wrapping_mul(2_654_435_761) ^ (y / 12).wrapping_mul(40_503)) >> 5;
        let is_bar = (at % WIDTH).abs_diff(number * 5 % WIDTH) < 20;
        grain = grain.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *luma = if is_bar { 220 } else { 48 + (texture % 80) as u8 + (x / 16 % 64) as u8 } + (grain >> 28) as u8;
    }
    YUVBuffer::from_vec(yuv, WIDTH, HEIGHT)
}
