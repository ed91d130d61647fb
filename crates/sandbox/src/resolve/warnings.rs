//! What the user should know although the run goes on: one function per stable code.

use std::path::{Path, PathBuf};

use crate::model::container::Port;
use crate::model::path::HostPath;
use crate::model::resolved::Warning;
use crate::model::setting::Origin;

pub(super) fn git_directory_outside(root: &HostPath, why: &str) -> Warning {
    let text = format!("git will not work inside: the git directory of `{root}` lies elsewhere and {why}");
    Warning::new("git-directory-outside", text)
}

pub(super) fn repository_too_wide(repository: &HostPath, directory: &HostPath) -> Warning {
    let text = format!(
        "the repository around `{directory}` is `{repository}`, which is too wide to be a workspace; \
         the workspace is the directory alone"
    );
    Warning::new("repository-too-wide", text)
}

pub(super) fn foreign_owner(names: &[String], more: usize) -> Warning {
    let mut list = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if more > 0 {
        list = format!("{list} and {more} more");
    }
    let text = format!(
        "changing them inside will fail, because they belong to another owner or group: {list}; `chown` them to \
         yourself and your primary group"
    );
    Warning::new("foreign-owner", text)
}

/// Each directory with its real path, which is the one that can be mounted.
pub(super) fn path_not_exposed(directories: &[(PathBuf, PathBuf)]) -> Warning {
    let lines = directories.iter().map(|(directory, real)| {
        let directory = directory.display();
        if directory.to_string() == real.display().to_string() {
            format!("`--mount {directory}`")
        } else {
            format!("`--mount {}:{directory}`", real.display())
        }
    });
    let text = format!(
        "directories on PATH below the home directory are not visible inside; to expose them: {}",
        lines.collect::<Vec<_>>().join(" ")
    );
    Warning::new("path-not-exposed", text)
}

pub(super) fn toolchain_outside(path: &Path, real: &Path) -> Warning {
    let text = format!(
        "`{}` leads out of the home directory to `{}` and is not visible inside",
        path.display(),
        real.display()
    );
    Warning::new("toolchain-outside", text)
}

pub(super) fn toolchain_read_only(path: &HostPath, why: &str) -> Warning {
    Warning::new("toolchain-read-only", format!("`{path}` is read-only inside: {why}"))
}

pub(super) fn git_config_skipped(path: &Path, why: &str) -> Warning {
    Warning::new(
        "git-config-skipped",
        format!("`{}` is left out of the git configuration: {why}", path.display()),
    )
}

pub(super) fn variable_not_unicode(name: &str) -> Warning {
    Warning::new("variable-not-unicode", format!("`{name}` is not valid UTF-8 and is not passed on"))
}

pub(super) fn workspace_copied(root: &HostPath, why: &str) -> Warning {
    let text = format!("the sandbox works on a copy of `{root}`, made at its start: {why}");
    Warning::new("workspace-copied", text)
}

pub(super) fn source_writable(root: &HostPath) -> Warning {
    let text = format!(
        "the sandbox works on `{root}` itself: what a command does there is done at once and cannot be dropped"
    );
    Warning::new("source-writable", text)
}

pub(super) fn exposed(name: &str, risk: &str) -> Warning {
    Warning::new("exposed-credentials", format!("`{name}` is shown to the sandbox: {risk}"))
}

pub(super) fn git_passwords(path: &Path, names: &[String], remedy: &str) -> Warning {
    let names: Vec<String> = names.iter().map(|name| format!("`{}`", name.escape_debug())).collect();
    let text =
        format!("the sandbox can read passwords in `{}`: {}; {remedy}", path.display(), names.join(", "));
    Warning::new("exposed-credentials", text)
}

pub(super) fn agent_home(name: &str, places: &[String], credentials: &[String]) -> Warning {
    let list = |paths: &[String]| paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    let mut text = format!("the settings of `{name}` are shown to the sandbox on purpose: {}", list(places));
    if !credentials.is_empty() {
        text = format!("{text}; among them its credentials: {}", list(credentials));
    }
    Warning::new("agent-home", text)
}

pub(super) fn agent_home_empty(name: &str) -> Warning {
    Warning::new("agent-home-empty", format!("`{name}` has no settings here; it starts with none"))
}

pub(super) fn agent_home_outside(path: &Path, real: &Path) -> Warning {
    let text = format!(
        "`{}` leads out of the home directory to `{}` and is not shown; name that path if it is meant",
        path.display(),
        real.display()
    );
    Warning::new("agent-home-outside", text)
}

pub(super) fn agent_home_copied(path: &HostPath, why: &str) -> Warning {
    Warning::new("agent-home-copied", format!("the sandbox has a copy of `{path}`, made at its start: {why}"))
}

/// Entries of an image that cannot be shown.
pub(super) fn image_entries(odd: &[PathBuf]) -> Warning {
    let names: Vec<String> = odd.iter().take(5).map(|path| format!("`{}`", path.display())).collect();
    let text = format!("{} entries of the image cannot be shown: {}", odd.len(), names.join(", "));
    Warning::new("image-entries", text)
}

pub(super) fn proxy_unused(origin: &Origin) -> Warning {
    let text = format!("nothing goes through the proxy command of {origin}: there is no network inside");
    Warning::new("proxy-unused", text)
}

pub(super) fn debugger_unreachable(port: Port, origin: &Origin) -> Warning {
    let text = format!(
        "{origin} asks for a debugger at port {}, which is not published: use `--network nat`",
        port.host
    );
    Warning::new("debugger-unreachable", text)
}
