//! Why a path, a host or a variable is what it is inside: which line of the policy decides, where that line
//! comes from, and what would change it. Pure: it reads the resolved request and nothing else.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use sandtable_sandbox::model::resolved::ResolvedSpec;
use sandtable_sandbox::model::setting::{Origin, Setting};
use sandtable_sandbox::model::spec::Network;
use sandtable_sandbox::resolve::environment_rules;
use serde::Serialize;

use crate::env;

mod path;
#[cfg(test)]
mod tests;

pub(crate) use path::path;

/// What is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Path(PathBuf),
    Host(String),
    Variable(String),
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Why {
    pub(crate) subject: String,
    pub(crate) kind: &'static str,
    /// One word: `write`, `read`, `nothing`; `reachable`, `unreachable`; `passed`, `made`, `dropped`.
    pub(crate) verdict: &'static str,
    /// The line that decides, and its reason.
    pub(crate) because: String,
    /// Who wrote that line; nobody when there is none.
    pub(crate) origin: Option<Origin>,
    /// What else there is to know.
    pub(crate) notes: Vec<String>,
    /// The option that would change it.
    pub(crate) change: Option<String>,
}

impl Subject {
    /// What a word is about. A word that could be anything is a path if there is such a file in `directory`.
    pub(crate) fn of(word: &str, directory: &Path, is_variable: impl Fn(&str) -> bool) -> Option<Self> {
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

/// Why a host can or cannot be reached.
pub(crate) fn host(name: &str, network: &Setting<Network>) -> Why {
    let (verdict, because) = match network.value {
        Network::None => {
            ("unreachable", "the network is `none`: a namespace of its own with nothing but loopback")
        }
        Network::Proxied => (
            "reachable",
            "the network is `proxied`: what the proxy command lets through, for programs that use a proxy",
        ),
        Network::Nat => {
            ("reachable", "the network is `nat`: outbound connections only, and none to this machine")
        }
        Network::Host => ("reachable", "the network is `host`: everything this machine can reach"),
    };
    let local = name.starts_with("localhost")
        || name.starts_with("127.")
        || name.starts_with("[::1]")
        || name == "::1";
    let own = local && network.value != Network::Host;
    let notes = own.then(|| {
        "inside, loopback is the sandbox's own: no service of this machine listens there".to_owned()
    });
    let change = match network.value {
        Network::None => {
            Some("`--network nat` for outbound connections, `--network host` for this machine's network")
        }
        Network::Nat if own => Some("`--network host`"),
        Network::Proxied if own => Some("`--network host`"),
        Network::Proxied | Network::Nat | Network::Host => Some("`--network none`"),
    };
    Why {
        subject: name.to_owned(),
        kind: "host",
        verdict: if own { "unreachable" } else { verdict },
        because: because.to_owned(),
        origin: Some(network.origin.clone()),
        notes: notes.into_iter().collect(),
        change: change.map(str::to_owned),
    }
}

/// Why a variable is or is not seen. `is_set` tells about the caller's environment.
pub(crate) fn variable(name: &str, resolved: &ResolvedSpec, is_set: impl Fn(&str) -> bool) -> Why {
    let rule = environment_rules().iter().find(|rule| fits(&rule.name, name));
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
        let shown = crate::ui::policy::shown(name, variable);
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

/// Whether a name of the allow-list, which may end in `*`, means `name`.
fn fits(listed: &str, name: &str) -> bool {
    listed.strip_suffix('*').map_or(listed == name, |start| name.starts_with(start))
}
