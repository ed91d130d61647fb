//! States as plain maps: made at random, turned into objects, put on a disk and read from it again, each the simplest
//! way there is, so that what is tested can be held against it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Timespec, Timestamps, XattrFlags, lgetxattr, llistxattr, setxattr, utimensat,
};
use sandtable_store::RelPath;
use sandtable_store::object::{Memory, ObjectKind, WriteObjects as _};
use sandtable_store::state::edit::{Editor, apply};
use sandtable_store::state::{Attribute, Attributes, Node, Own, State, What};

use crate::support::Dice;

/// Everything below the top, directories too.
pub(crate) type Plain = BTreeMap<RelPath, Thing>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Thing {
    /// `f`, `l` or `d`.
    pub(crate) kind: char,
    pub(crate) data: Vec<u8>,
    pub(crate) bits: u16,
    pub(crate) attributes: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) mtime_ns: i64,
}

pub(crate) fn path(text: &str) -> RelPath {
    RelPath::new(text).unwrap()
}

pub(crate) fn at(root: &Path, path: &RelPath) -> PathBuf {
    root.join(OsStr::from_bytes(path.as_bytes()))
}

impl Thing {
    pub(crate) fn file(data: impl Into<Vec<u8>>) -> Self {
        Self {
            kind: 'f',
            data: data.into(),
            bits: 0o644,
            attributes: BTreeMap::new(),
            mtime_ns: 1_000_000_007,
        }
    }

    pub(crate) fn link(target: &str) -> Self {
        Self { kind: 'l', bits: 0o777, ..Self::file(target) }
    }

    pub(crate) fn directory(bits: u16) -> Self {
        Self { kind: 'd', bits, ..Self::file("") }
    }

    fn node(&self, objects: &Memory) -> Node {
        let id = objects.write(ObjectKind::Blob, &self.data).unwrap();
        let what = match self.kind {
            'f' => What::File(id),
            'l' => What::Symlink(id),
            _ => What::Directory(Box::default()),
        };
        let attribute = |(name, value): (&Vec<u8>, &Vec<u8>)| Attribute {
            name: name.clone().into(),
            value: value.clone().into(),
        };
        let attributes = Attributes::new(self.attributes.iter().map(attribute).collect());
        Node { what, own: Own { bits: self.bits, attributes, mtime_ns: Some(self.mtime_ns) } }
    }
}

/// The state that holds exactly this.
pub(crate) fn state(objects: &Memory, plain: &Plain) -> State {
    let empty = State::empty(objects).unwrap();
    let mut editor = Editor::new(objects, objects, &empty).unwrap();
    let edits = plain.iter().map(|(path, thing)| (path.clone(), Some(thing.node(objects)))).collect();
    apply(&mut editor, edits).unwrap();
    editor.finish().unwrap()
}

/// What may be in a random tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zoo {
    Everything,
    /// Only what a patch can say.
    Text,
}

/// A random tree.
pub(crate) fn random(dice: &mut Dice, zoo: Zoo) -> Plain {
    let mut plain = Plain::new();
    for _ in 0..dice.roll(25) {
        put(&mut plain, dice, zoo);
    }
    plain
}

/// The same tree after a few random changes.
pub(crate) fn changed(plain: &Plain, dice: &mut Dice, zoo: Zoo) -> Plain {
    let mut plain = plain.clone();
    for _ in 0..dice.roll(12) {
        match dice.roll(4) {
            0 => remove(&mut plain, dice),
            1 => rename(&mut plain, dice),
            2 => alter(&mut plain, dice, zoo),
            _ => put(&mut plain, dice, zoo),
        }
    }
    plain
}

fn somewhere(dice: &mut Dice) -> RelPath {
    const NAMES: [&[u8]; 7] = [b"a", b"b c", b"d", b"\xff\n", "é".as_bytes(), b"q\"\\", b"e\t"];
    let mut path = RelPath::root();
    for _ in 0..=dice.roll(3) {
        path.push(dice.pick::<&[u8]>(&NAMES)).unwrap();
    }
    path
}

pub(crate) fn below(path: &RelPath, top: &RelPath) -> bool {
    path.as_bytes().strip_prefix(top.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
}

fn put(plain: &mut Plain, dice: &mut Dice, zoo: Zoo) {
    let path = somewhere(dice);
    let thing = thing(dice, zoo);
    set(plain, &path, thing);
}

/// Puts something there; what is in the way goes, directories on the way come.
pub(crate) fn set(plain: &mut Plain, path: &RelPath, thing: Thing) {
    if thing.kind == 'd' && plain.get(path).is_some_and(|old| old.kind == 'd') {
        plain.insert(path.clone(), thing);
        return;
    }
    plain.retain(|other, _| other != path && !below(other, path));
    let mut above = path.parent();
    while let Some(parent) = above.filter(|parent| !parent.is_root()) {
        if plain.get(&parent).is_none_or(|old| old.kind != 'd') {
            plain.insert(parent.clone(), Thing::directory(0o755));
        }
        above = parent.parent();
    }
    plain.insert(path.clone(), thing);
}

fn thing(dice: &mut Dice, zoo: Zoo) -> Thing {
    let everything = zoo == Zoo::Everything;
    let mut thing = match dice.roll(10) {
        0 => Thing::link(dice.pick::<&str>(&["a", "/nowhere", "../..", "b c/d"])),
        1 if everything => Thing::directory(*dice.pick(&[0o755, 0o700, 0o555, 0o500])),
        _ => Thing::file(content(dice)),
    };
    if thing.kind == 'f' {
        thing.bits =
            *dice.pick(if everything { &[0o644, 0o755, 0o600, 0o444, 0o711] } else { &[0o644, 0o755] });
    }
    if everything && thing.kind != 'l' && dice.roll(6) == 0 {
        thing.attributes.insert(b"user.note".to_vec(), content(dice));
    }
    thing.mtime_ns = i64::try_from(dice.roll(4_000_000_000)).unwrap() * 1_000 + 7;
    thing
}

fn content(dice: &mut Dice) -> Vec<u8> {
    const LINES: [&[u8]; 9] =
        [b"one\n", b"two\n", b"three\n", b"\n", b"{\n", b"}\n", b"\tfour\r\n", b"\x1b[2J\n", b"-- \n"];
    let mut data = Vec::new();
    for _ in 0..dice.roll(14) {
        data.extend(*dice.pick::<&[u8]>(&LINES));
    }
    if dice.roll(4) == 0 {
        data.extend(b"end without a line feed");
    }
    data
}

fn remove(plain: &mut Plain, dice: &mut Dice) {
    if let Some(path) = any(plain, dice) {
        plain.retain(|other, _| *other != path && !below(other, &path));
    }
}

fn any(plain: &Plain, dice: &mut Dice) -> Option<RelPath> {
    let all: Vec<&RelPath> = plain.keys().collect();
    (!all.is_empty()).then(|| (*dice.pick(&all)).clone())
}

fn rename(plain: &mut Plain, dice: &mut Dice) {
    let Some(from) = any(plain, dice) else { return };
    let thing = plain[&from].clone();
    if thing.kind != 'd' {
        plain.remove(&from);
        let to = somewhere(dice);
        set(plain, &to, thing);
    }
}

/// A small change to something that stays what it is.
fn alter(plain: &mut Plain, dice: &mut Dice, zoo: Zoo) {
    let Some(path) = any(plain, dice) else { return };
    let thing = plain.get_mut(&path).unwrap();
    match (thing.kind, dice.roll(3)) {
        ('f', 0) => thing.bits ^= 0o111,
        ('f', 1) => thing.data.extend(b"\nmore\n"),
        ('f', _) => {
            let middle = thing.data.len() / 2;
            thing.data.insert(middle, b'x');
        }
        ('d', _) if zoo == Zoo::Everything => thing.bits ^= 0o055,
        _ => {}
    }
}

/// Puts a tree on the disk, with modes, attributes and times.
pub(crate) fn put_on_disk(root: &Path, plain: &Plain) {
    for (path, thing) in plain {
        let here = at(root, path);
        match thing.kind {
            'd' => fs_err::create_dir(&here).unwrap(),
            'l' => std::os::unix::fs::symlink(OsStr::from_bytes(&thing.data), &here).unwrap(),
            _ => fs_err::write(&here, &thing.data).unwrap(),
        }
        for (name, value) in &thing.attributes {
            setxattr(&here, name.as_slice(), value, XattrFlags::empty()).unwrap();
        }
    }
    for (path, thing) in plain.iter().rev() {
        let here = at(root, path);
        if thing.kind != 'l' {
            fs_err::set_permissions(&here, std::fs::Permissions::from_mode(thing.bits.into())).unwrap();
        }
        let time = Timespec {
            tv_sec: thing.mtime_ns.div_euclid(1_000_000_000),
            tv_nsec: thing.mtime_ns.rem_euclid(1_000_000_000),
        };
        let times = Timestamps { last_access: time, last_modification: time };
        utimensat(CWD, &here, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }
}

/// What is on the disk.
pub(crate) fn look(root: &Path) -> Plain {
    let mut plain = Plain::new();
    look_below(root, &RelPath::root(), &mut plain);
    plain
}

fn look_below(root: &Path, top: &RelPath, plain: &mut Plain) {
    let dir = if top.is_root() { root.to_owned() } else { at(root, top) };
    for entry in fs_err::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let path = top.join(entry.file_name().as_bytes()).unwrap();
        let here = at(root, &path);
        let meta = fs_err::symlink_metadata(&here).unwrap();
        let (kind, data) = if meta.is_dir() {
            ('d', Vec::new())
        } else if meta.is_symlink() {
            ('l', fs_err::read_link(&here).unwrap().as_os_str().as_bytes().to_vec())
        } else if meta.is_file() {
            ('f', fs_err::read(&here).unwrap())
        } else {
            ('?', Vec::new())
        };
        let mtime_ns = meta.mtime() * 1_000_000_000 + meta.mtime_nsec();
        let bits = u16::try_from(meta.mode() & 0o7777).unwrap();
        plain.insert(path.clone(), Thing { kind, data, bits, attributes: attributes(&here), mtime_ns });
        if kind == 'd' {
            look_below(root, &path, plain);
        }
    }
}

fn attributes(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0; 64 << 10];
    let length = llistxattr(path, &mut names[..]).unwrap_or(0);
    let names = names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user."));
    let value = |name: &[u8]| {
        let mut value = vec![0; 64 << 10];
        let length = lgetxattr(path, name, &mut value[..]).unwrap();
        value.truncate(length);
        (name.to_vec(), value)
    };
    names.map(value).collect()
}

/// Without times.
pub(crate) fn timeless(plain: &Plain) -> Plain {
    let mut plain = plain.clone();
    for thing in plain.values_mut() {
        thing.mtime_ns = 0;
    }
    plain
}
