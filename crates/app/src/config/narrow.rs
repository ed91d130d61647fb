//! What a project's file may say. It comes with the repository, so it is foreign: it may make the sandbox
//! tighter, never wider. Each setting has a rule; what is compared is the outcome with the file against
//! the outcome without it, so that a line which a flag outvotes does no harm, and a profile is judged by
//! what it changes.

use std::path::PathBuf;

use sandtable_sandbox::model::limits::Disk;
use sandtable_sandbox::model::setting::Setting;
use sandtable_sandbox::model::spec::{GitConfig, Network, Secrets, SourceGuard, SshAgent, Strictness};

use super::file::{ConfigFile, Place};
use super::key::Key;
use super::layer::Layer;
use super::trust::Standing;

/// A line of a project's file that would make the sandbox wider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "key `{}` at `{}:{place}` would widen the policy: {} `{given}`, and without it `{holds}`",
    key.word(), path.display(), effect(*key, *setting)
)]
pub struct Widening {
    pub path: PathBuf,
    pub place: Place,
    /// The line to blame.
    pub key: Key,
    /// The setting that would be wider: another one when the line names a profile.
    pub setting: Key,
    pub given: String,
    /// What the line itself says.
    pub asked: String,
    pub holds: String,
    /// Whether the user once consented to another version of the file.
    pub standing: Standing,
}

fn effect(key: Key, setting: Key) -> String {
    if key == setting { "it asks for".to_owned() } else { format!("with it `{}` is", setting.word()) }
}

/// Compares what holds `with` a project's file with what holds `without` it.
pub fn check(project: &ConfigFile, without: &Layer, with: &Layer) -> Result<(), Box<Widening>> {
    let mut settings = Key::ALL.iter().copied();
    let Some(setting) = settings.find(|key| widened(*key, without, with)) else { return Ok(()) };
    let blamed = if project.places.contains_key(&setting) { setting } else { Key::Profile };
    Err(Box::new(Widening {
        path: project.path.clone(),
        place: project.places.get(&blamed).copied().unwrap_or(Place { line: 1, column: 1 }),
        key: blamed,
        setting,
        given: with.shown(setting),
        asked: with.shown(blamed),
        holds: without.shown(setting),
        standing: Standing::Unknown,
    }))
}

fn widened(key: Key, without: &Layer, with: &Layer) -> bool {
    match key {
        Key::Network => {
            let order = [Network::None, Network::Proxied, Network::Nat, Network::Host];
            wider(&order, without.network.as_ref(), with.network.as_ref())
        }
        Key::Cpus => looser(without.limits.cpus.as_ref(), with.limits.cpus.as_ref()),
        Key::Memory => looser(without.limits.memory.as_ref(), with.limits.memory.as_ref()),
        Key::Pids => looser(without.limits.pids.as_ref(), with.limits.pids.as_ref()),
        Key::Disk => more_disk(without.limits.disk.as_ref(), with.limits.disk.as_ref()),
        Key::Timeout => looser(without.limits.timeout.as_ref(), with.limits.timeout.as_ref()),
        Key::Secrets => {
            let order = [Secrets::Mask, Secrets::Warn];
            wider(&order, without.secrets.as_ref(), with.secrets.as_ref())
        }
        Key::SshAgent => {
            let order = [SshAgent::Off, SshAgent::Auto, SshAgent::On, SshAgent::Required];
            wider(&order, without.ssh_agent.as_ref(), with.ssh_agent.as_ref())
        }
        Key::GitConfig => {
            let order = [GitConfig::Off, GitConfig::Sanitized, GitConfig::Literal];
            wider(&order, without.git_config.as_ref(), with.git_config.as_ref())
        }
        Key::BestEffort => {
            let order = [Strictness::Strict, Strictness::BestEffort];
            wider(&order, without.strictness.as_ref(), with.strictness.as_ref())
        }
        Key::AllowSource => {
            let order = [SourceGuard::Refuse, SourceGuard::Allow];
            wider(&order, without.source_guard.as_ref(), with.source_guard.as_ref())
        }
        Key::Mounts => added(&without.mounts, &with.mounts),
        Key::Expose => added(&without.expose, &with.expose),
        // They are fetched, and kept.
        Key::Tools => added(&without.tools, &with.tools),
        Key::AgentHome => added(&without.agent_homes, &with.agent_homes),
        Key::Env => added(&without.env, &with.env),
        Key::EnvFile => added(&without.env_files, &with.env_files),
        Key::PassEnv => added(&without.pass_env, &with.pass_env),
        // A profile is judged by what it sets. Hiding more is narrower, and lists only add up.
        Key::Profile | Key::Hide => false,
        // Where the user works, what is kept, what is shown and where it is written is not the project's
        // business; an engine or a mode is no wider than another, but not its choice either.
        // What runs inside, and how, is the user's choice.
        Key::Engine
        | Key::Image
        | Key::Pull
        | Key::Build
        | Key::Publish
        | Key::EngineFlags
        | Key::ProxyCommand
        | Key::AllowFlags
        | Key::SupportUrl
        | Key::SeatbeltProfile
        | Key::Name
        | Key::Directory
        | Key::Base
        | Key::Mode
        | Key::Rm
        | Key::DryRun
        | Key::Json
        | Key::Report
        | Key::Quiet
        | Key::Tty
        | Key::Detach => without.shown(key) != with.shown(key),
    }
}

/// Whether `with` holds something that `without` does not.
fn added<T: PartialEq>(without: &[Setting<T>], with: &[Setting<T>]) -> bool {
    !with.iter().all(|setting| without.iter().any(|known| known.value == setting.value))
}

/// Whether `with` stands behind `without` in `order`, narrowest first.
fn wider<T: PartialEq>(order: &[T], without: Option<&Setting<T>>, with: Option<&Setting<T>>) -> bool {
    let rank = |setting: Option<&Setting<T>>| {
        setting.and_then(|setting| order.iter().position(|value| *value == setting.value))
    };
    rank(with) > rank(without)
}

/// Whether `with` allows more disk. Without a budget of its own the default holds, which an amount from a project's file
/// never raises.
fn more_disk(without: Option<&Setting<Disk>>, with: Option<&Setting<Disk>>) -> bool {
    match (without, with) {
        (None, Some(with)) => with.value == Disk::Unlimited,
        (without, with) => looser(without, with),
    }
}

/// Whether `with` allows more than `without`; no limit allows most.
fn looser<T: Ord>(without: Option<&Setting<T>>, with: Option<&Setting<T>>) -> bool {
    match (without, with) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(without), Some(with)) => with.value > without.value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_an_ordered_setting_has_its_place() {
        // A value that were missing from its order would count as the narrowest of all.
        fn ranks<T: Copy>(values: &[T], wider_than: impl Fn(T, T) -> bool) {
            for (i, a) in values.iter().enumerate() {
                for (j, b) in values.iter().enumerate() {
                    assert!(i == j || wider_than(*a, *b) != wider_than(*b, *a), "{i} {j}");
                }
            }
        }
        let set = |value| Some(Setting::default_value(value));
        ranks(Network::ALL, |a, b| {
            let layer = |value| Layer { network: set(value), ..Layer::default() };
            widened(Key::Network, &layer(a), &layer(b))
        });
        let set = |value| Some(Setting::default_value(value));
        ranks(Secrets::ALL, |a, b| {
            let layer = |value| Layer { secrets: set(value), ..Layer::default() };
            widened(Key::Secrets, &layer(a), &layer(b))
        });
        let set = |value| Some(Setting::default_value(value));
        ranks(SshAgent::ALL, |a, b| {
            let layer = |value| Layer { ssh_agent: set(value), ..Layer::default() };
            widened(Key::SshAgent, &layer(a), &layer(b))
        });
        let set = |value| Some(Setting::default_value(value));
        ranks(GitConfig::ALL, |a, b| {
            let layer = |value| Layer { git_config: set(value), ..Layer::default() };
            widened(Key::GitConfig, &layer(a), &layer(b))
        });
    }
}
