//! From the text of a rule to the rule.

use crate::address::{AddressClass, Cidr};

use super::hosts::is_public_suffix;
use super::{Action, HostPattern, PathGlob, Ports, Protocol, Rule, RuleError, RuleFault};

impl Rule {
    /// Reads `[scheme://][user@]host[:ports]`. The caller says where it was written.
    pub fn parse(text: &str, action: Action, origin: &str) -> Result<Self, RuleError> {
        let fault = |fault| RuleError { text: text.to_owned(), origin: origin.to_owned(), fault };
        parse(text, action, origin).map_err(fault)
    }

    /// The same rule for these requests alone.
    pub fn for_requests(mut self, methods: &[String], paths: &[String]) -> Result<Self, RuleError> {
        let (text, origin) = (self.text.clone(), self.origin.clone());
        let fault = |fault| RuleError { text: text.clone(), origin: origin.clone(), fault };
        let is_method =
            |text: &str| (1..=20).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_uppercase());
        if let Some(wrong) = methods.iter().find(|text| !is_method(text)) {
            return Err(fault(RuleFault::Method(wrong.clone())));
        }
        let paths = paths.iter().map(|text| text.parse::<PathGlob>());
        self.paths = paths.collect::<Result<_, _>>().map_err(|error| fault(RuleFault::Path(error)))?;
        self.methods = methods.to_vec();
        if self.judges_requests() && self.protocol != Some(Protocol::Http) {
            return Err(fault(RuleFault::NeedsInterception { host: self.hosts.to_string() }));
        }
        Ok(self)
    }

    #[must_use]
    pub fn because(mut self, why: Option<&str>) -> Self {
        self.why = why.map(str::to_owned);
        self
    }
}

fn parse(text: &str, action: Action, origin: &str) -> Result<Rule, RuleFault> {
    let (protocol, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme_of(scheme)?), rest),
        None => (None, text),
    };
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) if protocol == Some(Protocol::Ssh) && is_user(user) => {
            (Some(user.to_owned()), rest)
        }
        Some((_, rest)) => return Err(extra(rest)),
        None => (None, rest),
    };
    let (host, ports) = split(rest)?;
    let hosts: HostPattern = host.parse()?;
    let ports = match ports {
        Some(ports) => ports.parse()?,
        None => default_ports(&hosts, protocol, action)?,
    };
    if action == Action::Allow {
        check_width(&hosts)?;
    }
    Ok(Rule {
        action,
        hosts,
        ports,
        protocol,
        user,
        methods: Vec::new(),
        paths: Vec::new(),
        text: text.to_owned(),
        origin: origin.to_owned(),
        why: None,
    })
}

fn scheme_of(text: &str) -> Result<Protocol, RuleFault> {
    let all = [Protocol::Http, Protocol::Https, Protocol::Ssh, Protocol::Tcp];
    all.into_iter().find(|it| it.as_str() == text).ok_or_else(|| RuleFault::Scheme(text.to_owned()))
}

fn is_user(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn extra(rest: &str) -> RuleFault {
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    RuleFault::Extra { host: host.to_owned() }
}

/// Divides host and ports. A `/` is part of a network, or of a path, which rules of this form do not have.
fn split(rest: &str) -> Result<(&str, Option<&str>), RuleFault> {
    if rest.is_empty() {
        return Err(RuleFault::NoHost);
    }
    if let Some(inner) = rest.strip_prefix('[') {
        let (_, after) = inner.split_once(']').ok_or(RuleFault::Name(crate::name::NameError::Character))?;
        let host = &rest[..rest.len() - after.len()];
        return match after.strip_prefix(':') {
            Some(ports) => Ok((host, Some(ports))),
            None if after.is_empty() => Ok((host, None)),
            None => Err(extra(host)),
        };
    }
    let (host, ports) = match rest.split_once(':') {
        // An IPv6 address without brackets has no place for a port.
        Some((_, ports)) if ports.contains(':') => {
            return Err(RuleFault::NoPort { host: format!("[{rest}]") });
        }
        Some((host, ports)) => (host, Some(ports)),
        None => (rest, None),
    };
    let is_network = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || b"./".contains(&byte));
    if host.contains(['/', '?', '#']) && !is_network(host) {
        return Err(extra(host));
    }
    match ports {
        Some(ports) if ports.contains(['/', '?', '#']) => Err(extra(rest)),
        _ if host.is_empty() => Err(RuleFault::NoHost),
        _ => Ok((host, ports)),
    }
}

fn default_ports(
    hosts: &HostPattern,
    protocol: Option<Protocol>,
    action: Action,
) -> Result<Ports, RuleFault> {
    let host = || hosts.to_string();
    match (hosts, protocol) {
        (_, None | Some(Protocol::Tcp)) if action == Action::Deny => Ok(Ports::any()),
        (_, Some(Protocol::Tcp)) => Err(RuleFault::TcpWithoutPort { host: host() }),
        (_, Some(Protocol::Ssh)) => Ok(Ports::one(22)),
        (_, Some(Protocol::Http)) => Ok(Ports::one(80)),
        (_, Some(Protocol::Https)) => Ok(Ports::one(443)),
        (HostPattern::Network(_), None) => Err(RuleFault::NoPort { host: host() }),
        (_, None) => Ok(Ports::web()),
    }
}

/// A rule that allows is about hosts that somebody could list.
fn check_width(hosts: &HostPattern) -> Result<(), RuleFault> {
    match hosts {
        HostPattern::Exact(name) if name.labels().count() < 2 => {
            Err(RuleFault::SingleLabel { name: name.to_string() })
        }
        HostPattern::Below(base) | HostPattern::Within(base) if is_public_suffix(base) => {
            Err(RuleFault::PublicSuffix { base: base.to_string() })
        }
        HostPattern::Network(network) => check_network(*network),
        _ => Ok(()),
    }
}

fn check_network(network: Cidr) -> Result<(), RuleFault> {
    if network.length() < if network.base().is_ipv4() { 8 } else { 32 } && !is_private(network) {
        return Err(RuleFault::WideNetwork);
    }
    match AddressClass::of(network.base()) {
        AddressClass::Public => Ok(()),
        class if class.may_be_opened() => Ok(()),
        class => Err(RuleFault::Forbidden { class }),
    }
}

/// `fc00::/7` is one network of ours although its prefix is short.
fn is_private(network: Cidr) -> bool {
    network.length() >= 7 && AddressClass::of(network.base()) == AddressClass::Private
}
