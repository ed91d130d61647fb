//! The policy card: a small file inside the sandbox that tells a command, most of all an agent, what it may do
//! and what becomes of it. Made from the resolved request and nothing else, so that it says what holds.

use std::fmt::Write as _;

use super::error::ResolveError;
use super::lender;
use crate::model::mount::{Content, HostAccess, Mount, MountTable, Pins};
use crate::model::path::BoxPath;
use crate::model::resolved::{ResolvedSpec, Variable};
use crate::model::setting::Origin;
use crate::model::spec::{Lifetime, Network, Secrets, WorkspaceMode};

/// Where the card is.
pub const CARD: &str = "/run/sandtable/policy.md";
/// The variable that says so.
pub const CARD_VARIABLE: &str = "SANDTABLE_POLICY";

/// `resolved` with its card. Where somebody mounted something of their own at its place there is none.
pub(super) fn with_card(mut resolved: ResolvedSpec) -> Result<ResolvedSpec, ResolveError> {
    let target = BoxPath::new(CARD).expect("absolute");
    if !matches!(resolved.mounts.at(&target), Some(Mount { content: Content::Empty, .. })) {
        return Ok(resolved);
    }
    let card = Mount {
        target,
        content: Content::Text { contents: text(&resolved) },
        reason: "tells the command what it may do".to_owned(),
        origin: Origin::Default,
    };
    let mounts = resolved.mounts.iter().cloned().chain([card]).collect();
    resolved.mounts = MountTable::new(mounts).map_err(ResolveError::Conflict)?;
    let place = Variable::open(CARD, Origin::Default);
    resolved.environment.insert(CARD_VARIABLE.to_owned(), place);
    Ok(resolved)
}

fn text(resolved: &ResolvedSpec) -> String {
    let mut card = String::from(
        "# What you may do here\n\n\
         You run in a sandbox made by Sandtable. The variable `SANDBOX` has its name.\n\n## Files\n",
    );
    for (what, places) in places(resolved) {
        if !places.is_empty() {
            writeln!(card, "- {what}: {}", places.join(", ")).expect("a string takes everything");
        }
    }
    card.push_str(
        "- Everything else of the machine is not there. Programs in system directories can be run.\n\
         - A directory that was in the workspace before cannot be renamed in one step (EXDEV): `mv` copies it \
         instead, and where `git mv` fails, `mv` and `git add -A` do the same.\n",
    );
    for (title, words) in
        [("Network", network(resolved.network.value)), ("What becomes of your changes", changes(resolved))]
    {
        write!(card, "\n## {title}\n{words}\n").expect("a string takes everything");
    }
    card.push_str(
        "\n## When something is refused\nThat is the policy, not a fault: trying again or another way does not \
         help. Say what you need and why.\nOutside, the user can ask `sandtable policy why PATH|HOST|VARIABLE`.\n",
    );
    card
}

/// Kinds of places, most useful first.
fn places(resolved: &ResolvedSpec) -> [(&'static str, Vec<String>); 10] {
    let these = |fits: &dyn Fn(&Content) -> bool| -> Vec<String> {
        resolved
            .mounts
            .iter()
            .filter(|mount| fits(&mount.content))
            .map(|mount| quoted(&mount.target))
            .collect()
    };
    let masked = resolved.secrets.value == Secrets::Mask;
    let hides = |content: &Content| masked && matches!(content, Content::Cow { pins: Pins::Present, .. });
    let hidden = resolved.hide.iter().map(|hide| format!("`{}`", hide.value.to_string().escape_debug()));
    let own = |mount: &&Mount| {
        mount.origin != Origin::Default
            && matches!(mount.content, Content::Host { access: HostAccess::Read, .. })
    };
    let lent = resolved.mounts.iter().filter(|mount| mount.target == lender::place());
    let lent = lent.map(|mount| quoted(&mount.target));
    [
        ("You start in", vec![quoted(&resolved.directory)]),
        (
            "Read and change as you like, a private copy-on-write view",
            these(&|content| matches!(content, Content::Cow { .. })),
        ),
        (
            "Read and change as you like, a private copy",
            these(&|content| matches!(content, Content::Copy { .. })),
        ),
        ("In it, files whose names say secret are hidden", these(&hides)),
        ("Of the workspace, hidden by the user's wish", hidden.collect()),
        (
            "Read and change as you like, kept with the sandbox",
            these(&|content| matches!(content, Content::Private { .. })),
        ),
        (
            "Read and change, gone when your processes end",
            these(&|content| matches!(content, Content::Scratch { .. })),
        ),
        (
            "CAREFUL, changes reach the machine itself at once",
            these(&|content| matches!(content, Content::Host { access: HostAccess::Write, .. })),
        ),
        (
            "Read only, shown for you",
            resolved.mounts.iter().filter(own).map(|mount| quoted(&mount.target)).collect(),
        ),
        ("Read only, every object of the repository, which git borrows", lent.collect()),
    ]
}

fn network(network: Network) -> &'static str {
    match network {
        Network::None => {
            "None but your own loopback. Nothing can be downloaded, and no service of the machine reached."
        }
        Network::Proxied => {
            "Only what a proxy lets through. Programs find it by `HTTP_PROXY` and `HTTPS_PROXY`; nothing else gets out."
        }
        Network::Nat => "Outbound connections work. Services on the machine's loopback cannot be reached.",
        Network::Host => "The machine's own network, with all its services.",
    }
}

fn changes(resolved: &ResolvedSpec) -> &'static str {
    if resolved.mode.value == WorkspaceMode::Live {
        return "You work on the user's own files: what you change or remove in the workspace is changed or gone at once.";
    }
    match resolved.lifetime.value {
        Lifetime::Keep => {
            "The original files stay as they are. When you are done, the user sees a list of every path you changed \
             and decides what to take over. Leave the workspace in the state you want to hand over."
        }
        Lifetime::Discard => {
            "Nothing is kept: the sandbox goes when you end. Print what the user should know."
        }
    }
}

/// A path that cannot end its line.
fn quoted(path: &BoxPath) -> String {
    format!("`{}`", path.to_string().escape_debug())
}
