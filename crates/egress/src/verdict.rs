//! What the rules say of a connection, an address and a request, which rule said it, and which rule would allow it.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::address::{AddressClass, canonical, inner_v4};
use crate::name::Host;
use crate::plan::GatePlan;
use crate::rule::{Action, HostPattern, Protocol, Rule};

/// Where a client wants to go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    pub host: Host,
    pub port: u16,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Why something does not pass. The codes are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    NotAllowed,
    DeniedByRule,
    PrivateAddress,
    /// An address that was never handed out for a name, or the gate itself.
    RawAddress,
    SniMismatch,
    NoSni,
    Ech,
    NotTls,
    NotHttp,
    HostMismatch,
    Method,
    Path,
    Tunnel,
    Malformed,
    /// The client did not say in time what it wants.
    Timeout,
    NoSuchHost,
    Unreachable,
    Limit,
}

impl Reason {
    pub fn code(self) -> &'static str {
        match self {
            Self::NotAllowed => "not-allowed",
            Self::DeniedByRule => "denied-by-rule",
            Self::PrivateAddress => "private-address",
            Self::RawAddress => "raw-address",
            Self::SniMismatch => "sni-mismatch",
            Self::NoSni => "no-sni",
            Self::Ech => "ech",
            Self::NotTls => "not-tls",
            Self::NotHttp => "not-http",
            Self::HostMismatch => "host-mismatch",
            Self::Method => "method",
            Self::Path => "path",
            Self::Tunnel => "tunnel",
            Self::Malformed => "malformed",
            Self::Timeout => "timeout",
            Self::NoSuchHost => "no-such-host",
            Self::Unreachable => "unreachable",
            Self::Limit => "limit",
        }
    }

    /// For a person, after the name of the target.
    pub fn text(self) -> &'static str {
        match self {
            Self::NotAllowed => "no rule allows it",
            Self::DeniedByRule => "a rule denies it",
            Self::PrivateAddress => "it is not a public address",
            Self::RawAddress => "this address belongs to no name that was looked up",
            Self::SniMismatch => "the TLS server name is another host",
            Self::NoSni => "the TLS client sent no server name",
            Self::Ech => "the TLS server name is encrypted",
            Self::NotTls => "the client does not speak TLS, which the rule requires",
            Self::NotHttp => "the client does not speak HTTP, which the rule requires",
            Self::HostMismatch => "the `Host` of the request is another host",
            Self::Method => "no rule allows this method",
            Self::Path => "no rule allows this path",
            Self::Tunnel => "no tunnel is allowed here",
            Self::Malformed => "the message is malformed or ambiguous",
            Self::Timeout => "the client took too long",
            Self::NoSuchHost => "the host does not exist",
            Self::Unreachable => "the host does not answer",
            Self::Limit => "a limit of this sandbox is reached",
        }
    }
}

/// What does not pass, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial<'p> {
    pub reason: Reason,
    /// The rule that denies.
    pub rule: Option<&'p Rule>,
    /// The rule that would allow it, where one could.
    pub suggestion: Option<String>,
}

impl<'p> Denial<'p> {
    pub fn plain(reason: Reason) -> Self {
        Self { reason, rule: None, suggestion: None }
    }

    fn not_allowed(target: &Target) -> Self {
        Self { suggestion: suggestion(target, None), ..Self::plain(Reason::NotAllowed) }
    }

    fn by(rule: &'p Rule) -> Self {
        Self { rule: Some(rule), ..Self::plain(Reason::DeniedByRule) }
    }
}

impl fmt::Display for Denial<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason.text())?;
        if let Some(rule) = self.rule {
            write!(f, ": `{}` ({})", rule.text, rule.origin)?;
        }
        Ok(())
    }
}

/// The rules that allow a connection; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit<'p> {
    pub rules: Vec<&'p Rule>,
    port: u16,
}

impl<'p> Permit<'p> {
    /// Whether one of the rules permits this protocol.
    pub fn allows(&self, protocol: Protocol) -> bool {
        self.rule_for(protocol).is_some()
    }

    /// The rule that decides for this protocol.
    pub fn rule_for(&self, protocol: Protocol) -> Option<&'p Rule> {
        self.rules.iter().copied().find(|rule| rule.protocols_at(self.port).contains(&protocol))
    }

    /// The protocol, where nothing has to be read to know it.
    pub fn opaque(&self) -> Option<Protocol> {
        let only_ssh = || self.rules.iter().all(|rule| rule.protocols_at(self.port) == [Protocol::Ssh]);
        match () {
            () if self.allows(Protocol::Tcp) => Some(Protocol::Tcp),
            () if only_ssh() => Some(Protocol::Ssh),
            () => None,
        }
    }

    /// What the rules say of one request. `path` is in its normal form, or `None` if it has none that is clear.
    pub fn request(&self, method: &str, path: Option<&str>) -> Result<&'p Rule, Reason> {
        let rules = || {
            self.rules.iter().copied().filter(|rule| rule.protocols_at(self.port).contains(&Protocol::Http))
        };
        if let Some(rule) = rules().find(|rule| !rule.judges_requests()) {
            return Ok(rule);
        }
        let path = path.ok_or(Reason::Malformed)?;
        let with_path = || rules().filter(|rule| rule.permits_path(path));
        match with_path().find(|rule| rule.permits_method(method)) {
            Some(rule) => Ok(rule),
            None if with_path().next().is_some() => Err(Reason::Method),
            None => Err(Reason::Path),
        }
    }
}

impl GatePlan {
    /// Whether a connection may be made, before anything of it was read.
    pub fn connection(&self, target: &Target) -> Result<Permit<'_>, Denial<'_>> {
        if let Some(rule) = self.denying(&target.host, target.port) {
            return Err(Denial::by(rule));
        }
        let rules: Vec<&Rule> = self.rules_for(Action::Allow, &target.host, target.port).collect();
        match &target.host {
            Host::Name(_) if rules.is_empty() => Err(Denial::not_allowed(target)),
            Host::Name(_) => Ok(Permit { rules, port: target.port }),
            Host::Address(address) => self.literal(*address, target, rules),
        }
    }

    /// A public address needs a rule, any other one a rule for its own class.
    fn literal<'p>(
        &'p self,
        address: IpAddr,
        target: &Target,
        rules: Vec<&'p Rule>,
    ) -> Result<Permit<'p>, Denial<'p>> {
        let class = AddressClass::of(address);
        if self.is_own(address) || (class != AddressClass::Public && !class.may_be_opened()) {
            return Err(Denial::plain(Reason::PrivateAddress));
        }
        let opens = |rule: &&Rule| match rule.hosts {
            HostPattern::Network(network) => AddressClass::of(network.base()) == class,
            _ => false,
        };
        let rules: Vec<&Rule> = rules.into_iter().filter(opens).collect();
        match class {
            _ if !rules.is_empty() => Ok(Permit { rules, port: target.port }),
            AddressClass::Public => Err(Denial::not_allowed(target)),
            _ => {
                Err(Denial { suggestion: suggestion(target, None), ..Denial::plain(Reason::PrivateAddress) })
            }
        }
    }

    /// Whether an address may be dialled that a permitted name resolved to.
    pub fn resolved(&self, address: IpAddr, port: u16) -> Result<(), Denial<'_>> {
        let address = canonical(address);
        let inner = inner_v4(address).map(IpAddr::from);
        for address in [Some(address), inner].into_iter().flatten() {
            if let Some(rule) = self.denying(&Host::Address(address), port) {
                return Err(Denial::by(rule));
            }
            if self.is_own(address) {
                return Err(Denial::plain(Reason::PrivateAddress));
            }
        }
        let class = AddressClass::of(address);
        let is_open = class.may_be_opened() && self.private.iter().any(|network| network.contains(address));
        if class == AddressClass::Public || is_open {
            Ok(())
        } else {
            Err(Denial::plain(Reason::PrivateAddress))
        }
    }

    /// Whether a name is listed by itself, so that looking it up tells nobody anything that the rules do not say.
    pub fn lists(&self, host: &Host) -> bool {
        let is_exact = |rule: &Rule| {
            rule.action == Action::Allow
                && matches!(rule.hosts, HostPattern::Exact(_))
                && rule.hosts.matches(host)
        };
        let is_denied = |rule: &Rule| {
            rule.action == Action::Deny && rule.ports == crate::rule::Ports::any() && rule.hosts.matches(host)
        };
        self.rules.iter().any(is_exact) && !self.rules.iter().any(is_denied)
    }

    fn is_own(&self, address: IpAddr) -> bool {
        self.own.iter().any(|own| canonical(*own) == canonical(address))
    }

    fn denying(&self, host: &Host, port: u16) -> Option<&Rule> {
        self.rules_for(Action::Deny, host, port).next()
    }

    fn rules_for(&self, action: Action, host: &Host, port: u16) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| {
            rule.action == action && rule.ports.contains(port) && rule.hosts.matches(host)
        })
    }

    /// The answer to "why": the verdict on a connection in a sentence.
    pub fn explain(&self, target: &Target) -> String {
        match self.connection(target) {
            Ok(permit) => {
                let rules = permit.rules.iter().map(|rule| format!("`{}` ({})", rule.text, rule.origin));
                format!("{target} is allowed by {}", rules.collect::<Vec<_>>().join(", "))
            }
            Err(denial) => {
                let allow =
                    denial.suggestion.as_ref().map(|rule| format!("; the rule `{rule}` would allow it"));
                format!("{target} is denied: {denial}{}", allow.unwrap_or_default())
            }
        }
    }
}

/// The narrowest rule that allows a target. Without a known protocol, the one its port usually has.
pub fn suggestion(target: &Target, protocol: Option<Protocol>) -> Option<String> {
    let Target { host, port } = target;
    if host.name().is_some_and(|name| name.labels().count() < 2) {
        return None;
    }
    let rule = match (host, port, protocol) {
        (_, _, Some(Protocol::Tcp)) => format!("tcp://{host}:{port}"),
        (_, 22, _) => format!("ssh://{host}"),
        (_, _, Some(Protocol::Ssh)) => format!("ssh://{host}:{port}"),
        (Host::Name(_), 80 | 443, _) => host.to_string(),
        _ => format!("{host}:{port}"),
    };
    Some(rule)
}

/// The shortest list of rules for what was refused: no wildcard, each rule once, in order.
pub fn suggest<'a>(targets: impl IntoIterator<Item = (&'a Target, Option<Protocol>)>) -> Vec<String> {
    let rules: std::collections::BTreeSet<String> =
        targets.into_iter().filter_map(|(target, protocol)| suggestion(target, protocol)).collect();
    rules.into_iter().collect()
}

#[cfg(test)]
mod tests;
