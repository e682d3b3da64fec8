//! Parses HTTP requests. Their content is not trusted.

use httparse::{EMPTY_HEADER, Status};

use super::answer::Answer;

/// Maximum size of a request, in bytes. Our choice: several times the 1 to 2 kB of a browser's request.
pub(super) const MOST: usize = 8192;
/// Maximum number of headers in a request.
const MOST_HEADERS: usize = 64;

/// The parts of a request that the server uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    /// The path of the URL, without the query.
    pub(super) path: &'a str,
    pub(super) host: &'a str,
    origin: Option<&'a str>,
    /// How the origin of the requesting page is related to this server's origin, as reported by the browser (Fetch
    /// Metadata).
    site: Option<&'a str>,
}

/// The result of parsing a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read<'a> {
    Whole(Request<'a>),
    Wrong(Answer),
}

/// Whether the blank line after the headers has arrived. Only then is the request parsed.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    bytes.windows(4).any(|window| window == b"\r\n\r\n") || bytes.windows(2).any(|window| window == b"\n\n")
}

pub(super) fn parse(bytes: &[u8]) -> Read<'_> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(bytes) {
        Ok(Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Read::Wrong(Answer::TOO_LARGE),
        Ok(Status::Partial) | Err(_) => return Read::Wrong(Answer::MALFORMED),
    }
    if parsed.method != Some("GET") {
        return Read::Wrong(Answer::NOT_GET);
    }
    let path = parsed.path.unwrap_or_default();
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let mut found = Headers::default();
    for header in parsed.headers.iter() {
        let Ok(value) = std::str::from_utf8(header.value) else { return Read::Wrong(Answer::MALFORMED) };
        let place = match header.name {
            name if name.eq_ignore_ascii_case("host") => &mut found.host,
            name if name.eq_ignore_ascii_case("origin") => &mut found.origin,
            name if name.eq_ignore_ascii_case("sec-fetch-site") => &mut found.site,
            _ => continue,
        };
        // If `Host`, `Origin` or `Sec-Fetch-Site` appears twice, the request is refused, because a proxy might use the
        // other value.
        if place.replace(value.trim()).is_some() {
            return Read::Wrong(Answer::MALFORMED);
        }
    }
    let Some(host) = found.host else { return Read::Wrong(Answer::MALFORMED) };
    Read::Whole(Request { path, host, origin: found.origin, site: found.site })
}

#[derive(Default)]
struct Headers<'a> {
    host: Option<&'a str>,
    origin: Option<&'a str>,
    site: Option<&'a str>,
}

impl Request<'_> {
    /// Whether the request comes from a page of this server, or directly from the user. Links on pages of other origins
    /// may also request the page `/`, because `/` contains no data of the run.
    pub(super) fn is_from_here(&self) -> bool {
        let is_origin_ours = self.origin.is_none_or(|origin| {
            origin.strip_prefix("http://").is_some_and(|origin| origin.eq_ignore_ascii_case(self.host))
        });
        let is_site_ours = self.site.is_none_or(|site| site == "same-origin" || site == "none") || self.path == "/";
        is_origin_ours && is_site_ours
    }
}
