//! What people and agents write as text: rules, settings, recipes, plans, and the frames of our own protocol.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use sandtable_launch::transport;
use sandtable_protocol::wire::{Ask, Tell};
use sandtable_sandbox::model::platform::Os;
use sandtable_store::ignore::{EntryKind, Rules};
use sandtable_store::source::attributes::Conversions;
use sandtable_testkit::counts;
use sandtable_testkit::env::TestEnv;
use sandtable_testkit::fuzz::{Dice, broken, fuzz, seed};
use sandtable_testkit::require::skip;
use sandtable_tools::assemble::Shelf;
use sandtable_tools::builtin;
use sandtable_tools::plan::{Arch, Libc, Plan, PlanPlatform};
use sandtable_tools::recipe::Recipe;

/// Where the plans are for.
const PLATFORM: PlanPlatform =
    PlanPlatform { os: Os::Linux, arch: Arch::X86_64, libc: Libc::Glibc, linux_family: None };
const PATHS: [&[u8]; 5] = [b"a", b"a/b", b"target/debug/x", b"[", b"\xff\xfe/\\"];

#[test]
fn rules_about_ignored_files() {
    let sample = b"# comment\n*.o\n!keep.o\n/target/\n**/x[a-z]?\\!\na/**/b\n[!x]\\ \n".to_vec();
    fuzz("ignore", &[sample, b"[[:alpha:]]*\n".to_vec()], |bytes| {
        let Some(rules) = Rules::default().and(bytes, b"") else { return };
        for path in PATHS {
            let _verdicts = [EntryKind::Directory, EntryKind::Other].map(|kind| rules.verdict(path, kind));
        }
    });
}

#[test]
fn attributes_of_files() {
    let sample = b"*.txt text eol=crlf\n*.bin -text\n[attr]big filter=lfs\n/a/** big !text\n".to_vec();
    fuzz("attributes", &[sample], |bytes| {
        let rules = Conversions::default().and(bytes, b"");
        for path in PATHS {
            let _conversion = rules.of(path);
        }
    });
}

#[test]
fn tool_recipes() {
    let recipes: Vec<Vec<u8>> = builtin::texts().map(|(_, text)| text.as_bytes().to_vec()).collect();
    fuzz("recipe", &recipes, |bytes| {
        let Ok(text) = str::from_utf8(bytes) else { return };
        if let Ok(recipe) = Recipe::parse(text) {
            assert!(!recipe.title().is_empty());
        }
    });
}

#[test]
fn tool_plans() {
    let shelf = Shelf::new(builtin::recipes(), &[]).unwrap();
    let plans = builtin::recipes().iter().filter_map(|recipe| shelf.plan(recipe, PLATFORM).ok());
    let samples: Vec<Vec<u8>> = plans.map(|plan| plan.to_json().into_bytes()).collect();
    fuzz("plan", &samples, |bytes| {
        let Ok(text) = str::from_utf8(bytes) else { return };
        if let Ok(plan) = Plan::from_json(text) {
            assert_eq!(Plan::from_json(&plan.to_json()).unwrap().to_json(), plan.to_json());
        }
    });
}

#[test]
fn frames_of_the_protocol() {
    let (here, mut there) = UnixStream::pair().unwrap();
    transport::send(&here, &Ask::Freeze, &[]).unwrap();
    let mut sample = vec![0; 64];
    let length = std::io::Read::read(&mut there, &mut sample).unwrap();
    sample.truncate(length);
    let tell = br#"{"ended":{"code":0}}"#;
    let tell = [&u32::try_from(tell.len()).unwrap().to_le_bytes()[..], tell].concat();
    fuzz("wire", &[sample, tell], |bytes| {
        let arriving = || {
            let (mut from, to) = UnixStream::pair().unwrap();
            from.write_all(bytes).unwrap();
            to
        };
        drop(transport::receive::<Ask>(arriving()));
        drop(transport::receive::<Tell>(arriving()));
    });
}

/// The settings of a project and of a user, through the real executable.
#[test]
fn settings() {
    let Some(env) = TestEnv::of_the_executable() else { return skip("the executable") };
    let repository = env.repository("repo");
    let sample = "profile = \"build\"\nnetwork = \"none\"\nhide = [\"secret\", \"*.pem\"]\npass_env = [\"TERM\"]\n\
                  mode = \"overlay\"\n[limits]\nmemory = \"1g\"\npids = 64\n[profiles.own]\nbase = \"safe\"\n";
    let seeds = [sample.as_bytes().to_vec()];
    let seed = seed();
    let mut dice = Dice::new(seed);
    for _ in 0..counts::of("fuzz-calls") {
        let text = broken(&seeds, &mut dice);
        env.file(&repository.join(".sandtable.toml"), &text);
        let ended = env.sandtable().directory(&repository).args(["policy", "show"]).ended();
        let code = ended.code;
        assert!(matches!(code, 0 | 2 | 125), "seed {seed}: {code} for {}", text.escape_ascii());
    }
}
