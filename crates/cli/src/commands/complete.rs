//! The hidden `__complete`: names for a shell that completes a command line. It changes nothing, says nothing when something is
//! wrong, and ends after a moment whether or not it knows all names.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use sandtable_app::caller::Caller;
use sandtable_app::config;
use sandtable_app::env::Environment;
use sandtable_sandbox::resolve;
use sandtable_sandbox::session;

use crate::ui::Ui;

/// The hidden subcommand.
pub(crate) const SUBCOMMAND: &str = "__complete";

/// A person waits for the answer with a finger on the key.
const PATIENCE: Duration = Duration::from_millis(400);

/// What kind of name is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Names {
    Sandboxes,
    /// Sandboxes, and the snapshots that their last commands left.
    States,
    Agents,
    Profiles,
}

impl Names {
    const ALL: [Self; 4] = [Self::Sandboxes, Self::States, Self::Agents, Self::Profiles];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Sandboxes => "sandboxes",
            Self::States => "states",
            Self::Agents => "agents",
            Self::Profiles => "profiles",
        }
    }

    fn of(word: &OsString) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| word == kind.word())
    }
}

/// Answers if that is what the arguments ask for.
pub(crate) fn main(args: &[OsString], environment: impl FnOnce() -> Environment) -> Option<ExitCode> {
    if args.get(1)? != SUBCOMMAND {
        return None;
    }
    if let (Some(kind), None) = (args.get(2).and_then(Names::of), args.get(3)) {
        let lines: String = found(kind, environment()).into_iter().map(|name| name + "\n").collect();
        // A shell that went away needs no answer.
        Ui::plain().answer(&lines).unwrap_or_default();
    }
    Some(ExitCode::SUCCESS)
}

/// What is found in time.
fn found(kind: Names, environment: Environment) -> Vec<String> {
    let (sender, names) = channel();
    let until = Instant::now() + PATIENCE;
    // The process does not wait for it.
    let started = std::thread::Builder::new().spawn(move || tell(kind, environment, &sender));
    if started.is_err() {
        return Vec::new();
    }
    let next = || names.recv_timeout(until.saturating_duration_since(Instant::now())).ok();
    // `compgen -W` of bash expands what it gets.
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    std::iter::from_fn(next).filter(|name| name.chars().all(harmless)).collect()
}

fn tell(kind: Names, environment: Environment, sender: &Sender<String>) {
    // Nobody listens any more when the time is over.
    let say = |name: &str| sender.send(name.to_owned()).is_ok();
    match kind {
        Names::Agents => resolve::agent_names().into_iter().all(say),
        Names::Profiles => config::profile_names(&environment).iter().all(|name| say(name)),
        Names::Sandboxes | Names::States => {
            let Ok(sandboxes) = Caller::new(environment).sandboxes() else { return };
            let Ok(names) = sandboxes.names() else { return };
            let known = names.iter().all(|name| say(name.as_str()));
            let state = |name| session::inspect(&sandboxes, name).ok()?.outcome?.snapshot;
            known
                && kind == Names::States
                && names.iter().filter_map(state).all(|snapshot| say(snapshot.id.short(12).as_str()))
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(kind: Names, variables: &[(&str, &str)]) -> Vec<String> {
        found(kind, Environment::of(variables))
    }

    #[test]
    fn agents_and_profiles_are_known_without_a_home() {
        assert!(names(Names::Agents, &[]).contains(&"claude".to_owned()));
        assert_eq!(names(Names::Profiles, &[]), ["none", "dev", "safe", "tight", "offline"]);
        assert!(names(Names::Sandboxes, &[]).is_empty());
    }

    #[test]
    fn profiles_of_the_users_file_are_among_them() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let file = home.path().join("sandtable/config.toml");
        fs_err::create_dir(home.path().join("sandtable")).expect("a fresh directory");
        fs_err::write(&file, "[profiles.mine]\nnetwork = \"none\"").expect("a fresh directory");
        let config = home.path().to_str().expect("text");
        assert!(names(Names::Profiles, &[("XDG_CONFIG_HOME", config)]).contains(&"mine".to_owned()));
        fs_err::write(&file, "nonsense").expect("its own directory");
        assert_eq!(names(Names::Profiles, &[("XDG_CONFIG_HOME", config)]).len(), 5);
    }

    #[test]
    fn every_kind_is_known_by_its_word_and_nothing_else_is() {
        for kind in Names::ALL {
            assert_eq!(Names::of(&kind.word().into()), Some(kind));
        }
        assert_eq!(Names::of(&"tools".into()), None);
        let arguments = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert!(main(&arguments(&["sandtable", "run"]), Environment::default).is_none());
    }
}
