//! What can be wrong with a rule, and what to write instead.

use std::net::IpAddr;

use crate::address::{AddressClass, CidrError};
use crate::name::NameError;

use super::paths::PathGlobError;
use super::ports::PortsError;

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid rule `{}` ({origin})", .text.escape_debug())]
pub struct RuleError {
    /// As it was written.
    pub text: String,
    pub origin: String,
    #[source]
    pub fault: RuleFault,
}

/// What is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleFault {
    #[error("a host is required")]
    NoHost,
    #[error("it would allow every host")]
    Everything,
    #[error("it would allow every name below `{base}`, which anyone can register")]
    PublicSuffix { base: String },
    #[error("`*` stands for whole parts of a name, at its beginning")]
    PartialStar { base: Option<String> },
    #[error("`**` has different meanings in different programs")]
    DoubleStar { base: String },
    #[error("a name without a dot depends on the machine's search list")]
    SingleLabel { name: String },
    #[error("unknown scheme `{0}`")]
    Scheme(String),
    #[error("this host has to be written without user, path or query")]
    Extra { host: String },
    #[error("an address requires a port")]
    NoPort { host: String },
    #[error("a port is required")]
    TcpWithoutPort { host: String },
    #[error("the network is larger than a /8, or a /32 with IPv6")]
    WideNetwork,
    #[error("{class} cannot be allowed")]
    Forbidden { class: AddressClass },
    #[error("this spelling of {address} is easily mistaken")]
    OddAddress { address: IpAddr },
    #[error(transparent)]
    Network(CidrError),
    #[error(transparent)]
    Name(NameError),
    #[error(transparent)]
    Ports(#[from] PortsError),
    #[error(transparent)]
    Path(PathGlobError),
    #[error("`{0}` is not a method such as `GET`")]
    Method(String),
    #[error("methods and paths can be checked only without TLS, in a rule that begins with `http://`")]
    NeedsInterception { host: String },
    #[error("this machine can redirect only ports that rules name, at most 64")]
    NeedsAllPorts,
    #[error("unknown preset `@{name}`")]
    UnknownPreset { name: String, known: Vec<String> },
    #[error("the hosts of `@{ecosystem}` come from the settings of `{client}`, which name none")]
    NoClientHosts { ecosystem: String, client: String },
}

impl RuleFault {
    /// What to write, or to do, instead.
    pub fn instead(&self) -> Option<String> {
        match self {
            Self::Everything => Some("name the hosts, for example `github.com`".to_owned()),
            Self::PublicSuffix { base } => {
                Some(format!("name the host, or a domain, as in `*.example.{base}`"))
            }
            Self::PartialStar { base: Some(base) } if base.contains('.') => Some(format!("use `*.{base}`")),
            Self::DoubleStar { base } => {
                Some(format!("use `*.{base}` for the names below it, `.{base}` for it and them"))
            }
            Self::SingleLabel { name } if name == "localhost" => {
                Some("services of this machine are opened with `reach`".to_owned())
            }
            Self::SingleLabel { .. } => Some("use the full name of the host".to_owned()),
            Self::Scheme(_) => Some("use `https://`, `http://`, `ssh://` or `tcp://`".to_owned()),
            Self::Extra { host } => {
                Some(format!("use `{host}`; paths belong into a rule with `paths = [\"/…\"]`"))
            }
            Self::NoPort { host } => Some(format!("use `{host}:443`, for example")),
            Self::TcpWithoutPort { host } => Some(format!("use `tcp://{host}:5432`, for example")),
            Self::Forbidden { class: AddressClass::Loopback | AddressClass::Unspecified } => {
                Some("services of this machine are opened with `reach`".to_owned())
            }
            Self::OddAddress { address } => Some(format!("use `{address}` with a port")),
            Self::NeedsInterception { host } => {
                Some(format!("use `http://{host}`, or omit methods and paths"))
            }
            Self::UnknownPreset { known, .. } => Some(format!("known presets: {}", known.join(", "))),
            Self::NoClientHosts { .. } => Some("name the hosts with `allow`".to_owned()),
            _ => None,
        }
    }
}
