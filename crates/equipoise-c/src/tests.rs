use std::ffi::CStr;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::ptr;
use std::thread;

use libc::{AF_INET, AF_INET6, in_addr, in6_addr, sockaddr_in, sockaddr_in6};

use super::*;

fn v4(port: u16) -> sockaddr_in {
    let sin_addr = in_addr { s_addr: u32::from(Ipv4Addr::LOCALHOST).to_be() };
    sockaddr_in { sin_family: AF_INET as u16, sin_port: port.to_be(), sin_addr, sin_zero: [0; 8] }
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

/// A handle at an address.
fn at<T>(address: &T) -> c_int {
    // SAFETY: the pointer is to so many bytes.
    unsafe { eq_fsocket(ptr::from_ref(address).cast(), size_of::<T>() as socklen_t) }
}

fn to<T>(handle: c_int, address: &T) -> c_int {
    // SAFETY: the pointer is to so many bytes.
    unsafe { eq_dst(handle, ptr::from_ref(address).cast(), size_of::<T>() as socklen_t) }
}

fn send(handle: c_int, data: &[u8], end: bool) -> ssize_t {
    // SAFETY: the pointer is to so many bytes.
    unsafe { eq_send(handle, data.as_ptr().cast(), data.len(), 0, c_int::from(end)) }
}

fn recv(handle: c_int, buffer: &mut [u8]) -> ssize_t {
    // SAFETY: the pointer is to so many bytes.
    unsafe { eq_recv(handle, buffer.as_mut_ptr().cast(), buffer.len(), 0) }
}

fn code(code: c_int) -> ssize_t {
    code as ssize_t
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("bound").port()
}

fn through<T: Copy + Send + 'static>(address: T) {
    let receiver = at(&address);
    assert!(receiver >= 0, "{receiver}");
    let sender = thread::spawn(move || {
        // SAFETY: null is no address.
        let sender = unsafe { eq_fsocket(ptr::null(), 0) };
        assert_eq!(to(sender, &address), 0);
        assert_eq!((send(sender, b"half and ", false), send(sender, b"half", true)), (9, 4));
        assert_eq!(send(sender, b"", true), 0);
        assert_eq!(send(sender, &[7; 3000], true), 3000);
        assert_eq!(eq_close(sender), 0);
        assert_eq!(eq_close(sender), EQ_E_HANDLE);
    });
    let mut buffer = [0; 4000];
    assert_eq!(recv(receiver, &mut buffer), 13);
    assert_eq!(&buffer[..13], b"half and half");
    assert_eq!(recv(receiver, &mut buffer), 0);
    assert_eq!(recv(receiver, &mut buffer[..2999]), code(EQ_E_BUFFER));
    assert_eq!(recv(receiver, &mut buffer), 3000);
    assert!(buffer[..3000].iter().all(|byte| *byte == 7));
    assert_eq!(recv(receiver, &mut buffer), code(EQ_E_OVER));
    assert_eq!(send(receiver, b"x", true), code(EQ_E_STATE));
    assert_eq!(to(receiver, &address), EQ_E_STATE);
    assert_eq!(eq_close(receiver), 0);
    sender.join().expect("no panic");
}

#[test]
fn units_come_whole_from_one_handle_to_another() {
    through(v4(free_port()));
    match TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        Ok(listener) => {
            let port = listener.local_addr().expect("bound").port();
            drop(listener);
            through(v6(port));
        }
        Err(error) => println!("{error}\nskipped: IPv6 on the loopback interface"),
    }
}

#[test]
fn what_is_wrong_with_a_call_is_a_number() {
    let nothing = ptr::null_mut::<c_void>();
    // SAFETY: nothing is read or written where an argument is wrong.
    unsafe {
        assert_eq!(eq_send(12_345, nothing, 0, 0, 1), code(EQ_E_HANDLE));
        assert_eq!(eq_recv(-1, nothing, 0, 0), code(EQ_E_HANDLE));
        let handle = eq_fsocket(ptr::null(), 0);
        assert_eq!(eq_dst(handle, ptr::null(), 16), EQ_E_ARGUMENT);
        assert_eq!(eq_send(handle, nothing, 1, 0, 1), code(EQ_E_ARGUMENT));
        assert_eq!(eq_send(handle, nothing, 0, 1, 1), code(EQ_E_ARGUMENT));
        assert_eq!(eq_recv(handle, nothing, 1, 0), code(EQ_E_ARGUMENT));
        assert_eq!(eq_recv(handle, nothing, 0, 0), code(EQ_E_STATE));
        assert_eq!(eq_send(handle, nothing, 0, 0, 1), code(EQ_E_STATE));
        let address = v4(1);
        assert_eq!(eq_dst(handle, ptr::from_ref(&address).cast(), 15), EQ_E_ARGUMENT);
        let strange = sockaddr_in { sin_family: 1, ..address };
        assert_eq!(eq_fsocket(ptr::from_ref(&strange).cast(), 16), EQ_E_ARGUMENT);
        assert_eq!(eq_close(handle), 0);
    }
    let deaf = v4(free_port());
    // SAFETY: null is no address.
    let handle = unsafe { eq_fsocket(ptr::null(), 0) };
    assert_eq!(to(handle, &deaf), EQ_E_PEER);
    assert_eq!(eq_close(handle), 0);
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    assert_eq!(at(&v4(taken.local_addr().expect("bound").port())), EQ_E_SYSTEM);
}

#[test]
fn every_code_has_words_of_its_own() {
    // SAFETY: the text is the library's, and ends with a zero.
    let words = |code| unsafe { CStr::from_ptr(eq_strerror(code)) }.to_str().expect("UTF-8");
    let all: std::collections::BTreeSet<_> = (EQ_E_INTERNAL - 1..=0).map(words).collect();
    assert_eq!(all.len(), 11);
    assert_eq!(words(EQ_E_OVER), "the flow is over");
}

#[test]
fn a_panic_does_not_cross_the_border() {
    let result: c_int = guarded(|| panic!("a fault of the library's own"));
    assert_eq!(result, EQ_E_INTERNAL);
}
