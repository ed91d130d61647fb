//! What a gate reports, one line of JSON each. Hosts are names that were checked or addresses; paths, queries and values of
//! requests are in none of them.

use serde::{Deserialize, Serialize};

use crate::verdict::{Denial, Reason, Target};

/// Something that happened at the gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event")]
pub enum GateEvent {
    /// It accepts connections.
    #[serde(rename = "egress.ready")]
    Ready,
    #[serde(rename = "egress.open")]
    Open { id: u64, host: String, port: u16, protocol: String, address: String, rule: String, origin: String },
    /// Bytes of what both ends said, from inside and from outside.
    #[serde(rename = "egress.close")]
    Close { id: u64, sent: u64, received: u64 },
    #[serde(rename = "egress.denied")]
    Denied(DeniedConnection),
    /// Connections that were refused without a look, and questions that got no answer, since the last such event.
    #[serde(rename = "egress.refused")]
    Refused { connections: u64, questions: u64 },
}

/// A connection or request that did not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeniedConnection {
    pub host: String,
    pub port: u16,
    pub reason: Reason,
    /// The rule that denied it, and where it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The rule that would allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl GateEvent {
    pub fn denied(target: &Target, denial: &Denial<'_>) -> Self {
        Self::Denied(DeniedConnection {
            host: target.host.to_string(),
            port: target.port,
            reason: denial.reason,
            rule: denial.rule.map(|rule| rule.text.clone()),
            origin: denial.rule.map(|rule| rule.origin.clone()),
            suggestion: denial.suggestion.clone(),
        })
    }

    /// With the end of the line.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("an event has string keys only");
        line.push(b'\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_of_json() {
        let target = Target { host: "evil.example".parse().expect("a name"), port: 443 };
        let denial =
            Denial { suggestion: Some("evil.example\n".to_owned()), ..Denial::plain(Reason::NotAllowed) };
        let line = String::from_utf8(GateEvent::denied(&target, &denial).to_line()).expect("text");
        assert_eq!(
            line,
            "{\"event\":\"egress.denied\",\"host\":\"evil.example\",\"port\":443,\"reason\":\"not-allowed\",\
             \"suggestion\":\"evil.example\\n\"}\n"
        );
    }
}
