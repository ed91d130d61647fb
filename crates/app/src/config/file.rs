//! Configuration files: the user's own, and a project's, which is foreign.
//!
//! Both are a flat table of settings, and under `[profiles.NAME]` tables of settings that go by a name. A project's file is opened without following a symbolic link, must
//! be a regular file and small: it comes with the repository, and whoever wrote that is not the user.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use sandtable_sandbox::model::profile::Profile;
use sandtable_sandbox::model::setting::Origin;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::key::{Key, closest};
use super::layer::Layer;
use super::profiles::Defined;
use super::trust;
use super::value::{Raw, ValueError};

/// The name of a project's file.
pub const PROJECT_FILE: &str = ".sandtable.toml";

/// The table of profiles.
const PROFILES: &str = "profiles";
const LETTERS: &str = "use at most 40 lower-case letters, digits and dashes, starting with a letter";

/// No configuration needs more.
const LIMIT: u64 = 64 * 1024;

/// A file that was read.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    pub path: PathBuf,
    pub layer: Layer,
    /// The profiles it defines.
    pub profiles: Defined,
    /// Where each setting of the file stands.
    pub places: BTreeMap<Key, Place>,
    /// Of the very bytes that were read, so that consent is to what is used.
    pub sha256: String,
}

/// A place in a file, both counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Why a file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("could not read configuration file `{}`", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("configuration file `{}` is a symbolic link, and a project's file must not be one", .0.display())]
    Link(PathBuf),
    #[error("configuration file `{}` is not a regular file", .0.display())]
    NotAFile(PathBuf),
    #[error("configuration file `{}` is larger than {LIMIT} bytes", .0.display())]
    TooLarge(PathBuf),
    #[error("`{}:{place}` is not TOML: {message}", path.display())]
    Syntax { path: PathBuf, place: Place, message: String },
    #[error("unknown key `{key}` at `{}:{place}`", path.display())]
    UnknownKey { path: PathBuf, place: Place, key: String, meant: Option<&'static str> },
    #[error("`{name}` at `{}:{place}` cannot be the name of a profile: {why}", path.display())]
    ProfileName { path: PathBuf, place: Place, name: String, why: &'static str },
    #[error("key `{key}` at `{}:{place}` has no usable value", path.display())]
    Value { path: PathBuf, place: Place, key: &'static str, source: Box<ValueError> },
}

/// Reads the user's file, if there is one. `~/` in it means `home`.
pub fn user(path: &Path, home: Option<&Path>) -> Result<Option<ConfigFile>, FileError> {
    let Some(text) = contents(path, OFlags::empty())? else { return Ok(None) };
    Reader { path, origin: Origin::UserFile { path: path.to_owned() }, home }.read(&text).map(Some)
}

/// Reads the file of the project around `directory`, if there is one.
pub fn project(directory: &Path) -> Result<Option<ConfigFile>, FileError> {
    let Some(path) = project_path(directory) else { return Ok(None) };
    project_at(&path)
}

/// Where the file of the project around `directory` is or would be.
pub fn project_path(directory: &Path) -> Option<PathBuf> {
    top(directory).map(|top| top.join(PROJECT_FILE))
}

/// Reads a project's file, if there is one at this real path.
pub fn project_at(path: &Path) -> Result<Option<ConfigFile>, FileError> {
    let Some(text) = contents(path, OFlags::NOFOLLOW)? else { return Ok(None) };
    Reader { path, origin: Origin::ProjectFile { path: path.to_owned() }, home: None }.read(&text).map(Some)
}

/// The top of the repository around a directory, or the directory itself. A directory that is not there
/// has none; saying so is left to those who need it.
fn top(directory: &Path) -> Option<PathBuf> {
    let directory = fs_err::canonicalize(directory).ok()?;
    let repository = directory.ancestors().find(|at| at.join(".git").symlink_metadata().is_ok());
    Some(repository.unwrap_or(&directory).to_owned())
}

/// The text of a file, or `None` if there is no such file.
fn contents(path: &Path, extra: OFlags) -> Result<Option<String>, FileError> {
    let failed = |source: io::Error| FileError::Read { path: path.to_owned(), source };
    // Without `NONBLOCK` a pipe in the place of the file would keep us waiting for ever.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK | extra;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(Errno::LOOP) if extra.contains(OFlags::NOFOLLOW) => {
            return Err(FileError::Link(path.to_owned()));
        }
        Err(Errno::NXIO) => return Err(FileError::NotAFile(path.to_owned())),
        Err(error) => return Err(failed(error.into())),
    };
    let status = rustix::fs::fstat(&file).map_err(|error| failed(error.into()))?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(FileError::NotAFile(path.to_owned()));
    }
    let mut bytes = Vec::new();
    File::from(file).take(LIMIT + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LIMIT {
        return Err(FileError::TooLarge(path.to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let readable = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let place = place_of(&readable, readable.len());
        FileError::Syntax { path: path.to_owned(), place, message: "not UTF-8 text".to_owned() }
    })?;
    Ok(Some(text))
}

/// A line of a table.
type Entry<'a, 'text> = (&'a Spanned<DeString<'text>>, &'a Spanned<DeValue<'text>>);

/// What is known while a file is read.
struct Reader<'a> {
    path: &'a Path,
    origin: Origin,
    home: Option<&'a Path>,
}

impl Reader<'_> {
    fn read(&self, text: &str) -> Result<ConfigFile, FileError> {
        let path = || self.path.to_owned();
        let table = DeTable::parse(text).map_err(|error| FileError::Syntax {
            path: path(),
            place: place_of(text, error.span().map_or(0, |span| span.start)),
            message: error.message().to_owned(),
        })?;
        let sha256 = trust::hash(text.as_bytes());
        let mut file = ConfigFile {
            path: path(),
            layer: Layer::default(),
            profiles: Defined::new(),
            places: BTreeMap::new(),
            sha256,
        };
        for (word, value) in table.get_ref() {
            if let (PROFILES, DeValue::Table(named)) = (word.get_ref().as_ref(), value.get_ref()) {
                file.profiles = self.profiles(text, named)?;
                continue;
            }
            let (key, place) = self.one(text, &mut file.layer, (word, value))?;
            file.places.insert(key, place);
        }
        Ok(file)
    }

    /// Profiles, each a table like the file itself.
    fn profiles(&self, text: &str, named: &DeTable<'_>) -> Result<Defined, FileError> {
        let mut profiles = Defined::new();
        for (word, value) in named {
            let (name, place) = (word.get_ref().to_string(), place_of(text, word.span().start));
            let refused =
                |why| FileError::ProfileName { path: self.path.to_owned(), place, name: name.clone(), why };
            let profile: Profile = name.parse().map_err(|_| refused(LETTERS))?;
            if profile.built_in().is_some() {
                return Err(refused("it is one that every installation has"));
            }
            let DeValue::Table(settings) = value.get_ref() else {
                return Err(refused("a profile is a table of settings"));
            };
            let reader = Self { origin: Origin::Profile { name: name.clone() }, ..*self };
            let mut layer = Layer::default();
            for entry in settings {
                if let (Key::Profile, _) = reader.one(text, &mut layer, entry)? {
                    return Err(refused("a profile cannot name another one"));
                }
            }
            profiles.insert(profile, layer);
        }
        Ok(profiles)
    }

    /// One setting, and where it stands.
    fn one(
        &self,
        text: &str,
        layer: &mut Layer,
        (word, value): Entry<'_, '_>,
    ) -> Result<(Key, Place), FileError> {
        let path = || self.path.to_owned();
        let place = place_of(text, word.span().start);
        let Some(key) = Key::from_word(word.get_ref()) else {
            let meant = closest(word.get_ref(), Key::ALL.iter().map(|key| key.word()));
            return Err(FileError::UnknownKey {
                path: path(),
                place,
                key: word.get_ref().to_string(),
                meant,
            });
        };
        let refused = |source: ValueError| FileError::Value {
            path: path(),
            place: place_of(text, value.span().start),
            key: key.word(),
            source: Box::new(source),
        };
        self.set(layer, key, value).map_err(refused)?;
        Ok((key, place))
    }

    fn set(&self, layer: &mut Layer, key: Key, value: &Spanned<DeValue<'_>>) -> Result<(), ValueError> {
        layer.set(key, raw(value.get_ref())?, &self.origin)?;
        layer.anchor(key, &|path| self.anchored(path))
    }

    /// A path with `~/` replaced. A file is read from many directories, so a relative path in it means nothing.
    fn anchored(&self, path: &Path) -> Result<PathBuf, ValueError> {
        match (path.strip_prefix("~"), self.home) {
            (Ok(rest), Some(home)) => Ok(home.join(rest)),
            _ if path.is_absolute() => Ok(path.to_owned()),
            _ => Err(ValueError::Relative(path.to_owned())),
        }
    }
}

fn raw(value: &DeValue<'_>) -> Result<Raw, ValueError> {
    match value {
        DeValue::String(text) => Ok(Raw::Text(text.as_ref().into())),
        DeValue::Boolean(on) => Ok(Raw::Switch(*on)),
        DeValue::Integer(number) if number.radix() == 10 => Ok(Raw::Number(number.as_str().to_owned())),
        DeValue::Float(number) => Ok(Raw::Number(number.as_str().to_owned())),
        DeValue::Array(items) => {
            let items = items.iter().map(|item| raw(item.get_ref())?.text());
            Ok(Raw::List(items.collect::<Result<_, _>>()?))
        }
        other => Err(ValueError::Shape {
            expected: "a text, a number, a boolean or a list",
            found: other.type_str(),
        }),
    }
}

fn place_of(text: &str, offset: usize) -> Place {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let line = before.split(|byte| *byte == b'\n').count();
    Place { line, column: String::from_utf8_lossy(&before[start..]).chars().count() + 1 }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::key::Kind;
    use super::*;

    struct Project(tempfile::TempDir);

    impl Project {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a temporary directory"))
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn with(text: &[u8]) -> Self {
            let project = Self::new();
            fs_err::write(project.at(PROJECT_FILE), text).expect("a fresh directory");
            project
        }

        /// The error, with the directory's random name taken out.
        fn refused(&self) -> String {
            let error = project(self.0.path()).expect_err("refused");
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            let text = format!("{error}{}", cause.unwrap_or_default());
            text.replace(&self.0.path().canonicalize().expect("it exists").display().to_string(), "[top]")
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let refused = |text: &str| Project::with(text.as_bytes()).refused();
        insta::assert_snapshot!(refused("# é\nnetwork = \"none\nrm = true"), @r#"`[top]/.sandtable.toml:2:16` is not TOML: invalid basic string, expected `"`"#);
        insta::assert_snapshot!(refused("\n  netwrok = \"none\""), @"unknown key `netwrok` at `[top]/.sandtable.toml:2:3`");
        insta::assert_snapshot!(refused("[run]\nnetwork = \"none\""), @"unknown key `run` at `[top]/.sandtable.toml:1:2`");
        insta::assert_snapshot!(refused("network = \"of\""), @"key `network` at `[top]/.sandtable.toml:1:11` has no usable value: unknown value `of`; one of `none`, `proxied`, `nat`, `host`");
        insta::assert_snapshot!(refused("network = true"), @"key `network` at `[top]/.sandtable.toml:1:11` has no usable value: expected a text in quotes, found a boolean");
        insta::assert_snapshot!(refused("rm = 1"), @"key `rm` at `[top]/.sandtable.toml:1:6` has no usable value: expected `true` or `false`, found a number");
        insta::assert_snapshot!(refused("rm = \"true\""), @"key `rm` at `[top]/.sandtable.toml:1:6` has no usable value: expected `true` or `false`, found a text");
        insta::assert_snapshot!(refused("mounts = [\"a:/b\"]"), @"key `mounts` at `[top]/.sandtable.toml:1:10` has no usable value: path `a` is relative");
        insta::assert_snapshot!(refused("rm = true\nrm = false"), @"`[top]/.sandtable.toml:2:1` is not TOML: duplicate key");
    }

    #[test]
    fn every_setting_with_words_refuses_unknown_ones() {
        for key in Key::ALL {
            let bad = match key.kind() {
                Kind::Text => "\"No such word\"",
                Kind::Path => "\"relative\"",
                Kind::Switch => "\"yes\"",
                Kind::List => "[\"/a:/b:rx\"]",
                Kind::Words => "[\"./x/../= y\"]",
                Kind::Line => "7",
            };
            let refused = Project::with(format!("{} = {bad}", key.word()).as_bytes()).refused();
            assert!(refused.starts_with(&format!("key `{}` at", key.word())), "{refused}");
        }
    }

    #[test]
    fn a_projects_file_must_be_a_small_regular_file_of_text() {
        let link = Project::new();
        fs_err::write(link.at("elsewhere"), "network = \"none\"").expect("a fresh directory");
        symlink("elsewhere", link.at(PROJECT_FILE)).expect("a fresh directory");
        insta::assert_snapshot!(link.refused(), @"configuration file `[top]/.sandtable.toml` is a symbolic link, and a project's file must not be one");
        let directory = Project::new();
        fs_err::create_dir(directory.at(PROJECT_FILE)).expect("a fresh directory");
        insta::assert_snapshot!(directory.refused(), @"configuration file `[top]/.sandtable.toml` is not a regular file");
        let pipe = Project::new();
        rustix::fs::mknodat(rustix::fs::CWD, pipe.at(PROJECT_FILE), FileType::Fifo, Mode::RUSR, 0)
            .expect("a pipe");
        insta::assert_snapshot!(pipe.refused(), @"configuration file `[top]/.sandtable.toml` is not a regular file");
        insta::assert_snapshot!(Project::with(&vec![b'#'; 65537]).refused(), @"configuration file `[top]/.sandtable.toml` is larger than 65536 bytes");
        insta::assert_snapshot!(Project::with(b"#\n# \xff").refused(), @"`[top]/.sandtable.toml:2:3` is not TOML: not UTF-8 text");
    }

    #[test]
    fn the_file_at_the_top_of_the_repository_counts() {
        let project_dir = Project::with(b"network = \"none\"");
        fs_err::create_dir_all(project_dir.at("a/b")).expect("a fresh directory");
        fs_err::write(project_dir.at("a/.sandtable.toml"), "rm = true").expect("a fresh directory");
        let found =
            |directory: &str| project(&project_dir.at(directory)).expect("fine").map(|file| file.places);
        assert!(found("a/b").is_none(), "no repository: only the directory itself");
        assert!(found("a").is_some_and(|places| places.contains_key(&Key::Rm)));
        fs_err::create_dir(project_dir.at(".git")).expect("a fresh directory");
        assert!(found("a/b").is_some_and(|places| places.contains_key(&Key::Network)));
        assert!(found("missing").is_none());
    }

    #[test]
    fn the_users_file_may_be_a_link_and_may_name_the_home_directory() {
        let user_dir = Project::new();
        fs_err::write(user_dir.at("real"), "mounts = [\"~/x:/x\"]\nreport = \"~/r.json\"")
            .expect("a fresh directory");
        symlink("real", user_dir.at("config.toml")).expect("a fresh directory");
        let file =
            user(&user_dir.at("config.toml"), Some(Path::new("/home/u"))).expect("fine").expect("there");
        assert_eq!(file.layer.mounts[0].value.source, Path::new("/home/u/x"));
        assert_eq!(file.layer.report.expect("set").value, Path::new("/home/u/r.json"));
        assert!(user(&user_dir.at("missing"), None).expect("fine").is_none());
    }
}
