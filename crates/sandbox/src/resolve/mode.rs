//! How the workspace is kept apart from the source: by an overlay, by a copy where there can be no overlay, or
//! not at all, where the user asks for that.

use super::case::Case;
use super::error::ResolveError;
use super::source::Workspace;
use super::{lender, overlay, seatbelt, warnings};
use crate::model::layer::LayerName;
use crate::model::mount::{Content, HostAccess, Ownership, Pins};
use crate::model::path::HostPath;
use crate::model::resolved::{Mode, SourceKind, Warning};
use crate::model::spec::{Base, Secrets, WorkspaceMode};

/// Decides, and says why. An obstacle to an overlay is an error only where an overlay was asked for.
pub(super) fn choose(
    case: &Case<'_>,
    workspace: &Workspace,
    found: &mut Vec<Warning>,
) -> Result<Mode, ResolveError> {
    overlay::check_state(&case.state, case.facts)?;
    lender::check_hidden(case, workspace)?;
    let asked = case.spec.mode.value;
    let mode = |value, reason| Ok(Mode { value, reason });
    let wished = || format!("asked for by {}", case.spec.mode.origin);
    if let Some((value, reason)) = seatbelt::mode(case, &workspace.root)? {
        return mode(value, reason);
    }
    match asked {
        WorkspaceMode::Auto => match try_overlay(case, workspace) {
            Ok(()) => mode(WorkspaceMode::Overlay, "auto: an overlay costs nothing that grows".to_owned()),
            Err(why) if overlay::is_obstacle(case, &why) => {
                found.push(warnings::workspace_copied(&workspace.root, &why.to_string()));
                mode(WorkspaceMode::Copy, format!("auto: {why}"))
            }
            Err(other) => Err(other),
        },
        WorkspaceMode::Overlay => try_overlay(case, workspace).and_then(|()| mode(asked, wished())),
        WorkspaceMode::Copy => mode(asked, wished()),
        WorkspaceMode::Live => {
            if case.spec.base.value == Base::Store {
                return Err(ResolveError::LiveBase);
            }
            if let Some(what) = hidden(case) {
                return Err(ResolveError::LiveHides { what });
            }
            found.push(warnings::source_writable(&workspace.root));
            mode(asked, wished())
        }
    }
}

/// What stands at a place of the workspace.
pub(super) fn content(
    case: &Case<'_>,
    mode: &Mode,
    path: &HostPath,
    layer: &LayerName,
) -> Result<Content, ResolveError> {
    match mode.value {
        WorkspaceMode::Copy => Ok(overlay::copy(case, path, layer)),
        WorkspaceMode::Live => Ok(Content::Host {
            source: path.clone(),
            access: HostAccess::Write,
            ownership: Ownership::Caller,
            identity: case.identity(path),
        }),
        WorkspaceMode::Auto | WorkspaceMode::Overlay => overlay::cow(case, path, layer, pins(case, layer)),
    }
}

fn try_overlay(case: &Case<'_>, workspace: &Workspace) -> Result<(), ResolveError> {
    overlay::cow(case, &workspace.root, &LayerName::Workspace, pins(case, &LayerName::Workspace))?;
    if let SourceKind::LinkedWorktree { common } = &workspace.kind {
        overlay::cow(case, common, &LayerName::GitDirectory, Pins::None)?;
    }
    Ok(())
}

/// What is hidden of the workspace is masked by a layer that covers it.
fn pins(case: &Case<'_>, layer: &LayerName) -> Pins {
    let masked = *layer == LayerName::Workspace && hidden(case).is_some();
    if masked { Pins::Present } else { Pins::None }
}

/// Which setting hides something of the workspace, if one does.
fn hidden(case: &Case<'_>) -> Option<&'static str> {
    match (case.spec.secrets.value, case.spec.hide.is_empty()) {
        (_, false) => Some("hide"),
        (Secrets::Mask, true) => Some("secrets = \"mask\""),
        (Secrets::Warn, true) => None,
    }
}
