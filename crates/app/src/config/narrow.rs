//! What a project's file may say. It comes with the repository, so it is foreign: it may make the sandbox
//! tighter, never wider. Each setting has a rule; what is compared is the outcome with the file against
//! the outcome without it, so that a line which a flag outvotes does no harm, and a profile is judged by
//! what it changes.

use std::path::PathBuf;

use sandtable_sandbox::model::limits::Disk;
use sandtable_sandbox::model::setting::Setting;

use super::file::{ConfigFile, Place};
use super::form::{Many, One, Whole};
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
    let Some(setting) = settings.find(|key| with.widens(*key, without)) else { return Ok(()) };
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

/// What a project's file may do with a setting.
pub(super) struct Narrow<T: 'static> {
    /// Whether the second value allows more than the first.
    pub(super) widened: fn(&T, &T) -> bool,
    /// The rule in words, behind "a project's file".
    pub(super) rule: fn() -> String,
}

impl<T> Narrow<T> {
    pub(super) const fn by(widened: fn(&T, &T) -> bool, rule: fn() -> String) -> Self {
        Self { widened, rule }
    }

    /// Whatever it says is no wider.
    pub(super) const fn free(rule: fn() -> String) -> Self {
        Self { widened: |_, _| false, rule }
    }
}

impl<T: PartialEq> Narrow<One<T>> {
    /// Where the user works, what is kept, what is shown and where it is written is not the project's business; an
    /// engine or a mode is no wider than another, but not its choice either. What runs inside, and how, is the user's
    /// choice.
    pub(super) const fn fixed() -> Self {
        Self {
            widened: |without, with| !values(without).eq(values(with)),
            rule: || "cannot change it".to_owned(),
        }
    }
}

impl<T: Ord> Narrow<One<T>> {
    pub(super) const fn lowered() -> Self {
        Self { widened: |without, with| looser(without.as_ref(), with.as_ref()), rule: || LOWERED.to_owned() }
    }
}

impl<T: PartialEq> Narrow<Whole<T>> {
    pub(super) const fn fixed_list() -> Self {
        Self {
            widened: |without, with| !values(without.iter().flatten()).eq(values(with.iter().flatten())),
            rule: || "cannot change it".to_owned(),
        }
    }
}

impl<T: PartialEq> Narrow<Many<T>> {
    pub(super) const fn nothing_added() -> Self {
        Self { widened: |without, with| added(without, with), rule: || "cannot add to it".to_owned() }
    }
}

/// A project may go to the front of this order, narrowest first.
macro_rules! ordered {
    ($type:ident: $($value:ident),+) => {
        $crate::config::narrow::Narrow::by(
            |without, with| {
                $crate::config::narrow::wider(&[$($type::$value),+], without.as_ref(), with.as_ref())
            },
            || $crate::config::narrow::towards(&[$($type::$value.word()),+]),
        )
    };
}

pub(super) use ordered;

/// What it may do with a limit.
pub(super) const LOWERED: &str = "can lower it";

/// The rule of an order, in words.
pub(super) fn towards(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    format!("can only go to the left: {}", words.join(", "))
}

/// Whether `with` holds something that `without` does not.
fn added<T: PartialEq>(without: &[Setting<T>], with: &[Setting<T>]) -> bool {
    !with.iter().all(|setting| without.iter().any(|known| known.value == setting.value))
}

/// Whether `with` stands behind `without` in `order`, narrowest first.
pub(super) fn wider<T: PartialEq>(
    order: &[T],
    without: Option<&Setting<T>>,
    with: Option<&Setting<T>>,
) -> bool {
    let rank = |setting: Option<&Setting<T>>| {
        setting.and_then(|setting| order.iter().position(|value| *value == setting.value))
    };
    rank(with) > rank(without)
}

/// Whether `with` allows more disk. Without a budget of its own the default holds, which an amount from a project's file
/// never raises.
pub(super) fn more_disk(without: Option<&Setting<Disk>>, with: Option<&Setting<Disk>>) -> bool {
    match (without, with) {
        (None, Some(with)) => with.value == Disk::Unlimited,
        (without, with) => looser(without, with),
    }
}

fn values<'a, T: 'a>(settings: impl IntoIterator<Item = &'a Setting<T>>) -> impl Iterator<Item = &'a T> {
    settings.into_iter().map(|setting| &setting.value)
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
    use sandtable_sandbox::model::spec::{GitConfig, Network, Secrets, SshAgent};

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
            layer(b).widens(Key::Network, &layer(a))
        });
        let set = |value| Some(Setting::default_value(value));
        ranks(Secrets::ALL, |a, b| {
            let layer = |value| Layer { secrets: set(value), ..Layer::default() };
            layer(b).widens(Key::Secrets, &layer(a))
        });
        let set = |value| Some(Setting::default_value(value));
        ranks(SshAgent::ALL, |a, b| {
            let layer = |value| Layer { ssh_agent: set(value), ..Layer::default() };
            layer(b).widens(Key::SshAgent, &layer(a))
        });
        let set = |value| Some(Setting::default_value(value));
        ranks(GitConfig::ALL, |a, b| {
            let layer = |value| Layer { git_config: set(value), ..Layer::default() };
            layer(b).widens(Key::GitConfig, &layer(a))
        });
    }
}
