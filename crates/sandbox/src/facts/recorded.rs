//! A machine on which a source is only what was recorded of it.

use std::path::{Path, PathBuf};

use super::{Answer, Entry, Facts, Kind, Question};

/// Answers as if the source were an empty directory of the caller's, whatever is there now, or nothing: what is
/// made from a recorded state must not depend on what has become of the source. Everything else is asked.
#[derive(Debug)]
pub struct Recorded<F> {
    facts: F,
    root: PathBuf,
    /// Whose file system holds what is written out in the place of the source.
    state: PathBuf,
    owner: (u32, u32),
}

impl<F: Facts> Recorded<F> {
    /// `state` is a directory that exists; `owner` is who calls.
    pub fn new(facts: F, root: &Path, state: &Path, owner: (u32, u32)) -> Self {
        Self { facts, root: root.to_owned(), state: state.to_owned(), owner }
    }

    fn directory(&self) -> Answer {
        let (uid, gid) = self.owner;
        Answer::Kind(Entry {
            kind: Kind::Directory,
            mode: 0o755,
            uid,
            gid,
            device: 0,
            inode: 0,
            readable: true,
        })
    }
}

impl<F: Facts> Facts for Recorded<F> {
    fn ask(&self, question: &Question) -> Answer {
        let missing = Answer::Failed(super::Failure::Missing);
        match question {
            Question::Kind { path } if *path == self.root => self.directory(),
            Question::RealPath { path } if *path == self.root => Answer::Path(self.root.clone()),
            Question::TopLevel { path, .. } if *path == self.root => Answer::TopLevel(Vec::new()),
            Question::FileSystem { path } if path.starts_with(&self.root) => {
                self.facts.ask(&Question::FileSystem { path: self.state.clone() })
            }
            Question::Mounts => match self.facts.ask(question) {
                Answer::Mounts(mut mounts) => {
                    mounts.retain(|mount| !mount.target.starts_with(&self.root));
                    Answer::Mounts(mounts)
                }
                other => other,
            },
            Question::Kind { path }
            | Question::RealPath { path }
            | Question::ReadLink { path }
            | Question::ReadSmall { path, .. }
            | Question::Stamp { path }
            | Question::TopLevel { path, .. }
                if path.starts_with(&self.root) =>
            {
                missing
            }
            other => self.facts.ask(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::MachineFacts;
    use super::*;

    #[test]
    fn what_has_become_of_the_source_is_not_told() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("source");
        for content in [None, Some("gitdir: elsewhere\n")] {
            if let Some(content) = content {
                fs_err::create_dir(&root).unwrap();
                fs_err::write(root.join(".git"), content).unwrap();
            }
            let facts = Recorded::new(MachineFacts, &root, dir.path(), (1, 2));
            let facts: &dyn Facts = &facts;
            assert_eq!(facts.kind(&root).map(|entry| (entry.kind, entry.uid)), Ok((Kind::Directory, 1)));
            assert_eq!(facts.real_path(&root).as_deref(), Ok(root.as_path()));
            assert!(
                facts.kind(root.join(".git")).is_err() && facts.read_small(root.join(".git"), 99).is_err()
            );
            assert_eq!(facts.top_level(&root, 9), Ok(Vec::new()));
            assert_eq!(facts.file_system(&root), facts.file_system(dir.path()));
        }
        let facts: &dyn Facts = &Recorded::new(MachineFacts, &root, dir.path(), (1, 2));
        assert!(facts.kind(dir.path()).is_ok());
    }
}
