//! Programs that make a sandbox more useful.

use super::Patient;
use crate::model::check::Check;
use crate::model::path::HostPath;
use crate::process::Cli;
use crate::resolve::helper;

pub(super) fn git(patient: Patient<'_>) -> Check {
    let (id, what) = ("machine.git", "git");
    let Some(program) = helper("git", patient.host, patient.facts) else {
        return Check::warn(id, what, "not installed; sandboxes work, but commands inside have no git")
            .mend("sudo apt-get install git");
    };
    let version = HostPath::new(&program).ok().and_then(|path| Cli::new(path).arg("--version").output().ok());
    match version {
        Some(version) => Check::ok(id, what, String::from_utf8_lossy(&version).trim().to_owned()),
        None => Check::warn(id, what, format!("`{}` does not tell its version", program.display())),
    }
}
