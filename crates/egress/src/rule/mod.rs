//! One rule: which hosts, which ports, which protocols, and which requests. Rules are read from text, checked when they are
//! read, and say in every error what to write instead.

mod error;
mod hosts;
mod parse;
mod paths;
mod ports;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use error::{RuleError, RuleFault};
pub use hosts::HostPattern;
pub use paths::{PathGlob, PathGlobError};
pub use ports::{PortRange, Ports};

pub(crate) use hosts::is_shared_hosting;
pub(crate) use ports::port as port_number;

/// Whether a rule opens or closes. Whatever order rules are written in, a rule that denies wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Deny,
    Allow,
}

/// What a client speaks first. A set of them is what a rule permits at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP without TLS: every request is read.
    Http,
    /// TLS: the name in the first message must be the name that was dialled.
    Https,
    Ssh,
    /// Any bytes.
    Tcp,
}

impl Protocol {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Ssh => "ssh",
            Self::Tcp => "tcp",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A rule as it is applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub action: Action,
    pub hosts: HostPattern,
    pub ports: Ports,
    /// The protocol, if the rule names it; else each port has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// The user of `ssh://user@host`. The gate cannot see it; who signs for the connection can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Empty: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// Empty: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathGlob>,
    /// As it was written.
    pub text: String,
    /// Where it was written: a flag, a file and line, a preset.
    pub origin: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Rule {
    /// The protocols that it permits at one of its ports.
    pub fn protocols_at(&self, port: u16) -> &'static [Protocol] {
        match (self.protocol, port) {
            (Some(Protocol::Http), _) | (None, 80) => &[Protocol::Http],
            (Some(Protocol::Https), _) | (None, 443) => &[Protocol::Https],
            (Some(Protocol::Ssh), _) | (None, 22) => &[Protocol::Ssh],
            (Some(Protocol::Tcp), _) => &[Protocol::Tcp],
            (None, _) => &[Protocol::Http, Protocol::Https],
        }
    }

    /// Whether it looks at requests, beyond host and port.
    pub fn judges_requests(&self) -> bool {
        !self.methods.is_empty() || !self.paths.is_empty()
    }

    pub fn permits_method(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|it| it == method)
    }

    /// `path` is in its normal form.
    pub fn permits_path(&self, path: &str) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|it| it.matches(path))
    }
}

#[cfg(test)]
mod tests;
