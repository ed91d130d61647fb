//! Work inside a sandbox that takes its time: a compile job and a large stream, each against the same on the
//! host. What a start costs is in them too, but small beside the work.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::catalogue::{Place, ready};
use super::process::Caller;
use super::row::{Contender, Entry, OURS};
use super::tree::{make_directory, write_file};

/// The same work without a sandbox, as the report names it.
pub const HOST: &str = "the host";
pub const CAT: &str = "cat";
/// A sandbox is a session of its own, which the kernel may schedule as a group of its own.
const SESSION: &str = "cat in a session of its own";

/// C files of the compile job.
pub const SOURCES: u32 = 40;
/// Long enough that the compiler and not the shell around it is what takes the time.
const FUNCTIONS: u32 = 12;
/// The compile job takes seconds: ten of the forty rounds are its part.
const COMPILE_EVERY: usize = 4;

/// By whatever is here; the linker and the make program read and write the workspace as well.
const BUILD: &str = "if command -v make >/dev/null; then exec make -s -j2; fi; \
     for file in *.c; do gcc -O2 -c \"$file\" || exit; done; exec gcc -o all *.o";
const MAKEFILE: &str = "all: $(patsubst %.c,%.o,$(wildcard *.c))\n\tgcc -o $@ $^\n\
     %.o: %.c\n\tgcc -O2 -c -o $@ $<\n";

/// The sources of the compile job, made once for each caller.
pub fn sources(caller: &Rc<Caller>) -> Result<PathBuf, String> {
    let root = caller.area.join("compile");
    if !root.exists() {
        write_sources(&root, caller.ids).map_err(|error| error.to_string())?;
    }
    Ok(root)
}

/// The compile job inside and on the host, where a fresh copy stands for the sandbox's fresh layer.
pub(super) fn compile(place: &Place) -> Vec<Entry> {
    let copy = place.caller.area.join("compile-host");
    let fresh = format!("rm -rf '{0}' && cp -a '{1}' '{0}'", copy.display(), place.tree.display());
    let fresh = place.invoke(["sh".to_owned(), "-c".to_owned(), fresh]);
    let host = Contender {
        setup: vec![fresh.clone()],
        after: Some(fresh),
        every: COMPILE_EVERY,
        ..Contender::new(place.caller.invoke(&copy, ["sh", "-c", BUILD]))
    };
    let ours = place.ours("run --rm -q -- sh -c", &[BUILD]);
    let ours = Contender { every: COMPILE_EVERY, ..Contender::new(ours) };
    vec![Entry { name: OURS, contender: Ok(ours) }, Entry { name: HOST, contender: Ok(host) }]
}

/// A stream through a sandbox and through `cat` alone.
pub(super) fn pipe(place: &Place, megabytes: u32) -> Vec<Entry> {
    let bytes = u64::from(megabytes) << 20;
    let through = |program: &str| {
        let script = format!("test \"$(head -c {bytes} /dev/zero | {program} | wc -c)\" = {bytes}");
        place.invoke(["sh".to_owned(), "-c".to_owned(), script])
    };
    let ours = through(&format!("'{}' run --rm -q -- cat", place.ours));
    vec![ready(OURS, ours), ready(CAT, through("cat")), ready(SESSION, through("setsid -w cat"))]
}

fn write_sources(root: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    make_directory(root, owner)?;
    write_file(&root.join("Makefile"), MAKEFILE, owner)?;
    for number in 1..SOURCES {
        write_file(&root.join(format!("part{number:02}.c")), &part(number), owner)?;
    }
    write_file(&root.join("main.c"), "int f1_0(int);\nint main(void) { return f1_0(0) & 0; }\n", owner)
}

/// Functions with loops that the optimiser has something to do with.
fn part(number: u32) -> String {
    let mut text = String::from("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n");
    for function in 0..FUNCTIONS {
        let factor = number * 131 + function * 17 + 3;
        writeln!(
            text,
            "int f{number}_{function}(int n) {{\n  int a[64];\n  memset(a, 0, sizeof a);\n  \
             for (int i = 0; i < 64; i++) for (int j = 0; j < n; j++) a[i] += (i * {factor} + j) % (j + 7);\n  \
             int s = 0;\n  for (int i = 0; i < 64; i++) s ^= a[i] << (i % 5);\n  \
             char t[32];\n  snprintf(t, sizeof t, \"%d\", s);\n  return atoi(t) + (int)strlen(t);\n}}"
        )
        .expect("a string takes any text");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_has_its_number_of_sources_and_they_differ() {
        let dir = tempfile::tempdir().unwrap();
        write_sources(&dir.path().join("job"), None).unwrap();
        let names = fs_err::read_dir(dir.path().join("job")).unwrap().map(|entry| entry.unwrap().path());
        let sources = names.filter(|path| path.extension().is_some_and(|extension| extension == "c"));
        assert_eq!(sources.count(), usize::try_from(SOURCES).unwrap());
        assert_ne!(part(1), part(2));
    }
}
