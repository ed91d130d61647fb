//! The ports of a rule.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// From `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    pub first: u16,
    pub last: u16,
}

/// Ranges in the order they were written; never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Ports(Vec<PortRange>);

/// Why a text names no ports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a port from 1 to 65535, a range such as `8000-8010`, or `*`")]
pub struct PortsError(String);

impl Ports {
    pub fn any() -> Self {
        Self(vec![PortRange { first: 1, last: u16::MAX }])
    }

    pub fn one(port: u16) -> Self {
        Self(vec![PortRange { first: port, last: port }])
    }

    /// Of a host that is named without ports.
    pub fn web() -> Self {
        Self([80, 443].map(|port| PortRange { first: port, last: port }).to_vec())
    }

    pub fn contains(&self, port: u16) -> bool {
        self.0.iter().any(|range| (range.first..=range.last).contains(&port))
    }

    pub fn ranges(&self) -> &[PortRange] {
        &self.0
    }

    pub fn count(&self) -> usize {
        self.0.iter().map(|range| usize::from(range.last - range.first) + 1).sum()
    }
}

impl FromStr for Ports {
    type Err = PortsError;

    fn from_str(text: &str) -> Result<Self, PortsError> {
        let wrong = || PortsError(text.to_owned());
        if text == "*" {
            return Ok(Self::any());
        }
        text.split(',').map(|part| range(part).ok_or_else(wrong)).collect::<Result<_, _>>().map(Self)
    }
}

fn range(text: &str) -> Option<PortRange> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (port(first)?, port(last)?);
    (first <= last).then_some(PortRange { first, last })
}

/// A port in its one spelling: no sign, no leading zero.
pub(crate) fn port(text: &str) -> Option<u16> {
    let number: u16 = text.parse().ok()?;
    (number > 0 && number.to_string() == text).then_some(number)
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::any() {
            return f.write_str("*");
        }
        for (index, range) in self.0.iter().enumerate() {
            f.write_str(if index > 0 { "," } else { "" })?;
            if range.first == range.last {
                write!(f, "{}", range.first)?;
            } else {
                write!(f, "{}-{}", range.first, range.last)?;
            }
        }
        Ok(())
    }
}

impl From<Ports> for String {
    fn from(ports: Ports) -> Self {
        ports.to_string()
    }
}

impl TryFrom<String> for Ports {
    type Error = PortsError;

    fn try_from(text: String) -> Result<Self, PortsError> {
        text.parse()
    }
}
