//! A pacer without a controller, for a rate set by the caller.

use equipoise::pace::{Pacer, Readiness};
use equipoise::units::{Rate, SenderClock};

use crate::border::{LONGEST_PACKET, bytes, hand_out};
use crate::error::{Fault, eq_error, guarded, value};
use crate::time::{CallersClock, EQ_NEVER};

/// Spaces packets evenly. Only one thread may use it at a time.
pub struct eq_pacer {
    pacer: Pacer<SenderClock>,
    clock: CallersClock,
}

/// Creates a pacer whose first packet may be sent at once. `now_ns` is the present time of the caller's monotonic
/// clock. Free it with eq_pacer_free.
///
/// Returns EQ_OK or EQ_E_ARGUMENT.
///
/// # Safety
/// `pacer` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_pacer_new(rate_bps: u64, now_ns: i64, pacer: *mut *mut eq_pacer) -> eq_error {
    let make =
        || Ok(eq_pacer { pacer: Pacer::new(Rate::from_bps(rate_bps)), clock: CallersClock::starting_at(now_ns) });
    // SAFETY: the caller vouches for the pointer.
    guarded(|| unsafe { hand_out(pacer, make) })
}

/// Frees a pacer; NULL is allowed.
///
/// # Safety
/// `pacer` is null or from eq_pacer_new, and is not used now or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_pacer_free(pacer: *mut eq_pacer) {
    if !pacer.is_null() {
        // SAFETY: it was made by `Box::into_raw`, and the caller gives it up.
        drop(unsafe { Box::from_raw(pacer) });
    }
}

/// Sets the rate of IP packets. It also applies to the gap after the last packet. At rate 0 nothing may be sent.
///
/// # Safety
/// `pacer` is null or a pacer that no other thread uses at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_pacer_set_rate(pacer: *mut eq_pacer, rate_bps: u64) -> eq_error {
    guarded(|| {
        // SAFETY: the caller vouches for the pointer.
        let this = unsafe { pacer.as_mut() }.ok_or_else(Fault::no_handle)?;
        this.pacer.set_rate(Rate::from_bps(rate_bps));
        Ok(())
    })
}

/// When the next packet may be sent: `now_ns` for now, a later time, or EQ_NEVER at rate 0 and for NULL.
///
/// # Safety
/// As eq_pacer_set_rate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_pacer_next_ns(pacer: *const eq_pacer, now_ns: i64) -> i64 {
    let next = value(|| {
        // SAFETY: the caller vouches for the pointer.
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
/// As eq_pacer_set_rate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_pacer_sent(pacer: *mut eq_pacer, now_ns: i64, size: usize) -> eq_error {
    guarded(|| {
        // SAFETY: the caller vouches for the pointer.
        let this = unsafe { pacer.as_mut() }.ok_or_else(Fault::no_handle)?;
        this.pacer.on_departure(this.clock.time(now_ns), bytes(size, LONGEST_PACKET)?);
        Ok(())
    })
}

/// Reports that there was nothing to send until `now_ns`: a packet that was due before is due now, and not late.
///
/// # Safety
/// As eq_pacer_set_rate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_pacer_idle(pacer: *mut eq_pacer, now_ns: i64) -> eq_error {
    guarded(|| {
        // SAFETY: the caller vouches for the pointer.
        let this = unsafe { pacer.as_mut() }.ok_or_else(Fault::no_handle)?;
        this.pacer.rested_until(this.clock.time(now_ns));
        Ok(())
    })
}
