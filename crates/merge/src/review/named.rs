//! Files of the worktree that the user's own git configuration names: hooks, included settings, filters and other commands;
//! and those that links outside of the worktree lead to, where git or other programs read them. The configuration is a list of words here; nothing in it is run.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use sandtable_sandbox::model::path::HostPath;
use sandtable_store::RelPath;
use sandtable_store::wildcard::{Syntax, matches};

use super::git_dir::{GitDirs, links};
use super::home::{self, Read, Sort};
use super::leads::{plain, spellings};
use super::name::is_dot_git;
use super::pattern::Folded;
use super::rules::{Described, Names, RULES};
use super::words::{self, Word};
use crate::request::Means;
use crate::target::{Repository, Settings, Target, Value};

/// The configuration of as many submodules is read.
const MODULES: usize = 64;

/// A command enters as many directories.
const FOLDERS: usize = 8;

/// A place in the worktree that a setting names.
#[derive(Clone, Debug)]
pub struct Place {
    at: Folded,
    names: Names,
    setting: String,
    described: &'static Described,
}

impl Place {
    /// Whether it is this path, or a directory above it that the setting means with all that is in it.
    pub(super) fn covers(&self, path: &Folded) -> bool {
        match self.names {
            Names::Path | Names::FromGit => path.names().starts_with(self.at.names()),
            Names::Command | Names::Alias => words::is_run_by(&self.at, path),
        }
    }

    /// Whether a path is on the way to it.
    pub(super) fn is_below(&self, path: &Folded) -> bool {
        self.at.names().len() > path.names().len() && self.at.names().starts_with(path.names())
    }

    pub(super) fn setting(&self) -> &str {
        &self.setting
    }

    pub(super) const fn described(&self) -> &'static Described {
        self.described
    }
}

/// Where the paths in settings begin.
#[derive(Clone, Copy)]
struct Start<'a> {
    /// The top of the worktree that places are looked for in.
    root: &'a Path,
    /// Where commands run: the same, or the top of a submodule.
    top: &'a Path,
    git: &'a Path,
    home: Option<&'a Path>,
    /// What git makes of the first part of a path: the home directory of another user, or where git was installed.
    by_git: &'a dyn Fn(&str) -> Option<PathBuf>,
}

/// All places that something of the user's outside of the worktree names or leads to.
pub fn places(target: &Target, means: &Means) -> Vec<Place> {
    let Some(root) = target.root().map(HostPath::as_path) else { return Vec::new() };
    let mut found = of_home(means, root);
    if let Target::Repository(repository) = target {
        found.extend(of_repository(repository, root, means));
    }
    found
}

/// What the home directory leads to. The whole of the worktree is meant only by a name that programs read, not by any
/// that begins with a dot.
fn of_home(means: &Means, root: &Path) -> Vec<Place> {
    let place = |Read { name, sort, spellings }: Read| {
        let paths = below(spellings, root).into_iter().filter(|path| sort == Sort::Known || !path.is_root());
        whole(paths, &name, &RULES.host("home").described)
    };
    home::read(means, root).into_iter().flat_map(place).collect()
}

/// What the settings of a repository name, and links in its git directory.
fn of_repository(repository: &Repository, root: &Path, means: &Means) -> Vec<Place> {
    let start = Start {
        root,
        top: root,
        git: &repository.common_dir,
        home: means.home.as_ref().map(HostPath::as_path),
        by_git: &|part| asked(means, &repository.git_dir, part),
    };
    let dirs = GitDirs::of(&repository.git_dir, &repository.common_dir);
    let mut found = of_settings(&repository.settings, &start);
    found.extend(of_files(&repository.settings, &means.own_configuration(), &start));
    found.extend(dirs.links.iter().flat_map(|link| of_link(link, &start)));
    found.extend(dirs.modules.iter().take(MODULES).flat_map(|module| of_module(module, means, &start)));
    found
}

/// What git makes of a path in a setting. It knows the users of the system, wherever they are listed.
fn asked(means: &Means, git_dir: &Path, part: &str) -> Option<PathBuf> {
    const NAME: &str = "sandtable.path";
    let call = means.git.call(git_dir).shortly().setting(NAME, &format!("{part}/"));
    let answer = call.args(["config", "--type=path", "-z", "--get", NAME]).output().ok()?;
    let path = PathBuf::from(OsStr::from_bytes(answer.strip_suffix(b"\0")?));
    path.is_absolute().then_some(path)
}

/// What the configuration of a submodule names in the worktree around it. Git asks for no more of one that is not in order.
fn of_module(git_dir: &Path, means: &Means, start: &Start<'_>) -> Vec<Place> {
    let Ok(settings) = Settings::read(means, git_dir) else { return Vec::new() };
    let top = git_dir.join(settings.get("core.worktree").unwrap_or_default());
    let start = Start { top: &plain(&top), git: git_dir, ..*start };
    [of_settings(&settings, &start), of_files(&settings, &[], &start)].concat()
}

/// What a link in the git directory leads to.
fn of_link(link: &Path, start: &Start<'_>) -> Vec<Place> {
    whole(beneath(link, start.root), link, &RULES.host("git-directory").described)
}

/// Paths with all that is below them, which something of the user's leads to.
fn whole(paths: impl IntoIterator<Item = RelPath>, from: &Path, described: &'static Described) -> Vec<Place> {
    let place = |path: RelPath| Place {
        at: Folded::new(&path),
        names: Names::Path,
        setting: from.to_string_lossy().into_owned(),
        described,
    };
    paths.into_iter().filter(|path| !in_git_directory(path)).map(place).collect()
}

/// Nothing is ever brought there.
fn in_git_directory(path: &RelPath) -> bool {
    path.components().next().is_some_and(is_dot_git)
}

/// The files that are configuration, where a link or a variable has them in the worktree. They are what files are that one
/// of them includes.
fn of_files(settings: &Settings, own: &[PathBuf], start: &Start<'_>) -> Vec<Place> {
    let Some(rule) = RULES.setting.iter().find(|rule| rule.names == Names::FromGit) else {
        return Vec::new();
    };
    let read = settings.all().filter_map(|(_, value)| value.file.as_deref());
    let files: BTreeSet<&Path> = read.chain(own.iter().map(PathBuf::as_path)).collect();
    let place = |file: &Path| {
        let setting = file.to_string_lossy().into_owned();
        let found = beneath(file, start.root).into_iter().filter(|path| !path.is_root());
        let one = move |path: RelPath| Place {
            at: Folded::new(&path),
            names: rule.names,
            setting: setting.clone(),
            described: &rule.described,
        };
        found.map(one).collect::<Vec<_>>()
    };
    files.into_iter().flat_map(place).collect()
}

fn of_settings(settings: &Settings, start: &Start<'_>) -> Vec<Place> {
    let mut found = Vec::new();
    for rule in &RULES.setting {
        let wanted = |name: &str| rule.settings.iter().any(|pattern| matches(pattern, name, Syntax::Star));
        for (setting, value) in settings.all().filter(|(name, _)| wanted(&name.to_lowercase())) {
            for path in paths(rule.names, value, start) {
                let (at, setting) = (Folded::new(&path), setting.to_owned());
                found.push(Place { at, names: rule.names, setting, described: &rule.described });
            }
        }
    }
    found
}

/// What a value names below the worktree. As a link on the host may lead there, what is on disk counts as well.
fn paths(names: Names, value: &Value, start: &Start<'_>) -> Vec<RelPath> {
    let (value, file) = (value.text.as_str(), value.file.as_deref());
    let from = |from: &Path| from.join(expanded(value, start));
    match names {
        Names::Path => {
            let path = from(start.top);
            let links = links(&path).into_iter().flat_map(|link| beneath(&link, start.root));
            beneath(&path, start.root).into_iter().chain(links).collect()
        }
        // From the file that says so, which may be an included one itself.
        Names::FromGit => beneath(&from(file.and_then(Path::parent).unwrap_or(start.git)), start.root),
        Names::Alias if !words::runs(value) => Vec::new(),
        Names::Command | Names::Alias => of_command(value, start),
    }
}

/// The files that a command line may mean.
fn of_command(line: &str, start: &Start<'_>) -> Vec<RelPath> {
    let (words, entered) = words::words(line);
    let entered = entered.into_iter().map(|folder| start.top.join(expanded(folder, start)));
    let folders: Vec<PathBuf> = [start.top.to_owned()].into_iter().chain(entered.take(FOLDERS)).collect();
    let paths = |word: Word| match word {
        Word::Path(path) => {
            let path = path.to_str().map_or_else(|| path.clone(), |word| expanded(word, start));
            folders.iter().map(|folder| folder.join(&path)).collect::<Vec<_>>()
        }
        Word::Behind(path) => {
            let folders = folders.iter().map(PathBuf::as_path).chain(start.home);
            folders.map(|folder| folder.join(&path)).collect()
        }
    };
    let found = words.into_iter().flat_map(paths).flat_map(|path| beneath(&path, start.root));
    let found: BTreeSet<RelPath> = found.filter(|path| !path.is_root()).collect();
    found.into_iter().collect()
}

/// A path as git reads it, and a shell.
fn expanded(value: &str, start: &Start<'_>) -> PathBuf {
    let value = value.strip_prefix(":(optional)").unwrap_or(value);
    let (first, rest) = value.split_once('/').unwrap_or((value, ""));
    let place = match first {
        "~" => start.home.map(Path::to_owned),
        "%(prefix)" => (start.by_git)(first),
        _ if first.starts_with('~') => (start.by_git)(first),
        _ => None,
    };
    place.map_or_else(|| PathBuf::from(value), |place| place.join(rest.trim_start_matches('/')))
}

/// A path from the top of the worktree, by its words and by where links of the host lead.
fn beneath(path: &Path, root: &Path) -> Vec<RelPath> {
    below(spellings(path), root)
}

fn below(paths: Vec<PathBuf>, root: &Path) -> Vec<RelPath> {
    let mut found: Vec<RelPath> = Vec::new();
    for path in paths {
        let Ok(below) = path.strip_prefix(root) else { continue };
        let bytes = below.as_os_str().as_bytes();
        let below = if bytes.is_empty() { Some(RelPath::root()) } else { RelPath::new(bytes).ok() };
        found.extend(below.filter(|below| !found.contains(below)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(setting: &str, value: &str) -> Vec<String> {
        named_below(Path::new("/nowhere"), setting, value)
    }

    /// What is named in the worktree `proj` of a home directory.
    fn named_below(home: &Path, setting: &str, value: &str) -> Vec<String> {
        let settings = Settings::of([(setting, value)]);
        let root = home.join("proj");
        let start = Start {
            root: &root,
            top: &root,
            git: &root.join(".git"),
            home: Some(home),
            by_git: &|part| (part == "~ann").then(|| home.to_owned()),
        };
        let names = |place: Place| {
            place
                .at
                .names()
                .iter()
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .collect::<Vec<_>>()
                .join("/")
        };
        of_settings(&settings, &start).into_iter().map(names).collect()
    }

    #[test]
    fn settings_name_files_of_the_worktree() {
        for (setting, value, expected) in [
            ("core.hookspath", "dev/checks", &["dev/checks"][..]),
            ("core.hookspath", "/nowhere/proj/dev/../hooks/", &["hooks"]),
            ("core.hookspath", "~/proj/h", &["h"]),
            ("core.hookspath", "~//proj/h", &["h"]),
            ("core.hookspath", "~ann/proj/h", &["h"]),
            ("core.hookspath", "~bob/proj/h", &["~bob/proj/h"]),
            ("core.hookspath", ":(optional)~ann/proj/h", &["h"]),
            ("core.hookspath", "/etc/hooks", &[]),
            ("core.hookspath", ".", &[""]),
            ("include.path", "../dev/gitconfig", &["dev/gitconfig"]),
            ("includeif.gitdir:~/x.path", "../inc", &["inc"]),
            ("filter.x.clean", "python3 tools/clean.py %f", &["%f", "python3", "tools/clean.py"]),
            ("alias.st", "!./dev/run.sh --all", &["dev/run.sh"]),
            ("alias.st", "!sh deploy", &["deploy", "sh"]),
            ("alias.st", "!cd dev && ./run", &["cd", "dev", "dev/cd", "dev/dev", "dev/run", "run"]),
            ("alias.st", "!$HOME/proj/x", &["home/proj/x", "proj/x", "x"]),
            ("core.editor", "~ann/proj/edit", &["edit"]),
            ("core.fsmonitor", "/nowhere/proj/dev/watch", &["dev/watch", "nowhere/proj/dev/watch"]),
            ("alias.st", "status ./src", &[]),
            ("user.name", "src/main.c", &[]),
            ("branch.main.remote", "origin", &[]),
        ] {
            assert_eq!(named(setting, value), expected, "{setting} = {value}");
        }
    }
    #[test]
    fn a_link_of_the_host_leads_to_what_nobody_has_made_yet() {
        let directory = tempfile::tempdir().unwrap();
        let home = fs_err::canonicalize(directory.path()).unwrap();
        fs_err::create_dir_all(home.join("proj")).unwrap();
        fs_err::os::unix::fs::symlink("proj", home.join("here")).unwrap();
        fs_err::os::unix::fs::symlink("proj/dev", home.join("dead")).unwrap();
        for (value, expected) in [("~/here/dev/hooks", "dev/hooks"), ("~/dead", "dev"), ("~/dead/h", "dev/h")]
        {
            assert_eq!(named_below(&home, "core.hookspath", value), [expected], "{value}");
        }
    }
}
