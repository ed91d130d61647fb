//! The policy card says what holds.

use super::machines::ann;
use super::{host, resolved, spec, with_mount};
use crate::model::mount::Content;
use crate::model::path::BoxPath;
use crate::model::resolved::ResolvedSpec;
use crate::model::setting::Setting;
use crate::model::spec::{Lifetime, Network, Secrets, Spec};
use crate::resolve::{CARD, CARD_VARIABLE};

fn meant(spec: &Spec) -> ResolvedSpec {
    let machine = ann().file("/srv/data/x", "").file("/srv/out/x", "");
    resolved(spec, &host(1000, "/home/ann", "/usr/bin"), &machine).unwrap()
}

fn card(resolved: &ResolvedSpec) -> Option<&str> {
    match &resolved.mounts.at(&BoxPath::new(CARD).unwrap())?.content {
        Content::Text { contents } => Some(contents),
        _ => None,
    }
}

#[test]
fn it_lists_places_network_and_what_becomes_of_changes() {
    let spec = with_mount(spec("/home/ann/repo/src"), "/srv/data:/srv/data:ro");
    let mut spec = with_mount(spec, "/srv/out:/srv/out:rw");
    spec.secrets = Setting::default_value(Secrets::Mask);
    let resolved = meant(&spec);
    assert_eq!(resolved.environment[CARD_VARIABLE].value, CARD);
    insta::assert_snapshot!(card(&resolved).unwrap(), @"
    # What you may do here

    You run in a sandbox made by Sandtable. The variable `SANDBOX` has its name.

    ## Files
    - You start in: `/home/ann/repo/src`
    - Read and change as you like, a private copy-on-write view: `/home/ann/repo`
    - In it, files whose names say secret are hidden: `/home/ann/repo`
    - Read and change as you like, kept with the sandbox: `/home/ann`
    - Read and change, gone when your processes end: `/tmp`
    - CAREFUL, changes reach the machine itself at once: `/srv/out`
    - Read only, shown for you: `/srv/data`
    - Everything else of the machine is not there. Programs in system directories can be run.
    - A directory that was in the workspace before cannot be renamed in one step (EXDEV): `mv` copies it instead, and where `git mv` fails, `mv` and `git add -A` do the same.

    ## Network
    None but your own loopback. Nothing can be downloaded, and no service of the machine reached.

    ## What becomes of your changes
    The original files stay as they are. When you are done, the user sees a list of every path you changed and decides what to take over. Leave the workspace in the state you want to hand over.

    ## When something is refused
    That is the policy, not a fault: trying again or another way does not help. Say what you need and why.
    Outside, the user can ask `sandtable policy why PATH|HOST|VARIABLE`.
    ");
}

#[test]
fn it_follows_the_settings() {
    let mut spec = spec("/home/ann/repo");
    spec.network = Setting::default_value(Network::Host);
    spec.lifetime = Setting::default_value(Lifetime::Discard);
    let resolved = meant(&spec);
    let card = card(&resolved).unwrap();
    assert!(card.contains("The machine's own network") && card.contains("Nothing is kept"), "{card}");
    assert!(!card.contains("CAREFUL") && !card.contains("say secret"), "{card}");
}

#[test]
fn there_is_none_where_the_user_put_something_else() {
    let spec = with_mount(spec("/home/ann/repo"), "/srv/data:/run/sandtable:ro");
    let resolved = meant(&spec);
    assert_eq!(card(&resolved), None);
    assert!(!resolved.environment.contains_key(CARD_VARIABLE));
}
