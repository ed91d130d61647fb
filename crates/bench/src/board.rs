//! The rows about states: recording one, bringing one back, looking at what differs. Each contender has a
//! directory of its own and four short scripts: what is made before, what is timed, what is done after each
//! sample so that the next one finds the same work, and what is removed at the end.

use std::path::Path;

use super::catalogue::{LARGEST, Place, short};
use super::measure::Rounds;
use super::peers::words;
use super::row::{Contender, Entry, OURS, Target};

/// What is done to a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A running sandbox is recorded after one file changed.
    Snapshot,
    /// A directory is looked over and recorded after one file changed.
    Again,
    /// A directory that is no repository is recorded for the first time.
    Onboard,
    /// A clean repository is.
    OnboardGit,
    /// A state is written into an empty directory.
    Checkout,
    /// Ten files are brought back.
    Rollback,
    /// Ten changed files are shown.
    Diff,
}

/// All of them, as rows are named.
pub const DEEDS: [(&str, Deed); 7] = [
    ("snapshot", Deed::Snapshot),
    ("snapshot-directory", Deed::Again),
    ("onboard", Deed::Onboard),
    ("onboard-git", Deed::OnboardGit),
    ("checkout", Deed::Checkout),
    ("rollback", Deed::Rollback),
    ("diff", Deed::Diff),
];

/// Peers, as the report names them.
const GIT: &str = "git add, commit";
const GIT_CACHED: &str = "git, untracked cache";
const STATUS: &str = "git status";
const JJ: &str = "jj";
const RESTIC: &str = "restic";
const OSTREE: &str = "ostree";
const COPY: &str = "cp -a";
const WORKTREE: &str = "git worktree add";
const WORKTREE_TWO: &str = "git worktree add, two workers";
const RESET: &str = "git reset --hard";
const GIT_DIFF: &str = "git diff";
const SYNCS: &str = "five fsyncs";

/// More rounds than this say nothing new where one takes seconds.
pub(super) const ROUNDS: Rounds = Rounds { warm_up: 1, timed: 10 };

/// What takes seconds on a large tree takes part in every fifth round, what takes minutes in one.
const SELDOM: usize = 5;
const ONCE: usize = 10;

impl Deed {
    pub(super) fn title(self, files: u32) -> String {
        let what = match self {
            Self::Snapshot => "snapshot of a running sandbox after one changed file",
            Self::Again => "snapshot of a directory after one changed file",
            Self::Onboard => "first snapshot of a directory that is no repository",
            Self::OnboardGit => "first snapshot of a clean repository",
            Self::Checkout => "a state written into an empty directory",
            Self::Rollback => "rollback of ten files",
            Self::Diff => "diff of ten changed files",
        };
        format!("{what}, {} files", short(files))
    }

    pub(super) fn note(self) -> Option<&'static str> {
        match self {
            Self::Snapshot => Some(
                "Ours is frozen while it is recorded, and durable when the command ends; the peers look at a copy of \
                 the tree that nobody changes, and sync what they do by default, but for ostree, which syncs nothing here: \
                 it would sync every file.",
            ),
            Self::Again => Some("The tree is no repository for us; git has its index, cache and version 4."),
            Self::Checkout => Some("Without a repository in it; `cp` copies from a warm tree."),
            Self::Onboard | Self::OnboardGit | Self::Rollback | Self::Diff => None,
        }
    }

    pub(super) fn targets(self) -> Vec<Target> {
        match self {
            Self::Snapshot => vec![
                Target::Over { floor: SYNCS, milliseconds: 10.0 },
                Target::Ratio { peer: GIT, at_most: 1.0 },
                Target::Ratio { peer: JJ, at_most: 1.0 },
            ],
            Self::Again => vec![Target::Ratio { peer: GIT_CACHED, at_most: 1.0 }],
            Self::Onboard => vec![Target::Faster { peer: GIT, at_least: 3.0 }],
            Self::OnboardGit => vec![Target::Ratio { peer: STATUS, at_most: 3.0 }],
            Self::Checkout => vec![
                Target::Ratio { peer: COPY, at_most: 1.1 },
                Target::Faster { peer: WORKTREE_TWO, at_least: 1.3 },
            ],
            Self::Rollback | Self::Diff => Vec::new(),
        }
    }

    pub(super) fn entries(self, place: &Place) -> Vec<Entry> {
        self.lines().iter().map(|line| line.entry(place)).collect()
    }

    fn lines(self) -> Vec<Line> {
        match self {
            Self::Snapshot => snapshot(),
            Self::Again => again(),
            Self::Onboard => onboard(),
            Self::OnboardGit => onboard_git(),
            Self::Checkout => checkout(),
            Self::Rollback => rollback(),
            Self::Diff => diff(),
        }
    }
}

/// One contender as scripts for `sh`, where `$1` is the clean repository, `$2` a directory of its own that
/// does not exist yet, `$3` our executable, and `$4` where trees go that are of no more use.
struct Line {
    name: &'static str,
    /// The program that must be there.
    needs: &'static str,
    every: usize,
    before: &'static str,
    /// Kept running, by us alone.
    beside: Option<&'static str>,
    timed: &'static str,
    after: &'static str,
    end: &'static str,
}

impl Line {
    const fn new(name: &'static str, needs: &'static str) -> Self {
        Self { name, needs, every: 1, before: "", beside: None, timed: "", after: "", end: "gone \"$2\"" }
    }

    fn entry(&self, place: &Place) -> Entry {
        if place.invoke(words(&format!("which {}", self.needs))).output().is_err() {
            return Entry { name: self.name, contender: Err(format!("`{}` is not installed", self.needs)) };
        }
        let own = place.caller.area.join("board").join(self.name.replace([' ', ','], "-"));
        let gone = place.caller.area.join("gone");
        let script = |text: &str| {
            let words = [Path::new("sh"), &place.tree, &own, Path::new(&place.ours), &gone];
            let words = words.map(|path| path.display().to_string());
            place.invoke(
                ["sh".to_owned(), "-c".to_owned(), format!("set -e; {text}")].into_iter().chain(words),
            )
        };
        // What is timed has no need of it.
        let beside = |text: &str| script(&format!("{GONE}; {text}"));
        let contender = Contender {
            setup: vec![
                beside(&format!("{}; mkdir -p \"$2\"", self.end)),
                script(&format!("{IDENTITY}; {}", self.before)),
            ],
            background: self.beside.map(script),
            after: Some(beside(self.after)).filter(|_| !self.after.is_empty()),
            teardown: vec![beside(self.end)],
            every: self.every,
            ..Contender::new(script(self.timed))
        };
        Entry { name: self.name, contender: Ok(contender) }
    }
}

/// Puts trees out of the way instead of removing them: for minutes after a file was removed, ext4 does not give its inode to
/// another and looks at it for every file that is made, so that whoever makes many pays for the one before.
const GONE: &str = "gone() { for g; do \
     [ ! -e \"$g\" ] || { mkdir -p \"$grave\"; mv \"$g\" \"$(mktemp -d \"$grave/XXXXXX\")\"; }; done; }; grave=$4";

/// Removes the trees that a row put out of the way, and waits until ext4 has forgotten them. Only after rows about the
/// largest tree: the others leave little.
pub(super) fn clear(place: &Place, files: u32) {
    let gone = place.caller.area.join("gone");
    if files < LARGEST || !gone.exists() {
        return;
    }
    let script = "chmod -R u+rwX \"$1\"; rm -rf \"$1\"; sync; sleep 61";
    let words = ["sh", "-c", script, "sh"].map(str::to_owned).into_iter();
    // What stays all the same is removed with everything else at the end.
    let _stays = place.invoke(words.chain([gone.display().to_string()])).output();
}

/// So that git and jj commit without asking who we are.
const IDENTITY: &str =
    "git config --global user.name bench; git config --global user.email bench@example.invalid";

/// The tree without its repository.
const PLAIN: &str = "cp -a \"$1\" \"$2/t\"; rm -rf \"$2/t/.git\"";
const ONE_EDIT: &str = "echo x >> \"$2/t/README\"";
const GIT_COMMIT: &str =
    "cd \"$2/t\"; git add -A; git commit-tree -m x -p HEAD \"$(git write-tree)\" > ../last";

fn snapshot() -> Vec<Line> {
    let ours = Line {
        beside: Some(
            "cd \"$1\"; exec \"$3\" run --name bench-snap -q -- sh -c 'while :; do echo x >> README; sleep 0.01; done'",
        ),
        timed: "exec \"$3\" snapshot bench-snap",
        end: "\"$3\" stop --grace 0 bench-snap || true; \"$3\" rm -f bench-snap || true; gone \"$2\"",
        ..Line::new(OURS, "sh")
    };
    let git = Line {
        before: "cp -a \"$1\" \"$2/t\"; cd \"$2/t\"; git status > ../last; echo x >> README",
        timed: GIT_COMMIT,
        after: ONE_EDIT,
        ..Line::new(GIT, "git")
    };
    let syncs = Line {
        timed: "exec perl -MIO::Handle -e 'open F,\">>\",shift; for(1..5){print F 1; F->flush; F->sync}' \"$2/f\"",
        ..Line::new(SYNCS, "perl")
    };
    vec![ours, git, jj(), restic(), ostree(), syncs]
}

fn jj() -> Line {
    Line {
        every: SELDOM,
        before: "cp -a \"$1\" \"$2/t\"; cd \"$2/t\"; jj git init --colocate; echo x >> README",
        timed: "cd \"$2/t\"; exec jj status",
        after: ONE_EDIT,
        ..Line::new(JJ, "jj")
    }
}

fn restic() -> Line {
    Line {
        every: SELDOM,
        before: "cp -a \"$1\" \"$2/t\"; rm -rf \"$2/t/.git\"; echo x > \"$2/key\"; \
                 restic -q -r \"$2/r\" -p \"$2/key\" init; restic -q -r \"$2/r\" -p \"$2/key\" backup \"$2/t\"; \
                 echo x >> \"$2/t/README\"",
        timed: "exec restic -q -r \"$2/r\" -p \"$2/key\" backup \"$2/t\"",
        after: ONE_EDIT,
        ..Line::new(RESTIC, "restic")
    }
}

fn ostree() -> Line {
    Line {
        every: ONCE,
        before: "cp -a \"$1\" \"$2/t\"; rm -rf \"$2/t/.git\"; ostree --repo=\"$2/r\" init --mode=bare-user; \
                 ostree --repo=\"$2/r\" config set core.fsync false; ostree --repo=\"$2/r\" commit -b b --tree=dir=\"$2/t\"; echo x >> \"$2/t/README\"",
        timed: "exec ostree --repo=\"$2/r\" commit -b b --tree=dir=\"$2/t\"",
        after: ONE_EDIT,
        ..Line::new(OSTREE, "ostree")
    }
}

fn again() -> Vec<Line> {
    let ours = Line {
        before: "cp -a \"$1\" \"$2/t\"; rm -rf \"$2/t/.git\"; sleep 1.1; \"$3\" onboard \"$2/t\"; \
                 echo x >> \"$2/t/README\"",
        timed: "exec \"$3\" snapshot \"$2/t\"",
        after: ONE_EDIT,
        ..Line::new(OURS, "sh")
    };
    let git = Line {
        before: "cp -a \"$1\" \"$2/t\"; cd \"$2/t\"; git config core.untrackedCache true; \
                 git update-index --index-version 4 --untracked-cache; git status > ../last; echo x >> README",
        timed: GIT_COMMIT,
        after: ONE_EDIT,
        ..Line::new(GIT_CACHED, "git")
    };
    vec![ours, git, jj(), restic(), ostree()]
}

/// Removes what was recorded, so that the next time is a first time.
const FORGET: &str =
    "chmod -R u+w \"$XDG_DATA_HOME/sandtable/stores\"; rm -rf \"$XDG_DATA_HOME/sandtable/stores\"";

fn onboard() -> Vec<Line> {
    let ours =
        Line { before: PLAIN, timed: "exec \"$3\" onboard \"$2/t\"", after: FORGET, ..Line::new(OURS, "sh") };
    let git = Line {
        every: SELDOM,
        before: PLAIN,
        timed: "cd \"$2/t\"; git init -q; git add -A; exec git -c gc.auto=0 commit -q -m x",
        after: "gone \"$2/t/.git\"",
        ..Line::new(GIT, "git")
    };
    let jj = Line {
        every: SELDOM,
        before: PLAIN,
        timed: "cd \"$2/t\"; jj git init; exec jj status",
        after: "gone \"$2/t/.git\" \"$2/t/.jj\"",
        ..Line::new(JJ, "jj")
    };
    let restic = Line {
        every: SELDOM,
        before: "cp -a \"$1\" \"$2/t\"; rm -rf \"$2/t/.git\"; echo x > \"$2/key\"",
        timed: "restic -q -r \"$2/r\" -p \"$2/key\" init; exec restic -q -r \"$2/r\" -p \"$2/key\" backup \"$2/t\"",
        after: "gone \"$2/r\"",
        ..Line::new(RESTIC, "restic")
    };
    let ostree = Line {
        every: ONCE,
        before: PLAIN,
        timed: "ostree --repo=\"$2/r\" init --mode=bare-user; ostree --repo=\"$2/r\" config set core.fsync false; \
                exec ostree --repo=\"$2/r\" commit -b b --tree=dir=\"$2/t\"",
        after: "gone \"$2/r\"",
        ..Line::new(OSTREE, "ostree")
    };
    vec![ours, git, jj, restic, ostree]
}

fn onboard_git() -> Vec<Line> {
    let ours = Line { timed: "exec \"$3\" onboard \"$1\"", after: FORGET, ..Line::new(OURS, "sh") };
    let git = Line { timed: "cd \"$1\"; exec git status", ..Line::new(STATUS, "git") };
    vec![ours, git]
}

fn checkout() -> Vec<Line> {
    let away = "gone \"$2/new\"";
    let ours = Line {
        every: 2,
        before: "\"$3\" onboard \"$1\" > \"$2/id\"",
        timed: "exec \"$3\" checkout \"$(head -n 1 \"$2/id\")\" \"$2/new\"",
        after: away,
        ..Line::new(OURS, "sh")
    };
    let copy = Line {
        every: 2,
        before: PLAIN,
        timed: "exec cp -a \"$2/t\" \"$2/new\"",
        after: away,
        ..Line::new(COPY, "cp")
    };
    let git = |name, timed| Line {
        every: SELDOM,
        before: "cp -a \"$1\" \"$2/t\"",
        timed,
        after: "cd \"$2/t\"; gone \"$2/new\"; git worktree prune",
        ..Line::new(name, "git")
    };
    let one = git(WORKTREE, "cd \"$2/t\"; exec git worktree add -q --detach \"$2/new\"");
    let two = git(
        WORKTREE_TWO,
        "cd \"$2/t\"; exec git -c checkout.workers=2 -c checkout.thresholdForParallelism=0 worktree add -q --detach \"$2/new\"",
    );
    vec![ours, copy, one, two]
}

fn rollback() -> Vec<Line> {
    let ours = Line {
        before: "cd \"$1\"; \"$3\" rm -f bench-back || true; \"$3\" run --name bench-back -q -- true; \
                 \"$3\" snapshot bench-back > \"$2/old\"; \
                 \"$3\" exec -q bench-back -- sh -c 'for f in part-000/module-00000/file-00000?.c; do echo x >> $f; done'; \
                 \"$3\" snapshot bench-back > \"$2/new\"",
        timed: "exec \"$3\" rollback \"$(head -n 1 \"$2/old\")\" bench-back",
        after: "\"$3\" rollback \"$(head -n 1 \"$2/new\")\" bench-back",
        end: "\"$3\" rm -f bench-back || true; gone \"$2\"",
        ..Line::new(OURS, "sh")
    };
    let git = Line {
        before: "cp -a \"$1\" \"$2/t\"; cd \"$2/t\"; git status > ../last; \
                 for f in part-000/module-00000/file-00000?.c; do echo x >> $f; done; git commit -qam x",
        timed: "cd \"$2/t\"; exec git reset -q --hard HEAD~1",
        after: "cd \"$2/t\"; git reset -q --hard 'HEAD@{1}'",
        ..Line::new(RESET, "git")
    };
    vec![ours, git]
}

fn diff() -> Vec<Line> {
    let ours = Line {
        before: "cd \"$1\"; \"$3\" rm -f bench-diff || true; \"$3\" run --name bench-diff -q -- \
                 sh -c 'for f in part-000/module-00000/file-00000?.c; do echo x >> $f; done'",
        timed: "exec \"$3\" diff bench-diff",
        end: "\"$3\" rm -f bench-diff || true; gone \"$2\"",
        ..Line::new(OURS, "sh")
    };
    let git = Line {
        before: "cp -a \"$1\" \"$2/t\"; cd \"$2/t\"; git status > ../last; \
                 for f in part-000/module-00000/file-00000?.c; do echo x >> $f; done",
        timed: "cd \"$2/t\"; exec git diff",
        ..Line::new(GIT_DIFF, "git")
    };
    vec![ours, git]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_promise_names_a_contender_of_its_row() {
        for (name, deed) in DEEDS {
            let names: Vec<_> = deed.lines().iter().map(|line| line.name).collect();
            assert!(names.contains(&OURS), "{name}");
            for target in deed.targets() {
                let (Target::Ratio { peer, .. }
                | Target::Faster { peer, .. }
                | Target::Over { floor: peer, .. }) = target
                else {
                    continue;
                };
                assert!(names.contains(&peer), "{name}: {peer}");
            }
        }
    }
}
