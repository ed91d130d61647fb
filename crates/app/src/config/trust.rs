//! Consent to a project's file. A file that the user has read and trusts may widen the policy; consent is to
//! exactly these bytes at exactly this place, so that any later change needs to be looked at again.
//!
//! Each consent is one small file in our state directory, which no sandbox sees. Its name is made from the
//! path, so that two consents never meet in one file and nothing has to be locked.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::model::versioned::{self, Unreadable};
use sandtable_store::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::file::ConfigFile;

/// The version of the stored form; another one is refused.
const SCHEMA: u32 = 1;

/// All consents of this user.
#[derive(Clone, Debug)]
pub struct Trust {
    directory: PathBuf,
}

/// One consent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    schema: u32,
    pub path: PathBuf,
    pub sha256: String,
    /// Seconds since 1970.
    pub trusted_at: u64,
}

/// What is known about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Nobody consented to a file of this path.
    Unknown,
    /// There was consent, and the file is another one now.
    Changed,
    Trusted,
}

/// Why consents cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("could not {what} `{}`", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("`{}` is not a consent this version understands", path.display())]
    Form { path: PathBuf, source: serde_json::Error },
    #[error("`{}` has schema {found}, this version knows {SCHEMA}", path.display())]
    Schema { path: PathBuf, found: u32 },
}

impl Trust {
    /// Consents below our data directory. Nothing is made yet.
    pub fn new(data: &HostPath) -> Self {
        Self { directory: data.join("trust").into() }
    }

    /// What is known about this file, as it was read.
    pub fn standing(&self, file: &ConfigFile) -> Result<Standing, TrustError> {
        Ok(match self.consent(&file.path)? {
            None => Standing::Unknown,
            Some(consent) if consent.path == file.path && consent.sha256 == file.sha256 => Standing::Trusted,
            Some(_) => Standing::Changed,
        })
    }

    /// Records consent to this file.
    pub fn record(&self, file: &ConfigFile) -> Result<Consent, TrustError> {
        let consent = Consent {
            schema: SCHEMA,
            path: file.path.clone(),
            sha256: file.sha256.clone(),
            trusted_at: SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |age| age.as_secs()),
        };
        let place = self.place(&file.path);
        self.write(&place, &consent).map_err(failed("write", &place))?;
        Ok(consent)
    }

    /// Takes a consent back; whether there was one.
    pub fn revoke(&self, path: &Path) -> Result<bool, TrustError> {
        let place = self.place(path);
        match fs_err::remove_file(&place) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed("remove", &place)(error)),
        }
    }

    /// Every consent, by path.
    pub fn list(&self) -> Result<Vec<Consent>, TrustError> {
        let entries = match fs_err::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed("read", &self.directory)(error)),
        };
        let places = entries.flatten().map(|entry| entry.path());
        let stored = places.filter(|place| place.extension().is_some_and(|end| end == "json"));
        let mut consents =
            stored.filter_map(|place| read(&place).transpose()).collect::<Result<Vec<_>, _>>()?;
        consents.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(consents)
    }

    fn consent(&self, path: &Path) -> Result<Option<Consent>, TrustError> {
        read(&self.place(path))
    }

    fn place(&self, path: &Path) -> PathBuf {
        self.directory.join(format!("{}.json", hash(path.as_os_str().as_encoded_bytes())))
    }

    /// Complete or not at all, and readable by nobody else.
    fn write(&self, place: &Path, consent: &Consent) -> io::Result<()> {
        fs_err::create_dir_all(&self.directory)?;
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs_err::set_permissions(&self.directory, private)?;
        let draft = place.with_extension(format!("draft-{}", std::process::id()));
        let mut options = fs_err::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&draft)?;
        file.write_all(&serde_json::to_vec_pretty(consent)?)?;
        file.sync_all()?;
        fs_err::rename(&draft, place)
    }
}

/// SHA-256 in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes))
}

fn read(place: &Path) -> Result<Option<Consent>, TrustError> {
    let text = match fs_err::read(place) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("read", place)(error)),
    };
    let path = place.to_owned();
    versioned::read(&text, SCHEMA..=SCHEMA).map(Some).map_err(|unreadable| match unreadable {
        Unreadable::Malformed(source) => TrustError::Form { path, source },
        Unreadable::Schema(found) => TrustError::Schema { path, found },
    })
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TrustError {
    let path = path.to_owned();
    move |source| TrustError::Io { what, path, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::config::file;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a temporary directory"))
        }

        fn trust(&self) -> Trust {
            Trust::new(&HostPath::new(self.0.path().join("data")).expect("absolute"))
        }

        fn file(&self, text: &str) -> ConfigFile {
            fs_err::write(self.0.path().join(file::PROJECT_FILE), text).expect("a fresh directory");
            file::project(self.0.path()).expect("fine").expect("there")
        }
    }

    #[test]
    fn the_hash_is_the_standard_one() {
        assert_eq!(hash(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn consent_is_to_these_bytes_only_and_can_be_taken_back() {
        let place = Place::new();
        let (trust, first) = (place.trust(), place.file("network = \"host\""));
        assert_eq!(trust.standing(&first).expect("readable"), Standing::Unknown);
        let consent = trust.record(&first).expect("writable");
        assert_eq!(trust.standing(&first).expect("readable"), Standing::Trusted);
        assert_eq!(trust.list().expect("readable"), [consent]);
        let second = place.file("network = \"host\" ");
        assert_eq!(trust.standing(&second).expect("readable"), Standing::Changed);
        assert!(trust.revoke(&first.path).expect("removable"));
        assert!(!trust.revoke(&first.path).expect("nothing there"));
        assert_eq!(trust.standing(&first).expect("readable"), Standing::Unknown);
    }

    #[test]
    fn nobody_else_reads_consents_and_an_unknown_form_is_refused() {
        let place = Place::new();
        let (trust, file) = (place.trust(), place.file("rm = true"));
        trust.record(&file).expect("writable");
        let stored = trust.place(&file.path);
        let mode = fs_err::metadata(&stored).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        fs_err::write(&stored, "{\"schema\": 2}").expect("ours");
        assert!(matches!(trust.standing(&file), Err(TrustError::Schema { found: 2, .. })));
        fs_err::write(&stored, "{}").expect("ours");
        assert!(matches!(trust.standing(&file), Err(TrustError::Form { .. })));
    }
}
