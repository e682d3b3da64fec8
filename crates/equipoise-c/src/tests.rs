//! Tests of behaviour of the C API that the C tests in `tests/c` do not cover.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_int};
use std::net::{Ipv6Addr, TcpListener};
use std::ptr;

use libc::{AF_INET6, in6_addr, sockaddr_in6, socklen_t};
use proptest::prelude::*;

use crate::border::{Growing, fill, options};
use crate::controller::{eq_controller_options, eq_controller_status};
use crate::error::{Fault, eq_error, eq_error_name, eq_last_error_message, eq_strerror, guarded};
use crate::pair::{eq_close, eq_dst, eq_fsocket, eq_port, eq_recv, eq_send};
use crate::time::{CallersClock, arrival};
use crate::version::{EQ_VERSION_MAJOR, EQ_VERSION_MINOR, EQ_VERSION_PATCH, eq_version};

fn words(text: *const std::ffi::c_char) -> &'static str {
    // SAFETY: `text` is from a function of the library, so it ends with a zero byte. Most texts stay valid. The text of
    // `eq_last_error_message` is valid until a call fails, and the tests use it only before that.
    unsafe { CStr::from_ptr(text) }.to_str().expect("UTF-8")
}

/// If this test fails, the version in the header differs from the version of the library.
#[test]
fn the_headers_version_is_the_packages() {
    let header = format!("{EQ_VERSION_MAJOR}.{EQ_VERSION_MINOR}.{EQ_VERSION_PATCH}");
    assert_eq!((words(eq_version()), header.as_str()), (env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_VERSION")));
}

#[test]
fn every_code_has_a_name_and_words_of_its_own() {
    let codes = -15..=0;
    let names: BTreeSet<_> = codes.clone().map(|code| words(eq_error_name(code))).collect();
    let meanings: BTreeSet<_> = codes.map(|code| words(eq_strerror(code))).collect();
    assert_eq!((names.len(), meanings.len()), (16, 16), "15 codes, and the word for none");
    assert_eq!(words(eq_error_name(eq_error::EQ_END as i32)), "EQ_END");
}

#[test]
fn a_panic_does_not_cross_the_border_and_words_are_left_for_each_fault() {
    let result = guarded(|| panic!("a fault of the library's own"));
    assert_eq!(result, eq_error::EQ_E_INTERNAL);
    assert!(words(eq_last_error_message()).contains("panicked"));
    assert_eq!(guarded(|| Err(Fault::new(eq_error::EQ_E_NAME, "a\0b"))), eq_error::EQ_E_NAME);
    assert_eq!(words(eq_last_error_message()), "a\\0b");
    let other = std::thread::spawn(|| words(eq_last_error_message()).to_owned()).join();
    assert_eq!(other.expect("no panic"), "no call of this thread has failed");
}

/// If this test fails, the library reads or writes beyond the structures of a program that was built with an older or
/// newer header.
#[test]
fn structures_of_any_size_are_read_and_filled_as_far_as_they_go() {
    let given = eq_controller_options { feedback: 2, interval_ns: 7, ..eq_controller_options::standard() };
    let shorter =
        eq_controller_options { struct_size: std::mem::offset_of!(eq_controller_options, interval_ns), ..given };
    // SAFETY: the size in each structure is at most the number of bytes of the structure.
    let (shorter, none) = unsafe { (options(&raw const shorter), options(ptr::null::<eq_controller_options>())) };
    assert_eq!(shorter.map(|read| (read.feedback, read.interval_ns)).expect("it is read"), (2, 0));
    assert_eq!(none.map(|read| read.feedback).expect("it is read"), 0);

    // In a program that was built with a later header, the structure has further fields after the fields of this
    // version.
    let before = eq_controller_status { rate_bps: 77, ..eq_controller_status::standard() };
    let mut later = [before; 2];
    later[0].struct_size = size_of_val(&later);
    // SAFETY: `later` has `struct_size` writable bytes.
    let filled =
        unsafe { fill(later.as_mut_ptr(), eq_controller_status { rate_bps: 5, ..eq_controller_status::standard() }) };
    filled.expect("it is filled");
    assert_eq!((later[0].struct_size, later[0].rate_bps), (size_of_val(&later), 5));
    assert_eq!((later[1].struct_size, later[1].rate_bps), (before.struct_size, 77), "it is not the library's");
}

proptest! {
    /// If this test fails, the rate depends on the origin of the caller's clock.
    #[test]
    fn any_clock_of_the_callers_is_told_back_as_it_was(start: i64, ahead in 0..=1_i64 << 60) {
        let (clock, now) = (CallersClock::starting_at(start), start.saturating_add(ahead));
        prop_assert_eq!(clock.nanos(clock.time(now)), now);
        prop_assert!(clock.time(start) <= clock.time(now));
        prop_assert!(arrival(start) <= arrival(now));
    }
}

fn v6(port: u16) -> sockaddr_in6 {
    let sin6_addr = in6_addr { s6_addr: Ipv6Addr::LOCALHOST.octets() };
    sockaddr_in6 {
        sin6_family: AF_INET6 as u16,
        sin6_port: port.to_be(),
        sin6_flowinfo: 0,
        sin6_addr,
        sin6_scope_id: 0,
    }
}

/// If this test fails, flow pairs do not work over IPv6; the tests in C use only IPv4.
#[test]
fn units_come_whole_over_ipv6() {
    if let Err(error) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        println!("{error}\nskipped: IPv6 on the loopback interface");
        return;
    }
    let length = size_of::<sockaddr_in6>() as socklen_t;
    let (local, mut got) = (v6(0), [0_u8; 16]);
    // SAFETY: each pointer points to at least the number of bytes that is passed with it.
    unsafe {
        let receiver = eq_fsocket(ptr::from_ref(&local).cast(), length);
        let (sender, there) = (eq_fsocket(ptr::null(), 0), v6(eq_port(receiver)));
        assert_eq!(eq_dst(sender, ptr::from_ref(&there).cast(), length), eq_error::EQ_OK);
        assert_eq!(eq_send(sender, b"a unit".as_ptr().cast(), 6, 0, 1), 6);
        assert_eq!(eq_recv(receiver, got.as_mut_ptr().cast(), got.len(), 0), 6);
        assert_eq!(&got[..6], b"a unit");
        assert_eq!(eq_close(sender), eq_error::EQ_OK);
        let end = eq_recv(receiver, got.as_mut_ptr().cast(), got.len(), 0);
        assert_eq!(end as c_int, eq_error::EQ_END as c_int);
        assert_eq!(eq_close(receiver), eq_error::EQ_OK);
    }
}
