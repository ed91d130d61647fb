//! How much of the machine a sandbox may use: processors, memory, processes, disk, time.
//!
//! One spelling everywhere. Memory always has a unit, because a bare number means bytes to some programs and
//! megabytes to others, and a limit that is a million times off is worse than none; a bare time is in seconds,
//! as for `timeout`. A limit that somebody wrote down is *required*; one that only a profile brings is
//! *preferred*: it is enforced where the machine can, and otherwise named as absent.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::setting::{Origin, Setting};

/// The limits of a sandbox; nothing but disk is limited that nobody asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Setting<Cpus>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Setting<Memory>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<Setting<Pids>>,
    /// What its own directories take on disk. Without one the default budget holds: half of what is free when a
    /// command starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Setting<Disk>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Setting<Timeout>>,
}

impl Limits {
    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What happens where a limit cannot be enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing runs.
    Required,
    /// The record shows it as absent.
    Preferred,
}

impl Limits {
    /// These limits, and those of a weaker layer where these say nothing.
    #[must_use]
    pub fn or(self, weaker: Self) -> Self {
        Self {
            cpus: self.cpus.or(weaker.cpus),
            memory: self.memory.or(weaker.memory),
            pids: self.pids.or(weaker.pids),
            disk: self.disk.or(weaker.disk),
            timeout: self.timeout.or(weaker.timeout),
        }
    }
}

impl Need {
    /// A profile is a bundle for many machines, so its limits are wishes; whoever names a limit means it.
    pub fn of(origin: &Origin) -> Self {
        match origin {
            Origin::Profile { .. } => Self::Preferred,
            _ => Self::Required,
        }
    }
}

/// Why a limit was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    #[error("`{0}` is not a number of processors: use one from `0.01` to `4096`, such as `2` or `0.5`")]
    Cpus(String),
    #[error("`{0}` has no unit: it could mean bytes or megabytes; write `{0}m` or `{0}b`")]
    MemoryUnit(String),
    #[error(
        "`{0}` is not an amount of memory: use a number with one of `b`, `k`, `m`, `g`, `t`, such as `512m` or `1.5g`"
    )]
    Memory(String),
    #[error("`{0}` of memory is too little for any command: use at least `16m`")]
    MemoryLow(String),
    #[error(
        "`{0}` is not a number of processes: use a whole one from `2` to `4194304`; the first of the sandbox counts"
    )]
    Pids(String),
    #[error("`{0}` has no unit: it could mean bytes or megabytes; write `{0}m` or `{0}b`")]
    DiskUnit(String),
    #[error(
        "`{0}` is not an amount of disk: use a number with one of `b`, `k`, `m`, `g`, `t`, such as `500m` or `20g`, or \
         `none`"
    )]
    Disk(String),
    #[error("`{0}` of disk is too little for any command: use at least `1m`")]
    DiskLow(String),
    #[error(
        "`{0}` is not a time: use a number of seconds, or one with `ms`, `s`, `m`, `h` or `d`, such as `90s` or `1.5h`"
    )]
    Timeout(String),
}

/// Processors, in thousandths of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cpus(u32);

/// Bytes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Memory(u64);

/// Processes and threads, the sandbox's own first process included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pids(u32);

/// What the directories of a sandbox may take on disk together. The order is that of what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Disk {
    Bytes(u64),
    Unlimited,
}

/// Milliseconds a command may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timeout(u64);

impl Cpus {
    pub fn thousandths(self) -> u32 {
        self.0
    }
}

impl Memory {
    /// Below this not even PID 1 and a shell start reliably.
    const LEAST: u64 = 16 << 20;

    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl Disk {
    /// Less than a small layer takes by itself.
    const LEAST: u64 = 1 << 20;
}

impl Pids {
    pub fn count(self) -> u64 {
        self.0.into()
    }
}

impl Timeout {
    pub fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl FromStr for Cpus {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let thousandths = scaled(text, 1000).and_then(|number| u32::try_from(number).ok());
        let fits = thousandths.filter(|number| (10..=4_096_000).contains(number));
        fits.map(Self).ok_or_else(|| LimitError::Cpus(text.to_owned()))
    }
}

impl FromStr for Memory {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        match amount(text) {
            Amount::NoUnit => Err(LimitError::MemoryUnit(text.to_owned())),
            Amount::Bytes(bytes) if bytes < Self::LEAST => Err(LimitError::MemoryLow(text.to_owned())),
            Amount::Bytes(bytes) => Ok(Self(bytes)),
            Amount::Nonsense => Err(LimitError::Memory(text.to_owned())),
        }
    }
}

impl FromStr for Disk {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        if matches!(text, "none" | "unlimited") {
            return Ok(Self::Unlimited);
        }
        match amount(text) {
            Amount::NoUnit => Err(LimitError::DiskUnit(text.to_owned())),
            Amount::Bytes(bytes) if bytes < Self::LEAST => Err(LimitError::DiskLow(text.to_owned())),
            Amount::Bytes(bytes) => Ok(Self::Bytes(bytes)),
            Amount::Nonsense => Err(LimitError::Disk(text.to_owned())),
        }
    }
}

impl FromStr for Pids {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let count = text.parse().ok().filter(|count| digits && (2..=4_194_304).contains(count));
        count.map(Self).ok_or_else(|| LimitError::Pids(text.to_owned()))
    }
}

impl FromStr for Timeout {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let refused = || LimitError::Timeout(text.to_owned());
        let (number, unit) = split(text);
        let milliseconds = match unit {
            "ms" => 1,
            "" | "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(refused()),
        };
        let time =
            scaled(number, milliseconds).filter(|time| (1..=u64::from(u32::MAX) * 1000).contains(time));
        time.map(Self).ok_or_else(refused)
    }
}

/// What a text says of an amount of bytes.
enum Amount {
    Bytes(u64),
    /// A number, but of what?
    NoUnit,
    Nonsense,
}

fn amount(text: &str) -> Amount {
    let lower = text.to_ascii_lowercase();
    let (number, unit) = split(&lower);
    let shift = match unit {
        "" if scaled(number, 1).is_some() => return Amount::NoUnit,
        "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Amount::Nonsense,
    };
    let fits = |bytes: &u64| i64::try_from(*bytes).is_ok();
    scaled(number, 1 << shift).filter(fits).map_or(Amount::Nonsense, Amount::Bytes)
}

/// The number at the start of a text, and the word behind it.
fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.split_at(end)
}

/// A decimal number times `scale`, rounded down; exact, where a floating point number would not be.
fn scaled(text: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let places = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let number = u128::from(whole.parse::<u64>().ok()?) * places + fraction.parse::<u128>().ok()?;
    u64::try_from(number * u128::from(scale) / places).ok()
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:03}", self.0 / 1000, self.0 % 1000);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        exact(self.0, f)
    }
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => exact(*bytes, f),
            Self::Unlimited => f.write_str("none"),
        }
    }
}

/// Bytes in the largest unit that says them exactly.
fn exact(bytes: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let units = [(40, 't'), (30, 'g'), (20, 'm'), (10, 'k'), (0, 'b')];
    let exact = units.into_iter().find(|(shift, _)| bytes.is_multiple_of(1 << shift));
    let (shift, unit) = exact.expect("every number is a multiple of one");
    write!(f, "{}{unit}", bytes >> shift)
}

impl fmt::Display for Pids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")];
        let exact = units.into_iter().find(|(unit, _)| self.0.is_multiple_of(*unit));
        let (unit, word) = exact.expect("every number is a multiple of one");
        write!(f, "{}{word}", self.0 / unit)
    }
}

/// Stored as it is written, so that a record reads like a configuration.
macro_rules! stored_as_text {
    ($($name:ident),*) => {$(
        impl TryFrom<String> for $name {
            type Error = LimitError;

            fn try_from(text: String) -> Result<Self, LimitError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(limit: $name) -> Self {
                limit.to_string()
            }
        }
    )*};
}

stored_as_text!(Cpus, Memory, Pids, Disk, Timeout);

#[cfg(test)]
mod tests;
