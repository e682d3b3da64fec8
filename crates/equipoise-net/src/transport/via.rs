use std::convert::Infallible;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The network interface or the local address from which a path starts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Via {
    /// The network interface with this name. The path uses the first address of this interface that can reach the peer.
    Device(String),
    /// The network interface that has this address.
    Address(IpAddr),
}

impl FromStr for Via {
    type Err = Infallible;

    /// Parses an IP address. Any other text is the name of a network interface.
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
