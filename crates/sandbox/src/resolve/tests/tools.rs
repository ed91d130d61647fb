//! Tools of ours in a sandbox.

use super::machines::ann;
use super::{check, host, spec};
use crate::facts::fake::Fake;
use crate::host::Host;
use crate::model::path::{BoxPath, HostPath};
use crate::model::setting::{Origin, Setting};
use crate::model::spec::Spec;
use crate::model::tool::ProvidedDep;

const STORE: &str = "/home/ann/.local/share/sandtable/tools";
const NODE: &str = "/home/ann/.local/share/sandtable/tools/abc/tree";

fn node() -> ProvidedDep {
    let place = BoxPath::new("/opt/sandtable/tools/node-24.19.0").unwrap();
    ProvidedDep {
        name: "node".parse().unwrap(),
        version: "24.19.0".parse().unwrap(),
        key: "abc".to_owned(),
        source: HostPath::new(NODE).unwrap(),
        search: vec![place.join("node/bin")],
        place,
        env: [("NODE_HOME".to_owned(), "/opt/sandtable/tools/node-24.19.0".to_owned())].into(),
        made_on: None,
    }
}

fn asking() -> Spec {
    let asked = Setting::new("node".parse().unwrap(), Origin::Flag { name: "--tool".to_owned() });
    Spec { tools: vec![asked], ..spec("/home/ann/repo") }
}

fn caller(tools: Vec<ProvidedDep>) -> Host {
    Host { tools, ..host(1000, "/home/ann", "/usr/bin") }
}

fn machine() -> Fake {
    ann().dir(NODE).owner(NODE, 1000, 1000)
}

/// The lines about tools and PATH.
fn about(tools: Vec<ProvidedDep>, machine: &Fake) -> String {
    let text = check(&asking(), &caller(tools), machine);
    let wanted =
        |line: &&str| ["/opt", "PATH=", "NODE", "error", "try"].iter().any(|word| line.contains(word));
    text.lines().filter(wanted).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_tool_is_one_mount_with_its_programs_on_path() {
    insta::assert_snapshot!(about(vec![node()], &machine()), @"
    /opt: empty
    /opt/sandtable/tools/node-24.19.0: read caller from /home/ann/.local/share/sandtable/tools/abc/tree
    NODE_HOME=/opt/sandtable/tools/node-24.19.0
    PATH=/opt/sandtable/tools/node-24.19.0/node/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin
    ");
}

#[test]
fn what_the_host_has_beside_them_is_still_shown() {
    let machine = machine()
        .dir("/opt/google")
        .file("/opt/note", "")
        .link("/opt/java", "google")
        .dir("/opt/sandtable/x");
    insta::assert_snapshot!(about(vec![node()], &machine), @"
    /opt: empty
    /opt/google: read system
    /opt/java: link google
    /opt/note: read system
    /opt/sandtable/tools/node-24.19.0: read caller from /home/ann/.local/share/sandtable/tools/abc/tree
    NODE_HOME=/opt/sandtable/tools/node-24.19.0
    PATH=/opt/sandtable/tools/node-24.19.0/node/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin
    ");
}

#[test]
fn no_exec_paths_means_success_and_no_path_line() {
    let silent = ProvidedDep { search: Vec::new(), env: [].into(), ..node() };
    let with = about(vec![silent], &machine());
    assert!(with.contains("/opt/sandtable/tools/node-24.19.0: read"), "{with}");
    let path = |text: &str| text.lines().find(|line| line.starts_with("PATH=")).map(str::to_owned);
    assert_eq!(path(&with), path(&about(Vec::new(), &machine())), "PATH is as it was");
}

#[test]
fn a_host_path_outside_the_store_is_refused_with_path_and_root() {
    for outside in ["/home/ann/evil", "/home/ann/.local/share/sandtable/tools-evil", STORE] {
        let machine = machine().dir(outside).owner(outside, 1000, 1000);
        let tool = ProvidedDep { source: HostPath::new(outside).unwrap(), ..node() };
        let said = check(&asking(), &caller(vec![tool]), &machine);
        assert!(said.contains(outside) && said.contains(&format!("is not below `{STORE}`")), "{said}");
    }
    // A link in the store that leads out of it is no way round.
    let machine = machine().dir("/srv/evil").link(&format!("{STORE}/link"), "/srv/evil");
    let tool = ProvidedDep { source: HostPath::new(format!("{STORE}/link")).unwrap(), ..node() };
    let said = check(&asking(), &caller(vec![tool]), &machine);
    assert!(said.contains("`/srv/evil` is not below"), "{said}");
}

#[test]
fn an_unmountable_tool_is_named_with_its_mount_the_cause_and_a_way_on() {
    let tool = ProvidedDep { source: HostPath::new(format!("{STORE}/gone/tree")).unwrap(), ..node() };
    insta::assert_snapshot!(check(&asking(), &caller(vec![tool]), &machine()), @"
    machine tool-unmountable: tool `node` cannot be mounted at `/opt/sandtable/tools/node-24.19.0` from `/home/ann/.local/share/sandtable/tools/gone/tree` (ENOENT): there is no such file or directory
      `chmod u+rx` what leads to `/home/ann/.local/share/sandtable/tools/gone/tree`, or remove it and let it be made again
    ");
}

#[test]
fn what_others_could_have_written_is_refused() {
    let foreign = check(&asking(), &caller(vec![node()]), &machine().owner(NODE, 1001, 1001));
    assert!(foreign.contains("does not belong to you"), "{foreign}");
    let open = check(&asking(), &caller(vec![node()]), &machine().mode(NODE, 0o777));
    assert!(open.contains("can be written by others"), "{open}");
    let file = format!("{STORE}/abc/file");
    let machine = machine().file(&file, "").owner(&file, 1000, 1000);
    let tool = ProvidedDep { source: HostPath::new(&file).unwrap(), ..node() };
    let said = check(&asking(), &caller(vec![tool]), &machine);
    assert!(said.contains("is not a directory"), "{said}");
}

#[test]
fn nothing_that_would_end_an_entry_gets_onto_path() {
    for bad in ["/opt/sandtable/tools/node-24.19.0/a:b", "/opt/sandtable/tools/node-24.19.0/a\nb", "/usr/bin"]
    {
        let tool = ProvidedDep { search: vec![BoxPath::new(bad).unwrap()], ..node() };
        let said = check(&asking(), &caller(vec![tool]), &machine());
        assert!(said.contains("cannot be shown"), "{bad}: {said}");
    }
}

#[test]
fn a_tool_that_two_need_is_mounted_once() {
    let other = ProvidedDep { name: "npm".parse().unwrap(), ..node() };
    let said = about(vec![node(), other], &machine());
    assert_eq!(said.matches("node-24.19.0: read").count(), 1, "{said}");
    assert_eq!(said.matches("node/bin").count(), 1, "{said}");
}
