//! Every attack on every engine, and on none. Each test ends with a count.

use sandtable_testkit::conformance::container::{self, Container};
use sandtable_testkit::conformance::{self, Engine, Stage, Verdict, native::Native, null};
use sandtable_testkit::container::{Contained, Kind};
use sandtable_testkit::counts;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::require;

#[test]
fn native_stops_every_attack() {
    native(Caller::Same);
}

#[test]
fn native_stops_every_attack_for_an_ordinary_user() {
    native(Caller::ordinary());
}

#[test]
fn docker_stops_what_it_promises_to() {
    contained(Kind::Docker, Caller::Same);
}

#[test]
fn docker_stops_what_it_promises_to_for_an_ordinary_user() {
    contained(Kind::Docker, Caller::ordinary());
}

#[test]
fn podman_stops_what_it_promises_to() {
    contained(Kind::Podman, Caller::Same);
}

#[test]
fn podman_stops_what_it_promises_to_for_an_ordinary_user() {
    contained(Kind::Podman, Caller::ordinary());
}

#[test]
fn docker_stops_with_a_way_out_what_it_promises_to() {
    with_way_out(Kind::Docker, Caller::Same);
}

#[test]
fn docker_stops_with_a_way_out_what_it_promises_to_for_an_ordinary_user() {
    with_way_out(Kind::Docker, Caller::ordinary());
}

#[test]
fn podman_stops_with_a_way_out_what_it_promises_to() {
    with_way_out(Kind::Podman, Caller::Same);
}

#[test]
fn podman_stops_with_a_way_out_what_it_promises_to_for_an_ordinary_user() {
    with_way_out(Kind::Podman, Caller::ordinary());
}

fn with_way_out(kind: Kind, caller: Caller) {
    let Some(world) = Contained::with_way_out(kind, caller) else { return };
    let engine = Container::of(&world);
    let mut stage = Stage::set_contained(world);
    judge(&engine, &conformance::run_some(&engine, &mut stage, counts::of("nat-cases")));
}

/// Every case on a container engine. What comes out differently than on the native engine is a line of the
/// table, with its reason, or a failure.
fn contained(kind: Kind, caller: Caller) {
    let Some(world) = Contained::new(kind, caller) else { return };
    let engine = Container::of(&world);
    let mut stage = Stage::set_contained(world);
    judge(&engine, &conformance::run(&engine, &mut stage));
}

fn judge(engine: &dyn Engine, verdicts: &[Verdict]) {
    require::say(&conformance::summary(engine, verdicts));
    let odd = |verdict: &&Verdict| !container::is_as_known(engine, verdict);
    let odd: Vec<String> = verdicts.iter().filter(odd).map(Verdict::describe).collect();
    assert!(odd.is_empty(), "{}: {}", engine.name(), odd.join("\n"));
}

/// The page and the suite say the same.
#[test]
fn the_differences_between_engines_are_in_the_threat_model() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/threat-model.md");
    let page = fs_err::read_to_string(path).unwrap();
    assert!(
        page.contains(&container::table()),
        "docs/threat-model.md has no such table:\n{}",
        container::table()
    );
}

/// Outside it starts itself again in the throw-away container; inside it runs the cases.
#[test]
fn without_a_sandbox_every_claim_leaks() {
    if null::is_inside() {
        return inside_null();
    }
    if let Some(why) = null::obstacle() {
        return require::skip(&why);
    }
    let Some(binary) = require::sandtable() else {
        return require::skip("no executable: build it or set SANDTABLE_BIN");
    };
    let ended = null::enter("conformance::without_a_sandbox_every_claim_leaks", &binary);
    require::say(ended.stderr.trim_end());
    let ended = ended.expect_code(0);
    assert!(ended.stderr.contains("conformance null:"), "no count: {}", ended.stdout);
}

fn inside_null() {
    let binary = require::sandtable().expect("given by the outside");
    let mut stage = Stage::set(TestEnv::new(&binary, Caller::Same));
    let verdicts = conformance::run(&null::NullEngine, &mut stage);
    require::say(&null::summary(&verdicts));
    assert!(verdicts.iter().all(|verdict| null::worth(verdict) != null::Worth::ProvesNothing));
}

fn native(caller: Caller) {
    let Some(env) = TestEnv::of_the_executable_as(caller) else { return };
    let engine = Native { caller };
    let mut stage = Stage::set(env);
    let verdicts = conformance::run(&engine, &mut stage);
    let engine: &dyn Engine = &engine;
    let summary = conformance::summary(engine, &verdicts);
    require::say(&summary);
    assert!(verdicts.iter().all(Verdict::is_as_expected), "{summary}");
}
