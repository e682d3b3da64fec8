//! The responses to HTTP requests.

/// A response to an HTTP request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Page(Page),
    Metrics(String),
    /// The stream of the run's events.
    Follow,
    Refused(u16, &'static str, &'static str),
}

/// A file of the live page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Html,
    Style,
    Script,
}

impl Page {
    const fn text(self) -> &'static str {
        match self {
            Self::Html => include_str!("../page/live.html"),
            Self::Style => include_str!("../page/live.css"),
            Self::Script => include_str!("../page/live.js"),
        }
    }

    const fn content_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Style => "text/css; charset=utf-8",
            Self::Script => "text/javascript; charset=utf-8",
        }
    }
}

/// Content security policy: nothing from other origins, no inline scripts or styles, no embedding in frames, and no
/// forms.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

impl Answer {
    pub(super) const BUSY: Self = Self::Refused(503, "Service Unavailable", "There are too many connections.\n");
    pub(super) const LATE: Self = Self::Refused(408, "Request Timeout", "The request took too long.\n");
    pub(super) const TOO_LARGE: Self =
        Self::Refused(431, "Request Header Fields Too Large", "A request may have at most 8 kB.\n");
    pub(super) const MALFORMED: Self = Self::Refused(400, "Bad Request", "This is no request.\n");
    pub(super) const NOT_GET: Self = Self::Refused(405, "Method Not Allowed", "There is nothing here but to GET.\n");
    pub(super) const NOT_FOUND: Self = Self::Refused(404, "Not Found", "There is no such place.\n");
    pub(super) const FOREIGN_HOST: Self = Self::Refused(
        421,
        "Misdirected Request",
        "This server has another name: use the address that it was started with.\n",
    );
    pub(super) const FOREIGN_ORIGIN: Self = Self::Refused(403, "Forbidden", "Pages of others may not read this.\n");

    /// Returns the whole response: status line, headers and body.
    pub(super) fn whole(&self) -> Vec<u8> {
        let mut whole = self.head();
        whole.extend_from_slice(self.body().as_bytes());
        whole
    }

    fn head(&self) -> Vec<u8> {
        let (code, reason) = match self {
            Self::Refused(code, reason, _) => (*code, *reason),
            _ => (200, "OK"),
        };
        let content_type = match self {
            Self::Page(page) => page.content_type(),
            Self::Metrics(_) => crate::views::metrics::CONTENT_TYPE,
            Self::Follow => "text/event-stream",
            Self::Refused(..) => "text/plain; charset=utf-8",
        };
        let mut head = format!(
            "HTTP/1.1 {code} {reason}\r\nContent-Type: {content_type}\r\nConnection: close\r\nCache-Control: no-store\r\n\
             Content-Security-Policy: {POLICY}\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n"
        );
        if *self == Self::NOT_GET {
            head.push_str("Allow: GET\r\n");
        }
        if *self != Self::Follow {
            head.push_str(&format!("Content-Length: {}\r\n", self.body().len()));
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    fn body(&self) -> &str {
        match self {
            Self::Page(page) => page.text(),
            Self::Metrics(text) => text,
            Self::Follow => "",
            Self::Refused(_, _, words) => words,
        }
    }
}
