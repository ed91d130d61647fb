//! The first state of a source: the user's own directory, which may be a git repository.
//!
//! Where git's index vouches for a file, its id is taken from there and the file is not read. The objects behind such
//! ids are in the user's repository only; they are listed, so that they can be brought in before the state counts.

use std::path::{Path, PathBuf};

use super::{Known, SizeOf, SnapshotError, SnapshotOptions, SnapshotOutcome, Store, take};
use crate::dir::open_named;
use crate::source::attributes::{Conversion, Conversions};
use crate::source::index::{Index, Unusable};
use crate::source::repository::{Configuration, Repository, RepositoryError};
use crate::statcache::Writer;

/// What holds for the user outside of the repository.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file that `core.excludesFile` names.
    pub excludes: Vec<u8>,
    /// The file that `core.attributesFile` names.
    pub attributes: Vec<u8>,
    /// What `core.autocrlf` and the like do to every file.
    pub conversion: Conversion,
}

impl Default for Settings {
    /// For a caller who does not know: line ends may be converted.
    fn default() -> Self {
        Self { excludes: Vec::new(), attributes: Vec::new(), conversion: Conversion::LineEnds }
    }
}

/// What to bring in, and how.
#[derive(Debug)]
pub struct Onboarding<'a, 'c> {
    /// Rules and index are filled in.
    pub options: SnapshotOptions<'a>,
    pub settings: &'a Settings,
    /// Tells sizes in the user's object store.
    pub sizes: Option<&'a dyn SizeOf>,
    /// Git's index, where it was read already.
    pub index: Option<&'a Index>,
    pub cache: Option<&'c mut Writer>,
}

/// The first state of a source.
#[derive(Debug)]
pub struct Onboarded {
    pub outcome: SnapshotOutcome,
    pub repository: Option<Repository>,
    pub index: IndexUse,
}

/// What became of git's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexUse {
    /// There is none.
    None,
    /// It was asked.
    Asked {
        entries: usize,
        /// Git knows files that are deliberately not in the directory; the state does not have them.
        sparse: bool,
    },
    /// It is not to be trusted; everything was hashed, and submodules are not known as such.
    Refused(Unusable),
}

/// Why a source could not be brought in.
#[derive(Debug, thiserror::Error)]
pub enum OnboardError {
    #[error("cannot open `{}`", path.display())]
    Open { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

/// Makes the first state of the directory `root`. The user's repository is only read.
pub fn onboard(
    root: &Path,
    store: Store<'_>,
    onboarding: Onboarding<'_, '_>,
) -> Result<Onboarded, OnboardError> {
    use std::os::fd::AsFd as _;
    let Onboarding { options, settings, sizes, index: read, cache } = onboarding;
    let dir = open_named(root)
        .map_err(|errno| OnboardError::Open { path: root.to_owned(), source: errno.into() })?;
    let rules = options.rules.and(&settings.excludes, b"").unwrap_or_else(|| options.rules.clone());
    let Some(repository) = Repository::find(root)? else {
        let options = SnapshotOptions { rules: &rules, index: None, ..options };
        let outcome = take(dir.as_fd(), store, &options, cache)?;
        return Ok(Onboarded { outcome, repository: None, index: IndexUse::None });
    };
    let exclude = repository.exclude()?;
    let rules = rules.and(&exclude, b"").unwrap_or(rules);
    let Configuration { conversion, .. } = repository.configuration()?;
    let conversions = Conversions::everywhere(conversion.max(settings.conversion))
        .and(&settings.attributes, b"")
        .and(&repository.attributes()?, b"");
    let index = match read {
        Some(_) => None,
        None => repository.index(store.sink.hash_kind())?,
    };
    let usable = read.or(index.as_ref().and_then(|index| index.as_ref().ok()));
    let known = usable.map(|index| Known { index, conversions: &conversions, objects: sizes });
    let options = SnapshotOptions { rules: &rules, index: known.as_ref(), ..options };
    // The repository's own rules have the last word.
    let exclude = match settings.excludes.as_slice() {
        [] => exclude,
        users => [users, &exclude].join(&b'\n'),
    };
    let outcome = SnapshotOutcome { exclude, ..take(dir.as_fd(), store, &options, cache)? };
    let index = match (usable, &index) {
        (Some(index), _) => IndexUse::Asked { entries: index.len(), sparse: index.is_sparse() },
        (None, Some(Err(why))) => IndexUse::Refused(*why),
        (None, _) => IndexUse::None,
    };
    Ok(Onboarded { outcome, repository: Some(repository), index })
}
