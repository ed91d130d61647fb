//! One layer of configuration: what a single source said, each value with its origin. Layers are put on
//! top of each other with [`Layer::or`]; the strongest word wins, and mounts add up.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;

use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::model::setting::{Origin, Setting};
use sandtable_sandbox::model::spec::{
    EngineChoice, GitConfig, Lifetime, MountRequest, Network, Profile, Secrets, SourceGuard, Strictness,
    WorkspaceMode,
};

use super::key::Key;
use super::mount;
use super::value::{Raw, ValueError};

/// What one source said, or several that were put on top of each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layer {
    pub(crate) engine: Option<Setting<EngineChoice>>,
    pub(crate) profile: Option<Setting<Profile>>,
    pub(crate) name: Option<Setting<SandboxName>>,
    pub(crate) directory: Option<Setting<PathBuf>>,
    pub(crate) mode: Option<Setting<WorkspaceMode>>,
    pub(crate) mounts: Vec<Setting<MountRequest>>,
    pub(crate) network: Option<Setting<Network>>,
    pub(crate) git_config: Option<Setting<GitConfig>>,
    pub(crate) secrets: Option<Setting<Secrets>>,
    pub(crate) lifetime: Option<Setting<Lifetime>>,
    pub(crate) strictness: Option<Setting<Strictness>>,
    pub(crate) source_guard: Option<Setting<SourceGuard>>,
    pub(crate) dry_run: Option<Setting<bool>>,
    pub(crate) json: Option<Setting<bool>>,
    pub(crate) report: Option<Setting<PathBuf>>,
    pub(crate) quiet: Option<Setting<bool>>,
}

impl Layer {
    /// Reads one value into its place.
    pub(crate) fn set(&mut self, key: Key, raw: Raw, origin: &Origin) -> Result<(), ValueError> {
        match key {
            Key::Engine => self.engine = with(origin, raw.word()?),
            Key::Profile => self.profile = with(origin, raw.word()?),
            Key::Name => self.name = with(origin, raw.word()?),
            Key::Directory => self.directory = with(origin, raw.text()?.into()),
            Key::Mode => self.mode = with(origin, raw.word()?),
            Key::Mounts => self.mounts = mounts(raw.list()?, origin)?,
            Key::Network => self.network = with(origin, raw.word()?),
            Key::GitConfig => self.git_config = with(origin, raw.word()?),
            Key::Secrets => self.secrets = with(origin, raw.word()?),
            Key::Rm => self.lifetime = with(origin, either(raw, Lifetime::Discard, Lifetime::Keep)?),
            Key::BestEffort => {
                self.strictness = with(origin, either(raw, Strictness::BestEffort, Strictness::Strict)?);
            }
            Key::AllowSource => {
                self.source_guard = with(origin, either(raw, SourceGuard::Allow, SourceGuard::Refuse)?);
            }
            Key::DryRun => self.dry_run = with(origin, raw.switch()?),
            Key::Json => self.json = with(origin, raw.switch()?),
            Key::Report => self.report = with(origin, raw.text()?.into()),
            Key::Quiet => self.quiet = with(origin, raw.switch()?),
        }
        Ok(())
    }

    /// This layer on top of a weaker one.
    #[must_use]
    pub(crate) fn or(self, weaker: Self) -> Self {
        Self {
            engine: self.engine.or(weaker.engine),
            profile: self.profile.or(weaker.profile),
            name: self.name.or(weaker.name),
            directory: self.directory.or(weaker.directory),
            mode: self.mode.or(weaker.mode),
            mounts: added_up(self.mounts, weaker.mounts),
            network: self.network.or(weaker.network),
            git_config: self.git_config.or(weaker.git_config),
            secrets: self.secrets.or(weaker.secrets),
            lifetime: self.lifetime.or(weaker.lifetime),
            strictness: self.strictness.or(weaker.strictness),
            source_guard: self.source_guard.or(weaker.source_guard),
            dry_run: self.dry_run.or(weaker.dry_run),
            json: self.json.or(weaker.json),
            report: self.report.or(weaker.report),
            quiet: self.quiet.or(weaker.quiet),
        }
    }

    /// The value of a setting, for people.
    pub(crate) fn shown(&self, key: Key) -> String {
        match key {
            Key::Engine => shown(self.engine.as_ref()),
            Key::Profile => shown(self.profile.as_ref()),
            Key::Name => shown(self.name.as_ref()),
            Key::Directory => path(self.directory.as_ref()),
            Key::Mode => shown(self.mode.as_ref()),
            Key::Mounts => {
                let mounts = self.mounts.iter().map(|mount| shown_mount(&mount.value));
                Some(mounts.collect::<Vec<_>>().join(", "))
                    .filter(|text| !text.is_empty())
                    .unwrap_or(nothing())
            }
            Key::Network => shown(self.network.as_ref()),
            Key::GitConfig => shown(self.git_config.as_ref()),
            Key::Secrets => shown(self.secrets.as_ref()),
            Key::Rm => shown(self.lifetime.as_ref()),
            Key::BestEffort => shown(self.strictness.as_ref()),
            Key::AllowSource => shown(self.source_guard.as_ref()),
            Key::DryRun => shown(self.dry_run.as_ref()),
            Key::Json => shown(self.json.as_ref()),
            Key::Report => path(self.report.as_ref()),
            Key::Quiet => shown(self.quiet.as_ref()),
        }
    }
}

/// A mount as it could be written.
pub(crate) fn shown_mount(mount: &MountRequest) -> String {
    let target = mount.target.as_ref().unwrap_or(&mount.source);
    format!("{}:{}:{}", mount.source.display(), target.display(), mount.access)
}

fn with<T>(origin: &Origin, value: T) -> Option<Setting<T>> {
    Some(Setting::new(value, origin.clone()))
}

fn either<T>(raw: Raw, on: T, off: T) -> Result<T, ValueError> {
    Ok(if raw.switch()? { on } else { off })
}

fn mounts(items: Vec<OsString>, origin: &Origin) -> Result<Vec<Setting<MountRequest>>, ValueError> {
    items.iter().map(|item| Ok(Setting::new(mount::parse(item)?, origin.clone()))).collect()
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

fn path(setting: Option<&Setting<PathBuf>>) -> String {
    setting.map_or_else(nothing, |setting| setting.value.display().to_string())
}
