//! Names of our own directories in the trees of users.

/// What the name of a rollback's directory begins with; sixteen hexadecimal digits follow.
pub(crate) const STAGING: &str = ".sandtable-rollback-";

/// Whether a name at the top of a directory is that of a directory of ours, which holds new files before they are moved into
/// place, and old files until they are no longer needed: of a rollback, or of a merge. It is part of no state.
pub(crate) fn is_staging(name: &[u8]) -> bool {
    let rest = name.strip_prefix(STAGING.as_bytes()).or_else(|| name.strip_prefix(b".sandtable-"));
    rest.is_some_and(|id| id.len() == 16 && id.iter().all(u8::is_ascii_hexdigit))
}
