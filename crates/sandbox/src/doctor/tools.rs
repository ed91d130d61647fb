//! Programs that make a sandbox more useful.

use std::path::PathBuf;

use super::Patient;
use crate::model::check::Check;
use crate::model::path::HostPath;
use crate::process::Cli;

/// Where the caller's programs are.
pub(super) fn search(patient: Patient<'_>) -> Vec<PathBuf> {
    let path = patient.host.environment.get("PATH").map_or("", String::as_str);
    path.split(':').map(PathBuf::from).collect()
}

pub(super) fn git(patient: Patient<'_>) -> Check {
    let (id, what) = ("machine.git", "git");
    let Ok(program) = patient.facts.program("git", &search(patient)) else {
        return Check::warn(id, what, "not installed; sandboxes work, but commands inside have no git")
            .mend("sudo apt-get install git");
    };
    let version = HostPath::new(&program).ok().and_then(|path| Cli::new(path).arg("--version").output().ok());
    match version {
        Some(version) => Check::ok(id, what, String::from_utf8_lossy(&version).trim().to_owned()),
        None => Check::warn(id, what, format!("`{}` does not tell its version", program.display())),
    }
}
