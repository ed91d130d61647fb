//! One layer of configuration: what a single source said, each value with its origin. Layers are put on
//! top of each other with [`Layer::or`]; the strongest word wins, and mounts add up.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;

use sandtable_sandbox::model::hide::HidePattern;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::model::limits::Limits;
use sandtable_sandbox::model::profile::Profile;
use sandtable_sandbox::model::seatbelt::SeatbeltProfile;
use sandtable_sandbox::model::setting::{Origin, Setting};
use sandtable_sandbox::model::spec::{
    Base, EngineChoice, EnvRequest, GitConfig, Lifetime, MountRequest, Network, Secrets, SourceGuard,
    SshAgent, Strictness, WorkspaceMode,
};
use sandtable_sandbox::model::tool::ToolRequest;

use super::container::ContainerLayer;
use super::key::Key;
use super::value::{Raw, ValueError};
use super::{environment, mount};

/// What one source said, or several that were put on top of each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    pub engine: Option<Setting<EngineChoice>>,
    pub container: ContainerLayer,
    pub seatbelt_profile: Option<Setting<SeatbeltProfile>>,
    pub profile: Option<Setting<Profile>>,
    pub name: Option<Setting<SandboxName>>,
    pub directory: Option<Setting<PathBuf>>,
    pub mode: Option<Setting<WorkspaceMode>>,
    pub base: Option<Setting<Base>>,
    pub mounts: Vec<Setting<MountRequest>>,
    pub expose: Vec<Setting<PathBuf>>,
    pub tools: Vec<Setting<ToolRequest>>,
    pub hide: Vec<Setting<HidePattern>>,
    pub agent_homes: Vec<Setting<PathBuf>>,
    pub env: Vec<Setting<EnvRequest>>,
    pub env_files: Vec<Setting<PathBuf>>,
    pub pass_env: Vec<Setting<EnvRequest>>,
    pub network: Option<Setting<Network>>,
    pub limits: Limits,
    pub ssh_agent: Option<Setting<SshAgent>>,
    pub git_config: Option<Setting<GitConfig>>,
    pub secrets: Option<Setting<Secrets>>,
    pub lifetime: Option<Setting<Lifetime>>,
    pub strictness: Option<Setting<Strictness>>,
    pub source_guard: Option<Setting<SourceGuard>>,
    pub dry_run: Option<Setting<bool>>,
    pub json: Option<Setting<bool>>,
    pub report: Option<Setting<PathBuf>>,
    pub quiet: Option<Setting<bool>>,
    /// True forces a terminal, false refuses one.
    pub tty: Option<Setting<bool>>,
    pub detach: Option<Setting<bool>>,
}

impl Layer {
    /// Reads one value into its place.
    pub fn set(&mut self, key: Key, raw: Raw, origin: &Origin) -> Result<(), ValueError> {
        match key {
            Key::Engine => put(&mut self.engine, origin, raw.word()?),
            Key::Image
            | Key::Pull
            | Key::Build
            | Key::Publish
            | Key::EngineFlags
            | Key::ProxyCommand
            | Key::AllowFlags
            | Key::SupportUrl => {
                self.container.set(key, raw, origin)?;
            }
            Key::SeatbeltProfile => put(&mut self.seatbelt_profile, origin, raw.word()?),
            Key::Profile => put(&mut self.profile, origin, raw.word()?),
            Key::Name => put(&mut self.name, origin, raw.word()?),
            Key::Directory => put(&mut self.directory, origin, raw.text()?.into()),
            Key::Mode => put(&mut self.mode, origin, raw.word()?),
            Key::Base => put(&mut self.base, origin, raw.word()?),
            Key::Mounts => self.mounts = mounts(&raw.list()?, origin)?,
            Key::Expose => self.expose = paths(raw.list()?, origin),
            Key::Tools => self.tools = words(raw.list()?, origin, |word| Ok(word.parse()?))?,
            Key::AgentHome => self.agent_homes = paths(raw.list()?, origin),
            Key::EnvFile => self.env_files = paths(raw.list()?, origin),
            Key::Hide => self.hide = words(raw.list()?, origin, |word| Ok(word.parse()?))?,
            Key::Env => {
                self.env = last_of_each(words(raw.list()?, origin, |word| Ok(environment::given(word)?))?);
            }
            Key::PassEnv => {
                self.pass_env = words(raw.list()?, origin, |word| Ok(environment::passed(word)?))?;
            }
            Key::Network => put(&mut self.network, origin, raw.word()?),
            Key::Cpus => put(&mut self.limits.cpus, origin, raw.limit()?),
            Key::Memory => put(&mut self.limits.memory, origin, raw.limit()?),
            Key::Pids => put(&mut self.limits.pids, origin, raw.limit()?),
            Key::Disk => put(&mut self.limits.disk, origin, raw.limit()?),
            Key::Timeout => put(&mut self.limits.timeout, origin, raw.limit()?),
            Key::SshAgent => put(&mut self.ssh_agent, origin, raw.word()?),
            Key::GitConfig => put(&mut self.git_config, origin, raw.word()?),
            Key::Secrets => put(&mut self.secrets, origin, raw.word()?),
            Key::Rm => put(&mut self.lifetime, origin, either(raw, Lifetime::Discard, Lifetime::Keep)?),
            Key::BestEffort => {
                put(&mut self.strictness, origin, either(raw, Strictness::BestEffort, Strictness::Strict)?);
            }
            Key::AllowSource => {
                put(&mut self.source_guard, origin, either(raw, SourceGuard::Allow, SourceGuard::Refuse)?);
            }
            Key::DryRun => put(&mut self.dry_run, origin, raw.switch()?),
            Key::Json => put(&mut self.json, origin, raw.switch()?),
            Key::Report => put(&mut self.report, origin, raw.text()?.into()),
            Key::Quiet => put(&mut self.quiet, origin, raw.switch()?),
            Key::Tty => put(&mut self.tty, origin, raw.switch()?),
            Key::Detach => put(&mut self.detach, origin, raw.switch()?),
        }
        Ok(())
    }

    /// This layer on top of a weaker one.
    #[must_use]
    pub fn or(self, weaker: Self) -> Self {
        Self {
            engine: self.engine.or(weaker.engine),
            container: self.container.or(weaker.container),
            seatbelt_profile: self.seatbelt_profile.or(weaker.seatbelt_profile),
            profile: self.profile.or(weaker.profile),
            name: self.name.or(weaker.name),
            directory: self.directory.or(weaker.directory),
            mode: self.mode.or(weaker.mode),
            base: self.base.or(weaker.base),
            mounts: added_up(self.mounts, weaker.mounts),
            expose: united(self.expose, weaker.expose, PartialEq::eq),
            tools: united(self.tools, weaker.tools, |a, b| a.name == b.name),
            hide: united(self.hide, weaker.hide, PartialEq::eq),
            agent_homes: united(self.agent_homes, weaker.agent_homes, PartialEq::eq),
            env: united(self.env, weaker.env, |a, b| a.name == b.name),
            env_files: united(self.env_files, weaker.env_files, PartialEq::eq),
            pass_env: united(self.pass_env, weaker.pass_env, |a, b| a.name == b.name),
            network: self.network.or(weaker.network),
            limits: self.limits.or(weaker.limits),
            ssh_agent: self.ssh_agent.or(weaker.ssh_agent),
            git_config: self.git_config.or(weaker.git_config),
            secrets: self.secrets.or(weaker.secrets),
            lifetime: self.lifetime.or(weaker.lifetime),
            strictness: self.strictness.or(weaker.strictness),
            source_guard: self.source_guard.or(weaker.source_guard),
            dry_run: self.dry_run.or(weaker.dry_run),
            json: self.json.or(weaker.json),
            report: self.report.or(weaker.report),
            quiet: self.quiet.or(weaker.quiet),
            tty: self.tty.or(weaker.tty),
            detach: self.detach.or(weaker.detach),
        }
    }

    /// The value of a setting, for people.
    pub fn shown(&self, key: Key) -> String {
        match key {
            Key::Engine => shown(self.engine.as_ref()),
            Key::Image
            | Key::Pull
            | Key::Build
            | Key::Publish
            | Key::EngineFlags
            | Key::ProxyCommand
            | Key::AllowFlags
            | Key::SupportUrl => self.container.shown(key),
            Key::SeatbeltProfile => shown(self.seatbelt_profile.as_ref()),
            Key::Profile => shown(self.profile.as_ref()),
            Key::Name => shown(self.name.as_ref()),
            Key::Directory => path(self.directory.as_ref()),
            Key::Mode => shown(self.mode.as_ref()),
            Key::Base => shown(self.base.as_ref()),
            Key::Mounts => listed(&self.mounts, shown_mount),
            Key::Expose => listed(&self.expose, |path| path.display().to_string()),
            Key::Tools => listed(&self.tools, ToolRequest::to_string),
            Key::Hide => listed(&self.hide, HidePattern::to_string),
            Key::AgentHome => listed(&self.agent_homes, |path| path.display().to_string()),
            // Never the values.
            Key::Env => listed(&self.env, |request| request.name.clone()),
            Key::EnvFile => listed(&self.env_files, |path| path.display().to_string()),
            Key::PassEnv => listed(&self.pass_env, |request| request.name.clone()),
            Key::Network => shown(self.network.as_ref()),
            Key::Cpus => shown(self.limits.cpus.as_ref()),
            Key::Memory => shown(self.limits.memory.as_ref()),
            Key::Pids => shown(self.limits.pids.as_ref()),
            Key::Disk => shown(self.limits.disk.as_ref()),
            Key::Timeout => shown(self.limits.timeout.as_ref()),
            Key::SshAgent => shown(self.ssh_agent.as_ref()),
            Key::GitConfig => shown(self.git_config.as_ref()),
            Key::Secrets => shown(self.secrets.as_ref()),
            Key::Rm => said(self.lifetime.as_ref(), &Lifetime::Discard),
            Key::BestEffort => said(self.strictness.as_ref(), &Strictness::BestEffort),
            Key::AllowSource => said(self.source_guard.as_ref(), &SourceGuard::Allow),
            Key::DryRun => shown(self.dry_run.as_ref()),
            Key::Json => shown(self.json.as_ref()),
            Key::Report => path(self.report.as_ref()),
            Key::Quiet => shown(self.quiet.as_ref()),
            Key::Tty => shown(self.tty.as_ref()),
            Key::Detach => shown(self.detach.as_ref()),
        }
    }
}

/// A mount as it could be written.
pub fn shown_mount(mount: &MountRequest) -> String {
    let target = mount.target.as_ref().unwrap_or(&mount.source);
    format!("{}:{}:{}", mount.source.display(), target.display(), mount.access)
}

fn put<T>(place: &mut Option<Setting<T>>, origin: &Origin, value: T) {
    *place = Some(Setting::new(value, origin.clone()));
}

fn either<T>(raw: Raw, on: T, off: T) -> Result<T, ValueError> {
    Ok(if raw.switch()? { on } else { off })
}

fn mounts(items: &[OsString], origin: &Origin) -> Result<Vec<Setting<MountRequest>>, ValueError> {
    items.iter().map(|item| Ok(Setting::new(mount::parse(item)?, origin.clone()))).collect()
}

fn paths(items: Vec<OsString>, origin: &Origin) -> Vec<Setting<PathBuf>> {
    items.into_iter().map(|item| Setting::new(item.into(), origin.clone())).collect()
}

fn words<T>(
    items: Vec<OsString>,
    origin: &Origin,
    read: impl Fn(&str) -> Result<T, ValueError>,
) -> Result<Vec<Setting<T>>, ValueError> {
    let one = |item: OsString| {
        let word = item.into_string().map_err(|_| ValueError::NotText)?;
        Ok(Setting::new(read(&word)?, origin.clone()))
    };
    items.into_iter().map(one).collect()
}

/// Of several values for one name the last counts.
fn last_of_each(requests: Vec<Setting<EnvRequest>>) -> Vec<Setting<EnvRequest>> {
    let mut kept: Vec<Setting<EnvRequest>> = Vec::new();
    for request in requests {
        kept.retain(|other| other.value.name != request.value.name);
        kept.push(request);
    }
    kept
}

/// Everything of both layers; what is the same counts once, the stronger layer's.
pub fn united<T>(
    mut strong: Vec<Setting<T>>,
    weak: Vec<Setting<T>>,
    same: impl Fn(&T, &T) -> bool,
) -> Vec<Setting<T>> {
    for setting in weak {
        if !strong.iter().any(|other| same(&other.value, &setting.value)) {
            strong.push(setting);
        }
    }
    strong
}

fn listed<T>(settings: &[Setting<T>], shown: impl Fn(&T) -> String) -> String {
    let texts: Vec<String> = settings.iter().map(|setting| shown(&setting.value)).collect();
    if texts.is_empty() { nothing() } else { texts.join(", ") }
}

/// All mounts of both layers; where both name the same place inside, the stronger one's.
fn added_up(
    mut strong: Vec<Setting<MountRequest>>,
    weak: Vec<Setting<MountRequest>>,
) -> Vec<Setting<MountRequest>> {
    let place = |mount: &Setting<MountRequest>| {
        mount.value.target.clone().unwrap_or_else(|| mount.value.source.clone())
    };
    let taken: Vec<PathBuf> = strong.iter().map(place).collect();
    strong.extend(weak.into_iter().filter(|mount| !taken.contains(&place(mount))));
    strong
}

fn nothing() -> String {
    "nothing".to_owned()
}

fn shown<T: Display>(setting: Option<&Setting<T>>) -> String {
    setting.map_or_else(nothing, |setting| setting.value.to_string())
}

/// A setting that files know as a switch.
fn said<T: PartialEq>(setting: Option<&Setting<T>>, on: &T) -> String {
    setting.map_or_else(nothing, |setting| (setting.value == *on).to_string())
}

fn path(setting: Option<&Setting<PathBuf>>) -> String {
    setting.map_or_else(nothing, |setting| setting.value.display().to_string())
}
