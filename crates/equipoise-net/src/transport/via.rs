use std::convert::Infallible;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The interface or the address from which a path starts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Via {
    /// A network interface, with the first of its addresses that can reach the peer.
    Device(String),
    /// The interface that has this address.
    Address(IpAddr),
}

impl FromStr for Via {
    type Err = Infallible;

    /// Text that is not an address is the name of an interface.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.parse().map_or_else(|_| Self::Device(text.to_owned()), Self::Address))
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(name) => name.fmt(f),
            Self::Address(address) => address.fmt(f),
        }
    }
}
