//! An engine that enforces nothing: it shows that the probes would notice.
//!
//! Its probes are harmless by themselves, but they run as root with every privilege, so the whole run
//! happens in a throw-away container: own mounts, processes, network, System V objects and host name, on a
//! copy-on-write view of the root directory in memory of limited size. Never on the host itself.

use std::path::Path;

use sandtable_protocol::probe::{Class, Line};

use super::native::{answer, provoked};
use super::{Case, Engine, Stage, Verdict};
use crate::process::{Ended, Run};
use crate::require;

/// No sandbox at all. Only to be used where [`is_inside`].
#[derive(Clone, Copy, Debug)]
pub struct NullEngine;

impl Engine for NullEngine {
    fn name(&self) -> String {
        "null".to_owned()
    }

    fn attempt(&self, stage: &Stage, case: &Case, args: &[String]) -> Result<Line, String> {
        assert!(is_inside(), "the probes must not run on the host itself");
        let run = stage.env().run(stage.source().join("probe-bin")).directory(stage.source());
        let run = run.args(["__probe", case.probe]).args(args);
        answer(&provoked(run, stage).ended())
    }
}

/// Tells that this process was started by [`enter`].
const INSIDE: &str = "SANDTABLE_INSIDE_NULL";

/// The first process of the container: a root of its own, then the test, which it waits for so that there
/// is a PID 1 to attack.
const SCRIPT: &str = r#"
set -e
mount -t tmpfs -o size=512m none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" none "$1/root"
cp "$2" "$1/root/null-test"
cp "$3" "$1/root/null-sandtable"
cd "$1/root"
mkdir -p proc dev sys tmp old-root
mount -t proc proc proc
mount --rbind /dev dev
mount --rbind /sys sys
ip link set lo up
ip address add 192.0.2.1/32 dev lo
ip route add default dev lo
pivot_root . old-root
umount -l /old-root
cd /
export SANDTABLE_INSIDE_NULL=1 SANDTABLE_BIN=/null-sandtable
/null-test --exact "$4" --nocapture --test-threads 1
"#;

/// Whether this is the inside of the throw-away container.
pub fn is_inside() -> bool {
    require::variable(INSIDE).is_some()
}

/// Why the container cannot be made here.
pub fn obstacle() -> Option<String> {
    if !require::is_root() {
        return Some("the throw-away container needs root".to_owned());
    }
    let missing =
        ["unshare", "mount", "pivot_root", "ip"].into_iter().find(|name| require::program(name).is_none());
    missing.map(|name| format!("the throw-away container needs `{name}`"))
}

/// Runs one test of this test executable again, inside the container.
///
/// # Panics
/// If there is no temporary directory.
pub fn enter(test: &str, binary: &Path) -> Ended {
    let place = tempfile::tempdir().expect("a temporary directory");
    let own = std::env::current_exe().expect("a test knows its executable");
    let namespaces = ["--mount", "--pid", "--fork", "--net", "--ipc", "--uts"];
    Run::new("unshare", Path::new("/"))
        .variable("PATH", crate::env::PATH)
        .args(namespaces)
        .args(["sh", "-c", SCRIPT, "sh"])
        .arg(place.path())
        .arg(own)
        .arg(binary)
        .arg(test)
        .ended()
}

/// What a case is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// It claims a control and leaks without it.
    Proven,
    /// It claims nothing.
    Functional,
    /// The kernel does not have the thing at all, so that nothing can leak.
    NotInThisKernel,
    /// It claims a control, but comes out well without it.
    ProvesNothing,
}

/// Judges a case by how it came out without a sandbox.
pub fn worth(verdict: &Verdict) -> Worth {
    const LACKING: [&str; 4] = ["ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT"];
    const OPTIONAL_FILES: [&str; 4] = ["sysrq", "kcore", "proc-keys", "timer-list"];
    let lacking = LACKING.contains(&verdict.detail.as_str())
        || (verdict.detail == "ENOENT" && OPTIONAL_FILES.contains(&verdict.case.probe));
    match &verdict.got {
        _ if verdict.case.claims().is_empty() => Worth::Functional,
        Ok(Class::Leak) => Worth::Proven,
        Ok(Class::Unsupported) if verdict.case.probe == "int80" => Worth::NotInThisKernel,
        Ok(Class::Blocked) if lacking => Worth::NotInThisKernel,
        _ => Worth::ProvesNothing,
    }
}

/// The closing count, and a line for each case that proves nothing.
pub fn summary(verdicts: &[Verdict]) -> String {
    let count = |wanted| verdicts.iter().filter(|verdict| worth(verdict) == wanted).count();
    let names = |wanted| -> Vec<&str> {
        verdicts.iter().filter(|verdict| worth(verdict) == wanted).map(|verdict| verdict.case.name).collect()
    };
    let weak = verdicts.iter().filter(|verdict| worth(verdict) == Worth::ProvesNothing);
    let lines =
        weak.fold(String::new(), |lines, verdict| lines + "\n  proves nothing: " + &verdict.describe());
    format!(
        "conformance null: {} cases, {} leak as they must, {} not in this kernel ({}), {} functional, {} prove nothing{lines}",
        verdicts.len(),
        count(Worth::Proven),
        count(Worth::NotInThisKernel),
        names(Worth::NotInThisKernel).join(" "),
        count(Worth::Functional),
        count(Worth::ProvesNothing),
    )
}
