//! Whether a program can run in a root file system, before it is tried there: a loader that cannot be found shows
//! up as `not found` for a file that is plainly there, and a C library that is too old as a crash.
//!
//! Looked at are the machine, the program loader, the libraries by name, and the versions of their symbols that the
//! program and its libraries ask for, each against what the root file system and the tool's own directories hold.
//! For musl, whose symbols have no versions, it is the form of relocations that tells. Nothing is executed. The root
//! file system is read as a foreign one: links in it lead within it.

mod file;
mod root;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use file::{Form, Object};
pub use root::{Libc, Root};

/// How many libraries of one program are followed.
const MOST_LIBRARIES: usize = 500;

/// Why a program cannot run where it should.
#[derive(Debug, thiserror::Error)]
pub enum Misfit {
    #[error("cannot look at `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{program}` is neither a program for Linux nor a script")]
    NoProgram { program: String },
    #[error("`{program}` is damaged: {why}")]
    Damaged { program: String, why: String },
    #[error("`{program}` is for `{found}`, and this machine is `{wanted}`")]
    Machine { program: String, found: String, wanted: String },
    #[error("`{program}` needs the program loader `{interpreter}`, and the root file system has {has}")]
    Interpreter { program: String, interpreter: String, has: Libc },
    #[error("`{program}` is a script for `{interpreter}`, which the root file system does not have")]
    Script { program: String, interpreter: String },
    #[error(
        "`{program}` needs the library `{library}`, which is neither in the root file system nor in a dependency"
    )]
    Library { program: String, library: String },
    #[error("`{program}` needs `{version}` of `{library}`, and there is {newest}")]
    Version { program: String, library: String, version: String, newest: String },
    #[error(
        "`{program}` needs musl {needed} or newer for its relocations, and the root file system has musl {found}"
    )]
    Musl { program: String, needed: &'static str, found: String },
    /// One of the others, found by our own executable in a container and told in its words.
    #[error("{said}")]
    Told { said: String, remedy: Option<String> },
}

impl Misfit {
    /// What can be done about it.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Self::Interpreter { interpreter, .. } if interpreter.contains("musl") => {
                Some("use a build of it for glibc (`manylinux`), or a root file system with musl")
            }
            Self::Interpreter { .. } => Some(
                "use a build of it for musl (`musllinux`) or a static one, or a root file system with glibc",
            ),
            Self::Script { .. } => Some("declare a dependency that provides the interpreter"),
            Self::Library { .. } => Some("declare a dependency that provides the library"),
            Self::Version { .. } | Self::Musl { .. } => {
                Some("use an older build of it, or a newer root file system")
            }
            Self::Machine { .. } => Some("use a build of it for this machine"),
            Self::Told { remedy, .. } => remedy.as_deref(),
            Self::Read { .. } | Self::NoProgram { .. } | Self::Damaged { .. } => None,
        }
    }
}

/// Where a program is to run.
#[derive(Debug)]
pub struct Target<'a> {
    pub root: &'a Root,
    /// As Rust calls it: `x86_64`, `aarch64`.
    pub machine: &'a str,
    /// Directories with libraries of the tool itself and of its dependencies.
    pub libraries: &'a [PathBuf],
}

/// Whether the program at `path` can run in `target`; the first reason why it cannot.
pub fn check(path: &Path, target: &Target<'_>) -> Result<(), Misfit> {
    let program = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match file::form(path)? {
        Form::Script { interpreter } if target.root.find(&interpreter).is_some() => Ok(()),
        Form::Script { interpreter } => Err(Misfit::Script { program, interpreter }),
        Form::Other => Err(Misfit::NoProgram { program }),
        Form::Elf => Check { target, program, seen: BTreeSet::new() }.program(path),
    }
}

struct Check<'a> {
    target: &'a Target<'a>,
    program: String,
    /// Libraries that were looked at.
    seen: BTreeSet<String>,
}

impl Check<'_> {
    fn program(&mut self, path: &Path) -> Result<(), Misfit> {
        let object = self.open(path)?;
        if let Some(interpreter) = &object.interpreter
            && self.target.root.find(interpreter).is_none()
        {
            let (program, has) = (self.program.clone(), self.target.root.libc().clone());
            return Err(Misfit::Interpreter { program, interpreter: interpreter.clone(), has });
        }
        self.relocations(&object)?;
        let mut waiting = vec![(path.to_owned(), object)];
        while let Some((path, object)) = waiting.pop() {
            self.needed(&path, &object, &mut waiting)?;
        }
        Ok(())
    }

    /// What `object` needs is there, in the versions that it asks for; libraries not seen before come to `waiting`.
    fn needed(
        &mut self,
        path: &Path,
        object: &Object,
        waiting: &mut Vec<(PathBuf, Object)>,
    ) -> Result<(), Misfit> {
        for library in &object.needed {
            let known = !self.seen.insert(library.clone());
            let asked: Vec<&String> = object
                .versions
                .iter()
                .filter(|(file, _)| file == library)
                .map(|(_, version)| version)
                .collect();
            if known && asked.is_empty() || self.seen.len() > MOST_LIBRARIES {
                continue;
            }
            let Some(found) = self.library(path, object, library) else {
                let program = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                return Err(Misfit::Library { program, library: library.clone() });
            };
            let opened = self.open(&found)?;
            for version in asked {
                offers(path, library, version, &opened)?;
            }
            if !known {
                waiting.push((found, opened));
            }
        }
        Ok(())
    }

    /// Short relocations came to musl with 1.2.4; one that does not know them leaves a program unrelocated.
    fn relocations(&self, object: &Object) -> Result<(), Misfit> {
        const SINCE: [u32; 3] = [1, 2, 4];
        match self.target.root.libc() {
            Libc::Musl { version: Some(found) }
                if object.short_relocations && numbers(found) < SINCE.to_vec() =>
            {
                Err(Misfit::Musl { program: self.program.clone(), needed: "1.2.4", found: found.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Where the loader would find `library` for `object`.
    fn library(&self, path: &Path, object: &Object, library: &str) -> Option<PathBuf> {
        if library.contains('/') {
            return self.target.root.find(library);
        }
        let origin = path.parent().unwrap_or(Path::new("/"));
        let own = object.search.iter().filter_map(|place| {
            let rest = place.strip_prefix("$ORIGIN").or_else(|| place.strip_prefix("${ORIGIN}"))?;
            Some(origin.join(rest.trim_start_matches('/')))
        });
        let own = own.chain(self.target.libraries.iter().cloned()).map(|place| place.join(library));
        own.into_iter().find(|candidate| candidate.is_file()).or_else(|| {
            let absolute = object.search.iter().filter(|place| place.starts_with('/')).map(String::as_str);
            let places = absolute.chain(self.target.root.library_places().iter().map(String::as_str));
            let found = |place| self.target.root.find(&format!("{place}/{library}"));
            places.into_iter().filter_map(found).find(|candidate| candidate.is_file())
        })
    }

    fn open(&self, path: &Path) -> Result<Object, Misfit> {
        let object = Object::open(path)?;
        if object.machine == self.target.machine {
            return Ok(object);
        }
        let program = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Err(Misfit::Machine { program, found: object.machine, wanted: self.target.machine.to_owned() })
    }
}

/// Whether a library offers a version of symbols that the file at `path` asks for.
fn offers(path: &Path, library: &str, version: &str, opened: &Object) -> Result<(), Misfit> {
    // A library without any versions, as musl's are, takes every one.
    if opened.defined.is_empty() || opened.defined.iter().any(|defined| defined == version) {
        return Ok(());
    }
    let family = version.rsplit_once('_').map_or(version, |(family, _)| family);
    let newest =
        opened.newest(family).map_or_else(|| "none".to_owned(), |newest| format!("`{newest}` at most"));
    let program = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Err(Misfit::Version { program, library: library.to_owned(), version: version.to_owned(), newest })
}

/// The numbers of a version, for comparison.
fn numbers(version: &str) -> Vec<u32> {
    version.split(|letter: char| !letter.is_ascii_digit()).map_while(|part| part.parse().ok()).collect()
}
