//! The hand-over of the seed, with two temporary repositories: a proof names a snapshot, the snapshot is merged, and an
//! event tells what came of it.

use sandtable_merge::{Mode, execute_merge};
use serde_json::{Value, json};

use crate::world::World;

/// What listens for proofs.
fn on_event(world: &World, event: &Value, base: sandtable_store::id::ObjectId) -> Value {
    assert_eq!(event["type"], "QED.EMITTED");
    let snapshot = event["snap_sha"].as_str().unwrap().parse().unwrap();
    let outcome = execute_merge(&world.means, &world.request_of(base, snapshot, Mode::Merge)).unwrap();
    let answer = serde_json::to_value(&outcome).unwrap();
    let kind = if outcome.success { "MERGE.SUCCEEDED" } else { "MERGE.FAILED" };
    json!({ "type": kind, "snap_sha": event["snap_sha"], "payload": answer })
}

#[test]
fn a_proof_becomes_a_merge_and_an_event() {
    let world = World::new();
    let base = world.enter();
    world.inside_write("README", "Proven.\n");
    let proven = world.snapshot(&world.inside(), Some(&base));
    let result = on_event(&world, &json!({ "type": "QED.EMITTED", "snap_sha": proven.to_string() }), base);
    assert_eq!(result["type"], "MERGE.SUCCEEDED");
    let payload = &result["payload"];
    assert_eq!((payload["success"].as_bool(), payload["conflict"].as_bool()), (Some(true), Some(false)));
    assert!(payload["message"].as_str().unwrap().contains("1 file"));
    assert_eq!(payload["outcome"]["status"], "fast_forward");
    assert_eq!(world.read("README"), "Proven.\n");

    world.inside_write("README", "Proven again.\n");
    let proven = world.snapshot(&world.inside(), Some(&base));
    world.write("README", "Somebody was faster.\n");
    world.commit("faster");
    let result = on_event(&world, &json!({ "type": "QED.EMITTED", "snap_sha": proven.to_string() }), base);
    assert_eq!(
        (result["type"].as_str(), result["payload"]["conflict"].as_bool()),
        (Some("MERGE.FAILED"), Some(true))
    );
    assert_eq!(result["payload"]["outcome"]["conflicts"][0]["path"], "README");
    assert_eq!(world.read("README"), "Somebody was faster.\n");
}
