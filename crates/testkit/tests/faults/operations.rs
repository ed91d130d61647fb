//! Every operation that writes: what comes before it, what it is called with, where its effect shows, and what takes it
//! back.

use std::path::PathBuf;

use sandtable_testkit::env::TestEnv;

use crate::ground::Ground;
use crate::seen::{self, Seen};

/// What the command inside does: files changed, made and removed, a directory that becomes a file and the reverse.
const WORK: &str = "for n in 0 1 2; do echo changed > many/$n/file; mkdir -p many/$n/new; echo new > many/$n/new/er; done; \
                    rm -r many/5; echo 'a file now' > many/5; rm README; mkdir README; echo x > README/in; chmod 755 docs/guide.txt";
/// The same with a commit, and more that is in none.
const COMMITTED: &str = "echo committed > many/4/file; git add -A; \
                         git -c user.name=Inside -c user.email=inside@example.invalid commit -q -m inside; ";
/// And what it does after that.
const MORE: &str = "echo more > many/3/file; rm -r many/0; mkdir -p deep/er; echo y > deep/er/still";

/// A place with one source, made anew for every kill.
pub(crate) struct Scene {
    pub(crate) ground: Ground,
    pub(crate) source: PathBuf,
    /// The main working tree, where the source is a linked one.
    main: Option<PathBuf>,
}

/// What a source is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Git,
    /// A linked working tree of a repository.
    Linked,
    /// A directory without git.
    Plain,
}

/// Where an effect shows.
#[derive(Clone, Copy)]
pub(crate) enum Shows {
    /// In the source.
    Source,
    /// Inside this sandbox; the source stays as it is.
    Inside(&'static str),
    /// In a file of the home directory; the source stays as it is.
    File(&'static str),
    /// In a directory of the home directory; the source stays as it is.
    Directory(&'static str),
    /// In a bundle in the home directory; the source stays as it is.
    Bundle(&'static str),
    /// In no place that a kill could leave half: only the source is looked at, and it stays as it is.
    Nowhere,
}

/// Whose system calls are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Traced {
    /// The process's and its children's.
    All,
    /// The first thread's of the process alone.
    First,
}

pub(crate) struct Operation {
    pub(crate) name: &'static str,
    pub(crate) source: Kind,
    /// Does what comes before, and says what the operation is called with.
    pub(crate) prepare: fn(&Scene) -> Vec<String>,
    pub(crate) shows: Shows,
    /// What leads from the new state to the old one.
    pub(crate) back: Option<&'static str>,
    pub(crate) traced: Traced,
}

impl Scene {
    /// A source with files of every kind, some of them ignored.
    pub(crate) fn new(env: TestEnv, kind: Kind) -> Self {
        let top = env.repository("r");
        for n in 0..6 {
            env.file(&top.join(format!("many/{n}/file")), format!("{n}\n"));
        }
        env.file(&top.join(".gitignore"), ".env\nnode_modules\n");
        env.git(&top, &["add", "-A"]);
        env.git(&top, &["commit", "-q", "-m", "third"]);
        let (source, main) = match kind {
            Kind::Git | Kind::Plain => (top, None),
            Kind::Linked => {
                let linked = env.root().join("linked");
                env.directory(&linked);
                env.git(&top, &["worktree", "add", "-q", "-b", "linked", linked.to_str().unwrap()]);
                (linked, Some(top))
            }
        };
        if kind == Kind::Plain {
            fs_err::remove_dir_all(source.join(".git")).unwrap();
        }
        env.file(&source.join(".env"), "TOKEN=1\n");
        env.file(&source.join("node_modules/m/index.js"), "1\n");
        Self { ground: Ground::Native(env), source, main }
    }

    fn done(&self, words: &[&str]) -> String {
        self.ground.done(&self.source, words)
    }

    fn worked(&self, options: &[&str]) {
        self.done(&[&["run", "-q", "--name", "box"], options, &["--", "sh", "-c", WORK]].concat());
    }

    fn snapshot(&self, of: &str) -> String {
        self.done(&["snapshot", of]).trim().to_owned()
    }

    /// The state of the sandbox after its first command, while a second one has followed.
    fn earlier(&self, options: &[&str]) -> String {
        self.worked(options);
        let id = self.snapshot("box");
        self.done(&["exec", "-q", "box", "--", "sh", "-c", MORE]);
        id
    }

    /// The state of the source, before the user went on working.
    fn earlier_source(&self) -> String {
        let id = self.snapshot(".");
        let env = self.ground.env();
        for n in 0..4 {
            env.file(&self.source.join(format!("many/{n}/file")), "edited\n");
            env.file(&self.source.join(format!("more/{n}/file")), "new\n");
        }
        fs_err::remove_dir_all(self.source.join("many/5")).unwrap();
        self.snapshot(".");
        id
    }

    /// Everything that the operation may change, and the source in any case.
    pub(crate) fn look(&self, shows: Shows) -> Seen {
        let mut seen = seen::files(&self.source);
        seen.extend(seen::git(self.ground.env(), &self.source));
        if let Some(main) = &self.main {
            let files = seen::files(main);
            seen.extend(files.into_iter().map(|(path, what)| (format!("main: {path}"), what)));
        }
        if let Shows::Inside(name) = shows {
            seen.extend(seen::inside(&self.ground, &self.source, name));
        }
        if let Shows::File(name) = shows {
            let text = fs_err::read_to_string(self.ground.env().home().join(name)).unwrap_or_default();
            seen.insert(name.to_owned(), text);
        }
        if let Shows::Directory(name) = shows {
            let files = seen::files(&self.ground.env().home().join(name));
            seen.extend(files.into_iter().map(|(path, what)| (format!("{name}: {path}"), what)));
        }
        if let Shows::Bundle(name) = shows {
            let file = self.ground.env().home().join(name);
            seen.insert(name.to_owned(), seen::bundle(self.ground.env(), &self.source, &file));
        }
        seen
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn merging(scene: &Scene, how: &str) -> Vec<String> {
    scene.worked(&[]);
    words(&[how, "box", "--approve", "all"])
}

fn merging_history(scene: &Scene) -> Vec<String> {
    let script = format!("{COMMITTED}{WORK}");
    scene.done(&["run", "-q", "--name", "box", "--", "sh", "-c", &script]);
    words(&["merge", "box", "--history", "--approve", "all"])
}

/// The user has committed since.
fn merging_onto_another(scene: &Scene) -> Vec<String> {
    let words = merging(scene, "merge");
    let env = scene.ground.env();
    env.file(&scene.source.join("src/main.c"), "int main(void) { return 1; }\n");
    env.git(&scene.source, &["commit", "-q", "-a", "-m", "the user's own"]);
    words
}

/// What a sandbox of the main working tree did, into the linked one.
fn merging_into_linked(scene: &Scene) -> Vec<String> {
    let main = scene.main.as_ref().expect("the source is a linked working tree");
    scene.ground.done(main, &["run", "-q", "--name", "box", "--", "sh", "-c", WORK]);
    words(&["merge", "box", "--into", scene.source.to_str().unwrap(), "--approve", "all"])
}

fn undoing(scene: &Scene) -> Vec<String> {
    scene.ground.done(&scene.source, &merging(scene, "merge"));
    words(&["undo", "."])
}

fn undoing_apply(scene: &Scene) -> Vec<String> {
    scene.ground.done(&scene.source, &merging(scene, "apply"));
    words(&["undo", "."])
}

fn undoing_rollback(scene: &Scene) -> Vec<String> {
    let id = scene.earlier_source();
    scene.done(&["rollback", &id, "."]);
    words(&["undo", "."])
}

/// What was undone just now.
fn redoing(scene: &Scene, undo: &[String]) -> Vec<String> {
    scene.ground.done(&scene.source, undo);
    words(&["redo", "."])
}

fn of_source(name: &'static str, source: Kind, prepare: fn(&Scene) -> Vec<String>) -> Operation {
    let (shows, back, traced) = (Shows::Source, Some("undo"), Traced::All);
    Operation { name, source, prepare, shows, back, traced }
}

fn of_sandbox(name: &'static str, prepare: fn(&Scene) -> Vec<String>) -> Operation {
    let (shows, traced) = (Shows::Inside("box"), Traced::All);
    Operation { name, source: Kind::Git, prepare, shows, back: None, traced }
}

fn of_nothing(name: &'static str, prepare: fn(&Scene) -> Vec<String>) -> Operation {
    Operation { shows: Shows::Nowhere, ..of_sandbox(name, prepare) }
}

/// All of them.
pub(crate) fn table() -> Vec<Operation> {
    [sources(), sandboxes(), others(), exports()].into_iter().flatten().collect()
}

fn sources() -> Vec<Operation> {
    vec![
        of_source("merge", Kind::Git, |scene| merging(scene, "merge")),
        of_source("merge --history", Kind::Git, merging_history),
        of_source("merge onto a branch that moved", Kind::Git, merging_onto_another),
        of_source("merge in a linked worktree", Kind::Linked, |scene| merging(scene, "merge")),
        of_source("merge --into a linked worktree", Kind::Linked, merging_into_linked),
        of_source("apply, git", Kind::Git, |scene| merging(scene, "apply")),
        of_source("apply, plain", Kind::Plain, |scene| merging(scene, "apply")),
        Operation { back: Some("redo"), ..of_source("undo of a merge", Kind::Git, undoing) },
        of_source("redo of a merge", Kind::Git, |scene| redoing(scene, &undoing(scene))),
        Operation { back: Some("redo"), ..of_source("undo of an apply, git", Kind::Git, undoing_apply) },
        Operation { back: Some("redo"), ..of_source("undo of an apply, plain", Kind::Plain, undoing_apply) },
        of_source("redo of an apply, git", Kind::Git, |scene| redoing(scene, &undoing_apply(scene))),
        of_source("redo of an apply, plain", Kind::Plain, |scene| redoing(scene, &undoing_apply(scene))),
        of_source("rollback of a directory, git", Kind::Git, |scene| {
            words(&["rollback", &scene.earlier_source(), "."])
        }),
        of_source("rollback of a directory, plain", Kind::Plain, |scene| {
            words(&["rollback", &scene.earlier_source(), "."])
        }),
        Operation { back: Some("redo"), ..of_source("undo of a rollback", Kind::Git, undoing_rollback) },
        of_source("redo of a rollback", Kind::Plain, |scene| redoing(scene, &undoing_rollback(scene))),
        Operation {
            back: None,
            ..of_source("rollback of a live workspace", Kind::Git, |scene| {
                words(&["rollback", &scene.earlier(&["--mode", "live"]), "box"])
            })
        },
    ]
}

fn sandboxes() -> Vec<Operation> {
    vec![
        of_sandbox("rollback of a sandbox", |scene| words(&["rollback", &scene.earlier(&[]), "box"])),
        of_sandbox("rollback of a copy", |scene| {
            words(&["rollback", &scene.earlier(&["--mode", "copy"]), "box"])
        }),
        of_sandbox("undo in a sandbox", |scene| {
            scene.earlier(&[]);
            words(&["undo", "box"])
        }),
        of_sandbox("undo in a copy", |scene| {
            scene.earlier(&["--mode", "copy"]);
            words(&["undo", "box"])
        }),
        Operation {
            shows: Shows::Inside("twin"),
            ..of_sandbox("fork", |scene| {
                scene.worked(&[]);
                words(&["fork", "box", "--name", "twin"])
            })
        },
        of_sandbox("rm", |scene| {
            scene.worked(&[]);
            words(&["rm", "box"])
        }),
    ]
}

fn others() -> Vec<Operation> {
    vec![
        of_nothing("snapshot of a new directory", |_| words(&["snapshot", "."])),
        of_nothing("snapshot of a directory", |scene| {
            scene.earlier_source();
            scene.ground.env().file(&scene.source.join("many/0/file"), "once more\n");
            words(&["snapshot", "."])
        }),
        of_nothing("snapshot of a sandbox", |scene| {
            scene.worked(&[]);
            words(&["snapshot", "box"])
        }),
        Operation {
            traced: Traced::First,
            ..of_nothing("run", |_| words(&["run", "-q", "--", "sh", "-c", WORK]))
        },
        Operation {
            traced: Traced::First,
            ..of_nothing("exec", |scene| {
                scene.worked(&[]);
                words(&["exec", "-q", "box", "--", "sh", "-c", MORE])
            })
        },
        Operation {
            traced: Traced::First,
            ..of_nothing("exec in a source that moved", |scene| {
                scene.worked(&[]);
                scene.ground.env().file(&scene.source.join("many/4/file"), "edited\n");
                fs_err::remove_dir_all(scene.source.join("docs")).unwrap();
                words(&["exec", "-q", "box", "--", "sh", "-c", MORE])
            })
        },
        of_nothing("gc", |scene| {
            scene.earlier(&[]);
            scene.done(&["rm", "box"]);
            words(&["store", "gc"])
        }),
        of_nothing("checkout", |scene| {
            scene.worked(&[]);
            words(&["checkout", "box", &scene.ground.env().home().join("out").display().to_string()])
        }),
        Operation {
            shows: Shows::Directory("out"),
            ..of_nothing("checkout over an earlier one", |scene| {
                scene.worked(&[]);
                let out = scene.ground.env().home().join("out").display().to_string();
                scene.done(&["checkout", "box", &out]);
                scene.done(&["exec", "-q", "box", "--", "sh", "-c", MORE]);
                words(&["checkout", "box", &out])
            })
        },
    ]
}

fn exports() -> Vec<Operation> {
    vec![
        Operation {
            shows: Shows::Source,
            ..of_nothing("export of a branch", |scene| {
                scene.worked(&[]);
                words(&["export", "box", "--approve", "all", "--branch", "work"])
            })
        },
        Operation {
            shows: Shows::File("work.patch"),
            ..of_nothing("export of a patch", |scene| {
                scene.worked(&[]);
                let file = scene.ground.env().home().join("work.patch").display().to_string();
                words(&["export", "box", "--approve", "all", "--patch", &file])
            })
        },
        Operation {
            shows: Shows::Bundle("work.bundle"),
            ..of_nothing("export of a bundle", |scene| {
                scene.worked(&[]);
                let file = scene.ground.env().home().join("work.bundle").display().to_string();
                words(&["export", "box", "--approve", "all", "--bundle", &file])
            })
        },
    ]
}
