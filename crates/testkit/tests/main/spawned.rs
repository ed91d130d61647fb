//! Sandboxes that a process with threads starts through the library.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::model::resolved::ResolvedSpec;
use sandtable_sandbox::session::spawn::{Job, JobStreams, SpawnError, Spawned, spawn};
use sandtable_sandbox::session::{Deaf, Error, Request, Sandboxes, Streams, run};
use sandtable_testkit::env::TestEnv;

/// How many sandboxes, and beside how many threads that are busy.
const SANDBOXES: usize = 200;
const BUSY: usize = 16;
/// How many of them at a time.
const AT_ONCE: usize = 4;

/// What a request for a sandbox of `source` means here.
fn resolved(env: &TestEnv, source: &Path) -> ResolvedSpec {
    let run = ["run", "--network", "none", "--dry-run", "--json", "--", "true"];
    let answer = env.sandtable().directory(source).args(run).ended().expect_code(0).stdout;
    let mut answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    serde_json::from_value(answer["resolved"].take()).unwrap()
}

fn sandboxes(env: &TestEnv) -> Sandboxes {
    Sandboxes::new(&HostPath::new(env.sandboxes().parent().unwrap()).unwrap())
}

fn started(env: &TestEnv, resolved: ResolvedSpec, script: &str) -> Spawned {
    let command = ["sh", "-c", script].map(OsString::from).to_vec();
    let job = Job { resolved, name: None, command, streams: JobStreams::Piped };
    spawn(env.binary(), &sandboxes(env), job).unwrap()
}

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
        let request = Request { command: &command, resolve_ms: 0, streams: Streams::Log, watcher: &Deaf };
        let refused = run(&sandboxes(&env), resolved, None, request).unwrap_err();
        over.store(true, Ordering::Relaxed);
        assert_eq!(refused.code(), "launch");
        assert!(refused.to_string().contains("one thread"), "{refused}");
        let Error::Launch(refused) = refused else { panic!("{refused}") };
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
                let outcome = spawned.wait(&Deaf).unwrap();
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
    let name = stopped.started(&Deaf).unwrap();
    let mut here = [0; 5];
    stopped.take_output().unwrap().read_exact(&mut here).unwrap();
    stopped.stop(Duration::from_secs(10)).unwrap();
    let outcome = stopped.wait(&Deaf).unwrap();
    assert_eq!((outcome.name, outcome.exit.code), (name, 9));
    let mut dropped = started(&env, resolved, script);
    let name = dropped.started(&Deaf).unwrap();
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
    let error = lost.wait(&Deaf).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        ("command-not-found", "command not found: `no-such-program`")
    );
    let nobody = env.root().join("nobody");
    let error = spawn(&nobody, &sandboxes(&env), job(resolved(&env, &source), "true")).unwrap_err();
    assert!(matches!(&error, SpawnError::Start { executable, .. } if *executable == nobody), "{error}");
    // Another program does not answer.
    let error = spawn(Path::new("/bin/true"), &sandboxes(&env), job(resolved(&env, &source), "true"));
    match error.map(|spawned| spawned.wait(&Deaf).unwrap_err()) {
        Err(SpawnError::Start { .. }) | Ok(SpawnError::Lost(_)) => {}
        other => panic!("{other:?}"),
    }
}
