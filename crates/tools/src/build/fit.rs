//! Whether what was made can run in a root file system: asked here of one that is a directory, and by our own executable
//! inside of one that only a container engine can show.
//!
//! What is asked and answered are plain data, because for a container they cross its border. The answer comes from our
//! executable in a container of its own, in which nothing of a recipe runs; its texts are made of foreign names all the
//! same, and are shown as such.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use sandtable_sandbox::engine::oci::INIT;
use sandtable_sandbox::model::path::BoxPath;
use sandtable_sandbox::session::SessionError;
use sandtable_sandbox::session::one_shot::{Command, End, OneShot};
use serde::{Deserialize, Serialize};

use super::root;
use crate::elf::{self, Libc, Misfit, Root};

/// The hidden subcommand that answers, with the question as its one argument.
pub const ASK: &str = "__look";
/// What counts as a shell: steps are commands for it.
const SHELL: &str = "/bin/sh";

/// What is to be known of a root file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(super) enum Question {
    /// What it is.
    Look,
    /// Whether a tool can run in it.
    Fit(Fit),
}

/// The answer to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(super) enum Answer {
    Looked(Looked),
    Fits,
    Missing { binary: String },
    Misfit { said: String, remedy: Option<String> },
}

/// What a root file system is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Looked {
    pub(super) libc: Libc,
    /// Its `os-release`.
    pub(super) release: String,
    pub(super) has_shell: bool,
}

/// A tool that is to run somewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fit {
    /// Where the tool is.
    pub(super) place: PathBuf,
    /// Its programs, by their paths in it.
    pub(super) binaries: Vec<String>,
    /// Directories with libraries of its own and of its dependencies.
    pub(super) libraries: Vec<PathBuf>,
    pub(super) machine: String,
}

/// Why a tool cannot be offered.
#[derive(Debug)]
pub(super) enum Unfit {
    Missing(String),
    Misfit(Misfit),
}

impl Fit {
    /// Whether every program is there and can run in `root`.
    pub(super) fn check(&self, root: &Root) -> Result<(), Unfit> {
        let target = elf::Target { root, machine: &self.machine, libraries: &self.libraries };
        let made = Root::new(&self.place);
        for binary in &self.binaries {
            // Links within the tool lead where they will; one that leads elsewhere is another's business to check.
            let Some(path) = made.find(binary).filter(|path| path.is_file()) else {
                return Err(Unfit::Missing(binary.clone()));
            };
            elf::check(&path, &target).map_err(Unfit::Misfit)?;
        }
        Ok(())
    }
}

/// Asks our own executable in a container; nothing if it does not answer, or not in its words.
pub(super) fn ask(
    inside: &OneShot,
    question: &Question,
    deadline: Instant,
) -> Result<Option<Answer>, SessionError> {
    let words = [INIT.to_owned(), ASK.to_owned(), serde_json::to_string(question).expect("plain data")];
    let command = Command {
        argv: words.into(),
        directory: BoxPath::new("/").expect("absolute"),
        environment: BTreeMap::new(),
    };
    let ran = inside.run(&command, deadline)?;
    Ok((ran.end == End::Exited(0)).then(|| serde_json::from_slice(&inside.said()).ok()).flatten())
}

/// Answers a question about the root file system that this process has: what the hidden subcommand does in a container.
/// Nothing for what is no question.
pub fn answer(question: &str) -> Option<String> {
    let root = Root::new(Path::new("/"));
    let answer = match serde_json::from_str(question).ok()? {
        Question::Look => Answer::Looked(Looked {
            libc: root.libc().clone(),
            release: String::from_utf8_lossy(&root::release_bytes(&root)).into_owned(),
            has_shell: root.find(SHELL).is_some(),
        }),
        Question::Fit(fit) => match fit.check(&root) {
            Ok(()) => Answer::Fits,
            Err(Unfit::Missing(binary)) => Answer::Missing { binary },
            Err(Unfit::Misfit(misfit)) => {
                Answer::Misfit { said: told(&misfit), remedy: misfit.remedy().map(str::to_owned) }
            }
        },
    };
    serde_json::to_string(&answer).ok()
}

/// An error with its causes.
fn told(misfit: &Misfit) -> String {
    let causes = std::iter::successors(std::error::Error::source(misfit), |cause| cause.source());
    causes.fold(misfit.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_here_is_answered_as_this_machine_is() {
        let ask = |question: &Question| {
            let text = answer(&serde_json::to_string(question).expect("plain data")).expect("a question");
            serde_json::from_str::<Answer>(&text).expect("an answer")
        };
        let Answer::Looked(looked) = ask(&Question::Look) else { panic!("it looks") };
        assert_eq!(&looked.libc, Root::new("/").libc());
        assert_eq!(looked.has_shell, Path::new(SHELL).exists());
        let place = tempfile::tempdir().expect("a directory");
        fs_err::write(place.path().join("script"), "#!/no/such/interpreter\n").expect("a file");
        let fit = |binary: &str| {
            Question::Fit(Fit {
                place: place.path().to_owned(),
                binaries: vec![binary.to_owned()],
                libraries: Vec::new(),
                machine: std::env::consts::ARCH.to_owned(),
            })
        };
        assert_eq!(ask(&fit("absent")), Answer::Missing { binary: "absent".to_owned() });
        let Answer::Misfit { said, remedy } = ask(&fit("script")) else { panic!("it cannot run") };
        assert!(said.contains("`/no/such/interpreter`") && remedy.is_some(), "{said}");
        assert_eq!(answer("{}"), None);
    }
}
