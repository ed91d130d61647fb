use sandtable_sandbox::model::platform::Os;

use super::super::plan::{Arch, Libc, PlanPlatform};
use super::super::recipe::Recipe;
use super::*;

const TARGET: PlanPlatform =
    PlanPlatform { os: Os::Linux, arch: Arch::X86_64, libc: Libc::Glibc, linux_family: None };

fn local(command: &str) -> Plan {
    let text = format!(
        "format = 1\nname = \"mine\"\nversion = \"1.0\"\ndescription = \"a test\"\n# {command}\n\
         dependencies = [\"ninja\"]\n[[steps]]\naction = \"run_command\"\ncommand = [\"{command}\"]\n"
    );
    let local = [Recipe::parse(&text).unwrap()];
    Shelf::new(builtin::recipes(), &local).unwrap().plan(&local[0], TARGET).unwrap()
}

#[test]
fn what_comes_with_the_program_is_no_question() {
    let shelf = Shelf::new(builtin::recipes(), &[]).unwrap();
    for recipe in builtin::recipes() {
        assert_eq!(Question::about(&shelf.plan(recipe, TARGET).unwrap()), None, "{}", recipe.name);
    }
}

#[test]
fn a_plan_that_only_says_it_is_built_in_is_foreign() {
    let shelf = Shelf::new(builtin::recipes(), &[]).unwrap();
    let ninja = shelf.find(&"ninja".parse().unwrap()).unwrap();
    let mut plan = shelf.plan(ninja, TARGET).unwrap();
    plan.downloads[0].sha256 = super::super::plan::Sha256([7; 32]);
    let question = Question::about(&plan).unwrap();
    assert_eq!(question.tools[0].voucher, Voucher::Foreign);
}

#[test]
fn a_question_lists_what_comes_from_where_and_what_runs() {
    let question = Question::about(&local("touch")).unwrap();
    let tools: Vec<_> = question.tools.iter().map(|item| (item.name.as_str(), item.voucher)).collect();
    assert_eq!(tools, [("ninja", Voucher::Builtin), ("mine", Voucher::Foreign)]);
    assert_eq!(question.commands, ["touch"]);
    let file = &question.tools[0].files[0];
    assert_eq!((file.source, file.name.as_str(), file.version.as_str()), (Registry::Pypi, "ninja", "1.13.2"));
    assert_eq!(question.bytes, file.size.unwrap());
}

#[test]
fn consent_is_to_one_plan_and_is_kept() {
    let place = tempfile::tempdir().unwrap();
    let consents = Consents::new(place.path());
    let question = Question::about(&local("touch")).unwrap();
    assert!(!consents.has(question.digest).unwrap());
    consents.give(&question).unwrap();
    consents.give(&question).unwrap();
    assert!(Consents::new(place.path()).has(question.digest).unwrap());
    let other = Question::about(&local("rm")).unwrap();
    assert!(!consents.has(other.digest).unwrap());
}
