//! Which engine runs the sandbox. A requested engine that cannot run it is an error, never another engine.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::error::ResolveError;
use super::helpers::{helper, helper_path};
use super::search::PATH;
use super::{flags, proxy};
use crate::facts::{Facts, Said};
use crate::host::Host;
use crate::model::container::{Build, Container, EngineRights, Lowers};
use crate::model::image::{ImageRef, ResolvedImage};
use crate::model::path::HostPath;
use crate::model::platform::{Os, Platform};
use crate::model::resolved::{EngineName, Variable};
use crate::model::setting::{Origin, Setting};
use crate::model::spec::{EngineChoice, Network, Spec};

/// Variables by which an engine's program finds its service, its images and its settings.
const OPEN: &[&str] = &[
    PATH,
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
    "CONTAINER_HOST",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "CONTAINERS_REGISTRIES_CONF",
    "REGISTRY_AUTH_FILE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
/// The same, where the value may hold a password.
const CONCEALED: &[&str] =
    &["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"];

/// What was decided.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) engine: EngineName,
    /// Why it is the one.
    pub(super) reason: String,
    pub(super) platform: Platform,
    pub(super) network: Setting<Network>,
    pub(super) image: Option<ResolvedImage>,
    pub(super) container: Option<Container>,
}

/// A container engine, and the image that it is asked for.
#[derive(Clone, Debug)]
pub struct Engaged {
    pub engine: EngineName,
    pub container: Container,
    pub image: ResolvedImage,
}

/// The container engine that `spec` asks for, with its image; nothing if another kind of engine would run it.
pub fn engaged(spec: &Spec, host: &Host, facts: &dyn Facts) -> Result<Option<Engaged>, ResolveError> {
    let Chosen { engine, image, container, .. } = choose(spec, host, facts)?;
    Ok(container.zip(image).map(|(container, image)| Engaged { engine, container, image }))
}

/// The engine for `spec`.
pub(super) fn choose(spec: &Spec, host: &Host, facts: &dyn Facts) -> Result<Chosen, ResolveError> {
    let platform = facts.platform().unwrap_or_default();
    let (engine, reason) = by_name(spec, platform, &|name| program(name, host, facts).is_some())?;
    let network = proxy::network(spec, engine)?;
    let plain = Chosen { engine, reason, platform, network, image: None, container: None };
    if let (EngineName::Native | EngineName::Seatbelt, Some(what)) = (engine, containers_only(spec)) {
        return Err(ResolveError::ContainersOnly { what, engine });
    }
    match engine {
        // An image by its path is found when the file system is put together.
        EngineName::Native | EngineName::Seatbelt => Ok(plain),
        EngineName::Docker | EngineName::Podman => {
            let program = needed(engine, host, facts)?;
            let image = image(spec, engine)?;
            let container = container(engine, program, spec, &Machine { host, facts })?;
            let container = proxy::with_command(container, spec, plain.network.value);
            let container = with_ports(container, spec, plain.network.value)?;
            Ok(Chosen { image: Some(image), container: Some(container), ..plain })
        }
    }
}

/// Which option of the command line only a container engine could follow. A variable may be meant for another
/// call, so what it says counts where it can.
fn containers_only(spec: &Spec) -> Option<&'static str> {
    let request = &spec.container;
    let typed = |origin: &Origin| matches!(origin, Origin::Flag { .. } | Origin::Program);
    if request.flags.iter().any(|flag| typed(&flag.origin)) {
        return Some("--engine-flags");
    }
    if request.ports.iter().any(|port| typed(&port.origin)) {
        return Some("--publish");
    }
    (request.build.value == Build::Project && typed(&request.build.origin)).then_some("--build")
}

/// Whether there is such an engine here, as far as can be known without an image.
pub(super) fn check(
    engine: EngineChoice,
    host: &Host,
    facts: &dyn Facts,
) -> Result<EngineName, ResolveError> {
    let platform = facts.platform().unwrap_or_default();
    let asked = Setting::default_value(engine);
    let found = |name: &str| program(name, host, facts).is_some();
    by_words(&asked, None, platform, &found).map(|(name, _)| name)
}

fn by_name(
    spec: &Spec,
    platform: Platform,
    found: &dyn Fn(&str) -> bool,
) -> Result<(EngineName, String), ResolveError> {
    by_words(&spec.engine, spec.image.as_ref().map(|image| &image.value), platform, found)
}

fn by_words(
    asked: &Setting<EngineChoice>,
    image: Option<&ImageRef>,
    platform: Platform,
    found: &dyn Fn(&str) -> bool,
) -> Result<(EngineName, String), ResolveError> {
    let wished = || format!("asked for by {}", asked.origin);
    match (asked.value, platform.os) {
        (EngineChoice::Auto, os) => automatic(os, image, found),
        (EngineChoice::Native, Os::Linux) => Ok((EngineName::Native, wished())),
        (EngineChoice::Seatbelt, Os::MacOs) => Ok((EngineName::Seatbelt, wished())),
        (engine @ (EngineChoice::Native | EngineChoice::Seatbelt), _) => {
            Err(ResolveError::EngineElsewhere { engine })
        }
        (EngineChoice::Docker, _) => Ok((EngineName::Docker, wished())),
        (EngineChoice::Podman, _) => Ok((EngineName::Podman, wished())),
    }
}

/// What is taken when nobody names an engine.
fn automatic(
    os: Os,
    image: Option<&ImageRef>,
    found: &dyn Fn(&str) -> bool,
) -> Result<(EngineName, String), ResolveError> {
    let named = image.filter(|image| !image.is_path());
    let order = match (os, named) {
        (Os::Linux, None) => {
            let reason = "auto: on Linux the native engine needs no daemon and no image";
            return Ok((EngineName::Native, reason.to_owned()));
        }
        (Os::MacOs, None) => {
            let reason = "auto: without an image, what macOS brings along";
            return Ok((EngineName::Seatbelt, reason.to_owned()));
        }
        (Os::Linux, Some(_)) => [EngineName::Podman, EngineName::Docker],
        (Os::MacOs, Some(_)) => [EngineName::Docker, EngineName::Podman],
    };
    match order.into_iter().find(|engine| found(engine.word())) {
        Some(engine) => Ok((engine, format!("auto: an image was asked for, and `{engine}` is here"))),
        None => Err(ResolveError::EngineMissing { engine: EngineChoice::Podman, package: "podman" }),
    }
}

fn image(spec: &Spec, engine: EngineName) -> Result<ResolvedImage, ResolveError> {
    let Some(Setting { value: name, origin }) = &spec.image else {
        return Err(ResolveError::ImageUnnamed { engine });
    };
    if name.is_path() {
        return Err(ResolveError::ImageElsewhere { engine, image: name.clone() });
    }
    let pull = spec.container.pull.value;
    Ok(ResolvedImage::Named { name: name.clone(), origin: origin.clone(), pull, id: None })
}

/// The program of an engine that somebody asked for.
fn needed(engine: EngineName, host: &Host, facts: &dyn Facts) -> Result<PathBuf, ResolveError> {
    let (choice, package) = match engine {
        EngineName::Docker => (EngineChoice::Docker, "docker.io"),
        _ => (EngineChoice::Podman, "podman"),
    };
    program(engine.word(), host, facts).ok_or(ResolveError::EngineMissing { engine: choice, package })
}

struct Machine<'a> {
    host: &'a Host,
    facts: &'a dyn Facts,
}

fn container(
    engine: EngineName,
    program: PathBuf,
    spec: &Spec,
    machine: &Machine<'_>,
) -> Result<Container, ResolveError> {
    let Machine { host, facts } = *machine;
    let variables = variables(host, facts);
    refuse_remote(engine, &variables)?;
    let rights = match engine {
        EngineName::Docker => docker_rights(&program, &variables, facts)?,
        _ if host.uid == 0 => EngineRights::Root,
        _ => EngineRights::Rootless,
    };
    flags::check(&spec.container)?;
    Ok(Container {
        program: HostPath::new(program).map_err(ResolveError::MountPath)?,
        variables,
        rights,
        lowers: match (engine, rights) {
            (EngineName::Podman, EngineRights::Rootless) => Lowers::One,
            _ => Lowers::Many,
        },
        init: host.executable.clone().ok_or(ResolveError::NoExecutable)?,
        flags: spec.container.flags.clone(),
        ports: Vec::new(),
        build: None,
        proxy: None,
        support: spec.container.support.clone(),
    })
}

/// The ports that are published. One for a debugger is a wish: without a network nobody could reach it.
fn with_ports(container: Container, spec: &Spec, network: Network) -> Result<Container, ResolveError> {
    let mut ports = spec.container.ports.clone();
    let unconnected = matches!(network, Network::None | Network::Proxied);
    if let (true, Some(port)) = (unconnected, ports.first()) {
        return Err(ResolveError::PortWithoutNetwork { port: port.value });
    }
    let published = |debug: &&Setting<_>| !ports.iter().any(|port| port.value == debug.value);
    let debug = spec.container.debug.as_ref().filter(|_| network == Network::Nat).filter(published).cloned();
    ports.extend(debug);
    Ok(Container { ports, ..container })
}

fn program(name: &str, host: &Host, facts: &dyn Facts) -> Option<PathBuf> {
    helper(name, host, facts)
}

/// The variables of the caller that the program of an engine gets.
pub(super) fn variables(host: &Host, facts: &dyn Facts) -> BTreeMap<String, Variable> {
    let variable = |name: &&str, make: fn(String, Origin) -> Variable| {
        let value = match *name {
            PATH => helper_path(host, facts),
            name => host.environment.get(name)?.clone(),
        };
        let origin = Origin::Variable { name: (*name).to_owned() };
        (!value.is_empty()).then(|| ((*name).to_owned(), make(value, origin)))
    };
    let open = OPEN.iter().filter_map(|name| variable(name, Variable::open));
    open.chain(CONCEALED.iter().filter_map(|name| variable(name, Variable::concealed))).collect()
}

/// An engine on another machine would mount that machine's files.
fn refuse_remote(engine: EngineName, variables: &BTreeMap<String, Variable>) -> Result<(), ResolveError> {
    let name = if engine == EngineName::Docker { "DOCKER_HOST" } else { "CONTAINER_HOST" };
    match variables.get(name) {
        Some(address) if !address.value.starts_with("unix://") => {
            Err(ResolveError::EngineRemote { variable: name, address: address.value.clone() })
        }
        _ => Ok(()),
    }
}

/// Asks Docker's service whose rights it has, and finds out whether it answers at all.
fn docker_rights(
    program: &std::path::Path,
    variables: &BTreeMap<String, Variable>,
    facts: &dyn Facts,
) -> Result<EngineRights, ResolveError> {
    let variables: Vec<(String, String)> =
        variables.iter().map(|(name, variable)| (name.clone(), variable.value.clone())).collect();
    let ask = ["info", "--format", "{{.SecurityOptions}}"];
    match facts.output(program, &ask, &variables) {
        Ok(Said { code: Some(0), stdout, .. }) if stdout.contains("name=rootless") => {
            Ok(EngineRights::Rootless)
        }
        Ok(Said { code: Some(0), .. }) => Ok(EngineRights::Root),
        Ok(Said { stdout, stderr, .. }) => {
            let said = if stderr.trim().is_empty() { stdout } else { stderr };
            let said = said.trim().lines().last().unwrap_or_default().to_owned();
            let denied = said.to_lowercase().contains("permission denied");
            Err(if denied { ResolveError::EngineDenied { said } } else { ResolveError::EngineDown { said } })
        }
        Err(why) => Err(ResolveError::EngineDown { said: why.to_string() }),
    }
}
