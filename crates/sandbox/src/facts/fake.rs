//! A machine that exists on paper only: files, links, owners and mounts as a test lists them.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::{Answer, Entry, Facts, Failure, FileSystem, Kind, MountPoint, Owned, Question, Said};
use crate::model::platform::{Os, Platform};

/// The file system type of everything nobody said anything else of.
const EXT4: u64 = 0xef53;

#[derive(Clone, Debug)]
pub(crate) struct Fake {
    nodes: BTreeMap<PathBuf, Node>,
    mounts: Vec<MountPoint>,
    systems: BTreeMap<PathBuf, FileSystem>,
    kernel: String,
    landlock: Result<u32, Failure>,
    uid: u32,
    platform: Platform,
    /// What programs say, by their path and arguments.
    said: BTreeMap<String, Said>,
}

#[derive(Clone, Debug)]
struct Node {
    content: NodeContent,
    mode: u32,
    uid: u32,
    gid: u32,
    inode: u64,
}

#[derive(Clone, Debug)]
enum NodeContent {
    Directory,
    File(String),
    Link(PathBuf),
    Socket,
    /// A socket that nobody listens at.
    DeadSocket,
}

impl Fake {
    /// An empty machine, used by `uid`.
    pub(crate) fn new(uid: u32) -> Self {
        let mut fake = Self {
            nodes: BTreeMap::new(),
            mounts: Vec::new(),
            systems: BTreeMap::new(),
            kernel: "6.8.0".to_owned(),
            landlock: Ok(4),
            uid,
            platform: Platform::default(),
            said: BTreeMap::new(),
        };
        fake.put("/", NodeContent::Directory, 0o755);
        fake.mount("/", "ext4")
    }

    pub(crate) fn dir(mut self, path: &str) -> Self {
        self.put(path, NodeContent::Directory, 0o755);
        self
    }

    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        self.put(path, NodeContent::File(text.to_owned()), 0o644);
        self
    }

    pub(crate) fn link(mut self, path: &str, to: &str) -> Self {
        self.put(path, NodeContent::Link(to.into()), 0o777);
        self
    }

    pub(crate) fn socket(mut self, path: &str) -> Self {
        self.put(path, NodeContent::Socket, 0o666);
        self
    }

    pub(crate) fn dead_socket(mut self, path: &str) -> Self {
        self.put(path, NodeContent::DeadSocket, 0o666);
        self
    }

    pub(crate) fn mode(mut self, path: &str, mode: u32) -> Self {
        self.nodes.get_mut(Path::new(path)).expect("made before").mode = mode;
        self
    }

    /// Gives `path` and everything below it to somebody.
    pub(crate) fn owner(mut self, path: &str, uid: u32, gid: u32) -> Self {
        for (_, node) in self.nodes.iter_mut().filter(|(place, _)| place.starts_with(path)) {
            (node.uid, node.gid) = (uid, gid);
        }
        self
    }

    pub(crate) fn mount(mut self, path: &str, file_system: &str) -> Self {
        self.mounts.push(MountPoint {
            target: path.into(),
            root: "/".into(),
            file_system: file_system.to_owned(),
            read_only: false,
        });
        self
    }

    pub(crate) fn system(mut self, path: &str, system: FileSystem) -> Self {
        self.systems.insert(path.into(), system);
        self
    }

    pub(crate) fn kernel(mut self, release: &str) -> Self {
        release.clone_into(&mut self.kernel);
        self
    }

    pub(crate) fn without_landlock(mut self, why: &str) -> Self {
        self.landlock = Err(Failure::Other(why.to_owned()));
        self
    }

    pub(crate) fn os(mut self, os: Os) -> Self {
        self.platform = Platform { os };
        self
    }

    /// What a program says; `call` is its path and its arguments, with blanks between them.
    pub(crate) fn said(mut self, call: &str, code: i32, [stdout, stderr]: [&str; 2]) -> Self {
        let said = Said { code: Some(code), stdout: stdout.to_owned(), stderr: stderr.to_owned() };
        self.said.insert(call.to_owned(), said);
        self
    }

    /// A file below `/proc/sys`.
    pub(crate) fn setting(self, name: &str, value: &str) -> Self {
        self.file(&format!("/proc/sys/{name}"), value)
    }

    fn put(&mut self, path: &str, content: NodeContent, mode: u32) {
        let path = Path::new(path);
        for ancestor in path.ancestors().skip(1) {
            if !self.nodes.contains_key(ancestor) {
                self.insert(ancestor, NodeContent::Directory, 0o755);
            }
        }
        self.insert(path, content, mode);
    }

    fn insert(&mut self, path: &Path, content: NodeContent, mode: u32) {
        let inode = self.nodes.len() as u64 + 1;
        self.nodes.insert(path.to_owned(), Node { content, mode, uid: 0, gid: 0, inode });
    }

    fn node(&self, path: &Path) -> Result<&Node, Failure> {
        let place = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => self.real(parent)?.join(name),
            _ => self.real(path)?,
        };
        self.nodes.get(&place).ok_or(Failure::Missing)
    }

    fn real(&self, path: &Path) -> Result<PathBuf, Failure> {
        self.followed(path, 0)
    }

    fn followed(&self, path: &Path, links: u32) -> Result<PathBuf, Failure> {
        if links > 40 {
            return Err(Failure::Other("too many links".to_owned()));
        }
        let mut real = PathBuf::from("/");
        let parts: Vec<Component<'_>> = path.components().collect();
        for (index, part) in parts.iter().enumerate() {
            match part {
                Component::ParentDir => {
                    real.pop();
                }
                Component::Normal(name) => real.push(name),
                _ => {}
            }
            match &self.nodes.get(&real).ok_or(Failure::Missing)?.content {
                NodeContent::Link(to) => {
                    let base = real.parent().unwrap_or(Path::new("/")).join(to);
                    return self
                        .followed(&base.join(parts[index + 1..].iter().collect::<PathBuf>()), links + 1);
                }
                NodeContent::Directory => {}
                _ if index + 1 < parts.len() => return Err(Failure::Missing),
                _ => {}
            }
        }
        Ok(real)
    }

    fn entry(&self, path: &Path) -> Result<Entry, Failure> {
        let node = self.node(path)?;
        let kind = match node.content {
            NodeContent::Directory => Kind::Directory,
            NodeContent::File(_) => Kind::File,
            NodeContent::Link(_) => Kind::Symlink,
            NodeContent::Socket | NodeContent::DeadSocket => Kind::Socket,
        };
        let bits = if node.uid == self.uid { 0o400 } else { 0o004 };
        let readable = self.uid == 0 || node.mode & bits != 0;
        let Node { mode, uid, gid, inode, .. } = *node;
        Ok(Entry { kind, mode, uid, gid, device: 1, inode, readable })
    }

    fn children(&self, path: &Path) -> Vec<Owned> {
        let direct = self.nodes.iter().filter(|(place, _)| place.parent() == Some(path));
        direct
            .map(|(place, node)| {
                let name = place.file_name().expect("has a parent").to_string_lossy().into_owned();
                Owned { name, uid: node.uid, gid: node.gid }
            })
            .collect()
    }

    fn text(&self, path: &Path, limit: u64) -> Result<String, Failure> {
        match &self.node(&self.real(path)?)?.content {
            NodeContent::File(text) if text.len() as u64 <= limit => Ok(text.clone()),
            _ => Err(Failure::Other("no small file".to_owned())),
        }
    }

    fn answer(&self, question: &Question) -> Result<Answer, Failure> {
        Ok(match question {
            Question::Kind { path } => Answer::Kind(self.entry(path)?),
            Question::RealPath { path } => Answer::Path(self.real(path)?),
            Question::ReadLink { path } => match &self.node(path)?.content {
                NodeContent::Link(to) => Answer::Path(to.clone()),
                _ => return Err(Failure::Other("no link".to_owned())),
            },
            Question::ReadSmall { path, limit } => Answer::Text(self.text(path, *limit)?),
            Question::Mounts => Answer::Mounts(self.mounts.clone()),
            Question::FileSystem { path } => {
                let real = self.real(path)?;
                let holder = self.systems.iter().rfind(|(place, _)| real.starts_with(place));
                let plain = FileSystem { magic: EXT4, read_only: false };
                Answer::FileSystem(holder.map_or(plain, |(_, system)| *system))
            }
            Question::TopLevel { path, limit } => {
                Answer::TopLevel(self.children(path).into_iter().take(*limit).collect())
            }
            Question::Program { name, search } => {
                let places = search.iter().map(|directory| directory.join(name));
                Answer::Path(places.into_iter().find(|path| self.real(path).is_ok()).ok_or(Failure::Missing)?)
            }
            Question::Kernel => Answer::Text(self.kernel.clone()),
            Question::Stamp { path } => {
                let real = self.real(path)?;
                Answer::Text(format!("stamp-{}", self.nodes[&real].inode))
            }
            Question::Platform => Answer::Platform(self.platform),
            Question::Output { program, arguments, .. } => {
                let call = format!("{} {}", program.display(), arguments.join(" "));
                Answer::Output(
                    self.said.get(&call).cloned().ok_or(Failure::Other(format!("nobody runs `{call}`")))?,
                )
            }
            Question::Setting { name } => {
                let text = self.text(&Path::new("/proc/sys").join(name), 4096)?;
                Answer::Text(text.trim().to_owned())
            }
            Question::Landlock => Answer::Version(self.landlock.clone()?),
            Question::Accepts { path } => {
                let node = self.node(&self.real(path)?)?;
                let bits = if node.uid == self.uid { 0o200 } else { 0o002 };
                if self.uid != 0 && node.mode & bits == 0 {
                    return Err(Failure::Denied);
                }
                Answer::Truth(matches!(node.content, NodeContent::Socket))
            }
            Question::Writable { path } => {
                let node = self.node(&self.real(path)?)?;
                let bits = if node.uid == self.uid { 0o200 } else { 0o002 };
                Answer::Truth(self.uid == 0 || node.mode & bits != 0)
            }
            Question::Groups => Answer::Groups(Vec::new()),
        })
    }
}

impl Facts for Fake {
    fn ask(&self, question: &Question) -> Answer {
        self.answer(question).unwrap_or_else(Answer::Failed)
    }
}
