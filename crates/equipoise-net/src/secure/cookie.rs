use std::net::{IpAddr, SocketAddr};

use ring::hmac;
use subtle::ConstantTimeEq as _;

use super::Nonce;
use super::message::Open;

/// Creates and verifies cookies. No state is stored for each cookie.
#[derive(Debug)]
pub(crate) struct CookieJar {
    secret: hmac::Key,
}

impl CookieJar {
    /// Length of a period in seconds. A cookie is valid in the period in which it was created and in the next period.
    const PERIOD_S: u64 = 60;

    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        Self { secret: hmac::Key::new(hmac::HMAC_SHA256, secret) }
    }

    /// The cookie for an address and a requested session, at the time `at_s` in seconds.
    pub(crate) fn bake(&self, address: SocketAddr, open: &Open, at_s: u64) -> Nonce {
        self.of_period(address, open, at_s / Self::PERIOD_S)
    }

    /// Whether the cookie in an Open message is valid for the address at the time `at_s`.
    pub(crate) fn knows(&self, address: SocketAddr, open: &Open, at_s: u64) -> bool {
        let period = at_s / Self::PERIOD_S;
        [period, period.wrapping_sub(1)]
            .into_iter()
            .any(|period| bool::from(self.of_period(address, open, period).ct_eq(&open.cookie)))
    }

    fn of_period(&self, address: SocketAddr, open: &Open, period: u64) -> Nonce {
        let mut context = hmac::Context::with_key(&self.secret);
        match address.ip() {
            IpAddr::V4(ip) => context.update(&ip.octets()),
            IpAddr::V6(ip) => context.update(&ip.octets()),
        }
        context.update(&address.port().to_be_bytes());
        context.update(&open.number);
        context.update(&open.ssrc.to_be_bytes());
        context.update(&period.to_be_bytes());
        let mut cookie = [0; 16];
        cookie.copy_from_slice(&context.sign().as_ref()[..16]);
        cookie
    }
}

#[cfg(test)]
mod tests {
    use equipoise_session::rtp::Payload;

    use super::super::Fingerprint;
    use super::*;

    #[test]
    fn a_cookie_is_good_for_its_address_and_session_for_a_while() {
        let open = Open {
            number: [7; 16],
            cookie: [9; 16],
            ssrc: 3,
            payload: Payload::Rtp,
            reporting: None,
            secure: true,
            several: false,
            joins: false,
            wanted: None,
            fingerprint: Fingerprint::NONE,
        };
        let jar = CookieJar::new(&[5; 32]);
        let [here, there] = ["192.0.2.1:5000", "192.0.2.2:5000"].map(|text| text.parse().expect("an address"));
        let baked = Open { cookie: jar.bake(here, &open, 1000), ..open };
        assert!(jar.knows(here, &baked, 1000) && jar.knows(here, &baked, 1059));
        assert!(!jar.knows(there, &baked, 1000), "another address");
        assert!(!jar.knows(here, &Open { ssrc: 5, ..baked }, 1000), "another session");
        assert!(!jar.knows(here, &baked, 1200), "too old");
        assert!(!jar.knows(here, &open, 1000), "no cookie of ours");
    }
}
