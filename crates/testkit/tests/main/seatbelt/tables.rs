//! Random tables of mounts: each is what its profile says.

use proptest::prelude::*;
use sandtable_sandbox::engine::seatbelt::lower;
use sandtable_sandbox::model::layer::LayerName;
use sandtable_sandbox::model::mount::{Content, HostAccess, Mount, MountTable};
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::model::seatbelt::SeatbeltProfile;
use sandtable_sandbox::model::setting::Origin;

use super::{disagreement, host, inside, place, resolved, spec, with};

/// A path of a few odd names below a few tops.
fn some_path() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "a",
        "b",
        "ab",
        "A",
        "q\"t",
        "back\\s",
        "new\nline",
        "paren)",
        "é",
        ".gitconfig",
    ]);
    let top = prop::sample::select(vec!["/Users/ann", "/private/tmp", "/opt", "/dev"]);
    (top, prop::collection::vec(name, 0..4))
        .prop_map(|(top, names)| names.iter().fold(top.to_owned(), |path, name| format!("{path}/{name}")))
}

/// Which content; the path is that of the mount.
fn some_content() -> impl Strategy<Value = u8> {
    0_u8..8
}

fn content(kind: u8, path: &str, index: usize) -> Content {
    match kind {
        0 | 1 => host(path, HostAccess::Read),
        2 | 3 => host(path, HostAccess::Write),
        4 => Content::Masked,
        5 => Content::Private { area: format!("area-{index}") },
        6 => Content::Copy {
            source: HostPath::new(path).unwrap(),
            layer: LayerName::Mount(index),
            identity: None,
        },
        _ => Content::Text { contents: "text".to_owned() },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_table_is_what_its_profile_says(
        asked in prop::collection::vec((some_path(), some_content()), 1..8),
        devices in any::<bool>(),
        tried in prop::collection::vec(some_path(), 1..20),
        name in prop::sample::select(SeatbeltProfile::ALL),
    ) {
        let mut mounts: Vec<Mount> = Vec::new();
        let of_devices = devices.then(|| ("/dev".to_owned(), Content::Devices));
        let asked = asked.iter().filter(|(path, _)| !path.starts_with("/dev")).enumerate();
        let asked = asked.map(|(index, (path, kind))| (path.clone(), content(*kind, path, index)));
        for (path, content) in of_devices.into_iter().chain(asked) {
            let mount = Mount { target: inside(&path), content, reason: "a test".to_owned(), origin: Origin::Default };
            let more: Vec<Mount> = mounts.iter().cloned().chain([mount]).collect();
            // What contradicts the others is left out: no table holds it.
            if MountTable::new(more.clone()).is_ok() {
                mounts = more;
            }
        }
        let mut paths = tried.clone();
        for mount in &mounts {
            let path = mount.target.to_string();
            paths.extend([format!("{path}/below"), format!("{path}x"), path]);
        }
        let mut resolved = with(&resolved(&spec()).unwrap(), mounts);
        resolved.seatbelt = Some(name);
        let plan = lower(&resolved, &place()).unwrap();
        prop_assert_eq!(disagreement(&resolved.mounts, &plan, &paths), None);
    }
}
