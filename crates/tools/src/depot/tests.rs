use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::plan::key::KeyContext;

/// Nothing else is done.
const ALONE: Around<'_> = Around { waiting: &|| {}, clear: &|_| {}, failures: Failures::Removed };

struct World {
    _place: tempfile::TempDir,
    depot: Depot,
    plan: Plan,
    key: PlanKey,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = HostPath::new(place.path().join("with space")).unwrap();
        let plan: Plan = serde_json::from_value(serde_json::json!({
            "format": 1, "name": "tool", "version": "1",
            "platform": {"os": "linux", "arch": "x86_64", "libc": "glibc"},
            "steps": [], "provides": {"binaries": ["bin/tool"]},
        }))
        .unwrap();
        let key = plan.key(KeyContext { root_digest: "root", executor_version: 1 });
        Self { _place: place, depot: Depot::new(root), plan, key }
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted { plan: &self.plan, key: self.key, needs: BTreeSet::new(), made_on: None }
    }

    fn obtain(&self, fill: impl FnOnce(&Path)) -> Result<(ProvidedDep, Origin), DepotError> {
        self.depot.obtain(&self.wanted(), &ALONE, |workplace| {
            fill(workplace.output.as_path());
            Ok(())
        })
    }

    fn made(&self) -> HostPath {
        let (made, origin) = self.obtain(good).unwrap();
        assert_eq!(origin, Origin::Made);
        made.source
    }
}

fn good(output: &Path) {
    fs::create_dir_all(output.join("bin")).unwrap();
    fs::create_dir_all(output.join("bin-more")).unwrap();
    fs::write(output.join("bin/tool"), "program").unwrap();
    fs::write(output.join("bin-more/data"), "data").unwrap();
    fs::set_permissions(output.join("bin/tool"), std::fs::Permissions::from_mode(0o4775)).unwrap();
    fs::os::unix::fs::symlink("../bin/tool", output.join("bin-more/link")).unwrap();
}

#[test]
fn a_tool_is_made_once_and_is_read_only() {
    let world = World::new();
    let source = world.made();
    let mode = |name: &str| fs::metadata(source.join(name).as_path()).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("bin/tool"), mode("bin"), mode("bin-more/data")), (0o555, 0o555, 0o444));
    let (again, origin) = world.obtain(|_| panic!("made twice")).unwrap();
    assert_eq!((again.source, origin), (source, Origin::Kept));
    let listed = world.depot.list().unwrap();
    assert_eq!((listed.len(), listed[0].files, listed[0].bytes), (1, 2, 11));
    world.depot.verify(&listed[0]).unwrap();
}

/// Replaces a read-only file as somebody would who may.
fn overwrite(path: &HostPath, text: &str) {
    fs::set_permissions(path.as_path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(path.as_path(), text).unwrap();
    fs::set_permissions(path.as_path(), std::fs::Permissions::from_mode(0o555)).unwrap();
}

#[test]
fn what_is_not_as_it_was_made_is_refused_by_name() {
    let why = |harm: &dyn Fn(&HostPath)| {
        let world = World::new();
        let source = world.made();
        harm(&source);
        let error = world.obtain(|_| panic!("made again")).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(error.to_string(), "the kept tool `tool 1` is not what was made");
        let receipt = &world.depot.list().unwrap()[0];
        assert_eq!(
            std::error::Error::source(&world.depot.verify(receipt).unwrap_err()).unwrap().to_string(),
            cause
        );
        cause
    };
    let writable =
        |path: HostPath| fs::set_permissions(path.as_path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(
        why(&|source| overwrite(&source.join("bin/tool"), "prograM")),
        "`bin/tool` has another content"
    );
    assert_eq!(why(&|source| overwrite(&source.join("bin/tool"), "pro")), "`bin/tool` has another content");
    assert_eq!(
        why(&|source| {
            writable(source.join("bin-more"));
            fs::remove_file(source.join("bin-more/data").as_path()).unwrap();
        }),
        "`bin-more/data` is missing"
    );
    assert_eq!(
        why(&|source| {
            writable(source.join("bin"));
            fs::write(source.join("bin/more").as_path(), "x").unwrap();
        }),
        "`bin/more` was added"
    );
}

#[test]
fn what_was_touched_but_not_changed_is_used() {
    let world = World::new();
    let source = world.made();
    overwrite(&source.join("bin/tool"), "program");
    assert_eq!(world.obtain(|_| panic!("made again")).unwrap().1, Origin::Kept);
}

#[test]
fn what_is_deleted_or_half_finished_is_made_again() {
    let world = World::new();
    let source = world.made();
    let place = source.parent().unwrap();
    remove_tree(place.as_path()).unwrap();
    assert_eq!(world.obtain(good).unwrap().1, Origin::Made);
    // A copy that lacks the receipt was never complete.
    fs::remove_file(place.join(RECEIPT).as_path()).unwrap();
    assert_eq!(world.obtain(good).unwrap().1, Origin::Made);
    let failed: Result<_, DepotError> =
        world.depot.obtain(&Wanted { key: other_key(&world.plan), ..world.wanted() }, &ALONE, |_| {
            Err(DepotError::file("test", "x")(io::ErrorKind::Other.into()))
        });
    assert!(failed.is_err());
    assert_eq!(world.depot.list().unwrap().len(), 1);
    let left: Vec<_> = fs::read_dir(world.depot.root().join(STORE).as_path()).unwrap().flatten().collect();
    assert!(left.iter().all(|entry| !entry.file_name().to_string_lossy().ends_with(PARTIAL)));
}

fn other_key(plan: &Plan) -> PlanKey {
    plan.key(KeyContext { root_digest: "another", executor_version: 1 })
}

#[test]
fn one_makes_it_and_the_others_wait() {
    let world = World::new();
    let (made, kept) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let (_, origin) = world
                    .obtain(|output| {
                        made.fetch_add(1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(50));
                        good(output);
                    })
                    .unwrap();
                if origin == Origin::Kept {
                    kept.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!((made.into_inner(), kept.into_inner()), (1, 3));
}

#[test]
fn what_no_tool_may_hold_is_refused() {
    let refused = |fill: &dyn Fn(&Path)| {
        let world = World::new();
        let error = world.obtain(|output| fill(output)).unwrap_err();
        assert!(world.depot.list().unwrap().is_empty());
        std::error::Error::source(&error).unwrap().to_string()
    };
    let link =
        |to: &'static str| move |output: &Path| fs::os::unix::fs::symlink(to, output.join("link")).unwrap();
    assert!(refused(&link("/etc/passwd")).contains("leads out"));
    assert!(refused(&link("../outside")).contains("leads out"));
    assert!(refused(&link("/opt/sandtable/tools/../../etc")).contains("leads out"));
    let pipe = |output: &Path| {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            output.join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
    };
    assert!(refused(&pipe).contains("pipe"));
    let world = World::new();
    world.obtain(|output| link("/opt/sandtable/tools/zlib-1/lib")(output)).unwrap();
}

#[test]
fn a_collection_keeps_what_is_needed() {
    let world = World::new();
    world.made();
    let other = other_key(&world.plan);
    let needed = Wanted { plan: &world.plan, key: other, needs: BTreeSet::from([world.key]), made_on: None };
    world
        .depot
        .obtain::<DepotError>(&needed, &ALONE, |workplace| {
            good(workplace.output.as_path());
            Ok(())
        })
        .unwrap();
    let collect = |keep: &[PlanKey], unused: u64, fate| {
        let keep = keep.iter().copied().collect();
        let found = world.depot.collect(&keep, Duration::from_secs(unused), fate).unwrap();
        found.iter().map(|found| found.key).collect::<BTreeSet<_>>()
    };
    assert_eq!(collect(&[], 1000, Fate::Removed), BTreeSet::new(), "used just now");
    assert_eq!(collect(&[other], 0, Fate::Listed), BTreeSet::new(), "needed by what is kept");
    assert_eq!(collect(&[world.key], 0, Fate::Removed), BTreeSet::from([other]));
    assert_eq!(world.depot.list().unwrap().len(), 1);
}
