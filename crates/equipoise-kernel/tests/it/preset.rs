//! Tests of the variants of Reno and CUBIC whose window can be set, in this machine's kernel.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::process::Command;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use equipoise_kernel::{KernelError, PresetWindow};

use crate::machine::Machine;
use crate::skip;

/// Returns the congestion window of the connection whose local port is `port`, in segments, as `ss` reports it.
fn window(port: u16) -> u32 {
    let ss = Command::new("ss").args(["-tinH", &format!("sport = :{port}")]).output().expect("iproute2 is there");
    let said = String::from_utf8_lossy(&ss.stdout).into_owned();
    let window = said.split_whitespace().find_map(|word| word.strip_prefix("cwnd:")?.parse().ok());
    window.unwrap_or_else(|| panic!("no window in {said:?}"))
}

/// If the test fails, flow pairs begin their probing periods with the window that the kernel sets after an idle time,
/// not with the window of their control law.
#[test]
fn a_connection_takes_the_window_that_was_set_when_it_sends_again_and_has_its_law_otherwise() {
    the_window_is_taken(&["reno"]);
}

#[test]
#[ignore = "real time: 4 s"]
fn connections_of_reno_and_cubic_take_the_window_that_was_set_when_they_send_again() {
    the_window_is_taken(&["reno", "cubic"]);
}

fn the_window_is_taken(laws: &[&str]) {
    let _machine = Machine::alone();
    for &law in laws {
        let preset = match PresetWindow::load(law) {
            Ok(preset) => preset.expect("a law that there is"),
            Err(reason) => return skip(&reason),
        };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let reader = thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("a connection");
            let mut bytes = vec![0; 1 << 16];
            while peer.read(&mut bytes).is_ok_and(|len| len > 0) {}
        });
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        socket.set_tcp_congestion(preset.name().as_bytes()).expect("it is registered");
        socket.connect(&address.into()).expect("somebody listens");
        let mut stream = TcpStream::from(socket);
        let port = stream.local_addr().expect("connected").port();
        stream.write_all(&vec![7; 64 << 20]).expect("the peer reads");
        // The connection is idle for longer than its retransmission timeout, so that the kernel reduces the window when
        // the connection sends again.
        sleep(Duration::from_millis(500));
        let grown = window(port);
        // After an idle time, the kernel's window is at least ten segments. The test sets one window above ten segments
        // and one window below.
        for segments in [13, 4] {
            preset.set(stream.as_fd(), segments).expect("a connection");
            sleep(Duration::from_millis(500));
            assert_ne!(window(port), segments, "{law}: nothing happens before something is sent");
            stream.write_all(b"a little").expect("the peer reads");
            let begin = Instant::now();
            while !(segments..=segments + 1).contains(&window(port)) {
                let found = window(port);
                assert!(begin.elapsed().as_secs() < 10, "{law}: {found} segments of {segments}, from {grown}");
                sleep(Duration::from_millis(10));
            }
        }
        stream.write_all(&vec![7; 64 << 20]).expect("the peer reads");
        let after = window(port);
        assert!(after > 5, "{law}: it grows again, and is {after}");

        assert!(PresetWindow::load(law).is_ok_and(|again| again.is_some()), "a second user joins the first");
        assert!(matches!(
            preset.set(fs::File::open("/proc/self/stat").expect("there").as_fd(), 1),
            Err(KernelError::Refused { .. })
        ));
        drop(stream);
        reader.join().expect("it ends");
    }
    assert!(PresetWindow::load("vegas").is_ok_and(|preset| preset.is_none()));
}
