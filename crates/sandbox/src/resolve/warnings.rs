//! What the user should know although the run goes on: one function per stable code.

use std::path::{Path, PathBuf};

use crate::model::path::HostPath;
use crate::model::resolved::Warning;

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
