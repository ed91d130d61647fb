//! Workspaces of a given size: generated, the same every time, committed to git by whoever will work there.
//! About sixteen files to a directory and two kilobytes to a file. Instead of that a tree can be given, to which a
//! hundred generated files are added, those that the rows change.

use std::fmt::Write as _;
use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use super::process::Caller;

const FILES_PER_DIRECTORY: u32 = 16;
const DIRECTORIES_PER_PART: u32 = 64;
/// Generated files in a tree that was given.
const ADDED: u32 = 101;

/// Makes a clean git repository for `caller`, or finds the one made before: with exactly `files` files, or with those of
/// a `given` tree.
pub fn grow(caller: &Rc<Caller>, files: u32, given: Option<&Path>) -> Result<PathBuf, String> {
    let root = caller.area.join(format!("tree-{files}"));
    if root.exists() {
        return Ok(root);
    }
    match given {
        Some(given) => {
            let (from, to) = (given.display().to_string(), root.display().to_string());
            caller.invoke(&caller.area, ["cp", "-R", "--preserve=mode,links", &from, &to]).output()?;
        }
        None => make_directory(&root, caller.ids).map_err(|error| error.to_string())?,
    }
    let generated = if given.is_some() { ADDED } else { files };
    write_files(&root, generated, caller.ids).map_err(|error| error.to_string())?;
    // Files as young as the index would be read again by every `git status`.
    thread::sleep(Duration::from_millis(1100));
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.invalid"];
        let argv = ["git"].iter().chain(&identity).chain(arguments).copied();
        caller.invoke(&root, argv).output()
    };
    git(&["init", "--quiet"])?;
    git(&["add", "--all"])?;
    git(&["-c", "gc.auto=0", "commit", "--quiet", "--message", "generated"])?;
    // As in a clone: one pack, no loose objects. Deltas would only cost time here.
    git(&["repack", "-a", "-d", "--quiet", "--window=0"])?;
    Ok(root)
}

fn write_files(root: &Path, files: u32, owner: Option<(u32, u32)>) -> io::Result<()> {
    write_file(&root.join("README"), "A generated tree.\n", owner)?;
    for number in 0..files.saturating_sub(1) {
        let directory = number / FILES_PER_DIRECTORY;
        let part = root.join(format!("part-{:03}", directory / DIRECTORIES_PER_PART));
        let module = part.join(format!("module-{directory:05}"));
        if number % (FILES_PER_DIRECTORY * DIRECTORIES_PER_PART) == 0 {
            make_directory(&part, owner)?;
        }
        if number % FILES_PER_DIRECTORY == 0 {
            make_directory(&module, owner)?;
        }
        write_file(&module.join(format!("file-{number:06}.c")), &text(number), owner)?;
    }
    Ok(())
}

/// Lines that differ from file to file, 40 to 3,800 bytes.
fn text(number: u32) -> String {
    let mut state = number;
    let mut text = String::new();
    for line in 0..=number.wrapping_mul(2_654_435_761) % 95 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        writeln!(text, "static int v{line:02} = 0x{state:08x}; /* {number:06} */")
            .expect("a string takes any text");
    }
    text
}

pub(super) fn make_directory(path: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    fs_err::create_dir(path)?;
    give(path, owner)
}

pub(super) fn write_file(path: &Path, text: &str, owner: Option<(u32, u32)>) -> io::Result<()> {
    fs_err::write(path, text)?;
    give(path, owner)
}

/// Hands a file to its owner, where that is not us.
pub fn give(path: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    owner.map_or(Ok(()), |(uid, gid)| chown(path, Some(uid), Some(gid)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_has_the_asked_number_of_files_and_is_clean() {
        let dir = tempfile::tempdir().unwrap();
        let environment = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/nonexistent")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let caller = Rc::new(Caller { name: "user", ids: None, area: dir.path().to_owned(), environment });
        let root = grow(&caller, 1100, None).unwrap();
        let listed = caller.invoke(&root, ["git", "ls-files"]).output().unwrap();
        assert_eq!(listed.lines().count(), 1100);
        assert_eq!(caller.invoke(&root, ["git", "status", "--porcelain"]).output().unwrap(), "");
        assert_eq!(grow(&caller, 1100, None).unwrap(), root);
        let more = grow(&caller, 5000, Some(&root.join("part-000"))).unwrap();
        let listed = caller.invoke(&more, ["git", "ls-files"]).output().unwrap();
        assert!(listed.contains("module-00063/") && listed.contains("part-000/module-00000/"), "{listed}");
    }

    #[test]
    fn text_is_the_same_every_time_and_differs_between_files() {
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(8));
    }
}
