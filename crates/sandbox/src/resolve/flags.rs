//! Options of the user for the container engine. They are taken word by word, never through a shell; what
//! would undo the sandbox is refused without an explicit word for it, and so is what we do not know.

use std::sync::LazyLock;

use serde::Deserialize;

use super::data::{Reasoned, policy};
use super::error::ResolveError;
use crate::model::container::{ContainerRequest, FlagGuard};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Flags {
    /// Taken.
    harmless: Vec<Reasoned>,
    /// Refused unless the user says that they know.
    dangerous: Vec<Reasoned>,
    /// Refused whatever the user says: they are settings of ours.
    ours: Vec<Reasoned>,
}

static FLAGS: LazyLock<Flags> = LazyLock::new(|| policy!("flags"));

/// Refuses options that undo the sandbox or that nobody knows.
pub(super) fn check(request: &ContainerRequest) -> Result<(), ResolveError> {
    let mut words = request.flags.iter();
    while let Some(word) = words.next() {
        let (name, value) = match word.value.split_once('=') {
            Some((name, _)) => (name, true),
            None => (word.value.as_str(), false),
        };
        let is = |rule: &&Reasoned| rule.name == name;
        if let Some(rule) = FLAGS.ours.iter().find(is) {
            return Err(ResolveError::FlagOurs { flag: name.to_owned(), why: &rule.reason });
        }
        let known = FLAGS.harmless.iter().any(|rule| rule.name == name);
        if !known && request.flag_guard.value == FlagGuard::Refuse {
            let why = FLAGS.dangerous.iter().find(is).map(|rule| rule.reason.as_str());
            return Err(match why {
                Some(why) => ResolveError::FlagDangerous { flag: name.to_owned(), why },
                None => ResolveError::FlagUnknown { flag: word.value.clone() },
            });
        }
        if known && !value && words.next().is_none() {
            return Err(ResolveError::FlagWithoutValue { flag: name.to_owned() });
        }
    }
    Ok(())
}
