//! How each peer is told to do what we do. The like-for-like line gives bubblewrap the same namespaces, the
//! same binds and the same privileges as our default policy; what it cannot do (a copy-on-write workspace in
//! the packaged version, Landlock, a seccomp program, verification of the result) it is spared.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::lab::Lab;
use super::process::Caller;
use super::row::OURS;

/// The sandboxes of other agents, as their packages and the report name them.
pub const SRT: &str = "srt";
pub const CODEX: &str = "codex";

/// Whether a program is here, and which.
#[derive(Clone, Debug, Serialize)]
pub struct Version {
    pub name: &'static str,
    pub version: Option<String>,
    /// Why it is absent.
    pub absent: Option<String>,
}

/// Asks every program for its version.
pub fn versions(lab: &Lab, docker: &Result<String, String>) -> Vec<Version> {
    let ours = lab.sandtable();
    let ask = |name, argv: &[&str]| {
        let answer =
            lab.anybody().and_then(|caller| caller.invoke(lab.base(), argv.iter().copied()).output());
        let answer = answer.map(|text| text.lines().next().unwrap_or_default().to_owned());
        Version { name, version: answer.clone().ok(), absent: answer.err() }
    };
    let mut versions = vec![
        ask(OURS, &[&ours, "--version"]),
        ask("bwrap", &["bwrap", "--version"]),
        ask("unshare", &["unshare", "--version"]),
        ask("git", &["git", "--version"]),
        ask("docker client", &["docker", "--version"]),
        ask("docker daemon", &["docker", "version", "--format", "{{.Server.Version}}"]),
        ask("podman", &["podman", "--version"]),
        ask("runc", &["runc", "--version"]),
    ];
    for name in [SRT, CODEX] {
        versions.push(match lab.npm(name) {
            Ok(program) => ask(name, &[&program, "--version"]),
            Err(reason) => Version { name, version: None, absent: Some(reason) },
        });
    }
    if let Err(reason) = docker
        && let Some(daemon) = versions.iter_mut().find(|version| version.name == "docker daemon")
    {
        daemon.absent = Some(reason.clone());
    }
    versions
}

/// The least bubblewrap can be asked for.
pub fn bwrap_minimal() -> Vec<String> {
    words("bwrap --unshare-all --ro-bind / / --dev /dev --proc /proc /bin/true")
}

/// Every namespace `unshare` knows, and nothing else.
pub fn unshare() -> Vec<String> {
    let namespaces = "--user --map-root-user --mount --pid --fork --net --ipc --uts --cgroup --mount-proc";
    words(&format!("unshare {namespaces} /bin/true"))
}

/// Bubblewrap doing what our default policy does, with `extra` directories shown read-only.
pub fn bwrap_like(caller: &Caller, workspace: &Path, extra: &[PathBuf]) -> Vec<String> {
    let mut argv = words(
        "bwrap --unshare-user --unshare-pid --unshare-net --unshare-ipc --unshare-uts --unshare-cgroup \
         --die-with-parent --new-session --cap-drop ALL --hostname sandbox --clearenv --setenv PATH /usr/bin:/bin",
    );
    for directory in ["/usr", "/etc", "/opt", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"] {
        argv.extend(system_directory(Path::new(directory)));
    }
    argv.extend(words("--proc /proc --dev /dev --tmpfs /tmp --tmpfs /run --tmpfs /var/tmp"));
    let home = caller.home();
    for (option, path) in [("--bind", home.as_path()), ("--bind", workspace)] {
        argv.extend(bind(option, path));
    }
    argv.extend(extra.iter().flat_map(|path| bind("--ro-bind", path)));
    argv.extend(["--setenv".to_owned(), "HOME".to_owned(), home.display().to_string()]);
    argv.extend(["--chdir".to_owned(), workspace.display().to_string(), "/bin/true".to_owned()]);
    argv
}

/// A link stays a link, a directory is bound, and what is not there is left out.
fn system_directory(path: &Path) -> Vec<String> {
    let name = path.display().to_string();
    match fs_err::read_link(path) {
        Ok(target) => vec!["--symlink".to_owned(), target.display().to_string(), name],
        Err(_) if path.is_dir() => bind("--ro-bind", path).to_vec(),
        Err(_) => Vec::new(),
    }
}

fn bind(option: &str, path: &Path) -> [String; 3] {
    let path = path.display().to_string();
    [option.to_owned(), path.clone(), path]
}

/// A command line without quotes, as a list.
pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_for_like_binds_every_extra_directory_once() {
        let caller =
            Caller { name: "user", ids: None, area: PathBuf::from("/area"), environment: Vec::new() };
        let extra: Vec<_> = (0..100).map(|number| PathBuf::from(format!("/extra/{number}"))).collect();
        let count = |extra: &[PathBuf]| {
            let argv = bwrap_like(&caller, Path::new("/ws"), extra);
            argv.iter().filter(|word| *word == "--ro-bind").count()
        };
        assert_eq!(count(&extra), count(&[]) + 100);
    }

    #[test]
    fn like_for_like_works_at_the_workspace() {
        let caller =
            Caller { name: "user", ids: None, area: PathBuf::from("/area"), environment: Vec::new() };
        let line = bwrap_like(&caller, Path::new("/ws"), &[]).join(" ");
        assert!(line.contains("--bind /ws /ws"), "{line}");
        assert!(line.ends_with("--chdir /ws /bin/true"), "{line}");
        assert!(line.find("--tmpfs /tmp") < line.find("--bind /ws"), "a later tmpfs would hide it: {line}");
    }
}
