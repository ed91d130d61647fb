//! Golden tests: a request, a machine on paper, and the whole of what it means there as text.

mod card;
mod environment;
mod errors;
mod git;
mod groups;
mod inside;
mod machines;
mod mounts;
mod rootfs;
mod ssh_agent;
mod tools;
mod views;

use std::fmt::Write as _;
use std::path::PathBuf;

use super::{ResolveError, resolve};
use crate::facts::fake::Fake;
use crate::facts::{Recorder, Replay};
use crate::host::Host;
use crate::model::container::ContainerRequest;
use crate::model::diagnosis::{Diagnose as _, Fault};
use crate::model::limits::Limits;
use crate::model::mount::{Content, HostAccess, Mount, Ownership};
use crate::model::path::HostPath;
use crate::model::profile::BuiltIn;
use crate::model::resolved::ResolvedSpec;
use crate::model::setting::{Origin, Setting};
use crate::model::spec::{
    Base, EngineChoice, GitConfig, Lifetime, MountAccess, MountRequest, Network, Secrets, SourceGuard, Spec,
    SshAgent, Strictness, WorkspaceMode,
};

/// A request for `directory` with every default.
pub(crate) fn spec(directory: &str) -> Spec {
    Spec {
        engine: Setting::default_value(EngineChoice::Auto),
        image: None,
        container: ContainerRequest::default(),
        seatbelt_profile: None,
        profile: Setting::default_value(BuiltIn::None.into()),
        directory: Setting::default_value(directory.into()),
        name: None,
        mode: Setting::default_value(WorkspaceMode::Auto),
        base: Setting::default_value(Base::Source),
        mounts: Vec::new(),
        expose: Vec::new(),
        tools: Vec::new(),
        hide: Vec::new(),
        agent_homes: Vec::new(),
        env: Vec::new(),
        network: Setting::default_value(Network::None),
        limits: Limits::default(),
        ssh_agent: Setting::default_value(SshAgent::Off),
        git_config: Setting::default_value(GitConfig::Literal),
        secrets: Setting::default_value(Secrets::Warn),
        source_guard: Setting::default_value(SourceGuard::Refuse),
        strictness: Setting::default_value(Strictness::Strict),
        lifetime: Setting::default_value(Lifetime::Keep),
    }
}

/// `spec` with one more mount, written as on the command line.
fn with_mount(mut spec: Spec, written: &str) -> Spec {
    let parts: Vec<&str> = written.split(':').collect();
    let access: MountAccess = parts.get(2).map_or(MountAccess::Read, |word| word.parse().unwrap());
    let request = MountRequest { source: parts[0].into(), target: parts.get(1).map(PathBuf::from), access };
    spec.mounts.push(Setting::new(request, Origin::Flag { name: "--mount".to_owned() }));
    spec
}

pub(super) fn host(uid: u32, home: &str, path: &str) -> Host {
    let home = HostPath::new(home).unwrap();
    let variables = [
        ("PATH", path),
        ("HOME", "whatever"),
        ("USER", "ann"),
        ("TERM", "xterm"),
        ("LC_ALL", "C.UTF-8"),
        ("SHELL", "/usr/bin/fish"),
        ("GITHUB_TOKEN", "secret"),
        ("SSH_AUTH_SOCK", "/run/agent"),
    ];
    Host {
        uid,
        gid: uid,
        data: home.join(".local/share/sandtable"),
        home: Some(home),
        executable: Some(HostPath::new("/usr/bin/sandtable").unwrap()),
        environment: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        odd_variables: Vec::new(),
        foreign: Vec::new(),
        tools: Vec::new(),
    }
}

/// Resolves twice, once on `machine` and once on the record of the first time, which must not differ.
fn resolved(spec: &Spec, host: &Host, machine: &Fake) -> Result<ResolvedSpec, ResolveError> {
    let recorder = Recorder::new(machine.clone());
    let first = resolve(spec, host, &recorder);
    let text = serde_json::to_string(&recorder.transcript()).unwrap();
    let replay = Replay(serde_json::from_str(&text).unwrap());
    assert_eq!(resolve(spec, host, &replay), first);
    first
}

fn check(spec: &Spec, host: &Host, machine: &Fake) -> String {
    match resolved(spec, host, machine) {
        Ok(resolved) => rendered(&resolved),
        Err(error) => refusal(&error),
    }
}

fn refusal(error: &ResolveError) -> String {
    let fault = match error.fault() {
        Fault::Input => "input",
        Fault::Machine => "machine",
    };
    let mut text = format!("{fault} {}: {error}", error.code());
    if let Some(cause) = std::error::Error::source(error) {
        write!(text, ": {cause}").unwrap();
    }
    if let Some(remedy) = error.remedy() {
        write!(text, "\n  {remedy}").unwrap();
    }
    text
}

fn rendered(resolved: &ResolvedSpec) -> String {
    let mut lines = vec![
        format!("source {} {:?}", resolved.source.root, resolved.source.kind),
        format!("in {}, home {}", resolved.directory, resolved.home),
    ];
    lines.extend(resolved.mounts.iter().filter(|mount| is_no_card(mount)).map(line));
    let environment = resolved.environment.iter().filter(|(name, _)| *name != super::CARD_VARIABLE);
    lines.extend(environment.map(|(name, variable)| format!("{name}={}", variable.value)));
    lines.extend(resolved.warnings.iter().map(|warning| format!("! {}: {}", warning.code, warning.text)));
    lines.join("\n")
}

/// The card repeats what the other lines say, and has tests of its own.
fn is_no_card(mount: &Mount) -> bool {
    mount.target.as_path().as_os_str() != super::CARD
}

/// The mounts that have to do with the home directory, the workspace and the user, not with the system.
fn own_mounts(resolved: &ResolvedSpec) -> String {
    const SYSTEM: &[&str] =
        &["/usr", "/bin", "/lib", "/lib64", "/sbin", "/etc", "/proc", "/dev", "/tmp", "/run"];
    let own = |mount: &&Mount| {
        let path = mount.target.as_path();
        !SYSTEM.iter().any(|place| path.as_os_str() == *place) && !path.starts_with("/var")
    };
    let mut lines: Vec<String> =
        resolved.mounts.iter().filter(own).filter(|mount| is_no_card(mount)).map(line).collect();
    lines.extend(resolved.warnings.iter().map(|warning| format!("! {}: {}", warning.code, warning.text)));
    lines.join("\n")
}

fn line(mount: &Mount) -> String {
    let target = &mount.target;
    let from = |source: &HostPath| {
        if source.same_inside() == *target { String::new() } else { format!(" from {source}") }
    };
    match &mount.content {
        Content::Host { source, access, ownership, .. } => {
            let access = match access {
                HostAccess::Read => "read",
                HostAccess::Write => "write",
            };
            let whose = match ownership {
                Ownership::System => "system",
                Ownership::Caller => "caller",
            };
            format!("{target}: {access} {whose}{}", from(source))
        }
        Content::Cow { source, layer, identity, .. } => {
            assert!(identity.is_some(), "{target} has no identity");
            format!("{target}: cow {layer}{}", from(source))
        }
        Content::Copy { source, layer, identity } => {
            assert!(identity.is_some(), "{target} has no identity");
            format!("{target}: copy {layer}{}", from(source))
        }
        Content::Private { area } => format!("{target}: private {area}"),
        Content::Scratch { size } => format!("{target}: scratch {size}"),
        Content::Empty => format!("{target}: empty"),
        Content::Link { to } => format!("{target}: link {to}"),
        Content::Text { contents } => format!("{target}: text\n{contents}"),
        Content::Masked => format!("{target}: masked"),
        Content::Processes => format!("{target}: processes"),
        Content::Devices => format!("{target}: devices"),
        Content::Agent => format!("{target}: agent"),
    }
}
