//! Sandboxes that a process with threads starts through the library.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use sandtable_sandbox::model::diagnosis::Diagnose as _;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::model::resolved::ResolvedSpec;
use sandtable_sandbox::session::spawn::{Job, JobStreams, SpawnError, Spawned, spawn};
use sandtable_sandbox::session::{Request, Sandboxes, SessionError, Streams, run};
use sandtable_store::lock::FileLock;
use sandtable_testkit::env::TestEnv;

use crate::cli::Unused as _;

/// How many sandboxes, and beside how many threads that are busy.
const SANDBOXES: usize = 200;
const BUSY: usize = 16;
/// How many of them at a time.
const AT_ONCE: usize = 4;

/// What a request for a sandbox of `source` means here.
fn resolved(env: &TestEnv, source: &Path) -> ResolvedSpec {
    resolved_with(env, source, &[])
}

fn resolved_with(env: &TestEnv, source: &Path, options: &[&str]) -> ResolvedSpec {
    let run = ["run", "--network", "none", "--dry-run", "--json"];
    let run = env.sandtable().directory(source).args(run).args(options).args(["--", "true"]);
    let answer = run.ended().expect_code(0).stdout;
    let mut answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    serde_json::from_value(answer["resolved"].take()).unwrap()
}

fn sandboxes(env: &TestEnv) -> Sandboxes {
    Sandboxes::new(&HostPath::new(env.sandboxes().parent().unwrap()).unwrap())
}

fn started(env: &TestEnv, resolved: ResolvedSpec, script: &str) -> Spawned {
    started_as(env, resolved, script, None)
}

fn started_as(env: &TestEnv, resolved: ResolvedSpec, script: &str, name: Option<&str>) -> Spawned {
    let command = ["sh", "-c", script].map(OsString::from).to_vec();
    let name = name.map(|name| name.parse().unwrap());
    let job = Job { resolved, name, command, streams: JobStreams::Piped };
    spawn(env.binary(), &sandboxes(env), job).unwrap()
}

/// Gives `source` a state, and lets no other one be recorded until the lock is dropped.
fn held_back(env: &TestEnv, source: &Path) -> FileLock {
    env.sandtable().directory(source).arg("onboard").ended().expect_code(0).unused();
    let stores = fs_err::read_dir(env.sandboxes().with_file_name("stores")).unwrap();
    let mut locks =
        stores.map(|store| store.unwrap().path().join("journal.lock")).filter(|lock| lock.exists());
    let (Some(lock), None) = (locks.next(), locks.next()) else { panic!("not one store") };
    FileLock::exclusive(&lock).unwrap()
}

/// Does `work` in another thread, which must end: what is tested here would wait for ever.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || sender.send(work()).unwrap());
    match receiver.recv_timeout(Duration::from_mins(1)) {
        Ok(done) => done,
        Err(RecvTimeoutError::Disconnected) => std::panic::resume_unwind(thread.join().unwrap_err()),
        Err(RecvTimeoutError::Timeout) => panic!("it hangs"),
    }
}

/// So long that what is said meanwhile of the recording does not fit into a socket.
const LONG: Duration = Duration::from_millis(1500);

#[test]
fn a_process_with_threads_is_refused_and_told_what_works() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("source");
    let resolved = resolved(&env, &source);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The test may be in the main thread.
        scope.spawn(|| busy(&over));
        let command = [OsString::from("true")];
        let request = Request { command: &command, resolve_ms: 0, streams: Streams::Log, observer: &() };
        let refused = run(&sandboxes(&env), resolved, None, request).unwrap_err();
        over.store(true, Ordering::Relaxed);
        assert_eq!(refused.code(), "launch");
        assert!(refused.to_string().contains("one thread"), "{refused}");
        let SessionError::Launch(refused) = refused else { panic!("{refused}") };
        assert!(refused.remedy().unwrap().contains("session::spawn"));
    });
    assert!(sandboxes(&env).names().unwrap().is_empty());
}

#[test]
fn two_hundred_sandboxes_beside_busy_threads_all_end() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("source");
    let resolved = resolved(&env, &source);
    let (over, next, ended) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..BUSY {
            scope.spawn(|| busy(&over));
        }
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= SANDBOXES {
                    return;
                }
                let mut spawned =
                    started(&env, resolved.clone(), &format!("echo {number} | tee own; exit {}", number % 7));
                let mut said = String::new();
                spawned.take_output().unwrap().read_to_string(&mut said).unwrap();
                let outcome = spawned.wait(&()).unwrap();
                assert_eq!(said, format!("{number}\n"));
                assert_eq!(usize::from(outcome.exit.code), number % 7);
                assert_eq!(outcome.changes.unwrap().added, 1);
                ended.fetch_add(1, Ordering::Relaxed);
            }
        };
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        let all_fine = workers.into_iter().all(|worker| worker.join().is_ok());
        over.store(true, Ordering::Relaxed);
        assert!(all_fine);
    });
    assert_eq!(ended.into_inner(), SANDBOXES);
    assert_eq!(sandboxes(&env).names().unwrap().len(), SANDBOXES);
    let running = env.sandtable().args(["ls", "--json"]).ended().expect_code(0).stdout;
    assert!(!running.contains("\"running\""), "{running}");
}

/// Takes memory and gives it back, so that a fork is likely to find the allocator's lock held.
fn busy(over: &AtomicBool) {
    let mut kept = Vec::new();
    while !over.load(Ordering::Relaxed) {
        kept.push(vec![0_u8; 1000 + kept.len()]);
        if kept.len() > 100 {
            kept.clear();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_command_ends_when_it_is_stopped_or_when_nobody_waits_for_it() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("source");
    let resolved = resolved(&env, &source);
    let script = "trap 'echo term > ended; exit 9' TERM; echo here; while :; do sleep 0.1; done";
    let mut stopped = started(&env, resolved.clone(), script);
    let name = stopped.started(&()).unwrap();
    let mut here = [0; 5];
    stopped.take_output().unwrap().read_exact(&mut here).unwrap();
    stopped.stop(Duration::from_secs(10)).unwrap();
    let outcome = stopped.wait(&()).unwrap();
    assert_eq!((outcome.name, outcome.exit.code), (name, 9));
    let mut dropped = started(&env, resolved, script);
    let name = dropped.started(&()).unwrap();
    dropped.take_output().unwrap().read_exact(&mut here).unwrap();
    drop(dropped);
    // It has ended, and what it did when it was stopped is recorded.
    let diff = env.sandtable().args(["diff", name.as_str(), "--name-status"]).ended().expect_code(0).stdout;
    assert_eq!(diff, "A\tended\n");
}

#[test]
fn what_fails_there_is_an_error_here() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("source");
    let job = |resolved, command: &str| Job {
        resolved,
        name: None,
        command: vec![command.into()],
        streams: JobStreams::Log,
    };
    let lost =
        spawn(env.binary(), &sandboxes(&env), job(resolved(&env, &source), "no-such-program")).unwrap();
    let error = lost.wait(&()).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        ("command-not-found", "command not found: `no-such-program`")
    );
    let nobody = env.root().join("nobody");
    let error = spawn(&nobody, &sandboxes(&env), job(resolved(&env, &source), "true")).unwrap_err();
    assert!(matches!(&error, SpawnError::Start { executable, .. } if *executable == nobody), "{error}");
    // Another program does not answer.
    let error = spawn(Path::new("/bin/true"), &sandboxes(&env), job(resolved(&env, &source), "true"));
    match error.map(|spawned| spawned.wait(&()).unwrap_err()) {
        Err(SpawnError::Start { .. }) | Ok(SpawnError::Lost(_)) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_command_writes_ends_with_it_and_not_with_the_recording_of_its_state() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("source");
    let resolved = resolved(&env, &source);
    let held_back = held_back(&env, &source);
    let late = "echo early; (sleep 0.3; echo late; echo errors >&2) & wait";
    // The lock goes first, also where this fails: the other one waits for its end.
    let (mut spawned, held_back) = (started(&env, resolved, late), held_back);
    let (mut output, mut errors) = (spawned.take_output().unwrap(), spawned.take_errors().unwrap());
    let said = in_time(move || {
        let (mut said, mut wrong) = (String::new(), String::new());
        output.read_to_string(&mut said).unwrap();
        errors.read_to_string(&mut wrong).unwrap();
        said + &wrong
    });
    assert_eq!(said, "early\nlate\nerrors\n");
    std::thread::sleep(LONG);
    drop(held_back);
    let outcome = in_time(move || spawned.wait(&())).unwrap();
    assert!(outcome.snapshot.is_some(), "{outcome:?}");
}

#[test]
fn a_command_can_be_stopped_whose_state_takes_long_to_record() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("source");
    let resolved = resolved(&env, &source);
    let held_back = held_back(&env, &source);
    let mut spawned = started(&env, resolved, "trap 'exit 9' TERM; while :; do sleep 0.1; done");
    spawned.started(&()).unwrap();
    let later = std::thread::spawn(move || {
        std::thread::sleep(LONG);
        drop(held_back);
    });
    spawned.stop(Duration::from_secs(10)).unwrap();
    assert_eq!(spawned.wait(&()).unwrap().exit.code, 9);
    later.join().unwrap();
}

/// What is said of a copy before the command runs is heard by nobody here.
#[test]
fn output_can_be_read_first_where_the_source_is_copied() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("source");
    for number in 0..3000 {
        env.file(&source.join(format!("many/{number}")), "");
    }
    let mut spawned = started(&env, resolved_with(&env, &source, &["--mode", "copy"]), "echo here");
    let mut output = spawned.take_output().unwrap();
    let said = in_time(move || {
        let mut said = String::new();
        output.read_to_string(&mut said).map(|_| said)
    });
    assert_eq!(said.unwrap(), "here\n");
    assert_eq!(in_time(move || spawned.wait(&())).unwrap().exit.code, 0);
}

#[test]
fn nothing_is_copied_or_started_for_a_caller_who_is_gone() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("source");
    for mode in ["overlay", "copy"] {
        let resolved = resolved_with(&env, &source, &["--mode", mode]);
        drop(started(&env, resolved, "true"));
        assert!(sandboxes(&env).names().unwrap().is_empty(), "{mode}");
    }
}

#[test]
fn a_command_that_has_ended_is_stopped_without_a_word_and_nobody_elses_with_it() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("source");
    let resolved = resolved_with(&env, &source, &["--rm"]);
    let mut first = started_as(&env, resolved.clone(), "true", Some("ci"));
    first.started(&()).unwrap();
    while !sandboxes(&env).names().unwrap().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    // There is no such sandbox now, and then another one with that name.
    first.stop(Duration::from_secs(10)).unwrap();
    let mut second =
        started_as(&env, resolved, "trap 'exit 9' TERM; while :; do sleep 0.1; done", Some("ci"));
    second.started(&()).unwrap();
    first.stop(Duration::from_secs(10)).unwrap();
    assert_eq!(first.wait(&()).unwrap().exit.code, 0);
    let ls = env.sandtable().args(["ls", "--json"]).ended().expect_code(0).stdout;
    assert!(ls.contains("\"running\""), "{ls}");
    second.stop(Duration::from_secs(10)).unwrap();
    assert_eq!(second.wait(&()).unwrap().exit.code, 9);
    // One that is kept is there, and does not run.
    let mut kept = started(&env, resolved_with(&env, &source, &[]), "true");
    let name = kept.started(&()).unwrap();
    while env
        .sandtable()
        .args(["inspect", name.as_str()])
        .ended()
        .expect_code(0)
        .stdout
        .contains("\"running\"")
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    kept.stop(Duration::from_secs(10)).unwrap();
    assert_eq!(kept.wait(&()).unwrap().exit.code, 0);
}
