//! Why a path, a host or a variable is what it is inside: which line of the policy decides, where that line
//! comes from, and what would change it. Pure: it reads the resolved request and nothing else.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use sandtable_sandbox::model::resolved::ResolvedSpec;
use sandtable_sandbox::model::setting::{Origin, Setting};
use sandtable_sandbox::model::spec::Network;
use sandtable_sandbox::resolve::environment_rules;
use sandtable_store::wildcard::{Syntax, matches};
use serde::Serialize;

use crate::{env, redaction};

mod path;
#[cfg(test)]
mod tests;

pub use path::path;

/// What is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Path(PathBuf),
    Host(String),
    Variable(String),
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Why {
    pub subject: String,
    pub kind: &'static str,
    /// One word: `write`, `read`, `nothing`; `reachable`, `unreachable`; `passed`, `made`, `dropped`.
    pub verdict: &'static str,
    /// The line that decides, and its reason.
    pub because: String,
    /// Who wrote that line; nobody when there is none.
    pub origin: Option<Origin>,
    /// What else there is to know.
    pub notes: Vec<String>,
    /// The option that would change it.
    pub change: Option<String>,
}

impl Subject {
    /// What a word is about. A word that could be anything is a path if there is such a file in `directory`.
    pub fn of(word: &str, directory: &Path, is_variable: impl Fn(&str) -> bool) -> Option<Self> {
        let looks_like_path = word.contains('/') && !word.contains("://") || word.starts_with(['.', '~']);
        if looks_like_path {
            return Some(Self::Path(word.into()));
        }
        if let Some(host) = host_of(word) {
            return Some(Self::Host(host));
        }
        let shouted = word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        if is_variable(word) {
            return Some(Self::Variable(word.to_owned()));
        }
        if directory.join(word).symlink_metadata().is_ok() {
            return Some(Self::Path(word.into()));
        }
        if shouted && !word.is_empty() {
            return Some(Self::Variable(word.to_owned()));
        }
        word.contains('.').then(|| Self::Host(word.to_owned()))
    }
}

/// The host of an address or URL, if a word can be nothing else.
fn host_of(word: &str) -> Option<String> {
    if let Some((_, rest)) = word.split_once("://") {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        return Some(authority.rsplit('@').next().unwrap_or_default().to_owned());
    }
    let bare = word.trim_start_matches('[').split(']').next().unwrap_or_default();
    let name = word.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map(|(name, _)| name);
    let is_address =
        bare.parse::<IpAddr>().is_ok() || name.is_some_and(|name| name.parse::<IpAddr>().is_ok());
    (is_address || word == "localhost" || name.is_some_and(|name| !name.is_empty())).then(|| word.to_owned())
}

/// Whether the policy lets a host be reached. Nothing is tried: whether it answers is another matter.
pub fn host(name: &str, network: &Setting<Network>) -> Why {
    let own = is_loopback(name) && network.value != Network::Host;
    let (verdict, because, change) = match network.value {
        Network::None => (
            "unreachable",
            "the network is `none`: a namespace of its own with nothing but loopback",
            "`--network nat` for outbound connections, `--network host` for this machine's network",
        ),
        Network::Nat if own => ("unreachable", NAT, "`--network host`"),
        Network::Nat if is_version_6(name) => {
            ("unreachable", "the network is `nat`, which carries no IPv6", "`--network host`")
        }
        Network::Proxied if own => ("unreachable", PROXIED, "`--network host`"),
        Network::Proxied => ("allowed", PROXIED, "`--network none`"),
        Network::Nat => ("allowed", NAT, "`--network none`"),
        Network::Host => {
            ("allowed", "the network is `host`: everything this machine can reach", "`--network none`")
        }
    };
    let mut notes = Vec::new();
    if own {
        notes.push(
            "inside, loopback is the sandbox's own: no service of this machine listens there".to_owned(),
        );
    }
    if verdict == "allowed" {
        notes.push("nothing was tried: whether it answers is not known".to_owned());
    }
    Why {
        subject: name.to_owned(),
        kind: "host",
        verdict,
        because: because.to_owned(),
        origin: Some(network.origin.clone()),
        notes,
        change: Some(change.to_owned()),
    }
}

/// What a proxy command lets out.
const PROXIED: &str =
    "the network is `proxied`: what the proxy command lets through, for programs that use a proxy";
const NAT: &str = "the network is `nat`: outbound connections to what this machine can reach, services on its own \
     outward addresses among it, but not through its loopback";

fn is_loopback(name: &str) -> bool {
    let name = bare(name);
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_version_6(name: &str) -> bool {
    bare(name).parse::<IpAddr>().is_ok_and(|address| address.is_ipv6())
}

/// A host without brackets and port.
fn bare(name: &str) -> &str {
    if let Some((inner, _)) = name.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return inner;
    }
    match name.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') && port.parse::<u16>().is_ok() => host,
        _ => name,
    }
}

/// Why a variable is or is not seen. `is_set` tells about the caller's environment.
pub fn variable(name: &str, resolved: &ResolvedSpec, is_set: impl Fn(&str) -> bool) -> Why {
    let rule = environment_rules().iter().find(|rule| matches(&rule.name, name, Syntax::Path));
    let listed = rule.map(|rule| format!("the allow-list has `{}`: {}", rule.name, rule.reason));
    let mut why = Why {
        subject: name.to_owned(),
        kind: "variable",
        verdict: "dropped",
        because: "it is not on the allow-list, and nobody asked for it".to_owned(),
        origin: None,
        notes: Vec::new(),
        change: None,
    };
    if let Some(variable) = resolved.environment.get(name) {
        let made = variable.origin == Origin::Default;
        why.verdict = if made { "made" } else { "passed" };
        why.because = listed.unwrap_or_else(|| {
            let text = if made { "every sandbox has its own" } else { "what of the caller's holds inside" };
            text.to_owned()
        });
        let shown = redaction::shown(name, variable);
        why.notes.push(format!("inside it is `{shown}`"));
        why.origin = Some(variable.origin.clone());
    } else if name == env::SANDBOX {
        why.verdict = "made";
        "every command sees the name of its sandbox in it".clone_into(&mut why.because);
    } else if let Some(listed) = listed {
        format!("{listed}; but it is not set here").clone_into(&mut why.because);
    } else {
        let state = if is_set(name) { "it is set here" } else { "it is not set here either" };
        why.notes.push(state.to_owned());
        why.change = Some(format!("run the command as `env {name}=… CMD` inside"));
    }
    why
}
