//! What a command leaves for the next start of its sandbox. It takes two starts, so one attempt shows nothing by itself:
//! `doctor --attack` makes both, and so does the test suite (`mount_points`).

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use fs_err as fs;

use super::{Attempt, Finding, Probe};

pub(super) const PROBES: &[Probe] = &[Probe {
    name: "replace-mount-point",
    attacks: &["box/F25"],
    claims: &[],
    attempt: Attempt::Steps(replace),
}];

/// `POINT ELSEWHERE`: the directory around a place where something is mounted is moved away, which the kernel allows,
/// and a link to a directory of the sandbox's own takes the place.
fn replace(args: &[OsString]) -> Finding {
    let [point, elsewhere] = args else { return Finding::unsupported("needs two paths") };
    Finding::of_work(lead(Path::new(point), Path::new(elsewhere)), "the next start finds a link")
}

fn lead(point: &Path, elsewhere: &Path) -> io::Result<()> {
    let way = point.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = elsewhere.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir(elsewhere)?;
    fs::rename(way, way.with_extension("old"))?;
    fs::create_dir(way)?;
    symlink(Path::new("..").join(name), point)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_leads_elsewhere_afterwards() {
        let home = tempfile::tempdir().unwrap();
        let (point, elsewhere) = (home.path().join("way/point"), home.path().join("elsewhere"));
        fs::create_dir_all(&point).unwrap();
        lead(&point, &elsewhere).unwrap();
        assert_eq!(fs::canonicalize(&point).unwrap(), fs::canonicalize(&elsewhere).unwrap());
        assert!(lead(&point, &elsewhere).is_err(), "twice shows nothing");
    }
}
