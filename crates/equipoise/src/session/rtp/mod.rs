//! A media session over RTP and RTCP with the delay reports of Waki 2013, Sec. 5.1.
//!
//! ```text
//!   Sender ── RTP, each with its sending time ──────────▶ Receiver
//!          ── SR: "how was it since t?" every interval ─▶
//!          ◀─ RR: mean and variance of the delay ───────
//! ```
//!
//! [`Sender`] paces media at the rate of a controller and asks for reports; [`Receiver`] measures and answers;
//! [`Background`] sends media on a traffic model's schedule and listens to nobody.
