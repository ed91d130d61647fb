//! From a resolved request to the words of one call, part after part in a fixed order. Nothing is asked and
//! nothing is decided here.

use sandtable_protocol::op;

use super::own::{self, DOOR, SOCKET};
use super::plan::{Arg, ContainerPlan, Part};
use super::{Dialect, mounts, points, proxy};
use crate::engine::{Place, native};
use crate::model::container::{Container, EngineRights};
use crate::model::image::ResolvedImage;
use crate::model::resolved::{ResolvedSpec, Secrecy};
use crate::model::setting::Origin;
use crate::model::spec::Network;
use crate::model::tool::ProvidedDep;

/// The hidden subcommand that is PID 1.
pub const SUBCOMMAND: &str = "__container";

/// The words of one call as they are put together.
pub(super) struct Words {
    pub(super) argv: Vec<Arg>,
    part: Part,
}

impl Words {
    pub(super) fn new() -> Self {
        Self { argv: Vec::new(), part: Part::Base }
    }

    /// Adds words of the current part that nobody asked for.
    pub(super) fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.add_for(&Origin::Default, words);
    }

    /// Adds words of the current part, with where they came from.
    pub(super) fn add_for<const N: usize>(&mut self, origin: &Origin, words: [&str; N]) {
        let arg = |word: &str| Arg {
            value: word.to_owned(),
            part: self.part,
            origin: origin.clone(),
            secrecy: Secrecy::Open,
        };
        let args: Vec<Arg> = words.into_iter().map(arg).collect();
        self.argv.extend(args);
    }

    pub(super) fn begin(&mut self, part: Part) {
        assert!(part >= self.part, "the parts of a call have one order");
        self.part = part;
    }
}

pub(super) fn lower(dialect: Dialect, spec: &ResolvedSpec, place: &Place) -> ContainerPlan {
    let container = spec.container.as_ref().expect("resolve has found the engine");
    let name = container_name(place);
    let mut words = Words::new();
    base(&mut words, dialect, spec, place);
    words.begin(Part::Flags);
    for flag in &container.flags {
        words.add_for(&flag.origin, [&flag.value]);
    }
    limits(&mut words, spec);
    let network_name = network(&mut words, dialect, spec, place);
    words.begin(Part::Mounts);
    let door = place.directory.join("door");
    let own = [
        mounts::bind(&container.init.to_string(), &own::init(&spec.mounts), mounts::Write::No),
        mounts::bind(&door.to_string(), DOOR, mounts::Write::No),
    ];
    for value in &own {
        words.add(["--mount", value]);
    }
    let needs = mounts::lower(&mut words, dialect, spec, place);
    ports_and_environment(&mut words, spec, container, place);
    identity(&mut words, dialect, spec, container);
    words.begin(Part::Image);
    if let Some(ResolvedImage::Named { name, origin, id, .. }) = &spec.image {
        words.add_for(origin, [id.as_deref().unwrap_or(name.as_str())]);
    }
    words.begin(Part::Command);
    words.add([SUBCOMMAND, SOCKET]);
    let concealed = spec.environment.iter().filter(|(_, variable)| variable.secrecy == Secrecy::Concealed);
    ContainerPlan {
        dialect,
        rights: container.rights,
        program: container.program.as_path().to_owned(),
        variables: container.variables.clone(),
        directory: place.directory.as_path().to_owned(),
        init: container.init.as_path().to_owned(),
        image: image_name(spec),
        support: container.support.value.clone(),
        name,
        volumes: needs.volumes,
        grounds: needs.grounds,
        network_name,
        proxy: proxy::lower(dialect, spec, place),
        files: needs.files,
        works: needs.works,
        points: points::lower(spec, place),
        door: door.into(),
        landlock: native::landlock(spec),
        set_ids: native::set_ids(spec, place),
        network: if spec.network.value == Network::Host { op::Network::Host } else { op::Network::Own },
        search: ProvidedDep::search_path(&spec.tools),
        limits: native::limits(spec, place),
        agent: needs.agent,
        argv: words.argv,
        concealed: concealed.map(|(name, _)| name.clone()).collect(),
    }
}

/// Another user or another home may have a sandbox of the same name.
pub(super) fn container_name(place: &Place) -> String {
    format!("sandtable-{}-{:016x}", place.name, super::super::fingerprint(place.directory.as_path()))
}

fn image_name(spec: &ResolvedSpec) -> String {
    match &spec.image {
        Some(ResolvedImage::Named { name, .. }) => name.to_string(),
        // An image by its path is native's business.
        Some(ResolvedImage::Tree { .. }) | None => String::new(),
    }
}

fn base(words: &mut Words, dialect: Dialect, spec: &ResolvedSpec, place: &Place) {
    words.add(["run", "--rm", "--pull=never", "--sig-proxy=false"]);
    words.add(["--name", &container_name(place), "--hostname", place.name.as_str()]);
    labels(words, place);
    // PID 1 goes to the directory of each command itself. One that an engine goes to may have become a link.
    words.add(["--entrypoint", &own::init(&spec.mounts), "--workdir", "/"]);
    walls(words, dialect);
}

/// By which what a killed supervisor left is found.
pub(super) fn labels(words: &mut Words, place: &Place) {
    for label in [
        format!("sandtable.sandbox={}", place.name),
        format!("sandtable.directory={}", place.directory),
        format!("sandtable.pid={}", place.pid),
        format!("sandtable.started={}", place.started),
    ] {
        words.add(["--label", &label]);
    }
}

/// What every container of ours goes without.
pub(super) fn walls(words: &mut Words, dialect: Dialect) {
    words.add(["--cap-drop=ALL", "--security-opt", "no-new-privileges"]);
    words.add(["--read-only", "--no-healthcheck", "--cgroupns=private", "--ipc=private"]);
    if dialect == Dialect::Podman {
        // Its own file systems in memory would hide where nothing is to be written.
        words.add(["--read-only-tmpfs=false"]);
    }
}

fn limits(words: &mut Words, spec: &ResolvedSpec) {
    words.begin(Part::Limits);
    let limits = &spec.limits;
    if let Some(cpus) = &limits.cpus {
        words.add_for(&cpus.origin, ["--cpus", &cpus.value.to_string()]);
    }
    if let Some(memory) = &limits.memory {
        let bytes = memory.value.bytes().to_string();
        // With swap, as on the native engine.
        words.add_for(&memory.origin, ["--memory", &bytes, "--memory-swap", &bytes]);
    }
    if let Some(pids) = &limits.pids {
        words.add_for(&pids.origin, ["--pids-limit", &pids.value.count().to_string()]);
    }
}

/// Adds the words for the network, and gives the name of one that has to be made before.
fn network(words: &mut Words, dialect: Dialect, spec: &ResolvedSpec, place: &Place) -> Option<String> {
    words.begin(Part::Network);
    let container = spec.container.as_ref().expect("resolve has found the engine");
    let own = own_network(dialect, container, place);
    let (name, made) = match spec.network.value {
        Network::None => ("none", None),
        // The way out is a socket; the network is the proxy's.
        Network::Proxied => ("none", own.as_deref()),
        Network::Host => ("host", None),
        Network::Nat => (own.as_deref().unwrap_or(USER_MODE), own.as_deref()),
    };
    words.add_for(&spec.network.origin, ["--network", name]);
    made.map(str::to_owned)
}

/// A way out by a program of the caller's instead of a network of the engine's.
pub(super) const USER_MODE: &str = "slirp4netns";

/// The network of one sandbox. On the engine's common one its neighbours could reach it. Without root, Podman has
/// no networks but a way out for each container.
pub(super) fn own_network(dialect: Dialect, container: &Container, place: &Place) -> Option<String> {
    let rootless = (dialect, container.rights) == (Dialect::Podman, EngineRights::Rootless);
    (!rootless).then(|| container_name(place))
}

/// A concealed variable is no word of a command line, which everybody on the machine can read, nor part of what
/// the engine remembers: PID 1 gets it with the command.
fn ports_and_environment(words: &mut Words, spec: &ResolvedSpec, container: &Container, place: &Place) {
    words.begin(Part::Ports);
    for port in &container.ports {
        words.add_for(&port.origin, ["--publish", &format!("127.0.0.1:{}", port.value)]);
    }
    words.begin(Part::Environment);
    for (name, variable) in spec.environment.iter().filter(|(_, found)| found.secrecy == Secrecy::Open) {
        words.add_for(&variable.origin, ["--env", &format!("{name}={}", variable.value)]);
    }
    words.add(["--env", &format!("SANDBOX={}", place.name)]);
}

/// Whoever makes a file inside is the caller outside.
fn identity(words: &mut Words, dialect: Dialect, spec: &ResolvedSpec, container: &Container) {
    words.begin(Part::Identity);
    let (uid, gid) = ids(dialect, spec, container);
    if (dialect, container.rights) == (Dialect::Podman, EngineRights::Rootless) {
        words.add(["--userns=keep-id"]);
    }
    words.add(["--user", &format!("{uid}:{gid}")]);
}

/// The ids of the caller, as they are called inside. Docker without root calls its own user 0.
pub(super) fn ids(dialect: Dialect, spec: &ResolvedSpec, container: &Container) -> (u32, u32) {
    match (dialect, container.rights) {
        (Dialect::Docker, EngineRights::Rootless) => (0, 0),
        _ => (spec.identity.uid, spec.identity.gid),
    }
}
