//! Names of hosts as they come from a rule, a DNS question, a certificate request or a header: checked once, in lower
//! case, without the dot at the end. What looks like a number is an address here, because the C library of whoever
//! connects takes it for one.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of a host. Cloned cheaply it is not; share it where there are many.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct HostName(Box<str>);

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("the name is empty")]
    Empty,
    #[error("a name has at most 253 characters, and a part of it at most 63")]
    TooLong,
    #[error("the name has an empty part")]
    EmptyLabel,
    #[error("names are written in ASCII; use the form with `xn--`")]
    NotAscii,
    #[error("the name contains a character that names do not have")]
    Character,
    #[error("a part of a name does not begin or end with `-`")]
    Hyphen,
    #[error("this is written like a number, and not an IPv4 address")]
    Number,
}

impl HostName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is a name below `base`, at any depth.
    pub fn is_below(&self, base: &Self) -> bool {
        self.0.strip_suffix(&*base.0).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
    }

    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }
}

impl FromStr for HostName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if !text.is_ascii() {
            return Err(NameError::NotAscii);
        }
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > 253 {
            return Err(NameError::TooLong);
        }
        text.split('.').try_for_each(check_label)?;
        if is_numeric(text) {
            return Err(NameError::Number);
        }
        Ok(Self(text.to_ascii_lowercase().into()))
    }
}

fn check_label(label: &str) -> Result<(), NameError> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    match label {
        "" => Err(NameError::EmptyLabel),
        _ if label.len() > 63 => Err(NameError::TooLong),
        _ if !label.bytes().all(is_fine) => Err(NameError::Character),
        _ if label.starts_with('-') || label.ends_with('-') => Err(NameError::Hyphen),
        _ => Ok(()),
    }
}

/// Whether resolvers take a text for an address: its last part is a number.
fn is_numeric(text: &str) -> bool {
    let last = text.rsplit('.').next().unwrap_or_default();
    number(last).is_some() || last.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<HostName> for String {
    fn from(name: HostName) -> Self {
        name.0.into()
    }
}

impl TryFrom<String> for HostName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

/// A host as a client names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Host {
    Name(HostName),
    /// Never an IPv4 address in its mapped form.
    Address(IpAddr),
}

impl Host {
    pub fn address(address: IpAddr) -> Self {
        Self::Address(crate::address::canonical(address))
    }

    pub fn name(&self) -> Option<&HostName> {
        match self {
            Self::Name(name) => Some(name),
            Self::Address(_) => None,
        }
    }
}

impl FromStr for Host {
    type Err = NameError;

    /// Reads a name, an IPv4 address in every spelling that `inet_aton` takes, or an IPv6 address with or without brackets.
    fn from_str(text: &str) -> Result<Self, NameError> {
        let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if inner.is_some() || text.contains(':') {
            return v6(inner.unwrap_or(text)).map(|address| Self::address(address.into()));
        }
        let without_dot = text.strip_suffix('.').unwrap_or(text);
        if !without_dot.is_empty() && text.is_ascii() && is_numeric(without_dot) {
            return v4(without_dot).map(|address| Self::Address(address.into())).ok_or(NameError::Number);
        }
        text.parse().map(Self::Name)
    }
}

/// A zone is accepted where it has a meaning, on a link-local address, and forgotten: such addresses are never dialled.
fn v6(text: &str) -> Result<Ipv6Addr, NameError> {
    let (address, zone) = text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
    let address: Ipv6Addr = address.parse().map_err(|_| NameError::Character)?;
    match zone {
        Some(zone) if zone.is_empty() || !address.is_unicast_link_local() => Err(NameError::Character),
        _ => Ok(address),
    }
}

/// One to four numbers, decimal, octal or hexadecimal, of which the last fills what is left of the address.
fn v4(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u64> = text.split('.').map(number).collect::<Option<_>>()?;
    let (last, first) = parts.split_last()?;
    let bits_left = 32_u32.checked_sub(8 * u32::try_from(first.len()).ok()?)?;
    if bits_left == 0 || first.iter().any(|part| *part > 255) || *last >= 1 << bits_left {
        return None;
    }
    let high = first.iter().fold(0, |so_far, part| so_far << 8 | part);
    u32::try_from(high << bits_left | last).ok().map(Ipv4Addr::from_bits)
}

fn number(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.strip_prefix("0x") {
        // `inet_aton` of the C library reads `0x` as 0.
        Some("") => ("0", 16),
        Some(digits) => (digits, 16),
        None if lower.len() > 1 && lower.starts_with('0') => (&lower[1..], 8),
        None => (&lower[..], 10),
    };
    // Longer ones are no IPv4 address; `from_str_radix` takes a sign, which is none either.
    let is_plain = digits.len() <= 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_plain.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

impl fmt::Display for Host {
    /// With brackets around IPv6, so that a port can follow.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Address(address) => address.fmt(f),
        }
    }
}

impl From<Host> for String {
    fn from(host: Host) -> Self {
        host.to_string()
    }
}

impl TryFrom<String> for Host {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_lower_case_and_without_its_dot() {
        for (text, expected) in [
            ("example.org", "example.org"),
            ("EXAMPLE.Org.", "example.org"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("_dmarc.example.org", "_dmarc.example.org"),
            ("a-b.c", "a-b.c"),
            ("1.example", "1.example"),
            ("127.0.0.1.example", "127.0.0.1.example"),
        ] {
            assert_eq!(text.parse::<HostName>().map(String::from), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let long = format!("{}.example", "a".repeat(64));
        let longer = format!("{}example", "aaaaaaa.".repeat(31));
        for (text, expected) in [
            ("", NameError::Empty),
            (".", NameError::Empty),
            ("..", NameError::EmptyLabel),
            ("a..b", NameError::EmptyLabel),
            (".a", NameError::EmptyLabel),
            ("a b", NameError::Character),
            ("a\0.b", NameError::Character),
            ("a%00.b", NameError::Character),
            ("a\r\nb", NameError::Character),
            ("a@b", NameError::Character),
            ("a/b", NameError::Character),
            ("a\\b", NameError::Character),
            ("allowed%2eevil", NameError::Character),
            ("bücher.example", NameError::NotAscii),
            ("a。b", NameError::NotAscii),
            ("-a.b", NameError::Hyphen),
            ("a-.b", NameError::Hyphen),
            (&long, NameError::TooLong),
            (&longer, NameError::TooLong),
            ("1.2.3.4", NameError::Number),
            ("a.0x7f", NameError::Number),
            ("a.08", NameError::Number),
        ] {
            assert_eq!(text.parse::<HostName>(), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn every_spelling_of_an_address_is_that_address() {
        for text in [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "0x7f000001",
            "017700000001",
            "0X7F.0.0.1",
            "127.0.0.1.",
            "::ffff:127.0.0.1",
            "[::ffff:7f00:1]",
            "127.0x0.0.01",
        ] {
            assert_eq!(text.parse(), Ok(Host::Address(Ipv4Addr::LOCALHOST.into())), "{text}");
        }
        assert_eq!("0".parse(), Ok(Host::Address(Ipv4Addr::UNSPECIFIED.into())));
        assert_eq!("0x.1".parse(), Ok(Host::Address(Ipv4Addr::new(0, 0, 0, 1).into())));
        assert_eq!("fe80::1%lo".parse(), Ok(Host::Address("fe80::1".parse().expect("an address"))));
        assert_eq!("[::1]".parse(), Ok(Host::Address(Ipv6Addr::LOCALHOST.into())));
    }

    #[test]
    fn a_number_that_is_no_address_is_no_host() {
        for text in [
            "256.1.1.1",
            "1.2.3.4.5",
            "4294967296",
            "1.2.3.256",
            "1..2",
            "08",
            "0x1ffffffff",
            "1.2.65536",
            "a.1",
        ] {
            assert!(text.parse::<Host>().is_err(), "{text}");
        }
        for text in ["[::1", "::1%lo", "fe80::1%", "[]", "[127.0.0.1]", ":", "[a]"] {
            assert!(text.parse::<Host>().is_err(), "{text}");
        }
    }

    #[test]
    fn below_means_after_a_dot() {
        let name = |text: &str| text.parse::<HostName>().expect("a name");
        let base = name("example.org");
        assert!(name("a.example.org").is_below(&base) && name("a.b.example.org").is_below(&base));
        for other in ["example.org", "notexample.org", "example.org.evil", "example.com", "org"] {
            assert!(!name(other).is_below(&base), "{other}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_host_is_read_back_from_what_it_prints(text in "[a-z0-9.:\\[\\]x%_-]{0,20}") {
            if let Ok(host) = text.parse::<Host>() {
                proptest::prop_assert_eq!(host.to_string().parse::<Host>(), Ok(host));
            }
        }

        #[test]
        fn addresses_survive(bits in proptest::prelude::any::<u128>()) {
            let host = Host::address(Ipv6Addr::from_bits(bits).into());
            proptest::prop_assert_eq!(host.to_string().parse::<Host>(), Ok(host));
        }
    }
}
