//! Made once, kept, checked on use, made again when it is gone.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::world::{World, libc, plan, possible, said};

#[test]
fn a_second_time_nothing_is_done() {
    if !possible() {
        return;
    }
    let world = World::new();
    let tool = plan("tool", "dep > /build/said", &[plan("dep", "", &[])]);
    let first = world.make(&tool);
    assert_eq!(first.counts(), (0, 2), "{first:?}");
    assert_eq!(first.answer["search"], json!(["/opt/sandtable/tools/tool-1/bin"]));
    let second = world.make(&tool);
    // The dependency was for making it only, so nobody asks for it any more.
    assert_eq!(second.counts(), (1, 0), "{second:?}");
    assert!(!second.stderr.contains("step") && second.stderr.contains("kept tool 1"), "{}", second.stderr);
    assert_eq!(second.source(), first.source());
}

#[test]
fn what_is_needed_for_use_comes_along() {
    if !possible() {
        return;
    }
    let world = World::new();
    let mut tool = plan("tool", "", &[plan("runtime", "", &[plan("deep", "", &[])])]);
    tool["provides"]["needs"] = json!(["runtime"]);
    let made = world.make(&tool);
    assert_eq!((made.counts(), &made.answer["needs"]), ((0, 3), &json!(["runtime"])), "{made:?}");
    assert_eq!(world.make(&tool).counts(), (2, 0));
}

/// Whoever comes second waits for the first, or finds what it made.
#[test]
fn of_two_at_once_one_makes_it() {
    if !possible() {
        return;
    }
    let world = World::new();
    let tool = plan("tool", "sleep 0.3", &[]);
    // The plan is written once, before anybody reads it.
    let call = world.call(&tool, &[]);
    let children: Vec<_> = (0..3).map(|_| call.started()).collect();
    let counts: Vec<(u64, u64)> = children.into_iter().map(|child| said(child).counts()).collect();
    assert_eq!(counts.iter().map(|(_, made)| made).sum::<u64>(), 1, "{counts:?}");
    assert_eq!(counts.iter().map(|(kept, _)| kept).sum::<u64>(), 2, "{counts:?}");
}

/// Waits until a build has begun its step, and says where it works.
fn begun(world: &World) -> std::path::PathBuf {
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        let begun = world
            .partials()
            .into_iter()
            .map(|path| path.join("work"))
            .find(|work| work.join("begun").exists());
        if let Some(work) = begun {
            return work;
        }
        assert!(Instant::now() < until, "no build began");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn after_a_kill_the_next_one_completes() {
    if !possible() {
        return;
    }
    let world = World::new();
    let tool = plan("tool", "touch begun; until [ -e go ]; do sleep 0.02; done", &[]);
    let mut killed = world.call(&tool, &[]).started();
    let old = begun(&world);
    killed.kill().unwrap();
    killed.wait().unwrap();
    fs_err::remove_file(old.join("begun")).unwrap();
    let second = world.call(&tool, &[]).started();
    fs_err::write(begun(&world).join("go"), "").unwrap();
    assert_eq!(said(second).counts(), (0, 1));
    assert!(world.partials().is_empty());
}

fn overwrite(path: &Path, bytes: &[u8]) {
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    fs_err::write(path, bytes).unwrap();
}

/// Corrupt, truncated, half-copied and deleted dependencies, each as the documentation says.
#[test]
fn a_dependency_that_is_not_as_it_was_made() {
    if !possible() {
        return;
    }
    let world = World::new();
    let dep = plan("dep", "", &[]);
    let tool = |name: &str| plan(name, "dep > /build/said", std::slice::from_ref(&dep));
    let source = world.make(&dep).source();
    let program = source.join("bin/dep");
    let good = fs_err::read(&program).unwrap();
    let flipped: Vec<u8> = good.iter().map(|byte| byte ^ 1).collect();
    for (harm, bytes) in [("flipped", &flipped[..]), ("truncated", &good[..4]), ("emptied", &[])] {
        overwrite(&program, bytes);
        let refused = world.make(&tool("tool"));
        assert_eq!(refused.answer["code"], "tool-corrupt", "{harm}: {refused:?}");
        assert!(
            refused.error().contains("`dep 1`") && refused.error().contains("`bin/dep`"),
            "{harm}: {refused:?}"
        );
    }
    overwrite(&program, &good);
    fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o555)).unwrap();
    assert_eq!(world.make(&tool("tool")).counts(), (1, 1), "as it was again");

    fs_err::remove_file(source.parent().unwrap().join("receipt.json")).unwrap();
    assert_eq!(world.make(&tool("other")).counts(), (0, 2), "half a copy does not count");
    let kept = world.make(&dep).source();
    fs_err::remove_dir_all(kept.parent().unwrap()).unwrap();
    assert_eq!(world.make(&tool("third")).counts(), (0, 2), "deleted, so made again");
}

/// One plan in all three modes, and what stays of each.
#[test]
fn dependencies_from_the_store_isolated_or_from_the_image() {
    if !possible() {
        return;
    }
    let tool = plan("tool", "command -v dep > found || true; cp found $out/", &[plan("dep", "", &[])]);
    let (world, store) = (World::new(), |world: &World| world.depot().join("store").exists());
    let kept = world.make_with(&tool, &["--deps", "store"]);
    assert_eq!(kept.counts(), (0, 2));
    let found = fs_err::read_to_string(kept.source().join("found")).unwrap();
    assert_eq!(found, "/opt/sandtable/tools/dep-1/bin/dep\n");
    assert!(kept.source().is_dir() && store(&world));

    let world = World::new();
    let isolated = world.make_with(&tool, &["--deps", "isolated"]);
    assert_eq!((isolated.counts(), &isolated.answer["exists"]), ((0, 2), &json!(true)));
    assert!(!isolated.source().exists() && !store(&world), "nothing stays");
    let left: Vec<_> = fs_err::read_dir(world.depot()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");

    let world = World::new();
    let image = world.make_with(&tool, &["--deps", "image"]);
    assert_eq!(image.counts(), (0, 1), "only what the image has");
    assert_eq!(fs_err::read_to_string(image.source().join("found")).unwrap(), "");
}

/// A source that is built with what the system has, where no dependency of ours is wanted.
#[test]
fn a_build_from_the_image_takes_the_compiler_of_the_image() {
    if !possible() {
        return;
    }
    let out = "/opt/sandtable/tools/hello-1";
    let script = "mkdir src && cd src && printf '#!/bin/sh\n' > configure && chmod 755 configure
        printf '#include <stdio.h>\nint main(void) { puts(\"hello works\"); return 0; }\n' > hello.c
        printf 'hello: hello.c\ninstall: hello\n\tmkdir -p %s/bin\n\tcp hello %s/bin/\n' $0 $0 > Makefile";
    let mut hello = plan("hello", "", &[]);
    hello["steps"] = json!([
        {"action": "run_command", "command": ["sh", "-c", script, out]},
        {"action": "configure_make", "source": "src", "outputs": ["bin/hello"]},
    ]);
    let world = World::new();
    let made = world.make_with(&hello, &["--deps", "image"]);
    assert_eq!(made.counts(), (0, 1), "{made:?}");
    assert!(fs_err::read(made.source().join("bin/hello")).unwrap().starts_with(b"\x7fELF"));
    let without = World::new().make_with(&hello, &["--deps", "store"]);
    assert!(without.error().contains("`make`"), "the machine's own are not seen otherwise: {without:?}");
}

#[test]
fn what_is_not_declared_is_named_and_what_is_not_used_too() {
    if !possible() {
        return;
    }
    let world = World::new();
    let deps = [plan("used", "", &[]), plan("idle", "", &[])];
    let made = world.make(&plan("tool", "used; no-such-thing --version || true", &deps));
    assert_eq!(made.notes(), ["tool 1 step 1 called no-such-thing", "tool 1 does not use idle"]);
    let failed = world.make(&plan("stops", "set -e; no-such-thing", &[]));
    assert!(
        failed.error().contains("called `no-such-thing`, which is not a declared dependency"),
        "{failed:?}"
    );
    let mut direct = plan("direct", "", &[]);
    direct["steps"][0]["command"] = json!(["m4-of-nobody"]);
    assert!(
        world
            .make(&direct)
            .error()
            .contains("step 1 called `m4-of-nobody`, which is not a declared dependency")
    );
}

/// A failing dependency is named with the chain that leads to it.
#[test]
fn the_chain_that_leads_to_a_failure_is_named() {
    if !possible() {
        return;
    }
    let world = World::new();
    let broken = plan("broken", "exit 3", &[]);
    let failed = world.make(&plan("top", "", &[plan("middle", "", &[broken])]));
    assert!(failed.error().starts_with("top → middle → broken: step 1 (`run_command`) failed"), "{failed:?}");
    assert_eq!(failed.answer["code"], "tool-step");
}

#[test]
fn what_does_not_work_is_not_kept() {
    if !possible() {
        return;
    }
    let world = World::new();
    let mut silent = plan("silent", "", &[]);
    silent["verify"][0]["patterns"] = json!(["something else"]);
    assert!(world.make(&silent).error().contains("`something else` is not in what it said: silent works"));
    let mut absent = plan("absent", "", &[]);
    absent["provides"]["binaries"] = json!(["bin/absent", "bin/more"]);
    assert!(world.make(&absent).error().contains("`bin/more` is not in what was made"));
    assert!(world.partials().is_empty());
    let wrong: Value = serde_json::from_str(
        &plan("wrong", "", &[])
            .to_string()
            .replace(&format!("\"{}\"", libc()), if libc() == "glibc" { "\"musl\"" } else { "\"glibc\"" }),
    )
    .unwrap();
    let refused = world.make(&wrong);
    assert_eq!(refused.answer["code"], "tool-platform");
    assert!(refused.answer["remedy"].as_str().unwrap().contains("`--libc`"), "{refused:?}");
}

#[test]
fn time_has_an_end() {
    if !possible() {
        return;
    }
    let world = World::new();
    let late = world.make_with(&plan("late", "sleep 600 & sleep 600", &[]), &["--timeout", "1"]);
    assert!(late.error().contains("it took longer than 1 s"), "{late:?}");
}
