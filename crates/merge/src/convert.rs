//! From the bytes of a file to the blob that git keeps of it, and back, as far as git does this without another
//! program: line ends, encodings, `$Id$`. Filters that programs implement are never run; their paths are known.

use std::collections::BTreeMap;

use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;
use sandtable_store::object::{ObjectKind, hash};

use super::error::Error;
use super::scratch::Scratch;

const ATTRIBUTES: [&str; 6] = ["text", "crlf", "eol", "ident", "working-tree-encoding", "filter"];
/// How many bytes of paths git is asked about at once.
const CHUNK: usize = 1 << 20;

/// What the attributes and settings say about some paths.
#[derive(Debug, Default)]
pub(super) struct Conversion {
    paths: BTreeMap<RelPath, Rule>,
    /// What the settings say where the attributes say nothing.
    default: Rule,
}

/// What happens to a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rule {
    lines: Lines,
    /// Its encoding or an `$Id$` is converted.
    other: bool,
    /// The name of a filter that is a program.
    filter: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lines {
    #[default]
    Kept,
    Converted,
}

impl Conversion {
    /// What the settings say; `ask` adds what the attributes do.
    pub(super) fn new(autocrlf: Option<&str>) -> Self {
        let lines = match autocrlf {
            None | Some("false" | "no" | "off" | "0" | "") => Lines::Kept,
            Some(_) => Lines::Converted,
        };
        Self { default: Rule { lines, ..Rule::default() }, ..Self::default() }
    }

    /// Asks for the attributes of these paths, as they are in `tree`.
    pub(super) fn ask(
        &mut self,
        scratch: &Scratch,
        tree: &ObjectId,
        paths: &[&RelPath],
    ) -> Result<(), Error> {
        if paths.is_empty() {
            return Ok(());
        }
        if !says_anything(scratch, tree, paths) {
            self.paths.extend(paths.iter().map(|path| ((*path).clone(), self.default.clone())));
            return Ok(());
        }
        for path in paths {
            self.paths.insert((*path).clone(), self.default.clone());
        }
        // Git answers with every path as often as there are attributes.
        let call =
            scratch.call().shortly().attributes(tree).args(["check-attr", "-z", "--stdin"]).args(ATTRIBUTES);
        let mut rest = paths;
        while !rest.is_empty() {
            let mut size = 0;
            let fits = |path: &&&RelPath| {
                size += path.as_bytes().len();
                size < CHUNK
            };
            let (chunk, after) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            let input: Vec<u8> = chunk.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
            self.learn(&call.output_with(&input)?)?;
            rest = after;
        }
        Ok(())
    }

    /// Takes in what git says: path, attribute and value, again and again.
    fn learn(&mut self, answer: &[u8]) -> Result<(), Error> {
        let fields: Vec<&[u8]> = answer.split(|byte| *byte == 0).collect();
        for triple in fields.chunks_exact(3) {
            let path = super::tree::foreign(triple[0])?;
            let default = self.default.clone();
            self.paths.entry(path).or_insert(default).learn(triple[1], triple[2]);
        }
        Ok(())
    }

    /// The filter program that a path would go through.
    pub(super) fn filter(&self, path: &RelPath) -> Option<&str> {
        self.rule(path).filter.as_deref()
    }

    /// The blob that git would keep of these bytes; it is in the scratch repository afterwards.
    pub(super) fn clean(
        &self,
        scratch: &Scratch,
        tree: &ObjectId,
        (path, bytes): (&RelPath, &[u8]),
    ) -> Result<ObjectId, Error> {
        let rule = self.rule(path);
        let lines = rule.lines == Lines::Converted && bytes.contains(&b'\r');
        if rule.filter.is_some() || !(lines || rule.other) {
            return scratch.write_blob(bytes);
        }
        // Git keeps carriage returns that the committed version has, so it must see that version.
        let index = scratch.path().join("clean.index");
        if !index.exists() {
            scratch.call().index(&index).arg("read-tree").id(tree).output()?;
        }
        let mut option = std::ffi::OsString::from("--path=");
        option.push(std::os::unix::ffi::OsStrExt::from_bytes(path.as_bytes()) as &std::ffi::OsStr);
        let call = scratch.call().attributes(tree).index(&index).args(["hash-object", "-w", "--stdin"]);
        Ok(call.arg(option).object_with(bytes)?)
    }

    /// The same, without keeping the blob where that can be avoided.
    pub(super) fn name(
        &self,
        scratch: &Scratch,
        tree: &ObjectId,
        (path, bytes): (&RelPath, &[u8]),
    ) -> Result<ObjectId, Error> {
        if self.converts(path) {
            return self.clean(scratch, tree, (path, bytes));
        }
        hash(scratch.format(), ObjectKind::Blob, bytes)
            .map_err(|error| Error::Io(std::io::Error::other(error)))
    }

    /// Whether the blob of a path may differ from the bytes of its file.
    pub(super) fn converts(&self, path: &RelPath) -> bool {
        let rule = self.rule(path);
        rule.filter.is_none() && (rule.other || rule.lines == Lines::Converted)
    }

    /// The bytes of the file for a blob.
    pub(super) fn smudge(
        &self,
        scratch: &Scratch,
        tree: &ObjectId,
        (path, id): (&RelPath, &ObjectId),
    ) -> Result<Vec<u8>, Error> {
        if !self.converts(path) {
            return scratch.blob(id);
        }
        let mut option = std::ffi::OsString::from("--path=");
        option.push(std::os::unix::ffi::OsStrExt::from_bytes(path.as_bytes()) as &std::ffi::OsStr);
        let call = scratch.call().attributes(tree).args(["cat-file", "--filters"]);
        Ok(call.arg(option).id(id).output()?)
    }

    fn rule(&self, path: &RelPath) -> &Rule {
        self.paths.get(path).unwrap_or(&self.default)
    }
}

/// Whether any directory above these paths has attributes in a tree; git is asked where that cannot be told.
fn says_anything(scratch: &Scratch, tree: &ObjectId, paths: &[&RelPath]) -> bool {
    scratch.trees().has_beside(tree, paths, b".gitattributes").unwrap_or(true)
}

impl Rule {
    fn learn(&mut self, attribute: &[u8], value: &[u8]) {
        let said = !matches!(value, b"unspecified" | b"unset");
        match attribute {
            b"text" | b"crlf" | b"eol" if said => self.lines = Lines::Converted,
            b"text" | b"crlf" if value == b"unset" => self.lines = Lines::Kept,
            b"ident" | b"working-tree-encoding" if said => self.other = true,
            b"filter" if said => self.filter = Some(String::from_utf8_lossy(value).into_owned()),
            _ => {}
        }
    }
}
