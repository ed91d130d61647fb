//! A machine of its own: Debian with systemd and control groups of version 2, as most people have it and the build
//! machine does not. `./test` makes it (`scripts/virtual-machine`); it is emulated, so that it works without
//! `/dev/kvm`, and started once. What was asked of it (`vm/`) is judged here line by line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sandtable_testkit::env::PATH;
use sandtable_testkit::process::Run;
use sandtable_testkit::require;

use crate::cli::Unused as _;

/// Seconds after which a machine is switched off. It needs one minute on an idle host.
const PATIENCE: &str = "900";

/// What the emulated processor must not offer: the emulator's 16-byte exchange spoils flags, and page tables of
/// five levels are slow.
const PROCESSOR: &str = "max,-cx16,-la57";

#[test]
fn systemd_gives_control_groups_of_version_2() {
    let Some(machine) = require::variable("SANDTABLE_TEST_VM").map(PathBuf::from) else {
        require::say("skipped: no virtual machine: `./test` makes one as root on Debian for x86-64");
        return;
    };
    let Some(executable) = require::sandtable() else {
        return require::skip("no executable: SANDTABLE_BIN is not set");
    };
    let work = tempfile::tempdir().unwrap();
    pack(work.path(), &executable);
    let told = start(&machine, work.path());
    if !told.contains_key("begin") {
        let console = fs_err::read_to_string(work.path().join("console")).unwrap_or_default();
        return require::say(&format!("skipped: the virtual machine does not start here:\n{console}"));
    }
    judge_limits(&told);
    judge_refusals(&told);
    judge_apparmor(&told);
    assert_eq!(told.get("end").map(String::as_str), Some("yes"), "{told:#?}");
}

/// What lies on the second disk.
fn pack(work: &Path, executable: &Path) {
    let files = work.join("files");
    fs_err::create_dir(&files).unwrap();
    fs_err::copy(executable, files.join("sandtable")).unwrap();
    // A debug build is long to read for an emulated machine.
    if let Some(strip) = require::program("strip") {
        Run::new(strip, &files).variable("PATH", PATH).arg("sandtable").ended().expect_code(0).unused();
    }
    let here = require::workspace();
    for name in ["all", "limits", "doctor"] {
        fs_err::copy(here.join("crates/testkit/tests/main/vm").join(name), files.join(name)).unwrap();
    }
    fs_err::copy(here.join("packaging/apparmor/sandtable"), files.join("profile")).unwrap();
    let tar = Run::new("tar", work).variable("PATH", PATH);
    tar.args(["-C", "files", "-cf", "questions", "."]).ended().expect_code(0).unused();
}

/// Starts the machine, waits until it has switched itself off, and returns what it said, by name.
fn start(machine: &Path, work: &Path) -> BTreeMap<String, String> {
    let disk = |path: &Path, more: &str| format!("file={},format=raw,if=virtio,{more}", path.display());
    let run = Run::new("timeout", work).variable("PATH", PATH).args([PATIENCE, "qemu-system-x86_64"]);
    let run = run.args(["-accel", "tcg,thread=multi", "-cpu", PROCESSOR, "-smp", "2", "-m", "1024"]);
    let run = run.args(["-nodefaults", "-display", "none", "-no-reboot", "-nic", "none"]);
    let run = run.arg("-kernel").arg(machine.join("kernel")).arg("-initrd").arg(machine.join("initrd"));
    let run = run.args(["-append", "console=ttyS0 quiet mitigations=off"]);
    // What it writes to its disk is for this one time.
    let run = run.arg("-drive").arg(disk(&machine.join("disk"), "snapshot=on"));
    let run = run.arg("-drive").arg(disk(&work.join("questions"), "readonly=on"));
    let run = run.args(["-serial", "file:console", "-serial", "file:answers"]);
    let ended = run.ended();
    let answers = fs_err::read(work.join("answers")).unwrap_or_default();
    let answers = String::from_utf8_lossy(&answers).into_owned();
    let lines = answers.lines().filter_map(|line| line.trim_end().split_once(": "));
    let mut told: BTreeMap<String, String> =
        lines.map(|(name, what)| (name.to_owned(), what.trim().to_owned())).collect();
    // For whoever reads why it failed.
    told.insert("emulator".to_owned(), format!("{} {}", ended.code, ended.stderr));
    told.insert("everything".to_owned(), answers);
    told
}

fn judge_limits(told: &BTreeMap<String, String>) {
    let said = |name: &str| told.get(name).unwrap_or_else(|| panic!("nothing about {name}: {told:#?}"));
    assert!(said("user.where").contains("/session-"), "a login session: {}", said("user.where"));
    assert!(said("root.where").ends_with("/questions.service"), "{}", said("root.where"));
    for who in ["user", "root"] {
        let said = |name: &str| said(&format!("{who}.{name}")).as_str();
        assert_eq!(said("memory"), "137 memory-limit:state:enforced code:out-of-memory", "{who}");
        // The first process of the sandbox and the one that forks are two of the 64.
        assert_eq!(said("pids"), "62 pids-limit:state:enforced", "{who}");
        assert_eq!(said("cpus"), "50000 100000 and throttled", "{who}");
        let slice = if who == "root" { "system.slice" } else { "app.slice" };
        assert_eq!(said("place"), format!("{slice} sandtable-still-N.scope"), "{who}");
        assert_eq!(said("snapshot"), "consistency: frozen", "{who}");
        assert_eq!(said("frozen"), "yes 1", "{who}: all but the first process are in the frozen group");
        assert_eq!(said("crash"), "the scope is gone", "{who}");
        assert_eq!(said("again"), "it runs again", "{who}");
        assert_eq!(said("left"), "0", "{who}: control groups stay");
    }
}

fn judge_refusals(told: &BTreeMap<String, String>) {
    let said =
        |name: &str| told.get(name).unwrap_or_else(|| panic!("nothing about {name}: {told:#?}")).as_str();
    let doctor = said("user.doctor");
    assert!(doctor.contains(r#""status": "ok""#) && doctor.contains("systemd gives a sandbox"), "{doctor}");
    let alone = said("user.alone");
    assert!(
        alone.contains(r#""status": "warn""#) && alone.contains("loginctl enable-linger 1000"),
        "{alone}"
    );
    let refused = said("user.refused");
    assert!(refused.starts_with("125 ") && refused.contains("`memory-limit`"), "{refused}");
    assert_eq!(said("forbidden.run"), "125");
    assert_eq!(said("forbidden.mend"), "sysctl -w user.max_user_namespaces=15000");
    let no = said("no");
    assert!(no.contains("`memory-limit`") && no.contains("systemd gives us no control group: "), "{no}");
    assert!(no.ends_with("no.run: 125"), "{no}");
}

fn judge_apparmor(told: &BTreeMap<String, String>) {
    let said =
        |name: &str| told.get(name).unwrap_or_else(|| panic!("nothing about {name}: {told:#?}")).as_str();
    assert_eq!(said("apparmor.kernel"), "userns_create");
    assert_eq!(said("apparmor.loaded"), "0");
    assert_eq!(said("apparmor.without"), "125");
    assert_eq!(said("apparmor.with"), "sandtable (unconfined)");
}
