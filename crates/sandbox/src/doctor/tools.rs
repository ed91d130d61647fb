//! Programs that make a sandbox more useful.

use std::time::Duration;

use super::Patient;
use crate::model::check::Check;
use crate::model::path::HostPath;
use crate::process::{Bounds, Cli};
use crate::resolve::helper;

/// What a program may take to say its version.
const BOUNDS: Bounds = Bounds { time: Duration::from_secs(10), memory: 1 << 30, output: 1 << 20 };

pub(super) fn git(patient: Patient<'_>) -> Check {
    let (id, what) = ("machine.git", "git");
    let Some(program) = helper("git", patient.host, patient.facts) else {
        return Check::warn(id, what, "not installed; sandboxes work, but commands inside have no git")
            .mend("sudo apt-get install git");
    };
    match HostPath::new(&program).ok().and_then(|path| version(path, BOUNDS)) {
        Some(version) => Check::ok(id, what, String::from_utf8_lossy(&version).trim().to_owned()),
        None => Check::warn(id, what, format!("`{}` does not tell its version", program.display())),
    }
}

fn version(program: HostPath, bounds: Bounds) -> Option<Vec<u8>> {
    Cli::new(program).within(bounds).arg("--version").output().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_that_says_nothing_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("git");
        fs_err::write(&program, "#!/bin/sh\nexec /bin/sleep 600\n").unwrap();
        fs_err::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let bounds = Bounds { time: Duration::from_millis(50), ..BOUNDS };
        assert_eq!(version(HostPath::new(&program).unwrap(), bounds), None);
    }
}
