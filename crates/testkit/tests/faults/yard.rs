//! Two sources with sandboxes on them, the calls that may come next, and what is looked at when all of them have ended.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sandtable_testkit::env::PATH;
use sandtable_testkit::fuzz::Dice;
use sandtable_testkit::process::Run;
use sandtable_testkit::require;
use serde_json::Value;

use crate::ground::Ground;
use crate::remains::remains;
use crate::units;
use crate::victim::{Process, processes};

/// More sandboxes than this are not kept on one source.
const MOST: usize = 5;

pub(crate) struct Yard {
    pub(crate) ground: Ground,
    pub(crate) sources: Vec<Source>,
    /// Begins the name of every sandbox, so that a control group can be known as ours.
    prefix: String,
    count: usize,
    pub(crate) checked_out: usize,
}

pub(crate) struct Source {
    pub(crate) path: PathBuf,
    /// States that were recorded while nothing else ran.
    states: Vec<String>,
}

impl Yard {
    pub(crate) fn new(ground: Ground) -> Self {
        let root = ground.env().root().file_name().unwrap().to_string_lossy().to_lowercase();
        let prefix = root.replace(|letter: char| !letter.is_ascii_alphanumeric(), "");
        let sources = ["git", "plain"].map(|name| {
            let path = ground.env().repository(name);
            units::furnish(&ground, &path);
            if name == "git" {
                ground.env().git(&path, &["add", "-A"]);
                ground.env().git(&path, &["commit", "-q", "-m", "furnished"]);
            } else {
                fs_err::remove_dir_all(path.join(".git")).unwrap();
            }
            Source { path, states: Vec::new() }
        });
        Self { ground, sources: sources.into(), prefix, count: 0, checked_out: 0 }
    }

    /// Copies all of it to where a person can look at it.
    pub(crate) fn keep(&self, round: u64) {
        if let Some(directory) = require::variable("SANDTABLE_FAULTS_KEEP") {
            let to = format!("{directory}/{}-{round}", self.prefix);
            let run = Run::new("cp", self.ground.env().root()).variable("PATH", PATH);
            drop(run.args(["-a", "--", "."]).arg(to).ended());
        }
    }

    fn name(&mut self) -> String {
        self.count += 1;
        format!("{}-{}", self.prefix, self.count)
    }

    fn boxes(&self, source: &Path) -> Vec<String> {
        let listed: Value = serde_json::from_str(&self.ground.done(source, &["ls", "--json"])).unwrap();
        let here = |row: &&Value| row["source"].as_str() == source.to_str();
        let rows = listed["sandboxes"].as_array().unwrap().iter().filter(here);
        rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Between rounds: the user commits and records, and there are sandboxes with work in them, none too many.
    pub(crate) fn prepare(&mut self, at: usize, dice: &mut Dice) {
        let source = self.sources[at].path.clone();
        if source.join(".git").exists() && dice.below(3) == 0 {
            self.count += 1;
            self.ground.env().file(&source.join("user"), format!("{}\n", self.count));
            self.ground.env().git(&source, &["add", "-A"]);
            self.ground.env().git(&source, &["commit", "-q", "-m", "the user's own"]);
        }
        if self.sources[at].states.len() < 2 || dice.below(8) == 0 {
            let id = self.ground.done(&source, &["snapshot", "."]).trim().to_owned();
            self.sources[at].states.push(id);
        }
        let boxes = self.boxes(&source);
        for name in boxes.iter().skip(MOST) {
            self.ground.done(&source, &["rm", "-f", name]);
        }
        if boxes.len() < 2 || dice.below(3) == 0 {
            let word = (dice.below(4) > 0).then_some(self.count);
            let script = units::script(dice.below(units::UNITS), word);
            let mut words = self.ground.run_words();
            let name = self.name();
            words.extend(["-q", "--name", &name].map(str::to_owned));
            if matches!(self.ground, Ground::Native(_)) && dice.below(4) == 0 {
                words.extend(["--mode", "copy"].map(str::to_owned));
            }
            words.extend(["--", "sh", "-c", &script].map(str::to_owned));
            self.ground.done(&source, &words);
        }
    }

    /// The words of a call that may come next on a source.
    pub(crate) fn choose(&mut self, at: usize, dice: &mut Dice) -> Vec<String> {
        let source = self.sources[at].path.clone();
        let boxes = self.boxes(&source);
        let Some(name) = boxes.get(dice.below(boxes.len())).cloned() else { return vec!["ls".to_owned()] };
        let new = self.name();
        let out = self.ground.env().home().join(&new).display().to_string();
        let noise = format!("mkdir -p noise; for n in 1 2 3; do echo $n > noise/{new}-$n; sleep 0.02; done");
        let states = &self.sources[at].states;
        let state = states[dice.below(states.len())].clone();
        let [n, new, out, noise] = [&name, &new, &out, &noise].map(String::as_str);
        let words: &[&str] = match dice.below(21) {
            0 => {
                return [self.ground.run_words(), to_words(&["--name", new, "--", "sh", "-c", noise])]
                    .concat();
            }
            1 | 2 => &["exec", n, "--", "sh", "-c", noise],
            3 => &["snapshot", n],
            4 => &["snapshot", "."],
            5..=7 => &["merge", n, "--approve", "all"],
            8 => &["apply", n, "--approve", "all"],
            9 => &["export", n, "--approve", "all", "--patch", out],
            10 => &["undo", n],
            11 => &["redo", n],
            12 => &["undo", "."],
            13 => &["redo", "."],
            14 => &["rollback", &state, "."],
            15 => {
                let states = self.states_of(&source, n);
                let Some(state) = states.get(dice.below(states.len())) else { return to_words(&["ls"]) };
                return to_words(&["rollback", state, n]);
            }
            16 => {
                return [to_words(&["fork", n, "--name", new]), self.ground.run_words().split_off(1)]
                    .concat();
            }
            17 => &["checkout", n, out],
            18 => &["store", "gc"],
            19 => &["rm", "-f", n],
            _ => &["diff", n],
        };
        to_words(words)
    }

    /// Every state that the store of a source names.
    fn states(&self, source: &Path) -> Vec<String> {
        let store = self.ground.ended(source, &["store", "path"]);
        if store.code != 0 {
            return Vec::new();
        }
        let words = ["--git-dir", store.stdout.trim(), "for-each-ref", "--format=%(refname:lstrip=3)"];
        let listed = self.ground.env().git(source, &[&words[..], &["refs/sandtable/snapshots"]].concat());
        listed.lines().map(str::to_owned).collect()
    }

    /// The states that the operations of a sandbox led to; a collection may have taken some of them.
    fn states_of(&self, source: &Path, name: &str) -> Vec<String> {
        let log: Value = serde_json::from_str(&self.ground.done(source, &["log", "--json", name])).unwrap();
        let operations = log["operations"].as_array().unwrap().iter();
        operations.filter_map(|row| row["after"].as_str().map(str::to_owned)).collect()
    }

    /// Everything that is wrong after a round, at one source.
    pub(crate) fn check(&mut self, at: usize, dice: &mut Dice) -> Vec<String> {
        let source = self.sources[at].path.clone();
        let mut wrong = self.left_running();
        let listed = self.ground.ended(&source, &["ls"]);
        if listed.code != 0 {
            wrong.push(format!("ls: {}", listed.stderr));
            return wrong;
        }
        wrong.extend(units::wrong(&self.ground, &source));
        wrong.extend(remains(&self.ground, &source));
        wrong.extend(self.left_in_kernel());
        let boxes = self.boxes(&source);
        if let Some(name) = boxes.get(dice.below(boxes.len())) {
            wrong.extend(self.check_inside(&source, name));
        }
        let states = self.states(&source);
        if let Some(id) = states.get(dice.below(states.len())) {
            wrong.extend(self.check_state(&source, id));
        }
        wrong
    }

    /// What is looked at once, at the end: every state, every sandbox, and that they can be removed.
    pub(crate) fn close(&mut self) -> Vec<String> {
        let mut wrong = Vec::new();
        for at in 0..self.sources.len() {
            let source = self.sources[at].path.clone();
            for id in self.states(&source) {
                wrong.extend(self.check_state(&source, &id));
            }
            for name in self.boxes(&source) {
                wrong.extend(self.check_inside(&source, &name));
                self.ground.done(&source, &["rm", "-f", &name]);
            }
            let fsck = self.ground.ended(&source, &["store", "fsck", "--deep"]);
            if fsck.code != 0 && !fsck.stderr.contains("[no-states]") {
                wrong.push(format!("store fsck --deep: {} {}", fsck.stdout, fsck.stderr));
            }
        }
        wrong.extend(
            self.ground.left_in_engine().into_iter().map(|line| format!("left in the engine: {line}")),
        );
        wrong
    }

    fn check_inside(&self, source: &Path, name: &str) -> Vec<String> {
        let ended = self.ground.ended(source, &["exec", "-q", name, "--", "sh", "-c", units::SHOW]);
        if ended.code != 0 {
            return vec![format!("exec in {name}: {} {}", ended.code, ended.stderr)];
        }
        let torn = units::torn_inside(&ended.stdout);
        torn.into_iter().map(|unit| format!("in {name}: {unit}")).collect()
    }

    fn check_state(&mut self, source: &Path, id: &str) -> Vec<String> {
        let out = self.ground.env().home().join("check");
        let ended = self.ground.ended(source, &["checkout", id, &out.display().to_string()]);
        self.checked_out += 1;
        let mut wrong = Vec::new();
        if ended.code == 0 {
            wrong.extend(units::torn_files(&out).into_iter().map(|unit| format!("in state {id}: {unit}")));
            let staging = crate::seen::files(&out).into_keys().filter(|path| path.starts_with(".sandtable"));
            wrong.extend(staging.map(|path| format!("in state {id}: {path}")));
        } else {
            wrong.push(format!("checkout {id}: {}", ended.stderr));
        }
        fs_err::remove_dir_all(out).ok();
        if !wrong.is_empty() {
            wrong.extend(self.operations_of(source, id));
        }
        wrong
    }

    /// The operations that led to a state, or began with it.
    fn operations_of(&self, source: &Path, id: &str) -> Vec<String> {
        let log = self.ground.ended(source, &["log", "--json"]);
        let log: Value = serde_json::from_str(&log.stdout).unwrap_or_default();
        let operations = log["operations"].as_array().cloned().unwrap_or_default();
        let concerned = operations.into_iter().filter(|row| row["after"] == *id || row["before"] == *id);
        concerned.map(|row| row.to_string()).collect()
    }

    /// Processes that have not ended soon after everybody was waited for.
    fn left_running(&self) -> Vec<String> {
        let own = std::process::id();
        let ours = |process: &Process| match self.ground {
            Ground::Native(_) => process.id != 1 && process.id != own,
            // An engine keeps processes of its own.
            Ground::Contained(_) => process.runs(self.ground.env().binary()),
        };
        let named = |process: Process| format!("process {} runs", process.name);
        patiently(|| processes().into_iter().filter(ours).map(named).collect())
    }

    /// Mounts and control groups. The daemon of an engine goes on with what a client asked for that was killed.
    fn left_in_kernel(&self) -> Vec<String> {
        match self.ground {
            Ground::Native(_) => self.mounts_and_groups(),
            Ground::Contained(_) => patiently(|| self.mounts_and_groups()),
        }
    }

    fn mounts_and_groups(&self) -> Vec<String> {
        let root = self.ground.env().root().display().to_string();
        let mounts = fs_err::read_to_string("/proc/self/mountinfo").unwrap();
        // Podman, called by root, keeps its own storage mounted.
        let own = |line: &&str| line.contains(&root) && !line.contains(&format!("{root}/p/"));
        let mut left: Vec<String> = mounts.lines().filter(own).map(|line| format!("mount {line}")).collect();
        let mut waiting = vec![PathBuf::from("/sys/fs/cgroup")];
        while let Some(folder) = waiting.pop() {
            let Ok(entries) = fs_err::read_dir(&folder) else { continue };
            for path in entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()) {
                if path.to_string_lossy().contains(&self.prefix) {
                    left.push(format!("control group {}", path.display()));
                }
                waiting.push(path);
            }
        }
        left
    }
}

/// What is still left when it has been looked for again and again for some time.
fn patiently(left: impl Fn() -> Vec<String>) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(15);
    loop {
        let found = left();
        if found.is_empty() || Instant::now() > deadline {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn to_words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
