//! The host names that the server accepts in requests.

use std::net::{IpAddr, SocketAddr};

/// The host name with which the user started the server; `None` if the user gave an IP address.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hosts(Option<String>);

impl Hosts {
    /// Takes the host name from `place`, which is a host name or an IP address, followed by a port. If `place` has an
    /// IP address, there is no host name.
    pub(super) fn of(place: &str) -> Self {
        let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
        let is_name = address(host).is_none();
        Self(is_name.then(|| host.to_owned()))
    }

    /// Whether a request for `host` that arrived at the address `local` is meant for this server.
    ///
    /// The port must be that of `local`. The IP address of `local` is accepted. If the IP address of `local` is a
    /// loopback address, all loopback addresses and `localhost` are accepted. No other name is accepted except the name
    /// that the user gave, because the owner of any domain can let it resolve to this server's address.
    pub(super) fn is_ours(&self, host: &str, local: SocketAddr) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port.parse().ok()),
            _ => (host, Some(80)),
        };
        if port != Some(local.port()) {
            return false;
        }
        let local = local.ip().to_canonical();
        if let Some(address) = address(name) {
            return address == local || address.is_loopback() && local.is_loopback();
        }
        let is_named = self.0.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(name));
        is_named || local.is_loopback() && name.eq_ignore_ascii_case("localhost")
    }
}

/// Parses an IP address as it is written in URLs, where IPv6 addresses have brackets.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    text.parse().ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If the test fails, any web page can read the data of the run through a domain name that resolves to 127.0.0.1.
    #[test]
    fn a_foreign_name_is_not_ours_and_every_way_to_write_our_own_is() {
        let asks = |place: &str, local: &str, host: &str| {
            Hosts::of(place).is_ours(host, local.parse().expect("an address with a port"))
        };
        let here = ("127.0.0.1:8080", "127.0.0.1:8080");
        for host in ["127.0.0.1:8080", "localhost:8080", "LocalHost:8080", "[::1]:8080"] {
            assert!(asks(here.0, here.1, host), "{host}");
        }
        for host in ["evil.example:8080", "evil.example", "127.0.0.1", "127.0.0.1:80", "192.0.2.1:8080", "", ":8080"] {
            assert!(!asks(here.0, here.1, host), "{host}");
        }
        assert!(asks("[::]:9100", "[::ffff:192.0.2.7]:9100", "192.0.2.7:9100"));
        assert!(asks("[::1]:9100", "[::1]:9100", "[::1]:9100"));
        assert!(!asks("0.0.0.0:9100", "192.0.2.7:9100", "localhost:9100"), "who asks from afar");
        assert!(!asks("0.0.0.0:9100", "192.0.2.7:9100", "127.0.0.1:9100"));
        assert!(asks("media.example:9100", "192.0.2.7:9100", "media.example:9100"));
        assert!(!asks("media.example:9100", "192.0.2.7:9100", "other.example:9100"));
        assert!(asks("127.0.0.1:80", "127.0.0.1:80", "localhost"));
    }
}
