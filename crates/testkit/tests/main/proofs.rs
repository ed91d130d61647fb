//! Proofs with the real executable: made on a recorded state, checked later, and refused when they are false.

use std::path::{Path, PathBuf};

use sandtable_testkit::env::{Caller, TestEnv};
use serde_json::Value;
use sha2::Digest as _;

use crate::cli::Unused;

fn sha256(bytes: &[u8]) -> String {
    let digits: Vec<String> = sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

/// A sandbox with one state, and a proof on it.
fn proven(env: &TestEnv, script: &str) -> (PathBuf, PathBuf, Value) {
    let source = env.repository("r");
    env.run_script(&source, &["-q", "--name", "box"], "echo one > f; rm README").expect_code(0).unused();
    let made = env.sandtable().args(["verify", "box", "--", "sh", "-c", script]).ended().expect_code(0);
    let path = env.home().join("proof.json");
    env.file(&path, &made.stdout);
    (source, path, serde_json::from_str(&made.stdout).unwrap())
}

fn against(env: &TestEnv, path: &Path) -> sandtable_testkit::process::Ended {
    env.sandtable().args(["verify", "--against"]).arg(path).ended()
}

#[test]
fn a_proof_says_what_a_command_did_and_holds_whatever_becomes_of_the_source() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let script = "cat f; echo aside >&2; ls -A; hostname; echo made > new";
        let (source, path, proof) = proven(&env, script);
        let before = env.fingerprint(&source);
        assert_eq!(proof["command"], serde_json::json!(["sh", "-c", script]));
        let name = proof["policy"]["environment"]["SANDBOX"].as_str().unwrap();
        let listed = "build.sh\ndocs\nf\nlink\nsrc\n";
        assert_eq!(proof["stdout_sha256"], sha256(format!("one\n{listed}{name}\n").as_bytes()));
        assert_eq!(proof["stderr_sha256"], sha256(b"aside\n"));
        assert_eq!((&proof["exit"]["code"], &proof["exit"]["origin"]), (&0.into(), &"command".into()));
        assert_eq!(
            (&proof["policy"]["network"], &proof["policy"]["engine"]),
            (&"none".into(), &"native".into())
        );
        assert_eq!(proof["enforcement"]["seccomp"]["state"], "enforced");
        assert_eq!(proof["diff"]["added"][0]["path"], "f");
        assert_eq!(proof["diff"]["removed"][0]["path"], "README");
        assert_ne!(proof["after"]["tree"], proof["tree"]);
        // Nothing of the run is left but the proof.
        assert_eq!(env.sandtable().args(["ls", "-q"]).ended().stdout.lines().count(), 1);
        against(&env, &path).expect_code(0).unused();
        assert_eq!(before.differences(&env.fingerprint(&source)), [""; 0]);
        env.file(&source.join("f"), "other\n");
        assert!(against(&env, &path).expect_code(0).stdout.ends_with("the proof holds\n"));
        fs_err::remove_dir_all(&source).unwrap();
        assert!(against(&env, &path).expect_code(0).stdout.ends_with("the proof holds\n"));
        let sound = env.sandtable().args(["verify", "box"]).ended().expect_code(0);
        assert!(sound.stdout.contains("is as it was written"), "{}", sound.stdout);
    }
}

#[test]
fn a_false_proof_is_refused() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let (_source, path, proof) = proven(&env, "true");
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut proof = proof.clone();
        change(&mut proof);
        env.file(&path, proof.to_string());
        against(&env, &path)
    };
    changed(&|_| {}).expect_code(0).unused();
    let tampered = changed(&|proof| proof["exit"]["code"] = 1.into());
    tampered.expect_code(1).expect_stderr("was changed after it was made").unused();
    // One whose digest was made to fit was never made here.
    let forged = changed(&|proof| {
        proof["stdout_sha256"] = sha256(b"all tests pass\n").into();
        proof.as_object_mut().unwrap().remove("sha256");
        // Members are sorted and nothing is between them: the canonical form.
        proof["sha256"] = sha256(proof.to_string().as_bytes()).into();
    });
    forged.expect_code(1).expect_stderr("no operation of the store tells of").unused();
    changed(&|proof| drop(proof.as_object_mut().unwrap().remove("tree"))).expect_code(2).unused();
    changed(&|proof| proof["schema"] = 9.into()).expect_code(2).unused();
    env.sandtable().args(["verify", "--against", "/nowhere"]).ended().expect_code(2).unused();
    env.sandtable().args(["verify"]).ended().expect_code(2).unused();
    env.sandtable().args(["verify", "0000", "--", "true"]).ended().expect_code(2).unused();
    for option in [&["--rm"][..], &["--name", "x"], &["--base", "source"], &["-C", "/"]] {
        env.sandtable()
            .args(["verify", "box"])
            .args(option)
            .args(["--", "true"])
            .ended()
            .expect_code(2)
            .unused();
    }
}

#[test]
fn every_field_that_differs_is_named_and_a_failing_command_is_no_success() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let (_source, path, _) = proven(&env, "cat /dev/urandom | head -c 16");
    let differs = against(&env, &path).expect_code(1).stdout;
    assert_eq!(differs.lines().count(), 2, "{differs}");
    assert!(differs.starts_with("stdout_sha256: was ") && differs.ends_with("the proof does not hold\n"));
    let other = ["verify", "--against", path.to_str().unwrap(), "--network", "host", "--json", "--", "false"];
    let answer: Value =
        serde_json::from_str(&env.sandtable().args(other).ended().expect_code(1).stdout).unwrap();
    let named: Vec<&str> = answer["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field["field"].as_str().unwrap())
        .collect();
    for field in ["command", "exit.code", "policy.network", "stdout_sha256"] {
        assert!(named.contains(&field), "{field} in {named:?}");
    }
    assert_eq!(answer["holds"], false);
    let failing = env.sandtable().args(["verify", "box", "--", "false"]).ended().expect_code(1);
    assert_eq!(serde_json::from_str::<Value>(&failing.stdout).unwrap()["exit"]["code"], 1);
    env.sandtable().args(["verify", "box", "--", "/no/such"]).ended().expect_code(127).unused();
    assert_eq!(env.sandtable().args(["ls", "-q"]).ended().stdout.lines().count(), 1);
}

#[test]
fn a_flipped_bit_in_what_a_snapshot_names_is_found() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.run_script(&source, &["-q", "--name", "box"], "seq 2000 > f").expect_code(0).unused();
    let store = env.sandtable().directory(&source).args(["store", "path"]).ended().expect_code(0).stdout;
    let packs = Path::new(store.trim()).join("objects/pack");
    // The largest entry of the newest pack is the new file.
    let newest = fs_err::read_dir(packs).unwrap().map(|entry| entry.unwrap().path());
    let newest = newest.filter(|path| path.extension().is_some_and(|ending| ending == "pack"));
    let newest = newest.max_by_key(|path| path.metadata().unwrap().modified().unwrap()).unwrap();
    let mut bytes = fs_err::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs_err::set_permissions(&newest, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    fs_err::write(&newest, bytes).unwrap();
    let found = env.sandtable().args(["verify", "box"]).ended();
    assert_eq!(found.code, 1, "{} {}", found.stdout, found.stderr);
    assert!(found.stdout.contains("object `"), "{}", found.stdout);
}
