//! What a plan is made from: rules as written, each with the place where it was written, and what is known of the machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::address::Cidr;
use crate::preset::ClientHosts;

use super::{Capture, Limits};

/// A text and where it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub text: String,
    /// A flag, a file and line: shown whenever the rule decides.
    pub origin: String,
    pub why: Option<String>,
}

impl Written {
    pub fn new(text: &str, origin: &str) -> Self {
        Self { text: text.to_owned(), origin: origin.to_owned(), why: None }
    }
}

/// A host with the requests that are allowed there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestRule {
    pub host: Written,
    pub methods: Vec<String>,
    pub paths: Vec<String>,
}

/// What the user wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Rules and presets (`@name`).
    pub allow: Vec<Written>,
    pub deny: Vec<Written>,
    pub requests: Vec<RequestRule>,
    /// Networks that names may lead to although they are not public.
    pub private: Vec<Written>,
    pub limits: Limits,
}

/// What is known of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    pub capture: Capture,
    pub pool: Cidr,
    pub inside: Ipv4Addr,
    pub nameservers: Vec<SocketAddr>,
    pub own: Vec<IpAddr>,
    pub clients: ClientHosts,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self {
            capture: Capture::AllPorts,
            // Public, so that programs that refuse private addresses accept it, and without servers: nobody misses it.
            pool: "28.64.0.0/12".parse().expect("it is a network"),
            inside: Ipv4Addr::new(10, 0, 2, 100),
            nameservers: Vec::new(),
            own: Vec::new(),
            clients: ClientHosts::new(),
        }
    }
}
