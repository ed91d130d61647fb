//! A plan for people.

use std::fmt;

use crate::rule::{Action, Rule};

use super::GatePlan;

impl fmt::Display for GatePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "network: filtered ({})", self.capture.as_str())?;
        if !self.rules.iter().any(|rule| rule.action == Action::Allow) {
            writeln!(f, "  nothing is allowed")?;
        }
        for rule in &self.rules {
            writeln!(f, "  {}", Line(rule))?;
        }
        for network in &self.private {
            writeln!(f, "  private network {network}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "  warning: {} [{}]", warning.text, warning.code)?;
        }
        Ok(())
    }
}

struct Line<'a>(&'a Rule);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = self.0;
        let action = match rule.action {
            Action::Deny => "deny ",
            Action::Allow => "allow",
        };
        write!(f, "{action} {} port {}", rule.hosts, rule.ports)?;
        if let Some(protocol) = rule.protocol {
            write!(f, " {protocol}")?;
        }
        if !rule.methods.is_empty() {
            write!(f, " {}", rule.methods.join(","))?;
        }
        for path in &rule.paths {
            write!(f, " {path}")?;
        }
        write!(f, " ({})", rule.origin)?;
        match &rule.why {
            Some(why) => write!(f, ": {why}"),
            None => Ok(()),
        }
    }
}
