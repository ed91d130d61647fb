//! The user's git configuration as a list of words. Asking for the list starts no program; nothing in it is
//! ever handed to git again but the few values that say how files are written.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use sandtable_store::id::HashKind;

use crate::error::Error;
use crate::request::{Identity, Means};

/// What a repository's configuration says, all files together.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    values: BTreeMap<String, Vec<Value>>,
    /// Values that do not come from the repository itself.
    trusted: Vec<String>,
}

/// A value, and the file that says so.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) text: String,
    pub(crate) file: Option<PathBuf>,
}

/// Settings that are data and say how files become blobs and back.
const PASSED_ON: [&str; 9] = [
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.trustctime",
];

impl Settings {
    pub(crate) fn read(means: &Means, git_dir: &Path) -> Result<Self, Error> {
        let mut call = means.git.call(git_dir).shortly();
        call = call.args(["config", "--list", "--includes", "--show-scope", "--show-origin", "-z"]);
        if let Some(home) = &means.home {
            let xdg = home.as_path().join(".config");
            call = call.variable("HOME", home.as_path()).variable("XDG_CONFIG_HOME", xdg);
            call =
                call.without("GIT_CONFIG_GLOBAL").without("GIT_CONFIG_SYSTEM").without("GIT_CONFIG_NOSYSTEM");
        }
        call = means.git_variables.iter().fold(call, |call, (name, value)| call.variable(name, value));
        let answer = call.output()?;
        let mut settings = Self::default();
        let fields: Vec<&[u8]> = answer.split(|byte| *byte == 0).collect();
        let lines: Vec<&[&[u8]]> = fields.chunks_exact(3).collect();
        // What a command line says comes last, after what variables say, and is ours.
        let users = lines.len().saturating_sub(call.settings_given());
        for line in &lines[..users] {
            let (scope, pair) = (line[0], String::from_utf8_lossy(line[2]));
            let (name, value) = pair.split_once('\n').unwrap_or((&pair, "true"));
            let file = line[1].strip_prefix(b"file:").map(|file| PathBuf::from(OsStr::from_bytes(file)));
            if name == "safe.directory" && matches!(scope, b"system" | b"global") {
                settings.trusted.push(value.to_owned());
            }
            let value = Value { text: value.to_owned(), file };
            settings.values.entry(name.to_owned()).or_default().push(value);
        }
        Ok(settings)
    }

    /// Every value of every setting, by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().flat_map(|(name, values)| values.iter().map(|value| (name.as_str(), value)))
    }

    #[cfg(test)]
    pub(crate) fn of<const N: usize>(pairs: [(&str, &str); N]) -> Self {
        let value = |text: &str| Value { text: text.to_owned(), file: None };
        let values = pairs.map(|(name, text)| (name.to_owned(), vec![value(text)]));
        Self { values: values.into(), trusted: Vec::new() }
    }

    /// The value that wins.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.last(name).map(|value| value.text.as_str())
    }

    /// The same, with the file that says so.
    pub(super) fn last(&self, name: &str) -> Option<&Value> {
        self.values.get(name)?.last()
    }

    pub fn is_true(&self, name: &str) -> bool {
        let yes =
            |value: &str| ["true", "yes", "on", "1"].iter().any(|word| value.eq_ignore_ascii_case(word));
        self.get(name).is_some_and(yes)
    }

    pub(crate) fn is_false(&self, name: &str) -> bool {
        let no =
            |value: &str| ["false", "no", "off", "0", ""].iter().any(|word| value.eq_ignore_ascii_case(word));
        self.get(name).is_some_and(no)
    }

    /// Who the user is, where the configuration says so.
    pub fn identity(&self) -> Option<Identity> {
        let get = |part| self.get(&format!("committer.{part}")).or_else(|| self.get(&format!("user.{part}")));
        Some(Identity { name: get("name")?.to_owned(), email: get("email")?.to_owned() })
    }

    pub(super) fn format(&self) -> HashKind {
        match self.get("extensions.objectformat") {
            Some("sha256") => HashKind::Sha256,
            _ => HashKind::Sha1,
        }
    }

    pub(super) fn has_promisor(&self) -> bool {
        self.values.keys().any(|name| name.starts_with("remote.") && name.ends_with(".promisor"))
    }

    /// Whether the user has said that this repository may belong to somebody else.
    pub(super) fn trusts(&self, root: &Path) -> bool {
        self.trusted.iter().any(|value| value == "*" || Path::new(value) == root)
    }

    /// What our own calls are told about the user's files.
    pub(crate) fn passed_on(&self) -> Vec<(String, String)> {
        let given = |name: &&str| Some(((*name).to_owned(), self.get(name)?.to_owned()));
        PASSED_ON.iter().filter_map(given).collect()
    }

    /// A file of ignore rules that the user keeps outside of the repository.
    pub(crate) fn excludes_file(&self) -> Option<&str> {
        self.get("core.excludesfile")
    }
}
