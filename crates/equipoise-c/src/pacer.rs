//! A pacer without a controller, for a rate set by the caller.

use equipoise::pace::{Pacer, Readiness};
use equipoise::units::{Rate, SenderClock};

use crate::border::{LONGEST_PACKET, bytes, hand_out};
use crate::error::{Fault, eq_error, guarded, value};
use crate::time::{CallersClock, EQ_NEVER};

/// Spaces packets evenly. Only one thread may use a pacer at a time.
pub struct eq_pacer {
    pacer: Pacer<SenderClock>,
    clock: CallersClock,
}

/// Creates a pacer that allows the first packet immediately. `now_ns` is the present time of the caller's monotonic
/// clock. Free the pacer with eq_pacer_free.
///
/// Returns EQ_OK or EQ_E_ARGUMENT.
///
/// # Safety
/// `pacer` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_pacer_new(rate_bps: u64, now_ns: i64, pacer: *mut *mut eq_pacer) -> eq_error {
    let make =
        || Ok(eq_pacer { pacer: Pacer::new(Rate::from_bps(rate_bps)), clock: CallersClock::starting_at(now_ns) });
    // SAFETY: the caller guarantees that the pointer is valid.
    guarded(|| unsafe { hand_out(pacer, make) })
}

/// Frees a pacer; NULL is allowed.
///
/// # Safety
/// `pacer` is null or from eq_pacer_new, and is not used during or after this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_pacer_free(pacer: *mut eq_pacer) {
    if !pacer.is_null() {
        // SAFETY: the pointer is from `Box::into_raw`, and the caller does not use it again.
        drop(unsafe { Box::from_raw(pacer) });
    }
}

/// Sets the rate of IP packets, in bit/s. The new rate also applies to the gap after the packet that was sent last. At
/// rate 0 no packet may be sent.
///
/// # Safety
/// `pacer` is null or a pacer that no other thread uses at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_pacer_set_rate(pacer: *mut eq_pacer, rate_bps: u64) -> eq_error {
    guarded(|| {
        // SAFETY: the caller guarantees that the pointer is valid.
        let this = unsafe { pacer.as_mut() }.ok_or_else(Fault::no_handle)?;
        this.pacer.set_rate(Rate::from_bps(rate_bps));
        Ok(())
    })
}

/// Returns the time at which the next packet may be sent: `now_ns` if it may be sent now, a later time, or EQ_NEVER if
/// the rate is 0 or `pacer` is NULL.
///
/// # Safety
/// `pacer` is null or a pacer that no other thread uses at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_pacer_next_ns(pacer: *const eq_pacer, now_ns: i64) -> i64 {
    let next = value(|| {
        // SAFETY: the caller guarantees that the pointer is valid.
        let this = unsafe { pacer.as_ref() }.ok_or_else(Fault::no_handle)?;
        Ok(match this.pacer.poll(this.clock.time(now_ns)) {
            Readiness::Now => now_ns,
            Readiness::At(due) => this.clock.nanos(due),
            Readiness::Never => EQ_NEVER,
        })
    });
    next.unwrap_or(EQ_NEVER)
}

/// Reports that a packet of `size` bytes, IP header included, was sent at `now_ns`.
///
/// # Safety
/// `pacer` is null or a pacer that no other thread uses at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_pacer_sent(pacer: *mut eq_pacer, now_ns: i64, size: usize) -> eq_error {
    guarded(|| {
        // SAFETY: the caller guarantees that the pointer is valid.
        let this = unsafe { pacer.as_mut() }.ok_or_else(Fault::no_handle)?;
        this.pacer.on_departure(this.clock.time(now_ns), bytes(size, LONGEST_PACKET)?);
        Ok(())
    })
}

/// Reports that there was nothing to send until `now_ns`. The next packet is then due at `now_ns` at the earliest, so
/// that the following packets are not sent faster to make up for the pause.
///
/// # Safety
/// `pacer` is null or a pacer that no other thread uses at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_pacer_idle(pacer: *mut eq_pacer, now_ns: i64) -> eq_error {
    guarded(|| {
        // SAFETY: the caller guarantees that the pointer is valid.
        let this = unsafe { pacer.as_mut() }.ok_or_else(Fault::no_handle)?;
        this.pacer.rested_until(this.clock.time(now_ns));
        Ok(())
    })
}
