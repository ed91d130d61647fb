//! Where finished tools are kept: one directory per key, complete or not there.
//!
//! `store/<key>/tool` is what is mounted, `receipt.json` says what it is, `plan.json` how it was made, `manifest.json` what
//! every file of it was then. A builder holds `store/<key>.lock`, works in `store/<key>.partial` and gives the result its name by one rename; whoever wants the same tool waits for it. What a killed builder left never counts, and the next one removes it.
//! On every use the tree is held against its manifest: a file that is not as it was made is an error that names it,
//! never a tool that is used all the same. Nothing here is ever on the PATH of the host.

mod collect;
mod manifest;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fs_err as fs;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::model::tool::{MadeOn, ProvidedDep, ToolName, ToolVersion};
use sandtable_store::lock::FileLock;
use sandtable_store::remove::remove_tree;
use serde::{Deserialize, Serialize};

pub use self::collect::{Fate, Removable};
pub use self::manifest::{Manifest, TreeError};
use super::plan::{Plan, PlanDigest, PlanKey};

/// The version of the files that are written here.
const SCHEMA: u32 = 1;
const STORE: &str = "store";
const DOWNLOADS: &str = "downloads";
const TOOL: &str = "tool";
const WORK: &str = "work";
const RECEIPT: &str = "receipt.json";
const MANIFEST: &str = "manifest.json";
const PLAN: &str = "plan.json";
/// Its time says when the tool was last used.
const USED: &str = "used";
const PARTIAL: &str = "partial";
const LOCK: &str = "lock";

/// Why a tool cannot be kept or used.
#[derive(Debug, thiserror::Error)]
pub enum DepotError {
    #[error("cannot {what} `{}`", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the kept tool `{tool}` is not what was made")]
    Corrupt {
        tool: String,
        key: PlanKey,
        #[source]
        source: TreeError,
    },
    #[error("what the steps of `{tool}` left cannot be kept")]
    Unfit {
        tool: String,
        #[source]
        source: TreeError,
    },
}

impl DepotError {
    pub(super) fn file(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { what, path, source }
    }
}

/// What is known of a finished tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub schema: u32,
    pub key: PlanKey,
    pub name: ToolName,
    pub version: ToolVersion,
    pub plan: PlanDigest,
    /// The keys of what it needs when it is used.
    pub needs: BTreeSet<PlanKey>,
    pub files: u64,
    pub bytes: u64,
    /// Seconds since 1970.
    pub made_at: u64,
    /// The image it was made on; nothing if that was no container's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_on: Option<MadeOn>,
}

/// Whether a tool was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Kept,
    Made,
}

/// The tools of a user.
#[derive(Clone, Debug)]
pub struct Depot {
    root: HostPath,
}

/// A tool that is to be there.
#[derive(Debug)]
pub struct Wanted<'a> {
    pub plan: &'a Plan,
    pub key: PlanKey,
    /// The keys of what it needs when it is used.
    pub needs: BTreeSet<PlanKey>,
    /// The image it would be made on, for whoever asks later. The key covers it.
    pub made_on: Option<MadeOn>,
}

/// Where a tool is made.
#[derive(Debug)]
pub struct Workplace {
    /// Everything of it; nothing of it survives.
    pub partial: HostPath,
    /// The work directory.
    pub work: HostPath,
    /// The output directory, which becomes the tool.
    pub output: HostPath,
}

impl Depot {
    /// Tools below the directory `root`, which is made when it is needed.
    pub fn new(root: HostPath) -> Self {
        Self { root }
    }

    pub fn root(&self) -> &HostPath {
        &self.root
    }

    /// The directory of downloads.
    pub fn downloads(&self) -> HostPath {
        self.root.join(DOWNLOADS)
    }

    /// The finished tool of that key, if it is there and as it was made.
    pub fn find(&self, plan: &Plan, key: PlanKey) -> Result<Option<ProvidedDep>, DepotError> {
        let place = self.place(key);
        let Some(receipt) = receipt(&place) else { return Ok(None) };
        let manifest = place.join(MANIFEST);
        let corrupt = |source| DepotError::Corrupt { tool: plan.title(), key, source };
        let text = fs::read(manifest.as_path()).map_err(|error| corrupt(TreeError::Manifest(error)))?;
        let kept: Manifest = serde_json::from_slice(&text).map_err(|error| {
            corrupt(TreeError::Manifest(io::Error::new(io::ErrorKind::InvalidData, error)))
        })?;
        kept.compare(place.join(TOOL).as_path()).map_err(corrupt)?;
        // When it was last used is good to know, and no reason to fail.
        let _unknown = fs::write(place.join(USED).as_path(), b"");
        Ok((receipt.schema == SCHEMA).then(|| self.provided(plan, key, receipt.made_on)))
    }

    /// The finished tool of that key, made by `make` if it is not there. One at a time makes it.
    pub fn obtain<E: From<DepotError>>(
        &self,
        wanted: &Wanted<'_>,
        around: &Around<'_>,
        make: impl FnOnce(&Workplace) -> Result<(), E>,
    ) -> Result<(ProvidedDep, Origin), E> {
        let Wanted { plan, key, .. } = *wanted;
        if let Some(found) = self.find(plan, key)? {
            return Ok((found, Origin::Kept));
        }
        let _held = self.lock(key, around)?;
        // The one that was waited for may have made it.
        if let Some(found) = self.find(plan, key)? {
            return Ok((found, Origin::Kept));
        }
        let workplace = self.begin(key, around)?;
        let result = make(&workplace).and_then(|()| self.publish(wanted, &workplace).map_err(E::from));
        if result.is_err() && around.failures == Failures::Removed {
            // What remains is removed by the next builder.
            (around.clear)(&workplace.partial);
            let _left = remove_tree(workplace.partial.as_path());
        }
        result?;
        Ok((self.provided(plan, key, wanted.made_on.clone()), Origin::Made))
    }

    /// What a failed build of that key left, if its place was kept and nobody builds there now. While the lock is held, it stays.
    pub fn left(&self, key: PlanKey) -> Result<Option<(Workplace, FileLock)>, DepotError> {
        let partial = self.file(key, PARTIAL);
        if !partial.as_path().is_dir() {
            return Ok(None);
        }
        let path = self.file(key, LOCK);
        let lock = FileLock::try_exclusive(path.as_path())
            .map_err(|error| DepotError::file("lock", path.as_path())(error.source))?;
        let workplace = Workplace { work: partial.join(WORK), output: partial.join(TOOL), partial };
        Ok(lock.map(|lock| (workplace, lock)))
    }

    /// Everything that is kept.
    pub fn list(&self) -> Result<Vec<Receipt>, DepotError> {
        Ok(self.keys()?.into_iter().filter_map(|key| receipt(&self.place(key))).collect())
    }

    /// Keys under which something is kept that nobody can use: what says what it is cannot be read.
    pub fn damaged(&self) -> Result<Vec<PlanKey>, DepotError> {
        Ok(self.keys()?.into_iter().filter(|key| receipt(&self.place(*key)).is_none()).collect())
    }

    /// The plan that a kept tool was made by; nothing if it is not there or not the one of the receipt.
    pub fn plan(&self, receipt: &Receipt) -> Option<Plan> {
        let text = fs::read_to_string(self.place(receipt.key).join(PLAN).as_path()).ok()?;
        Plan::from_json(&text).ok().filter(|plan| plan.digest() == receipt.plan)
    }

    /// Holds every byte of a tool against its manifest.
    pub fn verify(&self, receipt: &Receipt) -> Result<(), DepotError> {
        let place = self.place(receipt.key);
        let tool = format!("{} {}", receipt.name, receipt.version);
        let corrupt = |source| DepotError::Corrupt { tool, key: receipt.key, source };
        let made = Manifest::of(place.join(TOOL).as_path());
        let read = fs::read(place.join(MANIFEST).as_path()).map_err(TreeError::Manifest);
        let kept = read.and_then(|text| {
            serde_json::from_slice::<Manifest>(&text)
                .map_err(|error| TreeError::Manifest(io::Error::new(io::ErrorKind::InvalidData, error)))
        });
        made.and_then(|made| kept?.same_content(&made)).map_err(corrupt)
    }

    /// The places of builds under way, and of those that failed or were killed.
    pub fn partials(&self) -> Vec<HostPath> {
        self.begun().into_iter().map(|key| self.file(key, PARTIAL)).collect()
    }

    fn begun(&self) -> Vec<PlanKey> {
        let Ok(entries) = fs::read_dir(self.root.join(STORE).as_path()) else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| name.strip_suffix(PARTIAL)?.strip_suffix('.')?.parse().ok()).collect()
    }

    fn provided(&self, plan: &Plan, key: PlanKey, made_on: Option<MadeOn>) -> ProvidedDep {
        ProvidedDep {
            name: plan.name.clone(),
            version: plan.version.clone(),
            key: key.to_string(),
            source: self.place(key).join(TOOL),
            place: plan.place(),
            search: plan.search(),
            env: plan.provides.env.clone(),
            made_on,
        }
    }

    fn lock(&self, key: PlanKey, around: &Around<'_>) -> Result<FileLock, DepotError> {
        let store = self.root.join(STORE);
        let private =
            std::os::unix::fs::DirBuilderExt::mode(std::fs::DirBuilder::new().recursive(true), 0o700)
                .create(store.as_path());
        private.map_err(DepotError::file("make", store.as_path()))?;
        let path = self.file(key, LOCK);
        let failed =
            |error: sandtable_store::lock::LockError| DepotError::file("lock", error.path)(error.source);
        if let Some(lock) = FileLock::try_exclusive(path.as_path()).map_err(failed)? {
            return Ok(lock);
        }
        (around.waiting)();
        FileLock::exclusive(path.as_path()).map_err(failed)
    }

    /// An empty place to work in. The lock is held.
    fn begin(&self, key: PlanKey, around: &Around<'_>) -> Result<Workplace, DepotError> {
        let (partial, place) = (self.file(key, PARTIAL), self.place(key));
        if partial.as_path().exists() {
            (around.clear)(&partial);
        }
        for old in [&partial, &place] {
            remove_tree(old.as_path())
                .map_err(|error| DepotError::file("remove", old.as_path())(error.source))?;
        }
        let workplace = Workplace { work: partial.join(WORK), output: partial.join(TOOL), partial };
        let make = |path: &HostPath| {
            let made = std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700)
                .create(path.as_path());
            made.map_err(DepotError::file("make", path.as_path()))
        };
        make(&workplace.partial)?;
        make(&workplace.work)?;
        make(&workplace.output)?;
        Ok(workplace)
    }

    /// Makes a finished workplace a tool: read-only, listed, on disk, then named.
    fn publish(&self, wanted: &Wanted<'_>, workplace: &Workplace) -> Result<(), DepotError> {
        let Wanted { plan, key, needs, made_on } = wanted;
        let key = *key;
        let unfit = |source| DepotError::Unfit { tool: plan.title(), source };
        manifest::make_read_only(workplace.output.as_path()).map_err(unfit)?;
        let manifest = Manifest::of(workplace.output.as_path()).map_err(unfit)?;
        let (files, bytes) = manifest.size();
        let receipt = Receipt {
            schema: SCHEMA,
            key,
            name: plan.name.clone(),
            version: plan.version.clone(),
            plan: plan.digest(),
            needs: needs.clone(),
            files,
            bytes,
            made_at: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |age| age.as_secs()),
            made_on: made_on.clone(),
        };
        // Only these belong to a tool; what else is in the directory was for making it.
        let fresh = self.file(key, "fresh");
        remove_tree(fresh.as_path())
            .map_err(|error| DepotError::file("remove", fresh.as_path())(error.source))?;
        let steps = || {
            fs::create_dir(fresh.as_path())?;
            fs::write(fresh.join(MANIFEST).as_path(), serde_json::to_vec(&manifest)?)?;
            fs::write(fresh.join(RECEIPT).as_path(), serde_json::to_vec_pretty(&receipt)?)?;
            fs::write(fresh.join(PLAN).as_path(), plan.to_json())?;
            moved(workplace.output.as_path(), fresh.join(TOOL).as_path())?;
            // The list is on disk before the name is. Not so the files: writing out hundreds of megabytes takes long, and
            // one that a crash of the machine emptied does not fit the list.
            fs::File::open(fresh.join(MANIFEST).as_path())?.sync_all()?;
            fs::File::open(fresh.join(RECEIPT).as_path())?.sync_all()?;
            fs::rename(fresh.as_path(), self.place(key).as_path())
        };
        steps().map_err(DepotError::file("publish", fresh.as_path()))?;
        // What is left of the work is removed by whoever comes next, if not now.
        let _left = remove_tree(workplace.partial.as_path());
        Ok(())
    }

    fn keys(&self) -> Result<Vec<PlanKey>, DepotError> {
        let store = self.root.join(STORE);
        let entries = match fs::read_dir(store.as_path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(DepotError::file("read", store.as_path()))?,
        };
        let mut keys: Vec<PlanKey> =
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        keys.sort();
        Ok(keys)
    }

    fn place(&self, key: PlanKey) -> HostPath {
        self.root.join(STORE).join(key.to_string())
    }

    fn file(&self, key: PlanKey, ending: &str) -> HostPath {
        self.root.join(STORE).join(format!("{key}.{ending}"))
    }
}

/// Callbacks and options of [`Depot::obtain`].
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// Called when another process makes the tool and is waited for.
    pub waiting: &'a dyn Fn(),
    /// Called on the remains of a failed or killed build, before they are removed.
    pub clear: &'a dyn Fn(&HostPath),
    pub failures: Failures,
}

impl fmt::Debug for Around<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Around").field("failures", &self.failures).finish_non_exhaustive()
    }
}

/// What happens to the place of a failed build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failures {
    Removed,
    /// Kept until the next build, for inspection.
    Kept,
}

/// A read-only directory can be renamed, but a file system may ask for the right to write it.
fn moved(from: &Path, to: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |mode| fs::set_permissions(from, std::fs::Permissions::from_mode(mode));
    mode(0o755)?;
    fs::rename(from, to)?;
    fs::set_permissions(to, std::fs::Permissions::from_mode(0o555))
}

fn receipt(place: &HostPath) -> Option<Receipt> {
    let text = fs::read(place.join(RECEIPT).as_path()).ok()?;
    serde_json::from_slice(&text).ok()
}
