//! What a gate enforces, as data: made from the settings, printed for people, sent to the gate as JSON. The same settings
//! give the same plan.

mod compile;
mod print;
mod settings;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::address::Cidr;
use crate::rule::Rule;

pub use compile::compile;
pub use settings::{RequestRule, Settings, Surroundings, Written};

/// The form of the plan; a gate refuses another one.
pub const PLAN_VERSION: u32 = 1;

/// How connections of a sandbox reach the gate, and so what rules can promise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capture {
    /// Every port of every address is redirected to one listener.
    #[default]
    AllPorts,
    /// One listener for each port that rules name; other ports are refused by the kernel.
    ListedPorts,
    /// The same, on addresses of names only.
    Names,
}

impl Capture {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllPorts => "all ports",
            Self::ListedPorts => "listed ports",
            Self::Names => "names",
        }
    }
}

/// What one sandbox may take from its gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub connections: usize,
    /// Connections under way to the outside.
    pub dials: usize,
    /// Bytes of the head of a request, or of the first message of TLS.
    pub head: usize,
    pub questions_per_second: u32,
    /// Names that have an address.
    pub names: usize,
    /// Until a client has said what it wants.
    pub head_seconds: u64,
    /// Until a host outside has answered, all its addresses together.
    pub dial_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            dials: 64,
            head: 64 * 1024,
            questions_per_second: 500,
            names: 65_536,
            head_seconds: 10,
            dial_seconds: 20,
        }
    }
}

/// Something to know about a plan that is no error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanWarning {
    /// Stable, such as `broad-rule`.
    pub code: String,
    pub text: String,
}

/// Everything that a gate enforces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatePlan {
    pub version: u32,
    pub capture: Capture,
    /// Where names have their addresses inside; the first of them is kept for the proof that the path works.
    pub pool: Cidr,
    /// The address of the sandbox itself.
    pub inside: Ipv4Addr,
    /// Asked for names outside, in this order.
    pub nameservers: Vec<SocketAddr>,
    /// Addresses of this machine, which no name may lead to.
    pub own: Vec<IpAddr>,
    /// Networks that are not public and that names may lead to.
    pub private: Vec<Cidr>,
    /// Rules that deny come first.
    pub rules: Vec<Rule>,
    pub limits: Limits,
    pub warnings: Vec<PlanWarning>,
}

/// Why a text is no plan for this gate.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("the plan is not valid JSON of a gate")]
    Json(#[from] serde_json::Error),
    #[error("the plan has version {found}, this gate executes version {PLAN_VERSION}")]
    Version { found: u32 },
    #[error("the network `{0}` is too small for the addresses of names, or not IPv4")]
    Pool(Cidr),
}

impl GatePlan {
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a plan has string keys only")
    }

    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let plan: Self = serde_json::from_str(text)?;
        match plan {
            Self { version, .. } if version != PLAN_VERSION => Err(PlanError::Version { found: version }),
            Self { pool, .. } if !pool.base().is_ipv4() || !(8..=24).contains(&pool.length()) => {
                Err(PlanError::Pool(pool))
            }
            plan => Ok(plan),
        }
    }
}

#[cfg(test)]
mod tests;
