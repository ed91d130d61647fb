//! A Mac on paper: the facts that resolving a request asks for, as one user's machine would answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sandtable_sandbox::facts::{Answer, Entry, Facts, Failure, FileSystem, Kind, Owned, Question};
use sandtable_sandbox::host::Host;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::model::platform::{Os, Platform};

/// Where the user of the Mac is at home.
pub const HOME: &str = "/Users/ann";
/// Links of the root directory on every Mac.
const LINKS: [&str; 3] = ["/etc", "/tmp", "/var"];
const APFS: u64 = 0x1a;

/// The machine, by its files: a text for a file, nothing for a directory.
#[derive(Clone, Debug)]
pub struct Mac(BTreeMap<PathBuf, Option<String>>);

impl Default for Mac {
    fn default() -> Self {
        let mut mac = Self(BTreeMap::new());
        let directories = [
            "/System",
            "/Library",
            "/Library/Keychains",
            "/usr/bin",
            "/usr/local/bin",
            "/bin",
            "/sbin",
            "/opt/homebrew/bin",
            "/private/etc/ssh",
            "/private/tmp",
            "/private/var/db/timezone",
            "/private/var/select",
            "/Users/ann/.ssh",
            "/Users/ann/repo/src",
            "/Users/ann/.rustup/toolchains",
            "/Users/ann/.cargo/registry",
            "/Users/ann/data",
        ];
        for path in directories {
            mac.put(path, None);
        }
        let files = [
            ("/bin/zsh", ""),
            ("/usr/bin/sandbox-exec", ""),
            ("/private/etc/hosts", "127.0.0.1 localhost\n"),
            ("/Users/ann/.gitconfig", "[user]\n\tname = Ann\n"),
            ("/Users/ann/.git-credentials", "secret"),
            ("/Users/ann/.ssh/id_ed25519", "secret"),
            ("/Users/ann/.cargo/bin/cargo", ""),
            ("/Users/ann/.cargo/credentials.toml", "secret"),
            ("/Users/ann/repo/.git/HEAD", "ref: refs/heads/main\n"),
            ("/Users/ann/repo/README", "text\n"),
        ];
        for (path, text) in files {
            mac.put(path, Some(text));
        }
        mac
    }
}

impl Mac {
    /// The caller.
    ///
    /// # Panics
    /// Never: the paths are absolute.
    pub fn host(&self) -> Host {
        let variables = [
            ("PATH", "/opt/homebrew/bin:/Users/ann/.cargo/bin:/usr/bin:/bin"),
            ("SHELL", "/bin/zsh"),
            ("TERM", "xterm-256color"),
            ("USER", "ann"),
        ];
        let home = HostPath::new(HOME).expect("absolute");
        Host {
            uid: 501,
            gid: 20,
            data: home.join(".local/share/sandtable"),
            home: Some(home),
            environment: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            odd_variables: Vec::new(),
            foreign: Vec::new(),
            executable: None,
            tools: Vec::new(),
        }
    }

    fn put(&mut self, path: &str, text: Option<&str>) {
        for ancestor in Path::new(path).ancestors().skip(1) {
            self.0.entry(ancestor.to_owned()).or_insert(None);
        }
        self.0.insert(path.into(), text.map(str::to_owned));
    }

    fn real(&self, path: &Path) -> Result<PathBuf, Failure> {
        let link = LINKS.iter().any(|link| path.starts_with(link));
        let real = if link {
            Path::new("/private").join(path.strip_prefix("/").unwrap_or(path))
        } else {
            path.to_owned()
        };
        if self.0.contains_key(&real) { Ok(real) } else { Err(Failure::Missing) }
    }

    fn entry(&self, path: &Path) -> Result<Entry, Failure> {
        let is_link = LINKS.iter().any(|link| path == Path::new(link));
        let real = if is_link { path.to_owned() } else { self.real(path)? };
        let kind = match self.0.get(&real) {
            _ if is_link => Kind::Symlink,
            Some(None) => Kind::Directory,
            Some(Some(_)) => Kind::File,
            None => return Err(Failure::Missing),
        };
        let uid = if real.starts_with(HOME) { 501 } else { 0 };
        Ok(Entry { kind, mode: 0o755, uid, gid: 20, device: 1, inode: 7, readable: true })
    }

    fn below(&self, path: &Path) -> Vec<Owned> {
        let names =
            self.0.keys().filter(|place| place.parent() == Some(path)).filter_map(|place| place.file_name());
        names.map(|name| Owned { name: name.to_string_lossy().into_owned(), uid: 501, gid: 20 }).collect()
    }

    fn answer(&self, question: &Question) -> Result<Answer, Failure> {
        Ok(match question {
            Question::Platform => Answer::Platform(Platform { os: Os::MacOs }),
            Question::Kind { path } => Answer::Kind(self.entry(path)?),
            Question::RealPath { path } => Answer::Path(self.real(path)?),
            Question::ReadSmall { path, .. } => {
                Answer::Text(self.0.get(&self.real(path)?).cloned().flatten().ok_or(Failure::Missing)?)
            }
            Question::TopLevel { path, .. } => Answer::TopLevel(self.below(&self.real(path)?)),
            Question::FileSystem { .. } => Answer::FileSystem(FileSystem { magic: APFS, read_only: false }),
            Question::Groups => Answer::Groups(vec![20]),
            Question::Program { name, search } => {
                let places = search.iter().map(|directory| directory.join(name));
                Answer::Path(places.into_iter().find(|path| self.real(path).is_ok()).ok_or(Failure::Missing)?)
            }
            other => return Err(Failure::Other(format!("no Mac answers {other:?}"))),
        })
    }
}

impl Facts for Mac {
    fn ask(&self, question: &Question) -> Answer {
        self.answer(question).unwrap_or_else(Answer::Failed)
    }
}
