//! The mount table in an engine's words.

use std::path::PathBuf;

use super::Dialect;
use super::lower::{Words, container_name, ids};
use super::plan::{Ground, OwnFile, Part, Volume};
use crate::engine::Place;
use crate::engine::ssh_agent::{self, Setup};
use crate::model::container::EngineRights;
use crate::model::layer::LayerName;
use crate::model::layout::{LayerPart, Layout};
use crate::model::mount::{Content, HostAccess, Mount, Pins};
use crate::model::resolved::ResolvedSpec;

/// What has to be there before the container.
#[derive(Debug, Default)]
pub(super) struct Needs {
    pub(super) volumes: Vec<Volume>,
    pub(super) grounds: Vec<Ground>,
    pub(super) files: Vec<OwnFile>,
    /// Directories of overlays in which the kernel leaves files of the engine's.
    pub(super) works: Vec<PathBuf>,
    /// What the ssh-agent needs.
    pub(super) agent: Setup,
}

/// Whether a mount can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Write {
    Yes,
    No,
}

/// Adds the words for every mount; the agent's socket comes last, as a part of its own.
pub(super) fn lower(words: &mut Words, dialect: Dialect, spec: &ResolvedSpec, place: &Place) -> Needs {
    let mut needs = Needs::default();
    for mount in spec.mounts.iter() {
        let made = one(mount, dialect, spec, place);
        if !made.words[1].is_empty() {
            words.add_for(&mount.origin, [&made.words[0], &made.words[1]]);
        }
        needs.volumes.extend(made.volume);
        needs.grounds.extend(made.ground);
        needs.works.extend(made.work);
        needs.files.extend(made.file);
    }
    words.begin(Part::SshAgent);
    let agent = ssh_agent::lower(spec, dialect, place);
    words.argv.extend(agent.args);
    needs.agent = agent.setup;
    needs
}

/// A file or directory of the host. Read-only ones show no other mount below them: that one would be writable.
pub(super) fn bind(source: &str, target: &str, write: Write) -> String {
    let mut fields = vec!["type=bind".to_owned(), field("source", source), field("target", target)];
    if write == Write::No {
        fields.extend(["readonly".to_owned(), "bind-nonrecursive=true".to_owned()]);
    }
    fields.join(",")
}

/// Option and value for one mount, and what they need.
#[derive(Default)]
struct Made {
    words: [String; 2],
    volume: Option<Volume>,
    ground: Option<Ground>,
    work: Option<PathBuf>,
    file: Option<OwnFile>,
}

fn one(mount: &Mount, dialect: Dialect, spec: &ResolvedSpec, place: &Place) -> Made {
    let target = mount.target.to_string();
    let bound = |source: String, write| Made {
        words: ["--mount".to_owned(), bind(&source, &target, write)],
        ..Made::default()
    };
    let memory = |options: String| Made {
        words: ["--tmpfs".to_owned(), format!("{target}:{options}")],
        ..Made::default()
    };
    match &mount.content {
        Content::Host { source, access, .. } => {
            let write = if *access == HostAccess::Write { Write::Yes } else { Write::No };
            bound(source.to_string(), write)
        }
        Content::Cow { source, layer, pins, .. } => {
            let layers = Layers { source: source.to_string(), layer, pins: *pins, target: &target };
            overlay(&layers, dialect, spec, place)
        }
        Content::Copy { layer, .. } => {
            bound(Layout::of(&place.directory).copy(layer).to_string(), Write::Yes)
        }
        Content::Private { area } => bound(place.directory.join(area).to_string(), Write::Yes),
        Content::Scratch { size } => memory(scratch(*size, dialect, spec)),
        Content::Empty => memory("rw,nosuid,nodev,noexec,mode=755,size=1m".to_owned()),
        Content::Masked => memory("ro,nosuid,nodev,noexec,mode=000,size=4k".to_owned()),
        Content::Text { contents } => {
            let path = place.directory.join("inside").join(target.trim_start_matches('/').replace('/', "-"));
            let file = Some(OwnFile { path: path.clone().into(), contents: contents.clone() });
            Made { file, ..bound(path.to_string(), Write::No) }
        }
        // The agent has a part of its own, an engine brings the others itself, and no table for an image has a
        // link.
        Content::Agent | Content::Link { .. } | Content::Processes | Content::Devices => Made::default(),
    }
}

fn scratch(size: u64, dialect: Dialect, spec: &ResolvedSpec) -> String {
    let container = spec.container.as_ref().expect("resolve has found the engine");
    let (uid, gid) = ids(dialect, spec, container);
    // All of them together have half of the memory, with the `/dev/shm` that the engine brings.
    let all = 1 + spec.mounts.iter().filter(|mount| matches!(mount.content, Content::Scratch { .. })).count();
    let size = if size == 0 { format!(",size={}%", 50 / all) } else { format!(",size={size}") };
    // The runtime takes the mode of the directory in the image, so the workload has to be the owner.
    let owner = match dialect {
        Dialect::Docker => format!(",uid={uid},gid={gid}"),
        Dialect::Podman => ",U".to_owned(),
    };
    format!("rw,nosuid,nodev,exec,mode=1777{size}{owner}")
}

struct Layers<'a> {
    source: String,
    layer: &'a LayerName,
    pins: Pins,
    target: &'a str,
}

/// A copy-on-write view in the format of the native engine's layers. Rootless Podman makes it itself, on one directory; elsewhere
/// it is a volume of type `overlay`, because only that takes the attributes of users.
fn overlay(layers: &Layers<'_>, dialect: Dialect, spec: &ResolvedSpec, place: &Place) -> Made {
    let container = spec.container.as_ref().expect("resolve has found the engine");
    let part = |part| Layout::of(&place.directory).layer(layers.layer, part);
    let (upper, work, pins) = (part(LayerPart::Upper), part(LayerPart::Work), part(LayerPart::Pins));
    let Layers { source, target, .. } = layers;
    if (dialect, container.rights) == (Dialect::Podman, EngineRights::Rootless) {
        let ground = (layers.pins == Pins::Present).then(|| Ground {
            place: part(LayerPart::Ground).into(),
            above: pins.into(),
            below: source.into(),
        });
        let source =
            ground.as_ref().map_or_else(|| source.clone(), |ground| ground.shown().display().to_string());
        let value = format!("{source}:{target}:O,upperdir={upper},workdir={work}");
        let words = ["--volume".to_owned(), value];
        return Made { words, ground, work: Some(work.into()), ..Made::default() };
    }
    let lower = if layers.pins == Pins::Present { format!("{pins}:{source}") } else { source.clone() };
    let name = format!("{}-{}", container_name(place), layers.layer);
    let options = format!("nosuid,nodev,lowerdir={lower},upperdir={upper},workdir={work},userxattr");
    let fields = ["type=volume".to_owned(), field("source", &name), field("target", target)];
    // Docker would copy the image's files at this place into the layer.
    let copy = if dialect == Dialect::Docker { ",volume-nocopy=true" } else { "" };
    Made {
        words: ["--mount".to_owned(), format!("{}{copy}", fields.join(","))],
        volume: Some(Volume { name, options }),
        work: Some(work.into()),
        ..Made::default()
    }
}

/// One field of a comma-separated list, in quotes where it needs them.
fn field(name: &str, value: &str) -> String {
    let text = format!("{name}={value}");
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}
