//! Where the faults happen: the executable on the native engine or in containers, as root or as an ordinary user, with
//! sources of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sandtable_testkit::container::Contained;
use sandtable_testkit::env::TestEnv;
use sandtable_testkit::process::{Ended, Run};

/// The engine, with the world around it.
pub(crate) enum Ground {
    Native(TestEnv),
    Contained(Box<Contained>),
}

impl Ground {
    pub(crate) fn env(&self) -> &TestEnv {
        match self {
            Self::Native(env) => env,
            Self::Contained(world) => &world.env,
        }
    }

    /// The executable, called in a directory.
    pub(crate) fn call<T: AsRef<str>>(&self, directory: &Path, words: &[T]) -> Run {
        let run = match self {
            Self::Native(env) => env.sandtable(),
            Self::Contained(world) => world.sandtable(),
        };
        let identity = ["AUTHOR", "COMMITTER"].into_iter().fold(run, |run, who| {
            run.variable(format!("GIT_{who}_NAME"), "Sample")
                .variable(format!("GIT_{who}_EMAIL"), "sample@example.invalid")
        });
        identity.directory(directory).args(words.iter().map(AsRef::as_ref))
    }

    /// The same to its end.
    pub(crate) fn ended<T: AsRef<str>>(&self, directory: &Path, words: &[T]) -> Ended {
        self.call(directory, words).ended()
    }

    /// The same where nothing is in its way.
    pub(crate) fn done<T: AsRef<str> + std::fmt::Debug>(&self, directory: &Path, words: &[T]) -> String {
        let ended = self.ended(directory, words);
        assert_eq!(ended.code, 0, "{words:?}\nstdout: {}\nstderr: {}", ended.stdout, ended.stderr);
        ended.stdout
    }

    /// The words that start a sandbox on this engine.
    pub(crate) fn run_words(&self) -> Vec<String> {
        let mut words = vec!["run".to_owned()];
        if let Self::Contained(world) = self {
            words.extend(["--engine", world.kind.word(), "--image", &world.image].map(str::to_owned));
        }
        words
    }

    /// How long a call takes at least, as long as none was measured.
    pub(crate) fn usual(&self) -> Duration {
        Duration::from_millis(if matches!(self, Self::Native(_)) { 60 } else { 300 })
    }

    /// Containers, volumes and networks that are left.
    pub(crate) fn left_in_engine(&self) -> Vec<String> {
        match self {
            Self::Native(_) => Vec::new(),
            Self::Contained(world) => world.left(),
        }
    }

    /// Where the executable keeps its own files.
    pub(crate) fn data(&self) -> PathBuf {
        self.env().home().join(".local/share/sandtable")
    }
}
