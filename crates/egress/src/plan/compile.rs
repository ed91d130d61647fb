//! From settings to a plan. Every wrong rule is reported, not only the first.

use crate::address::{AddressClass, Cidr};
use crate::preset;
use crate::rule::{Action, HostPattern, Rule, RuleError, RuleFault, is_shared_hosting};

use super::{Capture, GatePlan, PLAN_VERSION, PlanWarning, RequestRule, Settings, Surroundings, Written};

/// Listeners where not every port can be redirected.
const MOST_LISTED_PORTS: usize = 64;

/// Makes the plan, or says everything that is wrong with the settings.
pub fn compile(settings: &Settings, machine: &Surroundings) -> Result<GatePlan, Vec<RuleError>> {
    let mut faults = Vec::new();
    let mut rules = Vec::new();
    for written in &settings.deny {
        collect(single(written, Action::Deny), &mut rules, &mut faults);
    }
    for written in &settings.allow {
        match written.text.strip_prefix('@') {
            Some(name) => expand(name, written, machine, (&mut rules, &mut faults)),
            None => collect(single(written, Action::Allow), &mut rules, &mut faults),
        }
    }
    for request in &settings.requests {
        collect(for_requests(request), &mut rules, &mut faults);
    }
    let mut private = Vec::new();
    for written in &settings.private {
        collect(private_network(written), &mut private, &mut faults);
    }
    if machine.capture != Capture::AllPorts {
        faults.extend(beyond_listed_ports(&rules));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let warnings = rules.iter().filter_map(warning).collect();
    Ok(GatePlan {
        version: PLAN_VERSION,
        capture: machine.capture,
        pool: machine.pool,
        inside: machine.inside,
        nameservers: machine.nameservers.clone(),
        own: machine.own.clone(),
        private,
        rules,
        limits: settings.limits,
        warnings,
    })
}

fn collect<T>(made: Result<T, RuleError>, into: &mut Vec<T>, faults: &mut Vec<RuleError>) {
    match made {
        Ok(made) => into.push(made),
        Err(fault) => faults.push(fault),
    }
}

fn single(written: &Written, action: Action) -> Result<Rule, RuleError> {
    Ok(Rule::parse(&written.text, action, &written.origin)?.because(written.why.as_deref()))
}

fn for_requests(request: &RequestRule) -> Result<Rule, RuleError> {
    single(&request.host, Action::Allow)?.for_requests(&request.methods, &request.paths)
}

/// The rules of a preset, each with the preset and the place where that was asked for as its origin.
fn expand(
    name: &str,
    written: &Written,
    machine: &Surroundings,
    (rules, faults): (&mut Vec<Rule>, &mut Vec<RuleError>),
) {
    let origin = format!("{} @{name}", written.origin);
    match preset::rules(name, &machine.clients) {
        Ok(found) => {
            for preset in found {
                let written = Written { text: preset.rule, origin: origin.clone(), why: Some(preset.why) };
                collect(single(&written, Action::Allow), rules, faults);
            }
        }
        Err(fault) => faults.push(fault_of(written, fault)),
    }
}

fn private_network(written: &Written) -> Result<Cidr, RuleError> {
    let network: Cidr = written.text.parse().map_err(|error| fault_of(written, RuleFault::Network(error)))?;
    match AddressClass::of(network.base()) {
        class if class.may_be_opened() && network.length() >= 7 => Ok(network),
        class if class.may_be_opened() => Err(fault_of(written, RuleFault::WideNetwork)),
        class => Err(fault_of(written, RuleFault::Forbidden { class })),
    }
}

fn fault_of(written: &Written, fault: RuleFault) -> RuleError {
    RuleError { text: written.text.clone(), origin: written.origin.clone(), fault }
}

/// Rules for which there would be more listeners than is sensible.
fn beyond_listed_ports(rules: &[Rule]) -> Vec<RuleError> {
    let allowing = rules.iter().filter(|rule| rule.action == Action::Allow);
    let wide = allowing.filter(|rule| rule.ports.count() > MOST_LISTED_PORTS);
    let fault = |rule: &Rule| RuleError {
        text: rule.text.clone(),
        origin: rule.origin.clone(),
        fault: RuleFault::NeedsAllPorts,
    };
    wide.map(fault).collect()
}

fn warning(rule: &Rule) -> Option<PlanWarning> {
    let base = rule.hosts.wildcard_base().filter(|_| rule.action == Action::Allow)?;
    let is_broad =
        matches!(rule.hosts, HostPattern::Below(_) | HostPattern::Within(_)) && is_shared_hosting(base);
    is_broad.then(|| PlanWarning {
        code: "broad-rule".to_owned(),
        text: format!(
            "`{}` ({}) allows names that every customer of a provider can have",
            rule.text, rule.origin
        ),
    })
}
