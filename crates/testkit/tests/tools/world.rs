//! A directory with a depot, plans and clients of our own making.

use std::path::{Path, PathBuf};
use std::process::Child;

use sandtable_testkit::env::PATH;
use sandtable_testkit::process::Run;
use sandtable_testkit::require::{program, skip};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Where things are. Gone when dropped.
pub(crate) struct World {
    pub(crate) place: TempDir,
}

/// What the workshop said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) answer: Value,
    pub(crate) stderr: String,
}

impl Said {
    /// Tools that were there, and that were made.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let count = |name: &str| self.answer[name].as_u64().unwrap_or_else(|| panic!("{self:?}"));
        (count("kept"), count("made"))
    }

    pub(crate) fn error(&self) -> &str {
        self.answer["error"].as_str().unwrap_or_else(|| panic!("no error: {self:?}"))
    }

    pub(crate) fn source(&self) -> PathBuf {
        self.answer["source"].as_str().unwrap_or_else(|| panic!("{self:?}")).into()
    }

    pub(crate) fn notes(&self) -> Vec<&str> {
        self.answer["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect()
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for directory in ["programs", "home", "outside"] {
            fs_err::create_dir(place.path().join(directory)).unwrap();
        }
        fs_err::write(place.path().join("outside/victim"), "as it was").unwrap();
        Self { place }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub(crate) fn depot(&self) -> PathBuf {
        self.path("the depot")
    }

    /// The call that makes `plan`, with further words.
    pub(crate) fn call(&self, plan: &Value, words: &[&str]) -> Run {
        let file = self.path(&format!("{}.json", plan["name"].as_str().unwrap()));
        fs_err::write(&file, plan.to_string()).unwrap();
        let search = format!("{}:{PATH}", self.path("programs").display());
        Run::new(env!("CARGO_BIN_EXE_workshop"), self.place.path())
            .arg(self.depot())
            .arg(file)
            .args(words)
            .variable("PATH", search)
            .variable("HOME", self.path("home"))
    }

    pub(crate) fn make(&self, plan: &Value) -> Said {
        self.make_with(plan, &[])
    }

    pub(crate) fn make_with(&self, plan: &Value, words: &[&str]) -> Said {
        let ended = self.call(plan, words).ended();
        let answer = serde_json::from_str(&ended.stdout);
        let answer = answer.unwrap_or_else(|_| panic!("{}: {}", ended.code, ended.stderr));
        Said { answer, stderr: ended.stderr }
    }

    /// The directories of builds under way.
    pub(crate) fn partials(&self) -> Vec<PathBuf> {
        self.stored()
            .into_iter()
            .filter(|path| path.extension().is_some_and(|end| end == "partial"))
            .collect()
    }

    fn stored(&self) -> Vec<PathBuf> {
        let entries = fs_err::read_dir(self.depot().join("store"));
        entries.map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
    }
}

/// What a child that ended said.
pub(crate) fn said(child: Child) -> Said {
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let answer = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{stderr}"));
    Said { answer, stderr }
}

/// A plan whose tool is a script that says its name; `script` runs before, in `sh`, with the output in `$out`.
pub(crate) fn plan(name: &str, script: &str, dependencies: &[Value]) -> Value {
    let out = format!("/opt/sandtable/tools/{name}-1");
    let made = format!(
        "out={out}\n{script}\nmkdir -p $out/bin\nprintf '#!/bin/sh\\necho {name} works\\n' > $out/bin/{name}\nchmod 755 $out/bin/{name}"
    );
    json!({
        "format": 1, "name": name, "version": "1",
        "platform": {"os": "linux", "arch": std::env::consts::ARCH, "libc": libc()},
        "steps": [{"action": "run_command", "command": ["sh", "-c", made]}],
        "verify": [{"command": [name], "patterns": [format!("{name} works")]}],
        "provides": {"binaries": [format!("bin/{name}")]},
        "dependencies": dependencies,
    })
}

/// The C library of this machine.
pub(crate) fn libc() -> &'static str {
    let musl =
        ["x86_64", "aarch64"].iter().any(|arch| Path::new(&format!("/lib/ld-musl-{arch}.so.1")).exists());
    let glibc =
        Path::new("/lib64/ld-linux-x86-64.so.2").exists() || Path::new("/lib/ld-linux-aarch64.so.1").exists();
    if musl && !glibc { "musl" } else { "glibc" }
}

/// Whether steps can run here at all; says so if not.
pub(crate) fn possible() -> bool {
    let world = World::new();
    let ended = world.call(&plan("first", "", &[]), &[]).ended();
    if ended.code == 0 {
        return true;
    }
    assert!(
        program("sh").is_some() && ended.stdout.contains("tool-sandbox"),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
    skip("no native sandbox can be made here");
    false
}
