//! Classes of IP addresses. Only a public address may be dialled because a name resolved to it; everything else belongs
//! to the machine, to its network or to nobody, and a rule must name it.
//!
//! Addresses that carry an IPv4 address inside them (mapped, translated, tunnelled) have the class of that address, so
//! that no spelling of `127.0.0.1` is public.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What kind of machine an address leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressClass {
    Public,
    /// `0.0.0.0/8` and `::`, which Linux takes for the machine itself.
    Unspecified,
    Loopback,
    /// Networks of organisations: RFC 1918, unique local and site-local addresses.
    Private,
    /// Between a provider and its customers (RFC 6598).
    Shared,
    LinkLocal,
    /// Where cloud providers hand out credentials.
    Metadata,
    Multicast,
    /// Set aside: documentation, benchmarks, future use.
    Reserved,
    /// IPv6 that a relay turns into IPv4, which no one needs to reach a public host.
    Transition,
}

impl AddressClass {
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }

    /// Whether a setting may open such addresses by naming their network.
    pub fn may_be_opened(self) -> bool {
        matches!(self, Self::Private | Self::Shared | Self::Reserved)
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Unspecified => "an unspecified address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::Shared => "a carrier-grade NAT address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "a cloud metadata address",
            Self::Multicast => "a multicast address",
            Self::Reserved => "a reserved address",
            Self::Transition => "an IPv6 transition address",
        })
    }
}

/// The first row that contains an address decides.
const V4: [(Ipv4Addr, u8, AddressClass); 22] = [
    (Ipv4Addr::new(169, 254, 169, 254), 32, AddressClass::Metadata),
    (Ipv4Addr::new(169, 254, 170, 2), 32, AddressClass::Metadata),
    (Ipv4Addr::new(169, 254, 170, 23), 32, AddressClass::Metadata),
    (Ipv4Addr::new(100, 100, 100, 200), 32, AddressClass::Metadata),
    (Ipv4Addr::new(168, 63, 129, 16), 32, AddressClass::Metadata),
    (Ipv4Addr::new(192, 0, 0, 192), 32, AddressClass::Metadata),
    (Ipv4Addr::UNSPECIFIED, 8, AddressClass::Unspecified),
    (Ipv4Addr::new(10, 0, 0, 0), 8, AddressClass::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, AddressClass::Shared),
    (Ipv4Addr::new(127, 0, 0, 0), 8, AddressClass::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, AddressClass::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, AddressClass::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, AddressClass::Reserved),
    (Ipv4Addr::new(192, 0, 2, 0), 24, AddressClass::Reserved),
    (Ipv4Addr::new(192, 88, 99, 0), 24, AddressClass::Reserved),
    (Ipv4Addr::new(192, 168, 0, 0), 16, AddressClass::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, AddressClass::Reserved),
    (Ipv4Addr::new(198, 51, 100, 0), 24, AddressClass::Reserved),
    (Ipv4Addr::new(203, 0, 113, 0), 24, AddressClass::Reserved),
    (Ipv4Addr::new(224, 0, 0, 0), 4, AddressClass::Multicast),
    (Ipv4Addr::new(240, 0, 0, 0), 4, AddressClass::Reserved),
    (Ipv4Addr::UNSPECIFIED, 0, AddressClass::Public),
];

/// The same for IPv6. Outside of `2000::/3` nothing is public.
const V6: [([u16; 8], u8, AddressClass); 19] = [
    ([0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254], 128, AddressClass::Metadata),
    ([0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254], 128, AddressClass::Metadata),
    ([0, 0, 0, 0, 0, 0, 0, 0], 128, AddressClass::Unspecified),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, AddressClass::Loopback),
    ([0, 0, 0, 0, 0, 0, 0, 0], 96, AddressClass::Transition),
    ([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, AddressClass::Transition),
    ([0x0064, 0xff9b, 0x0001, 0, 0, 0, 0, 0], 48, AddressClass::Transition),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, AddressClass::Transition),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, AddressClass::Reserved),
    ([0x2001, 0x0db8, 0, 0, 0, 0, 0, 0], 32, AddressClass::Reserved),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, AddressClass::Transition),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, AddressClass::Reserved),
    ([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, AddressClass::Reserved),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, AddressClass::Private),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, AddressClass::LinkLocal),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, AddressClass::Private),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, AddressClass::Multicast),
    ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, AddressClass::Public),
    ([0, 0, 0, 0, 0, 0, 0, 0], 0, AddressClass::Reserved),
];

fn of_v4(address: Ipv4Addr) -> AddressClass {
    let found = V4.iter().find(|(base, length, _)| shares_prefix(&base.octets(), &address.octets(), *length));
    found.expect("the last row contains every address").2
}

fn of_v6(address: Ipv6Addr) -> AddressClass {
    let found = V6
        .iter()
        .find(|(base, length, _)| shares_prefix(&Ipv6Addr::from(*base).octets(), &address.octets(), *length));
    let own = found.expect("the last row contains every address").2;
    match (own, carried(address)) {
        (AddressClass::Unspecified | AddressClass::Loopback, _) | (_, None) => own,
        (_, Some((inner, carrier))) => match of_v4(inner) {
            AddressClass::Public => carrier,
            inner => inner,
        },
    }
}

/// The IPv4 address inside an IPv6 address, and the class of the whole if that one is public.
fn carried(address: Ipv6Addr) -> Option<(Ipv4Addr, AddressClass)> {
    let bytes = address.octets();
    let at = |from: usize| Ipv4Addr::new(bytes[from], bytes[from + 1], bytes[from + 2], bytes[from + 3]);
    match address.segments() {
        // Mapped: the kernel sends IPv4. NAT64: how a network without IPv4 reaches public IPv4 hosts.
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0x0064, 0xff9b, 0, 0, 0, 0, _, _] => {
            Some((at(12), AddressClass::Public))
        }
        // Compatible (deprecated), translated, and NAT64 with a prefix of its own.
        [0, 0, 0, 0, 0 | 0xffff, 0, _, _] | [0x0064, 0xff9b, 1, ..] => {
            Some((at(12), AddressClass::Transition))
        }
        // 6to4.
        [0x2002, ..] => Some((at(2), AddressClass::Transition)),
        _ => None,
    }
}

/// The IPv4 address that an IPv6 address stands for, if it stands for one.
pub fn inner_v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V6(address) => carried(address).map(|(inner, _)| inner),
        IpAddr::V4(_) => None,
    }
}

/// The address that the kernel would use: IPv4 for its mapped form.
pub fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

fn shares_prefix(one: &[u8], other: &[u8], length: u8) -> bool {
    let (whole, rest) = (usize::from(length / 8), length % 8);
    let mask = !(0xff_u8.checked_shr(u32::from(rest)).unwrap_or(0));
    one[..whole] == other[..whole] && (rest == 0 || (one[whole] ^ other[whole]) & mask == 0)
}

/// A network: an address and the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Cidr {
    base: IpAddr,
    length: u8,
}

/// Why a text is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CidrError {
    #[error("`{0}` is not an address, or not a network such as `10.20.0.0/16`")]
    Form(String),
    #[error("`{given}` has bits set after its prefix; the network is `{network}`")]
    Bits { given: String, network: String },
}

impl Cidr {
    /// The network of one address.
    pub fn one(address: IpAddr) -> Self {
        let address = canonical(address);
        Self { base: address, length: if address.is_ipv4() { 32 } else { 128 } }
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, canonical(address)) {
            (IpAddr::V4(base), IpAddr::V4(other)) => {
                shares_prefix(&base.octets(), &other.octets(), self.length)
            }
            (IpAddr::V6(base), IpAddr::V6(other)) => {
                shares_prefix(&base.octets(), &other.octets(), self.length)
            }
            _ => false,
        }
    }

    pub fn base(&self) -> IpAddr {
        self.base
    }

    pub fn length(&self) -> u8 {
        self.length
    }

    /// Whether it is one address.
    pub fn is_single(&self) -> bool {
        self.length == if self.base.is_ipv4() { 32 } else { 128 }
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let form = || CidrError::Form(text.to_owned());
        let Some((base, length)) = text.split_once('/') else {
            return text.parse().map(Self::one).map_err(|_| form());
        };
        let base: IpAddr = base.parse().map_err(|_| form())?;
        let most = if base.is_ipv4() { 32 } else { 128 };
        let is_plain = length.bytes().all(|digit| digit.is_ascii_digit());
        let length: u8 = length.parse().ok().filter(|it| is_plain && *it <= most).ok_or_else(form)?;
        let network = first_of(base, length);
        if network != base {
            return Err(CidrError::Bits { given: text.to_owned(), network: format!("{network}/{length}") });
        }
        // A mapped base is IPv4 in another spelling, and its prefix would be another one.
        if base != canonical(base) {
            return Err(form());
        }
        Ok(Self { base, length })
    }
}

fn first_of(base: IpAddr, length: u8) -> IpAddr {
    let keep = |bits: u32| u32::from(length).min(bits);
    match base {
        IpAddr::V4(base) => {
            let mask = u32::MAX.checked_shl(32 - keep(32)).unwrap_or(0);
            Ipv4Addr::from_bits(base.to_bits() & mask).into()
        }
        IpAddr::V6(base) => {
            let mask = u128::MAX.checked_shl(128 - keep(128)).unwrap_or(0);
            Ipv6Addr::from_bits(base.to_bits() & mask).into()
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_single() { write!(f, "{}", self.base) } else { write!(f, "{}/{}", self.base, self.length) }
    }
}

impl From<Cidr> for String {
    fn from(cidr: Cidr) -> Self {
        cidr.to_string()
    }
}

impl TryFrom<String> for Cidr {
    type Error = CidrError;

    fn try_from(text: String) -> Result<Self, CidrError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests;
