use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::*;
use crate::views::samples;

fn site(page: bool, metrics: bool) -> (Site, Shared) {
    let shared = Shared::default();
    *super::super::lock(&shared.board) = samples::board(2);
    super::super::lock(&shared.hub).take(&samples::start());
    let site = Site::open("127.0.0.1:0", Offers { page, metrics }, shared.clone()).expect("a free port");
    (site, shared)
}

/// Sends `request`, and returns everything that the server sends until it closes the connection. A read waits at most
/// twice `PATIENCE`.
fn answered(site: &Site, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(site.address()).expect("it listens");
    stream.set_read_timeout(Some(2 * PATIENCE)).expect("a socket");
    // The error is ignored: a server that responded early may have closed the connection before the whole request was
    // written.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Sends a GET request with the correct host and the additional headers `headers`, and returns the response.
fn get(site: &Site, path: &str, headers: &str) -> String {
    answered(site, format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", site.address()).as_bytes())
}

#[track_caller]
fn assert_status(answer: &str, status: u16) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "not {status}: {answer}");
}

#[test]
fn the_page_its_parts_and_the_metrics_are_there_where_they_are_offered_and_nothing_else_is() {
    let (site, _) = site(true, true);
    for (path, content_type) in [
        ("/", "text/html"),
        ("/?x=1", "text/html"),
        ("/live.css", "text/css"),
        ("/live.js", "text/javascript"),
        ("/metrics", "application/openmetrics-text; version=1.0.0; charset=utf-8"),
    ] {
        let answer = get(&site, path, "");
        assert_status(&answer, 200);
        assert!(answer.contains(&format!("\r\nContent-Type: {content_type}")), "{answer}");
        let (head, body) = answer.split_once("\r\n\r\n").expect("headers and a body");
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
        assert!(head.contains("Content-Security-Policy: default-src 'none'") && !head.contains("Access-Control"));
    }
    for path in ["/nothing", "//", "/../etc/passwd", "/live.js/", "http://evil.example/"] {
        assert_status(&get(&site, path, ""), 404);
    }
    let (metrics, _) = self::site(false, true);
    assert_status(&get(&metrics, "/", ""), 404);
    assert_status(&get(&metrics, "/events", ""), 404);
    assert_status(&get(&metrics, "/metrics", ""), 200);
}

/// If this test fails, any web page in the user's browser can read the data of the run.
#[test]
fn other_names_and_other_origins_are_refused() {
    let (site, _) = site(true, true);
    let port = site.address().port();
    for host in ["evil.example", &format!("evil.example:{port}"), "127.0.0.1", "127.0.0.1:1", ""] {
        assert_status(&answered(&site, format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()), 421);
    }
    assert_status(&answered(&site, b"GET /metrics HTTP/1.1\r\n\r\n"), 400);
    let twice = format!("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nhost: evil.example\r\n\r\n");
    assert_status(&answered(&site, twice.as_bytes()), 400);
    for foreign in ["Origin: http://evil.example\r\n", "Origin: null\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        assert_status(&get(&site, "/metrics", foreign), 403);
        assert_status(&get(&site, "/events", foreign), 403);
    }
    let own = format!("Origin: http://127.0.0.1:{port}\r\nSec-Fetch-Site: same-origin\r\n");
    assert_status(&get(&site, "/metrics", &own), 200);
    // Pages of other origins may contain links to the live page.
    assert_status(&get(&site, "/", "Sec-Fetch-Site: cross-site\r\n"), 200);
}

#[test]
fn only_get_is_understood_and_what_is_too_large_or_no_request_is_refused() {
    let (site, _) = site(true, true);
    let host = format!("Host: {}\r\n", site.address());
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"] {
        let answer = answered(&site, format!("{method} /metrics HTTP/1.1\r\n{host}\r\n").as_bytes());
        assert_status(&answer, 405);
        assert!(answer.contains("\r\nAllow: GET\r\n"));
    }
    assert_status(&answered(&site, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"), 400);
    let long = format!("GET /{} HTTP/1.1\r\n{host}\r\n", "x".repeat(request::MOST));
    assert_status(&answered(&site, long.as_bytes()), 431);
    let many = format!("GET / HTTP/1.1\r\n{host}{}\r\n", "a: b\r\n".repeat(100));
    assert_status(&answered(&site, many.as_bytes()), 431);
}

/// If this test fails, idle connections block all other connections forever, or each idle connection uses a thread
/// forever.
#[test]
fn connections_are_bounded_and_free_again_after_a_while() {
    let (site, _) = site(true, true);
    let silent: Vec<_> =
        (0..MOST_CONNECTIONS).map(|_| TcpStream::connect(site.address()).expect("it listens")).collect();
    let deadline = Instant::now() + 3 * PATIENCE;
    // New connections are refused once all connections are in use.
    while !get(&site, "/metrics", "").starts_with("HTTP/1.1 503 ") {
        assert!(Instant::now() < deadline, "never full");
        thread::sleep(Duration::from_millis(10));
    }
    while !get(&site, "/metrics", "").starts_with("HTTP/1.1 200 ") {
        assert!(Instant::now() < deadline, "never free again");
        thread::sleep(Duration::from_millis(100));
    }
    drop(silent);
}

#[test]
fn a_page_follows_from_the_beginning_and_hears_of_the_end() {
    let (site, shared) = site(true, false);
    let mut stream = TcpStream::connect(site.address()).expect("it listens");
    stream.write_all(format!("GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", site.address()).as_bytes()).expect("sent");
    // The server's response shows that the page now receives the run's events.
    let mut first = [0; 12];
    stream.read_exact(&mut first).expect("an answer");
    let hub = || super::super::lock(&shared.hub);
    hub().take(&samples::open(5));
    hub().take(&samples::interval(5, 1.0));
    hub().take(&crate::views::told::Told::Over { at_s: 2.0, dropped: 0 });
    hub().close();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("text until the end");
    let events: Vec<&str> = rest.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let starts: Vec<_> = events.iter().map(|event| event.get(..18).unwrap_or_default()).collect();
    assert!(starts.first().is_some_and(|event| event.starts_with("{\"event\":\"start\"")), "{rest}");
    assert!(starts.last().is_some_and(|event| event.starts_with("{\"event\":\"over\"")), "{rest}");
    assert!(rest.contains("text/event-stream") && rest.contains("\"delay_p95_s\":0.012"), "{rest}");
}

/// If this test fails, a page on a suspended laptop uses the server's memory until the run ends, or blocks the run.
#[test]
fn a_page_that_does_not_read_holds_up_nobody_and_is_let_go() {
    let (site, shared) = site(true, false);
    let mut stream = TcpStream::connect(site.address()).expect("it listens");
    stream.write_all(format!("GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", site.address()).as_bytes()).expect("sent");
    let mut first = [0; 12];
    stream.read_exact(&mut first).expect("an answer");
    super::super::lock(&shared.hub).take(&samples::open(0));
    let line: Arc<str> = "x".repeat(20_000).into();
    let begun = Instant::now();
    // These lines have 100 MB in total, more than the sockets' buffers and the page's queue can contain.
    for _ in 0..5000 {
        super::super::lock(&shared.hub).tell(line.clone());
    }
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    let deadline = Instant::now() + 4 * PATIENCE;
    while site.followers.load(Ordering::Relaxed) > 0 {
        assert!(Instant::now() < deadline, "it is not let go");
        thread::sleep(Duration::from_millis(50));
    }
}
