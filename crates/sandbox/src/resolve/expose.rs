//! What the user shows with `--expose`: a path, or a bundle that `expose.toml` knows by name. Everything is
//! read-only and at its own place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

use super::case::Case;
use super::data::policy;
use super::error::ResolveError;
use super::{user_mounts, warnings};
use crate::model::mount::{HostAccess, Mount};
use crate::model::resolved::{Variable, Warning};
use crate::model::setting::{Origin, Setting};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bundles {
    bundle: Vec<Bundle>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bundle {
    name: String,
    paths: Vec<PathBuf>,
    #[serde(default)]
    file_variables: Vec<String>,
    reason: String,
    risk: String,
}

static BUNDLES: LazyLock<Bundles> = LazyLock::new(|| policy!("expose"));

/// The names of the bundles.
pub(super) fn names() -> Vec<&'static str> {
    BUNDLES.bundle.iter().map(|bundle| bundle.name.as_str()).collect()
}

/// Whether the user wrote a name and not a path.
pub(super) fn is_name(written: &Path) -> bool {
    written.components().count() == 1 && !written.as_os_str().as_encoded_bytes().contains(&b'/')
}

/// Adds what is to be shown to `mounts`; gives the variables that go with it.
pub(super) fn add(
    case: &Case<'_>,
    mounts: &mut Vec<Mount>,
    found: &mut Vec<Warning>,
) -> Result<BTreeMap<String, Variable>, ResolveError> {
    let mut view = View { case, mounts, variables: BTreeMap::new() };
    for Setting { value: written, origin } in &case.spec.expose {
        if is_name(written) {
            let name = written.to_string_lossy();
            let bundle = BUNDLES.bundle.iter().find(|bundle| bundle.name == name);
            let bundle = bundle.ok_or_else(|| ResolveError::ExposeUnknown { name: name.into_owned() })?;
            view.bundle(bundle, origin)?;
            found.push(warnings::exposed(&bundle.name, &bundle.risk));
        } else {
            view.path(written, format!("asked for by {origin}"), origin)?;
        }
    }
    Ok(view.variables)
}

struct View<'a> {
    case: &'a Case<'a>,
    mounts: &'a mut Vec<Mount>,
    variables: BTreeMap<String, Variable>,
}

impl View<'_> {
    fn bundle(&mut self, bundle: &Bundle, origin: &Origin) -> Result<(), ResolveError> {
        let reason = || format!("{}: {}", bundle.name, bundle.reason);
        let home = self.case.home.as_ref().map(|home| home.real.clone());
        let mut looked: Vec<PathBuf> =
            home.iter().flat_map(|home| bundle.paths.iter().map(|path| home.join(path).into())).collect();
        let mut shown = 0;
        for path in looked.iter().filter(|path| self.case.facts.kind(path).is_ok()) {
            self.path(path, reason(), origin)?;
            shown += 1;
        }
        for name in &bundle.file_variables {
            let Some(path) = self.case.host.environment.get(name).filter(|path| !path.is_empty()) else {
                continue;
            };
            looked.push(path.into());
            if self.case.facts.kind(path).is_ok() {
                self.path(Path::new(path), reason(), origin)?;
                self.variables.insert(name.clone(), Variable::open(path, origin.clone()));
                shown += 1;
            }
        }
        if shown == 0 {
            return Err(ResolveError::ExposeNothing { name: bundle.name.clone(), looked });
        }
        Ok(())
    }

    fn path(&mut self, path: &Path, reason: String, origin: &Origin) -> Result<(), ResolveError> {
        let (source, entry) = user_mounts::source(self.case, path)?;
        let target = user_mounts::target(self.case, source.as_path())?;
        // Two bundles may name the same file.
        if !self.mounts.iter().any(|mount| mount.target == target) {
            let content = user_mounts::host(source, HostAccess::Read, entry);
            self.mounts.push(Mount { target, content, reason, origin: origin.clone() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Component;

    use super::*;

    #[test]
    fn bundles_are_plain_paths_below_home_with_a_risk_each() {
        for bundle in &BUNDLES.bundle {
            assert!(is_name(Path::new(&bundle.name)) && bundle.risk.len() > 20, "{}", bundle.name);
            for path in &bundle.paths {
                assert!(path.components().all(|part| matches!(part, Component::Normal(_))), "{path:?}");
            }
        }
    }

    #[test]
    fn a_slash_makes_a_path() {
        assert!(is_name(Path::new("gcloud")) && is_name(Path::new("docker-config")));
        assert!(!is_name(Path::new("./gcloud")) && !is_name(Path::new("/etc")) && !is_name(Path::new("a/b")));
    }
}
