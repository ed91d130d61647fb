//! The rows: which work, at which size, for whom, against whom, with which promise. To add a row, add a
//! variant of [`Work`] and the function that builds it.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::board::{DEEDS, Deed};
use super::lab::{Lab, Maybe};
use super::measure::{Rounds, measure};
use super::outcome::RowOutcome;
use super::peers::{CODEX, SRT, bwrap_like, bwrap_minimal, unshare, words};
use super::process::{Caller, Invocation};
use super::row::{Contender, Entry, OURS, Row, Target};
use super::tree::grow;
use super::{board, jobs, memory, merging, size};

/// Bubblewrap's two lines, the containers, and git, as the report names them.
pub const LIKE: &str = "bwrap, like for like";
pub const MINIMAL: &str = "bwrap, minimal";
const UNSHARE: &str = "unshare";
const DOCKER: &str = "docker";
const PODMAN: &str = "podman";
const GIT: &str = "git status";
const OURS_UNLOADED: &str = "sandtable, no extra mount";
const LIKE_UNLOADED: &str = "bwrap, no extra mount";

/// Mounts of the row with many, sandboxes of the row with many at once.
const MANY: usize = 100;
/// Slow contenders take part in every fifth round.
const SELDOM: usize = 5;
/// The size that a tree may be given for.
pub const LARGEST: u32 = 78_000;
/// The size where the number of files is not the subject.
const USUAL: u32 = 10_000;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Start { files: u32 },
    Mounts,
    Burst,
    Capture { files: u32 },
    ExecRunning,
    ExecStopped,
    Merge,
    Compile,
    Pipe { megabytes: u32 },
    Memory { idle: u32 },
    Board { deed: Deed, files: u32 },
    Size { snapshots: u32 },
}

impl Work {
    /// Files in the workspace.
    fn files(self) -> u32 {
        match self {
            Self::Start { files } | Self::Capture { files } | Self::Board { files, .. } => files,
            Self::Compile => jobs::SOURCES,
            Self::Mounts
            | Self::Burst
            | Self::ExecRunning
            | Self::ExecStopped
            | Self::Merge
            | Self::Pipe { .. }
            | Self::Memory { .. }
            | Self::Size { .. } => USUAL,
        }
    }

    /// The last part of the id of a row that exists at several sizes.
    fn size(self) -> String {
        match self {
            Self::Start { files } | Self::Capture { files } | Self::Board { files, .. } => {
                format!("/{}", short(files))
            }
            _ => String::new(),
        }
    }
}

/// How large the work is.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Files in the workspaces of the rows that grow.
    pub files: &'static [u32],
    /// What goes through the pipe.
    pub megabytes: u32,
    /// Sandboxes that are held at once.
    pub idle: u32,
    /// Snapshots of the row about their size.
    pub snapshots: u32,
}

/// A row that can be built.
#[derive(Clone, Debug)]
pub struct Item {
    pub id: String,
    pub work: Work,
    pub caller: &'static str,
}

/// All rows, in the order of the report.
pub fn catalogue(extent: Extent) -> Vec<Item> {
    let mut items = Vec::new();
    for caller in ["root", "user"] {
        let mut add = |kind: &str, work: Work| {
            items.push(Item { id: format!("{kind}/{caller}{}", work.size()), work, caller });
        };
        for &files in extent.files {
            add("start", Work::Start { files });
        }
        add("mounts", Work::Mounts);
        add("burst", Work::Burst);
        for &files in extent.files {
            add("capture", Work::Capture { files });
        }
        add("exec-running", Work::ExecRunning);
        add("exec-stopped", Work::ExecStopped);
        add("merge", Work::Merge);
        add("compile", Work::Compile);
        add("pipe", Work::Pipe { megabytes: extent.megabytes });
        add("memory", Work::Memory { idle: extent.idle });
        for (kind, deed) in DEEDS {
            for &files in extent.files {
                add(kind, Work::Board { deed, files });
            }
        }
        add("store-size", Work::Size { snapshots: extent.snapshots });
    }
    items
}

/// `78k` for 78,000.
pub fn short(files: u32) -> String {
    if files.is_multiple_of(1000) { format!("{}k", files / 1000) } else { files.to_string() }
}

/// Builds a row and measures it.
pub fn outcome(lab: &mut Lab, item: &Item, rounds: Rounds) -> RowOutcome {
    let rounds = match item.work {
        Work::Board { .. } => board::ROUNDS.at_most(rounds),
        _ => rounds,
    };
    let mut outcome = measure(&build(lab, item), rounds);
    if let Work::Board { files, .. } = item.work
        && let Ok(place) = place(lab, item)
    {
        board::clear(&place, files);
    }
    if let Work::Memory { idle } = item.work
        && let Ok(place) = place(lab, item)
    {
        let (entries, targets) = memory::measure(&place, idle);
        outcome = RowOutcome { unit: "KiB", entries, targets, ..outcome };
    }
    if let Work::Size { snapshots } = item.work
        && let Ok(place) = place(lab, item)
    {
        let (entries, targets) = size::measure(&place, snapshots);
        outcome = RowOutcome { unit: "KiB", entries, targets, ..outcome };
    }
    outcome
}

/// Makes what the row needs. A row whose workspace or caller is missing has nothing but the reason.
fn build(lab: &mut Lab, item: &Item) -> Row {
    let place = place(lab, item);
    let entries = match &place {
        Ok(place) => entries(lab, place, item.work),
        Err(reason) => vec![Entry { name: OURS, contender: Err(reason.clone()) }],
    };
    Row {
        id: item.id.clone(),
        title: format!("{}, as {}", title(item.work), item.caller),
        note: note(item.work),
        files: Some(item.work.files()),
        entries,
        targets: targets(item.work),
    }
}

fn place(lab: &Lab, item: &Item) -> Maybe<Place> {
    let caller = lab.caller(item.caller)?;
    let tree = match item.work {
        Work::Compile => jobs::sources(&caller)?,
        work if work.files() == LARGEST => grow(&caller, LARGEST, lab.large())?,
        work => grow(&caller, work.files(), None)?,
    };
    Ok(Place { ours: lab.sandtable(), caller, tree })
}

/// Where and by whom a row is run.
pub(super) struct Place {
    pub(super) ours: String,
    pub(super) caller: Rc<Caller>,
    pub(super) tree: PathBuf,
}

impl Place {
    pub(super) fn invoke(&self, argv: impl IntoIterator<Item = String>) -> Invocation {
        self.caller.invoke(&self.tree, argv)
    }

    /// Our own command line, its last part given as a list because it may need quotes.
    pub(super) fn ours(&self, line: &str, rest: &[&str]) -> Invocation {
        let rest = rest.iter().map(|word| (*word).to_owned());
        self.invoke([self.ours.clone()].into_iter().chain(words(line)).chain(rest))
    }
}

fn title(work: Work) -> String {
    match work {
        Work::Start { files } => format!("start and end of a sandbox, {} files", short(files)),
        Work::Mounts => format!("start with {MANY} extra read-only mounts"),
        Work::Burst => format!("{MANY} sandboxes at once, until all have ended"),
        Work::Capture { files } => format!("run that changes one file, with capture, {} files", short(files)),
        Work::ExecRunning => "exec into a running sandbox".to_owned(),
        Work::ExecStopped => "exec into a stopped sandbox".to_owned(),
        Work::Merge => "merge of ten changed files with a branch that has moved".to_owned(),
        Work::Compile => format!("compile job of {} C files", jobs::SOURCES),
        Work::Pipe { megabytes } => format!("{megabytes} MB from a pipe through a sandbox to a pipe"),
        Work::Memory { idle } => format!("memory (PSS) of each of {idle} idle sandboxes"),
        Work::Board { deed, files } => deed.title(files),
        Work::Size { snapshots } => format!("what {snapshots} snapshots of ten edits each take on disk"),
    }
}

fn note(work: Work) -> Option<&'static str> {
    match work {
        Work::Start { .. } => Some(
            "Our workspace is a copy-on-write layer; the packaged bubblewrap has none and binds the tree itself. \
             Containers run a one-program image without the tree. srt and Codex have their own defaults.",
        ),
        Work::Mounts => Some("The difference to the lines without extra mounts is what the mounts cost."),
        Work::Burst => None,
        Work::Capture { .. } => Some(
            "The state is recorded and durable when the command ends. The first run of a source also records what \
             it stands on; here the source is known already.",
        ),
        Work::ExecRunning | Work::ExecStopped => Some("No target; for orientation."),
        Work::Merge => Some(
            "Ours looks the work over, checks its objects strictly, and can be undone; both leave commit, index and files.",
        ),
        Work::Compile => Some(
            "The whole run is timed, with the start and the end of the sandbox. On the host every round compiles \
             in a fresh copy of the sources.",
        ),
        Work::Pipe { .. } => Some(
            "Every round counts the bytes at the end; a missing one fails the row. The line with a session of its \
             own shows what the kernel's grouping of sessions (`sched_autogroup_enabled`) costs without a sandbox.",
        ),
        Work::Memory { .. } => Some("One look while all are held; each sandbox is one sample."),
        Work::Board { deed, .. } => deed.note(),
        Work::Size { .. } => Some("One look, after the maintenance of each; the first state is part of it."),
    }
}

fn targets(work: Work) -> Vec<Target> {
    match work {
        Work::Start { .. } => vec![
            Target::Ratio { peer: LIKE, at_most: 1.0 },
            Target::Ratio { peer: MINIMAL, at_most: 1.4 },
            Target::Faster { peer: DOCKER, at_least: 30.0 },
            Target::Faster { peer: PODMAN, at_least: 30.0 },
            Target::Ratio { peer: SRT, at_most: 1.0 },
            Target::Ratio { peer: CODEX, at_most: 1.0 },
        ],
        Work::Mounts => vec![
            Target::Ratio { peer: LIKE, at_most: 1.0 },
            Target::Ratio { peer: OURS_UNLOADED, at_most: super::growth::FLAT },
            Target::Added { unloaded: OURS_UNLOADED, peer: LIKE, peer_unloaded: LIKE_UNLOADED, at_most: 1.0 },
        ],
        Work::Burst => vec![Target::Within { milliseconds: 1000.0 }],
        Work::Capture { .. } => vec![Target::Ratio { peer: GIT, at_most: 2.0 }],
        Work::ExecRunning | Work::ExecStopped | Work::Memory { .. } | Work::Size { .. } => Vec::new(),
        Work::Board { deed, .. } => deed.targets(),
        Work::Merge => vec![Target::Ratio { peer: merging::GIT, at_most: 1.5 }],
        Work::Compile => vec![Target::Ratio { peer: jobs::HOST, at_most: 1.03 }],
        Work::Pipe { .. } => vec![Target::Ratio { peer: jobs::CAT, at_most: 1.1 }],
    }
}

fn entries(lab: &mut Lab, place: &Place, work: Work) -> Vec<Entry> {
    match work {
        Work::Start { .. } => start(lab, place),
        Work::Mounts => mounts(place),
        Work::Burst => burst(place),
        Work::Capture { .. } => capture(place),
        Work::ExecRunning => exec_running(lab, place),
        Work::ExecStopped => exec_stopped(lab, place),
        Work::Merge => merging::merge(place),
        Work::Compile => jobs::compile(place),
        Work::Pipe { megabytes } => jobs::pipe(place, megabytes),
        Work::Board { deed, .. } => deed.entries(place),
        // Nothing of them is timed.
        Work::Memory { .. } | Work::Size { .. } => Vec::new(),
    }
}

fn start(lab: &mut Lab, place: &Place) -> Vec<Entry> {
    let run = |engine: Engine| {
        engine.contender(|engine| place.invoke(engine.say("run --rm --network none", &["true"])))
    };
    vec![
        ready(OURS, place.ours("run --rm -q -- /bin/true", &[])),
        ready(LIKE, place.invoke(bwrap_like(&place.caller, &place.tree, &[]))),
        ready(MINIMAL, place.invoke(bwrap_minimal())),
        ready(UNSHARE, place.invoke(unshare())),
        Entry { name: DOCKER, contender: docker(lab).map(run) },
        Entry { name: PODMAN, contender: podman(lab, place).map(run) },
        agent(lab, place, (SRT, "/bin/true")),
        agent(lab, place, (CODEX, "sandbox -- /bin/true")),
    ]
}

/// The sandbox of another agent with its own defaults.
fn agent(lab: &Lab, place: &Place, (name, line): (&'static str, &str)) -> Entry {
    let contender = lab.npm(name).map(|program| {
        let command = place.invoke([program].into_iter().chain(words(line)));
        Contender { every: SELDOM, ..Contender::new(command) }
    });
    Entry { name, contender }
}

fn mounts(place: &Place) -> Vec<Entry> {
    let extra = match extra_directories(&place.caller.area.join("extra")) {
        Ok(extra) => extra,
        Err(error) => return vec![Entry { name: OURS, contender: Err(error.to_string()) }],
    };
    let options: Vec<_> = extra
        .iter()
        .map(|path| path.display())
        .flat_map(|path| ["-v".to_owned(), format!("{path}:{path}:ro")])
        .collect();
    let loaded = [place.ours.clone()].into_iter().chain(words("run --rm -q")).chain(options);
    vec![
        ready(OURS, place.invoke(loaded.chain(words("-- /bin/true")))),
        ready(OURS_UNLOADED, place.ours("run --rm -q -- /bin/true", &[])),
        ready(LIKE, place.invoke(bwrap_like(&place.caller, &place.tree, &extra))),
        ready(LIKE_UNLOADED, place.invoke(bwrap_like(&place.caller, &place.tree, &[]))),
    ]
}

fn extra_directories(parent: &Path) -> std::io::Result<Vec<PathBuf>> {
    let make = |number| {
        let path = parent.join(format!("{number:03}"));
        fs_err::create_dir_all(&path).map(|()| path)
    };
    (0..MANY).map(make).collect()
}

fn burst(place: &Place) -> Vec<Entry> {
    let many = |name, command| {
        let contender = Contender { copies: MANY, every: SELDOM, ..Contender::new(command) };
        Entry { name, contender: Ok(contender) }
    };
    vec![
        many(OURS, place.ours("run --rm -q -- /bin/true", &[])),
        many(LIKE, place.invoke(bwrap_like(&place.caller, &place.tree, &[]))),
        many(MINIMAL, place.invoke(bwrap_minimal())),
    ]
}

fn capture(place: &Place) -> Vec<Entry> {
    let run = place.ours("run --name bench-capture -q -- sh -c", &["echo x >> README"]);
    let ours = Contender { after: Some(place.ours("rm bench-capture", &[])), ..Contender::new(run) };
    vec![Entry { name: OURS, contender: Ok(ours) }, ready(GIT, place.invoke(words("git status")))]
}

fn exec_running(lab: &mut Lab, place: &Place) -> Vec<Entry> {
    let ours = Contender {
        background: Some(place.ours("run --name bench-live -q -- sleep 3600", &[])),
        teardown: vec![place.ours("stop bench-live", &[]), place.ours("rm bench-live", &[])],
        ..Contender::new(place.ours("exec bench-live -- /bin/true", &[]))
    };
    let exec = |engine: Engine| {
        let run = engine.say("run --detach --network none --name NAME", &["sleep", "3600"]);
        let setup = vec![place.invoke(run)];
        let teardown = vec![place.invoke(engine.bare("rm --force NAME"))];
        let contender = engine.contender(|engine| place.invoke(engine.bare("exec NAME true")));
        Contender { setup, teardown, ..contender }
    };
    vec![
        Entry { name: OURS, contender: Ok(ours) },
        Entry { name: DOCKER, contender: docker(lab).map(exec) },
        Entry { name: PODMAN, contender: podman(lab, place).map(exec) },
    ]
}

fn exec_stopped(lab: &mut Lab, place: &Place) -> Vec<Entry> {
    let ours = Contender {
        setup: vec![place.ours("run --name bench-still -q -- /bin/true", &[])],
        teardown: vec![place.ours("rm bench-still", &[])],
        ..Contender::new(place.ours("exec bench-still -- /bin/true", &[]))
    };
    let start = |engine: Engine| {
        let setup = vec![place.invoke(engine.say("create --network none --name NAME", &["true"]))];
        let teardown = vec![place.invoke(engine.bare("rm --force NAME"))];
        let contender = engine.contender(|engine| place.invoke(engine.bare("start --attach NAME")));
        Contender { setup, teardown, ..contender }
    };
    vec![
        Entry { name: OURS, contender: Ok(ours) },
        Entry { name: DOCKER, contender: docker(lab).map(start) },
        Entry { name: PODMAN, contender: podman(lab, place).map(start) },
    ]
}

/// A container engine with an image to run.
struct Engine {
    prefix: Vec<String>,
    image: String,
}

impl Engine {
    fn contender(&self, command: impl FnOnce(&Self) -> Invocation) -> Contender {
        Contender { every: SELDOM, ..Contender::new(command(self)) }
    }

    /// A subcommand that takes the image and a command to run in it.
    fn say(&self, line: &str, command: &[&str]) -> Vec<String> {
        let mut argv = self.bare(line);
        argv.push(self.image.clone());
        argv.extend(command.iter().map(|word| (*word).to_owned()));
        argv
    }

    /// `NAME` in the line stands for the one container this run has at a time.
    fn bare(&self, line: &str) -> Vec<String> {
        let line = line.replace("NAME", &self.image.replace(':', "-"));
        self.prefix.iter().cloned().chain(words(&line)).collect()
    }
}

fn docker(lab: &mut Lab) -> Maybe<Engine> {
    lab.docker().map(|image| Engine { prefix: vec!["docker".to_owned()], image })
}

fn podman(lab: &mut Lab, place: &Place) -> Maybe<Engine> {
    lab.podman(&place.caller).map(|(prefix, image)| Engine { prefix, image })
}

pub(super) fn ready(name: &'static str, command: Invocation) -> Entry {
    Entry { name, contender: Ok(Contender::new(command)) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_has_an_id_of_its_own_for_both_callers() {
        let items = catalogue(Extent { files: &[1000, 78_000], megabytes: 256, idle: 50, snapshots: 100 });
        let ids: BTreeSet<_> = items.iter().map(|item| item.id.as_str()).collect();
        assert_eq!(ids.len(), items.len());
        for id in [
            "start/root/1k",
            "start/user/78k",
            "burst/root",
            "capture/user/1k",
            "merge/user",
            "compile/user",
            "pipe/root",
        ] {
            assert!(ids.contains(id), "{id}");
        }
    }

    #[test]
    fn sizes_are_short_where_they_can_be() {
        assert_eq!([short(1000), short(78_000), short(1234)], ["1k", "78k", "1234"]);
    }
}
