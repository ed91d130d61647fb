//! Programs made by hand: a test says exactly what an ELF file claims, and what the root file system holds.

use std::path::{Path, PathBuf};

use super::*;

/// An ELF file for a test.
#[derive(Clone, Default)]
struct Elf<'a> {
    machine: u16,
    interpreter: Option<&'a str>,
    needed: &'a [&'a str],
    /// Library and version.
    versions: &'a [(&'a str, &'a str)],
    defined: &'a [&'a str],
    runpath: Option<&'a str>,
    relr: bool,
    /// More bytes at the end.
    tail: &'a [u8],
}

const X86_64: u16 = 62;
const AARCH64: u16 = 183;

impl Elf<'_> {
    /// The file: a header, one program header, the contents of sections, and their table.
    fn bytes(&self) -> Vec<u8> {
        let mut strings = vec![0_u8];
        let mut string = |text: &str| -> u32 {
            let at = u32::try_from(strings.len()).unwrap();
            strings.extend(text.bytes().chain([0]));
            at
        };
        let mut dynamic: Vec<(u64, u64)> = Vec::new();
        dynamic.extend(self.needed.iter().map(|name| (1, string(name).into())));
        dynamic.extend(self.runpath.map(|place| (29, string(place).into())));
        dynamic.extend(self.relr.then_some((36, 0)));
        dynamic.push((0, 0));
        let dynamic: Vec<u8> = dynamic
            .iter()
            .flat_map(|(tag, value)| [tag.to_le_bytes(), value.to_le_bytes()].concat())
            .collect();
        let (mut needs, mut definitions) = (Vec::new(), Vec::new());
        for (index, (file, version)) in self.versions.iter().enumerate() {
            let next = if index + 1 == self.versions.len() { 0 } else { 32_u32 };
            needs.extend([1, 0, 1, 0]);
            needs.extend([string(file).to_le_bytes(), 16_u32.to_le_bytes(), next.to_le_bytes()].concat());
            needs.extend([0; 8]);
            needs.extend([string(version).to_le_bytes(), [0; 4]].concat());
        }
        for (index, version) in self.defined.iter().enumerate() {
            let next = if index + 1 == self.defined.len() { 0 } else { 28_u32 };
            definitions.extend([1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0]);
            definitions.extend([20_u32.to_le_bytes(), next.to_le_bytes()].concat());
            definitions.extend([string(version).to_le_bytes(), [0; 4]].concat());
        }
        let interpreter = self.interpreter.map(|path| [path.as_bytes(), &[0]].concat()).unwrap_or_default();
        let counts =
            (u32::try_from(self.versions.len()).unwrap(), u32::try_from(self.defined.len()).unwrap());
        let sections: [(u32, u32, u32, &[u8]); 4] = [
            (3, 0, 0, &strings),
            (6, 1, 0, &dynamic),
            (0x6fff_fffe, 1, counts.0, &needs),
            (0x6fff_fffd, 1, counts.1, &definitions),
        ];
        self.assemble(&interpreter, &sections)
    }

    fn assemble(&self, interpreter: &[u8], sections: &[(u32, u32, u32, &[u8])]) -> Vec<u8> {
        let mut body = interpreter.to_vec();
        body.resize(body.len().next_multiple_of(8), 0);
        let mut table = vec![0_u8; 64];
        for (kind, link, info, content) in sections {
            let at = 64 + 56 + body.len() as u64;
            body.extend(*content);
            body.resize(body.len().next_multiple_of(8), 0);
            // What is empty is not there.
            let kind = if content.is_empty() { 0 } else { *kind };
            table.extend([0_u32.to_le_bytes(), kind.to_le_bytes()].concat());
            table.extend([0_u64, 0, at, content.len() as u64].iter().flat_map(|value| value.to_le_bytes()));
            table.extend([link.to_le_bytes(), info.to_le_bytes()].concat());
            table
                .extend([8_u64, if kind == 6 { 16 } else { 0 }].iter().flat_map(|value| value.to_le_bytes()));
        }
        let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0];
        bytes.extend(self.machine.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend([0_u64, 64, 64 + 56 + body.len() as u64].iter().flat_map(|value| value.to_le_bytes()));
        bytes.extend([0, 0, 0, 0, 64, 0, 56, 0, u8::from(self.interpreter.is_some()), 0, 64, 0, 5, 0, 1, 0]);
        bytes.extend([3_u32.to_le_bytes(), 4_u32.to_le_bytes()].concat());
        let length = interpreter.len() as u64;
        bytes.extend([120_u64, 0, 0, length, length, 1].iter().flat_map(|value| value.to_le_bytes()));
        bytes.extend(body);
        bytes.extend(table);
        bytes.extend(self.tail);
        bytes
    }
}

struct World(tempfile::TempDir);

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for directory in ["root/lib64", "root/usr/lib/x86_64-linux-gnu", "root/etc", "tool/bin", "tool/lib"] {
            fs_err::create_dir_all(place.path().join(directory)).unwrap();
        }
        Self(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, elf: &Elf<'_>) -> PathBuf {
        fs_err::write(self.path(name), elf.bytes()).unwrap();
        self.path(name)
    }

    /// A root with glibc 2.36.
    fn glibc() -> Self {
        let world = Self::new();
        world.put("root/lib64/ld-linux-x86-64.so.2", &Elf { machine: X86_64, ..Elf::default() });
        let defined = &["GLIBC_2.2.5", "GLIBC_2.36", "GLIBC_2.4", "GLIBC_PRIVATE"];
        world.put(
            "root/usr/lib/x86_64-linux-gnu/libc.so.6",
            &Elf { machine: X86_64, defined, ..Elf::default() },
        );
        world
    }

    /// A root with that version of musl.
    fn musl(version: &str) -> Self {
        let world = Self::new();
        fs_err::create_dir(world.path("root/lib")).unwrap();
        let tail = format!("\0not 1.2.3\0{version}\0more");
        let libc = Elf { machine: X86_64, tail: tail.as_bytes(), ..Elf::default() };
        world.put("root/lib/ld-musl-x86_64.so.1", &libc);
        fs_err::os::unix::fs::symlink(
            "/lib/ld-musl-x86_64.so.1",
            world.path("root/lib/libc.musl-x86_64.so.1"),
        )
        .unwrap();
        world
    }

    fn check(&self, program: &Path) -> Result<(), String> {
        let root = Root::new(self.path("root"));
        let libraries = [self.path("tool/lib")];
        let target = Target { root: &root, machine: "x86_64", libraries: &libraries };
        check(program, &target).map_err(|misfit| misfit.to_string())
    }
}

const MANYLINUX: Elf<'static> = Elf {
    machine: X86_64,
    interpreter: Some("/lib64/ld-linux-x86-64.so.2"),
    needed: &["libc.so.6"],
    versions: &[("libc.so.6", "GLIBC_2.4"), ("libc.so.6", "GLIBC_2.36")],
    defined: &[],
    runpath: None,
    relr: false,
    tail: b"",
};

#[test]
fn a_program_for_glibc_fits_glibc_only() {
    let world = World::glibc();
    let program = world.put("tool/bin/cmake", &MANYLINUX);
    assert_eq!(world.check(&program), Ok(()));
    assert_eq!(Root::new(world.path("root")).libc().to_string(), "glibc 2.36");
    let world = World::musl("1.2.5");
    let program = world.put("tool/bin/cmake", &MANYLINUX);
    assert_eq!(
        world.check(&program).unwrap_err(),
        "`cmake` needs the program loader `/lib64/ld-linux-x86-64.so.2`, and the root file system has musl 1.2.5"
    );
    let root = Root::new(world.path("root"));
    let misfit = check(&program, &Target { root: &root, machine: "x86_64", libraries: &[] }).unwrap_err();
    assert!(misfit.remedy().unwrap().contains("musllinux"));
}

#[test]
fn a_version_that_is_too_new_is_named() {
    let world = World::glibc();
    let versions = &[("libc.so.6", "GLIBC_2.38")];
    let program = world.put("tool/bin/new", &Elf { versions, ..MANYLINUX });
    assert_eq!(
        world.check(&program).unwrap_err(),
        "`new` needs `GLIBC_2.38` of `libc.so.6`, and there is `GLIBC_2.36` at most"
    );
}

#[test]
fn a_program_that_is_too_new_for_musl_is_refused() {
    let program = Elf {
        machine: X86_64,
        interpreter: Some("/lib/ld-musl-x86_64.so.1"),
        needed: &["libc.musl-x86_64.so.1"],
        relr: true,
        ..Elf::default()
    };
    let world = World::musl("1.2.3");
    let old = world.put("tool/bin/node", &program);
    assert_eq!(
        world.check(&old).unwrap_err(),
        "`node` needs musl 1.2.4 or newer for its relocations, and the root file system has musl 1.2.3"
    );
    assert_eq!(world.check(&world.put("tool/bin/plain", &Elf { relr: false, ..program.clone() })), Ok(()));
    let world = World::musl("1.2.5");
    assert_eq!(world.check(&world.put("tool/bin/node", &program)), Ok(()));
}

#[test]
fn libraries_are_found_where_the_loader_looks() {
    let world = World::glibc();
    let elf = Elf {
        needed: &["libc.so.6", "libown.so.1", "libdep.so.2"],
        runpath: Some("$ORIGIN/../own"),
        ..MANYLINUX
    };
    let program = world.put("tool/bin/tool", &elf);
    assert_eq!(
        world.check(&program).unwrap_err(),
        "`tool` needs the library `libown.so.1`, which is neither in the root file system nor in a dependency"
    );
    fs_err::create_dir(world.path("tool/own")).unwrap();
    let versions = &[("libc.so.6", "GLIBC_2.99")];
    world.put("tool/own/libown.so.1", &Elf { machine: X86_64, ..Elf::default() });
    world.put(
        "tool/lib/libdep.so.2",
        &Elf { machine: X86_64, needed: &["libc.so.6"], versions, ..Elf::default() },
    );
    let why = world.check(&program).unwrap_err();
    assert!(why.starts_with("`libdep.so.2` needs `GLIBC_2.99`"), "a library's own needs count: {why}");
    world.put("tool/lib/libdep.so.2", &Elf { machine: AARCH64, ..Elf::default() });
    assert!(world.check(&program).unwrap_err().contains("is for `aarch64`"));
    world.put("tool/lib/libdep.so.2", &Elf { machine: X86_64, ..Elf::default() });
    assert_eq!(world.check(&program), Ok(()));
}

#[test]
fn links_of_a_root_lead_within_it() {
    let world = World::glibc();
    let loader = world.path("root/lib64/ld-linux-x86-64.so.2");
    fs_err::rename(&loader, world.path("root/usr/lib/ld.so")).unwrap();
    fs_err::os::unix::fs::symlink("/usr/lib/ld.so", &loader).unwrap();
    assert_eq!(world.check(&world.put("tool/bin/x", &MANYLINUX)), Ok(()));
    fs_err::remove_file(&loader).unwrap();
    // On this machine there may well be such a file; inside there is none.
    fs_err::os::unix::fs::symlink("../../../../../../../../../bin/sh", &loader).unwrap();
    assert!(world.check(&world.put("tool/bin/x", &MANYLINUX)).unwrap_err().contains("loader"));
    fs_err::remove_file(&loader).unwrap();
    fs_err::os::unix::fs::symlink("/lib64/ld-linux-x86-64.so.2", &loader).unwrap();
    assert!(world.check(&world.put("tool/bin/x", &MANYLINUX)).unwrap_err().contains("loader"), "a circle");
}

#[test]
fn scripts_static_programs_and_rubbish() {
    let world = World::musl("1.2.5");
    let write = |name: &str, bytes: &[u8]| {
        fs_err::write(world.path(name), bytes).unwrap();
        world.path(name)
    };
    assert_eq!(
        world.check(&world.put("tool/bin/static", &Elf { machine: X86_64, ..Elf::default() })),
        Ok(())
    );
    let script = write("tool/bin/script", b"#! /usr/bin/env python3\nprint()\n");
    assert!(world.check(&script).unwrap_err().contains("`/usr/bin/env`"));
    fs_err::create_dir_all(world.path("root/usr/bin")).unwrap();
    write("root/usr/bin/env", b"x");
    assert_eq!(world.check(&script), Ok(()));
    assert!(world.check(&write("tool/bin/text", b"hello")).unwrap_err().contains("neither"));
    assert!(
        world
            .check(&world.put("tool/bin/arm", &Elf { machine: 40, ..Elf::default() }))
            .unwrap_err()
            .contains("arm")
    );
    assert!(world.check(&write("tool/bin/short", b"\x7fELF\x02\x01")).is_err());
}

/// Whatever is flipped: an answer, and no panic.
#[test]
fn damage_is_survived() {
    let world = World::glibc();
    let good = MANYLINUX.bytes();
    for at in 0..good.len() {
        for value in [0, 1, 0xff] {
            let mut bytes = good.clone();
            bytes[at] = value;
            fs_err::write(world.path("tool/bin/x"), bytes).unwrap();
            let _either = world.check(&world.path("tool/bin/x"));
        }
    }
}

#[test]
fn what_was_installed_into_a_view_of_a_root_is_found_in_it() {
    let world = World::glibc();
    let program = Elf {
        machine: X86_64,
        needed: &["libextra.so.1"],
        interpreter: MANYLINUX.interpreter,
        ..Elf::default()
    };
    let program = world.put("tool/bin/program", &program);
    let missing = world.check(&program).unwrap_err();
    assert!(missing.contains("needs the library `libextra.so.1`"), "{missing}");
    fs_err::create_dir_all(world.path("changes/lib/x86_64-linux-gnu")).unwrap();
    world.put("changes/lib/x86_64-linux-gnu/libextra.so.1", &Elf { machine: X86_64, ..Elf::default() });
    let root = Root::new(world.path("root")).with_layers(vec![("usr".into(), world.path("changes"))]);
    let target = Target { root: &root, machine: "x86_64", libraries: &[] };
    check(&program, &target).unwrap();
    assert_eq!(root.find("/usr/lib/none"), None);
}
