//! The comparison of two states against the simplest one, and its patches against git.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Stdio;

use rustix::io::Errno;

use crate::states::{self, Plain, Thing, Zoo, changed, look, path, put_on_disk, random, set, state};
use crate::support::{Dice, setting};
use sandtable_store::diff::render::{self, Content};
use sandtable_store::diff::{ChangeKind, Diff, DiffOptions, Flag, Record, Renames, diff};
use sandtable_store::object::{Memory, ObjectKind, ReadObjects as _};

fn compared(old: &Plain, new: &Plain, options: &DiffOptions) -> (Memory, Diff) {
    let objects = Memory::default();
    let (from, to) = (state(&objects, old), state(&objects, new));
    let diff = diff(&objects, &from, &to, options).unwrap();
    (objects, diff)
}

fn patch(objects: &Memory, diff: &Diff, content: Content) -> (String, render::Rendered) {
    let mut out = Vec::new();
    let options = render::RenderOptions { content, ..render::RenderOptions::default() };
    let rendered = render::unified(&mut out, objects, diff, &options).unwrap();
    (String::from_utf8_lossy(&out).into_owned(), rendered)
}

/// What must be found, from the maps alone.
fn expected(old: &Plain, new: &Plain) -> BTreeMap<Vec<u8>, ChangeKind> {
    let mut all = BTreeMap::new();
    let empty = |plain: &Plain, path| !plain.keys().any(|other| states::below(other, path));
    let said = |plain: &Plain, path, thing: &Thing| {
        thing.kind != 'd' || thing.bits != 0o755 || !thing.attributes.is_empty() || empty(plain, path)
    };
    for (path, thing) in old {
        let kind = match new.get(path) {
            None if said(old, path, thing) => ChangeKind::Removed,
            Some(other) if other.kind != thing.kind => ChangeKind::TypeChanged,
            Some(other) if other.data != thing.data => ChangeKind::Modified,
            Some(other) if (other.bits, &other.attributes) != (thing.bits, &thing.attributes) => {
                ChangeKind::ModeChanged
            }
            _ => continue,
        };
        all.insert(path.as_bytes().to_vec(), kind);
    }
    for (path, thing) in new {
        if !old.contains_key(path) && said(new, path, thing) {
            all.insert(path.as_bytes().to_vec(), ChangeKind::Added);
        }
    }
    all
}

#[test]
fn random_trees_differ_as_their_maps_do() {
    let mut dice = Dice::any();
    for round in 0..setting("SANDTABLE_ROUNDS", 300) {
        let old = random(&mut dice, Zoo::Everything);
        let new = changed(&old, &mut dice, Zoo::Everything);
        let without = DiffOptions { renames: Renames::Ignore, ..DiffOptions::default() };
        let (objects, found) = compared(&old, &new, &without);
        sides_are_right(&objects, &found, (&old, &new));
        let kinds =
            found.changes.iter().map(|change| (change.path.as_bytes().to_vec(), change.kind)).collect();
        assert_eq!(expected(&old, &new), kinds, "round {round}");
        // A rename is a removal and an addition, whatever else.
        let (objects, paired) = compared(&old, &new, &DiffOptions::default());
        sides_are_right(&objects, &paired, (&old, &new));
        let mut apart = BTreeMap::new();
        for change in &paired.changes {
            if let Some(old_path) = &change.old_path {
                apart.insert(old_path.as_bytes().to_vec(), ChangeKind::Removed);
                apart.insert(change.path.as_bytes().to_vec(), ChangeKind::Added);
            } else {
                apart.insert(change.path.as_bytes().to_vec(), change.kind);
            }
        }
        assert_eq!(apart, expected(&old, &new), "round {round}");
    }
}

/// Each side of a change is there when its map has the path, and its id is that of the content there.
fn sides_are_right(objects: &Memory, diff: &Diff, maps: (&Plain, &Plain)) {
    for change in &diff.changes {
        let before = maps.0.get(change.old_path.as_ref().unwrap_or(&change.path));
        for (side, thing) in [(&change.old, before), (&change.new, maps.1.get(&change.path))] {
            let content = |id| objects.read_kind(&id, ObjectKind::Blob).unwrap();
            let said = side.as_ref().map(|side| side.id.map(content));
            let wanted = thing.map(|thing| (thing.kind != 'd').then(|| thing.data.clone()));
            assert_eq!(said, wanted, "{change:?}");
        }
    }
}

/// Without directories, which git does not know.
fn files(plain: &Plain) -> Plain {
    let mut plain = states::timeless(plain);
    plain.retain(|_, thing| thing.kind != 'd');
    plain
}

#[expect(clippy::disallowed_methods, reason = "git is the judge here, and a crate below has no runner")]
fn git_apply(dir: &Path, patch: &[u8]) -> String {
    use std::io::Write as _;
    let mut child = std::process::Command::new("git")
        .args(["apply", "--whitespace=nowarn", "-"])
        .current_dir(dir)
        .env("GIT_CEILING_DIRECTORIES", dir.parent().unwrap())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(patch).unwrap();
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    said
}

#[test]
fn git_applies_an_exact_patch_to_the_same_tree() {
    let mut dice = Dice::any();
    let mut applied = 0;
    for round in 0..setting("SANDTABLE_ROUNDS", 120) {
        let old = random(&mut dice, Zoo::Text);
        let new = changed(&old, &mut dice, Zoo::Text);
        let (objects, found) = compared(&old, &new, &DiffOptions::default());
        let content = if round % 2 == 0 { Content::Exact } else { Content::Escaped };
        let mut out = Vec::new();
        let options = render::RenderOptions { content, ..render::RenderOptions::default() };
        let rendered = render::unified(&mut out, &objects, &found, &options).unwrap();
        // Directories that became empty are told, and no patch can make them.
        let directories =
            found.changes.iter().any(|change| change.entry() == sandtable_store::diff::EntryType::Directory);
        assert!(
            content == Content::Escaped || rendered.exact || directories || mentions_directory(&found),
            "round {round}"
        );
        if out.is_empty() || !(rendered.exact || content == Content::Exact) || !out.starts_with(b"diff") {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        put_on_disk(dir.path(), &old);
        if blocked_by_a_loop(dir.path(), &new) {
            continue;
        }
        let said = git_apply(dir.path(), &out);
        let text = String::from_utf8_lossy(&out);
        assert_eq!(files(&look(dir.path())), files(&new), "round {round}: {said}\n{text}");
        applied += 1;
    }
    assert!(applied > 20, "only {applied} patches were exact");
}

/// Where the old tree has a link to itself and the new one a directory, git applies not even its own patch: it looks
/// for `link/file` before it removes `link`.
fn blocked_by_a_loop(dir: &Path, new: &Plain) -> bool {
    new.keys().any(|path| {
        let looked = std::fs::symlink_metadata(dir.join(OsStr::from_bytes(path.as_bytes())));
        looked.is_err_and(|error| error.raw_os_error() == Some(Errno::LOOP.raw_os_error()))
    })
}

fn mentions_directory(diff: &Diff) -> bool {
    let is_directory = |side: &Option<sandtable_store::diff::Side>| {
        side.as_ref().is_some_and(|side| side.entry == sandtable_store::diff::EntryType::Directory)
    };
    diff.changes.iter().any(|change| is_directory(&change.old) || is_directory(&change.new))
}

fn tree(entries: &[(&str, Thing)]) -> Plain {
    let mut plain = Plain::new();
    for (name, thing) in entries {
        set(&mut plain, &path(name), thing.clone());
    }
    plain
}

#[test]
fn renames_are_found_by_content_and_by_likeness() {
    let text = (0..20).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
    let old = tree(&[
        ("src/a", Thing::file(text.clone())),
        ("b", Thing::file("same\n")),
        ("empty", Thing::file("")),
    ]);
    let new = tree(&[
        ("lib/a", Thing::file(format!("{text}more\n"))),
        ("c", Thing { bits: 0o755, ..Thing::file("same\n") }),
        ("nothing", Thing::file("")),
    ]);
    let (objects, found) = compared(&old, &new, &DiffOptions::default());
    let mut out = Vec::new();
    render::name_status(&mut out, &found, render::Colour::Plain).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "R100\tb\tc\nD\tempty\nR096\tsrc/a\tlib/a\nA\tnothing\n");
    let (text, rendered) = patch(&objects, &found, Content::Escaped);
    assert!(rendered.exact, "{text}");
    assert!(text.contains("rename from b\nrename to c\n"), "{text}");
    let few = DiffOptions { pairs: 1, ..DiffOptions::default() };
    let (_, found) = compared(&old, &new, &few);
    assert_eq!(found.changes.iter().filter(|change| change.kind == ChangeKind::Renamed).count(), 1);
}

#[test]
fn what_a_terminal_would_obey_is_spelled_out_everywhere() {
    let old = Plain::new();
    let new = tree(&[("\u{1b}[2J\u{202e}x", Thing::file("\u{1b}]0;title\u{7}\r!\n\u{2066}\n"))]);
    let (objects, found) = compared(&old, &new, &DiffOptions::default());
    let (text, rendered) = patch(&objects, &found, Content::Escaped);
    assert!(!rendered.exact);
    let mut all = text.into_bytes();
    render::stat(&mut all, &found, render::Colour::Plain).unwrap();
    render::name_status(&mut all, &found, render::Colour::Plain).unwrap();
    let all = String::from_utf8(all).unwrap();
    let odd = |c: char| (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{2069}').contains(&c);
    assert!(!all.contains(odd), "{all:?}");
    let (exact, rendered) = patch(&objects, &found, Content::Exact);
    assert!(rendered.exact && exact.contains("\u{1b}]0;title"));
}

#[test]
fn large_binary_and_odd_entries_are_told_and_bounded() {
    let old = tree(&[
        ("big", Thing::file(vec![b'x'; 9 << 20])),
        ("bin", Thing::file(b"\0a".to_vec())),
        ("mode", Thing { bits: 0o600, ..Thing::file("m") }),
        ("link", Thing::link("a")),
    ]);
    let mut new = tree(&[
        ("big", Thing::file(vec![b'y'; 9 << 20])),
        ("bin", Thing::file(b"\0b".to_vec())),
        ("mode", Thing { bits: 0o640, ..Thing::file("m") }),
        ("link", Thing::file("a")),
        ("hollow", Thing::directory(0o700)),
    ]);
    new.get_mut(&path("mode")).unwrap().attributes.insert(b"user.a".to_vec(), b"1".to_vec());
    let (objects, found) = compared(&old, &new, &DiffOptions::default());
    assert!(found.truncated);
    let (text, rendered) = patch(&objects, &found, Content::Escaped);
    assert!(!rendered.exact && text.len() < 4000, "{}", text.len());
    for part in [
        "# big: too large to show",
        "Binary files a/big and b/big differ",
        "Binary files a/bin and b/bin differ",
        "# hollow: directory added, mode 0700",
        "# mode: mode 0600 before, 0640 now",
        "# mode: attributes changed",
        "deleted file mode 120000",
        "new file mode 100644",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let of = |name: &str| found.changes.iter().find(|change| change.path == path(name)).unwrap();
    assert_eq!(of("big").flags, [Flag::TooLarge]);
    assert!(of("bin").binary);
    assert_eq!(
        (of("mode").kind, &of("mode").flags[..]),
        (ChangeKind::ModeChanged, &[Flag::Mode, Flag::Attributes][..])
    );
    assert_eq!(of("link").kind, ChangeKind::TypeChanged);
    // Who asks for paths alone gets all of them.
    let (_, paths) = compared(&old, &new, &DiffOptions { file_bytes: 0, ..DiffOptions::default() });
    assert!(!paths.truncated && paths.changes.len() == found.changes.len());
    let cut = render::RenderOptions { output_bytes: 10, ..render::RenderOptions::default() };
    assert!(render::unified(&mut Vec::new(), &objects, &found, &cut).unwrap().truncated);
    // Within a hunk too, and within a line.
    let lines = "line\n".repeat(50_000);
    let long = "x".repeat(100_000);
    for text in [lines, long] {
        let (objects, one) =
            compared(&tree(&[]), &tree(&[("f", Thing::file(text.as_str()))]), &DiffOptions::default());
        let cut = render::RenderOptions { output_bytes: 2000, ..render::RenderOptions::default() };
        let mut out = Vec::new();
        let rendered = render::unified(&mut out, &objects, &one, &cut).unwrap();
        let text = String::from_utf8_lossy(&out);
        assert!(out.len() < 2500 && !rendered.exact && text.contains("\n# "), "{text}");
    }
    // A line of ten megabytes that may be read is still cut where it is shown.
    let wide = DiffOptions { file_bytes: 64 << 20, ..DiffOptions::default() };
    let (objects, found) = compared(&old, &new, &wide);
    assert!(!found.truncated);
    let wide = render::RenderOptions { file_bytes: 64 << 20, ..render::RenderOptions::default() };
    let mut out = Vec::new();
    assert!(!render::unified(&mut out, &objects, &found, &wide).unwrap().exact);
    assert!(out.len() < 20_000, "{}", out.len());
}

#[test]
fn the_record_has_what_the_interface_promises() {
    let old = tree(&[("a", Thing::file("1\n2\n")), ("e", Thing::directory(0o755))]);
    let mut new = tree(&[("a", Thing { bits: 0o755, ..Thing::file("1\n3\n4\n") })]);
    set(&mut new, &sandtable_store::RelPath::new(vec![b'x', 0xff]).unwrap(), Thing::file(""));
    let (_, found) = compared(&old, &new, &DiffOptions::default());
    let record = Record::new("one", "two", &found);
    let of = |name: &str| record.changes.iter().find(|change| change.path == name).unwrap();
    let a = of("a");
    assert_eq!((a.kind, a.entry, a.added_lines, a.removed_lines), ("modified", "file", 2, 1));
    let (old, new) = (a.old.as_ref().unwrap(), a.new.as_ref().unwrap());
    assert_eq!((old.mode.as_str(), old.size, new.mode.as_str(), new.size), ("100644", 4, "100755", 6));
    assert_eq!((of("e").kind, of("e").entry), ("removed", "directory"));
    let odd = of("x\u{fffd}");
    assert_eq!((odd.path_bytes.as_deref(), odd.kind), (Some("eP8="), "added"));
    assert!(!record.truncated && record.schema == 1);
}
