//! What of a workspace is not shown: files whose names say secret, where they are masked, and what the user
//! lists. The session hands this to whoever walks the source.

use sandtable_store::dir::Kind;
use sandtable_store::path::RelPath;
use sandtable_store::source::is_secret;
use sandtable_store::wildcard::{Syntax, matches};

use super::secrets::secret_names;
use crate::model::hide::{HidePattern, Only, Scope};
use crate::model::resolved::ResolvedSpec;
use crate::model::spec::Secrets;

/// Picks what is hidden.
#[derive(Debug)]
pub struct Hidden<'a> {
    secrets: Secrets,
    patterns: Vec<&'a HidePattern>,
}

impl<'a> Hidden<'a> {
    pub fn of(resolved: &'a ResolvedSpec) -> Self {
        let patterns = resolved.hide.iter().map(|setting| &setting.value).collect();
        Self { secrets: resolved.secrets.value, patterns }
    }

    /// Whether the entry at `path` of the workspace is not shown.
    pub fn picks(&self, path: &RelPath, kind: Kind) -> bool {
        let secret = || self.secrets == Secrets::Mask && is_secret(secret_names(), path, kind);
        self.patterns.iter().any(|pattern| fits(pattern, path, kind)) || secret()
    }

    /// Whether a file is not shown, for itself or for a directory that it lies in.
    pub fn covers(&self, file: &RelPath) -> bool {
        let above = std::iter::successors(file.parent(), RelPath::parent);
        self.picks(file, Kind::File)
            || above.filter(|path| !path.is_root()).any(|path| self.picks(&path, Kind::Directory))
    }
}

pub(super) fn fits(pattern: &HidePattern, path: &RelPath, kind: Kind) -> bool {
    if pattern.only() == Only::Directories && kind != Kind::Directory {
        return false;
    }
    let bytes = match pattern.scope() {
        Scope::Name => path.name().unwrap_or_default(),
        Scope::Path => path.as_bytes(),
    };
    matches(pattern.glob(), &String::from_utf8_lossy(bytes), Syntax::Path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_at_any_depth_and_paths_from_the_top() {
        let fits = |pattern: &str, path: &str, kind| {
            fits(&pattern.parse().unwrap(), &RelPath::new(path).unwrap(), kind)
        };
        for (pattern, path) in [
            ("*.key", "a/b/x.key"),
            ("config/prod", "config/prod"),
            ("config/*", "config/prod"),
            ("**/cache/*.db", "a/b/cache/x.db"),
            ("data", "data"),
        ] {
            assert!(fits(pattern, path, Kind::File), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("*.key", "x.keys"),
            ("config/prod", "a/config/prod"),
            ("config/*", "config/a/b"),
            ("data/", "data"),
        ] {
            assert!(!fits(pattern, path, Kind::File), "{pattern} {path}");
        }
        assert!(fits("data/", "a/data", Kind::Directory));
    }
}
