//! What a command was allowed and shown, as a proof has it: nothing of it changes from one run to the next by itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::record::Record;
use super::{canonical, sha256};
use crate::facts::{Facts, MachineFacts};
use crate::model::layer::LayerName;
use crate::model::mount::{Content, HostAccess, Mount};
use crate::model::resolved::{EngineName, ResolvedSpec, Secrecy, Variable};
use crate::model::setting::Setting;
use crate::model::spec::{Network, Secrets};

/// What holds for a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Over everything else here.
    pub digest: String,
    pub engine: EngineName,
    pub image: Option<String>,
    pub directory: String,
    pub network: Network,
    pub secrets: Secrets,
    pub hide: Vec<String>,
    pub limits: BTreeMap<String, String>,
    /// By the place inside.
    pub mounts: BTreeMap<String, String>,
    /// The tools that were asked for, with what they need: name and version, and what each is kept under.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, String>,
    /// Those of them that were made on an image of a container engine: name and version, and which image that was.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools_made_on: BTreeMap<String, String>,
    /// The values of variables that the user passed in are nobody's business.
    pub environment: BTreeMap<String, Option<String>>,
}

/// Where it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    pub system: String,
    pub kernel: String,
    pub architecture: String,
    pub sandtable: String,
}

impl Policy {
    pub(super) fn of(record: &Record) -> Self {
        let resolved = &record.resolved;
        let policy = Self {
            digest: String::new(),
            engine: resolved.engine,
            image: image(resolved),
            directory: resolved.directory.to_string(),
            network: resolved.network.value,
            secrets: resolved.secrets.value,
            hide: resolved.hide.iter().map(|hide| hide.value.to_string()).collect(),
            limits: limits(resolved),
            mounts: resolved.mounts.iter().map(|mount| (mount.target.to_string(), shown(mount))).collect(),
            tools: resolved
                .tools
                .iter()
                .map(|tool| (format!("{} {}", tool.name, tool.version), tool.key.clone()))
                .collect(),
            tools_made_on: resolved
                .tools
                .iter()
                .filter_map(|tool| Some((tool, tool.made_on.as_ref()?)))
                .map(|(tool, on)| {
                    (format!("{} {}", tool.name, tool.version), format!("{} {}", on.engine, on.id))
                })
                .collect(),
            environment: resolved
                .environment
                .iter()
                .map(|(name, variable)| (name.clone(), value(variable)))
                .chain([("SANDBOX".to_owned(), Some(record.name.to_string()))])
                .collect(),
        };
        Self { digest: policy.digest(), ..policy }
    }

    fn digest(&self) -> String {
        let mut value = serde_json::to_value(self).expect("plain data");
        value.as_object_mut().expect("a struct is an object").remove("digest");
        sha256(canonical(&value).as_bytes())
    }
}

impl Machine {
    /// This one.
    pub(super) fn here() -> Self {
        let facts: &dyn Facts = &MachineFacts;
        Self {
            system: std::env::consts::OS.to_owned(),
            kernel: facts.kernel().unwrap_or_default(),
            architecture: std::env::consts::ARCH.to_owned(),
            sandtable: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

fn image(resolved: &ResolvedSpec) -> Option<String> {
    resolved.image.as_ref().map(|image| serde_json::to_string(image).expect("plain data"))
}

fn limits(resolved: &ResolvedSpec) -> BTreeMap<String, String> {
    fn word<T: ToString>(name: &str, limit: Option<&Setting<T>>) -> Option<(String, String)> {
        limit.map(|limit| (name.to_owned(), limit.value.to_string()))
    }
    let limits = &resolved.limits;
    let all = [
        word("cpus", limits.cpus.as_ref()),
        word("memory", limits.memory.as_ref()),
        word("pids", limits.pids.as_ref()),
        word("disk", limits.disk.as_ref()),
        word("timeout", limits.timeout.as_ref()),
    ];
    all.into_iter().flatten().collect()
}

fn value(variable: &Variable) -> Option<String> {
    (variable.secrecy == Secrecy::Open).then(|| variable.value.clone())
}

/// What is at a place, in one line.
fn shown(mount: &Mount) -> String {
    match &mount.content {
        Content::Host { source, access: HostAccess::Read, .. } => format!("read {source}"),
        Content::Host { source, access: HostAccess::Write, .. } => format!("write {source}"),
        // Each sandbox has it at another place.
        Content::Cow { layer, .. } if *layer == LayerName::Workspace => "the state".to_owned(),
        Content::Cow { source, .. } => format!("copy-on-write {source}"),
        Content::Copy { source, .. } => format!("copy {source}"),
        Content::Private { area } => format!("private {area}"),
        Content::Scratch { size } => format!("scratch {size}"),
        Content::Empty => "empty".to_owned(),
        Content::Link { to } => format!("link {to}"),
        Content::Text { contents } => format!("text {}", sha256(contents.as_bytes())),
        Content::Masked => "masked".to_owned(),
        Content::Processes => "processes".to_owned(),
        Content::Devices => "devices".to_owned(),
        Content::Agent => "ssh-agent".to_owned(),
    }
}
