//! A signal while files change places: the operation puts everything back before it ends, and can be done again.

use std::path::Path;

use sandtable_testkit::env::TestEnv;

use crate::broken_off::{Files, call, clean, each, files, injected, recorded, work};
use crate::cli::Unused;

/// The signals, and the codes by which a call says that one of them ended it.
const SIGNALS: [(&str, i32); 3] = [("INT", 130), ("TERM", 143), ("HUP", 129)];

/// Calls with each signal at a moment when some files have been exchanged and others have not, then without. The files are
/// what they were, and after that something else.
#[track_caller]
fn broken_off(env: &TestEnv, source: &Path, words: &[&str]) -> Files {
    let before = files(source);
    for (signal, code) in SIGNALS {
        let ended = injected(env, source, &format!("renameat2:signal=SIG{signal}:when=2"), words);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.code, code, "{words:?} {signal}: {said}");
        assert!(said.contains("put back") || said.contains("as it was"), "{words:?} {signal}: {said}");
        assert_eq!(files(source), before, "{words:?} {signal}: {said}");
        if source.join(".git").exists() {
            env.git(source, &["fsck", "--strict"]);
        }
    }
    call(env, source, words).expect_code(0).unused();
    let after = files(source);
    assert_ne!(before, after, "{words:?}");
    after
}

#[test]
fn a_signal_during_any_operation_on_a_source_puts_everything_back() {
    each(|env| {
        for mode in ["merge", "apply"] {
            let source = work(env, mode);
            let old = files(&source);
            let new = broken_off(env, &source, &[mode, mode]);
            assert_eq!(broken_off(env, &source, &["undo", "."]), old);
            assert_eq!(broken_off(env, &source, &["redo", "."]), new);
            assert_eq!(broken_off(env, &source, &["undo", "."]), old);
            clean(env, &source);
        }
        let (source, id, old) = recorded(env, "d");
        let new = files(&source);
        assert_eq!(broken_off(env, &source, &["rollback", &id, "."]), old);
        assert_eq!(broken_off(env, &source, &["undo", "."]), new);
        assert_eq!(broken_off(env, &source, &["redo", "."]), old);
        clean(env, &source);
    });
}
