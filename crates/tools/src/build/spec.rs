//! The sandbox of a step, as any engine takes it: no network, no home of the caller's, nothing but its mounts.

use sandtable_sandbox::model::agent::Agent;
use sandtable_sandbox::model::limits::Limits;
use sandtable_sandbox::model::mount::{Mount, MountTable};
use sandtable_sandbox::model::path::{BoxPath, HostPath};
use sandtable_sandbox::model::platform::Platform;
use sandtable_sandbox::model::resolved::{
    EngineName, Identity, Mode, RepositoryConfig, ResolvedSpec, Source, SourceKind,
};
use sandtable_sandbox::model::setting::{Origin, Setting};
use sandtable_sandbox::model::spec::{Base, Lifetime, Network, Secrets, Strictness, WorkspaceMode};
use sandtable_sandbox::resolve;
use sandtable_sandbox::session::SessionError;

use super::image::BuildImage;
use crate::execute::HOME;
use crate::plan::Plan;

/// What the sandboxes of steps differ in.
pub(super) struct Steps<'a> {
    /// The image of a container engine that they run on; natively if there is none.
    pub(super) on: Option<&'a BuildImage>,
    pub(super) identity: Identity,
    /// What is worked on, and where inside that begins.
    pub(super) source: HostPath,
    pub(super) directory: BoxPath,
    pub(super) mounts: Vec<Mount>,
    pub(super) limits: Limits,
}

pub(super) fn spec(steps: Steps<'_>) -> Result<ResolvedSpec, SessionError> {
    let Steps { on, identity, source, directory, mounts, limits } = steps;
    Ok(ResolvedSpec {
        engine: on.map_or(EngineName::WITHOUT_IMAGE, |image| image.made_on.engine),
        engine_reason: "tools are made in it".to_owned(),
        platform: Platform::default(),
        image: on.map(|image| image.image.clone()),
        container: on.map(|image| image.container.clone()),
        seatbelt: None,
        source: Source { root: source, kind: SourceKind::Plain },
        mode: Mode {
            value: WorkspaceMode::Live,
            reason: "the work directory is there for the steps only".to_owned(),
        },
        repository_config: RepositoryConfig::default(),
        base: Setting::default_value(Base::Source),
        identity,
        home: BoxPath::new(HOME).expect("absolute"),
        directory,
        mounts: table(mounts)?,
        tools: Vec::new(),
        seeds: Vec::new(),
        hide: Vec::new(),
        environment: std::collections::BTreeMap::new(),
        network: Setting::default_value(Network::None),
        network_helper: None,
        limits,
        systemd: None,
        ssh_agent: Agent::default(),
        secrets: Setting::default_value(Secrets::Warn),
        strictness: Setting::default_value(Strictness::Strict),
        lifetime: Setting::default_value(Lifetime::Discard),
        warnings: Vec::new(),
    })
}

/// The mounts, in order.
pub(super) fn table(mounts: Vec<Mount>) -> Result<MountTable, SessionError> {
    MountTable::new(mounts)
        .map_err(|conflict| SessionError::Meaning(resolve::ResolveError::Conflict(conflict)))
}

/// Memory and processes: wishes where the machine cannot enforce them, like those of a profile.
pub(super) fn limits(plan: &Plan) -> Limits {
    let (memory, pids) = if plan.builds() { ("6g", "2048") } else { ("2g", "512") };
    let origin = || Origin::Profile { name: "tools".to_owned() };
    Limits {
        memory: Some(Setting::new(memory.parse().expect("well-formed"), origin())),
        pids: Some(Setting::new(pids.parse().expect("well-formed"), origin())),
        ..Limits::default()
    }
}
