//! The home directory inside: empty but for what is exposed, and kept with the sandbox.

use super::case::Case;
use super::source::Workspace;
use crate::model::engine::Maker;
use crate::model::mount::{Content, Mount};
use crate::model::resolved::Seed;
use crate::model::setting::Origin;
use crate::model::spec::Lifetime;

/// What is copied into it needs a place on disk, also where it is not kept. So does a container: what its engine makes in
/// memory on the way to a mount belongs to root.
pub(super) fn mounts(case: &Case<'_>, workspace: &Workspace, seeds: &[Seed]) -> Vec<Mount> {
    let target = case.home_inside();
    if workspace.holds(&target) {
        return Vec::new();
    }
    let mut mounts = vec![Mount {
        target: target.clone(),
        content: match case.spec.lifetime.value {
            Lifetime::Discard if seeds.is_empty() && case.traits().mounts != Maker::Engine => {
                Content::Scratch { size: 0 }
            }
            Lifetime::Keep | Lifetime::Discard => Content::Private { area: "home".to_owned() },
        },
        reason: "a home directory of the sandbox's own".to_owned(),
        origin: Origin::Default,
    }];
    if let Some(home) = case.home.as_ref().filter(|home| home.written != home.real) {
        mounts.push(Mount {
            target: home.written.same_inside(),
            content: Content::Link { to: target.to_string() },
            reason: "the home directory's other name".to_owned(),
            origin: Origin::Default,
        });
    }
    mounts
}
