//! The record of a call as text, written by hand: one is written for each call, and the general way costs three times
//! as much. What it has to say is told by `Serialize` of [`Call`], which the tests compare it with.
use std::net::SocketAddr;

use jiff::fmt::temporal::DateTimePrinter;

use super::{Call, Decision, Id, Who};
use crate::audit::chain::hex_into;

const TIMES: DateTimePrinter = DateTimePrinter::new();

/// A member's name with what stands around it, as one piece.
macro_rules! member {
    ($name:literal) => {
        concat!(",\"", $name, "\":").as_bytes()
    };
}

impl Call {
    /// Appends the record, as one object.
    pub(in crate::audit) fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(b"{\"kind\":\"call\",\"time\":\"");
        // A `Vec` takes every byte.
        let _infallible = TIMES.print_timestamp(&self.time, &mut *to);
        to.extend_from_slice(b"\",\"id\":\"");
        self.id.write(to);
        to.extend_from_slice(b"\",\"peer\":\"");
        address(&self.peer, to);
        to.extend_from_slice(b"\",\"caller\":");
        match &self.caller {
            Who::Known(name) => string(name, to),
            Who::Peer(ip) => string(&format!("peer:{}", ip.to_canonical()), to),
        }
        text(member!("tenant"), self.tenant.as_deref(), to);
        text(member!("route"), self.route.as_deref(), to);
        word(member!("in"), self.from, to);
        word(member!("out"), self.to, to);
        word(member!("operation"), self.operation, to);
        text(member!("context"), self.context.as_deref(), to);
        text(member!("task"), self.task.as_deref(), to);
        text(member!("message"), self.message.as_deref(), to);
        word(member!("decision"), Some(self.decision.word()), to);
        text(member!("rule"), self.rule.as_deref(), to);
        word(member!("fault"), self.fault, to);
        number(member!("status"), self.status.map(u64::from), to);
        word(member!("state"), self.state, to);
        if self.left {
            to.extend_from_slice(b",\"left\":true");
        }
        to.extend_from_slice(b",\"bytes\":{\"in\":");
        digits(self.bytes.from, to);
        number(member!("out"), Some(self.bytes.to), to);
        to.push(b'}');
        number(member!("events"), Some(self.events), to);
        number(member!("losses"), Some(self.losses), to);
        self.write_micros(to);
        text(member!("digest"), self.digest.as_deref(), to);
        if !self.captured.is_empty() {
            to.extend_from_slice(b",\"captured\":{");
            for (at, (name, value)) in self.captured.iter().enumerate() {
                if at > 0 {
                    to.push(b',');
                }
                string(name, to);
                to.push(b':');
                string(value, to);
            }
            to.push(b'}');
        }
        to.push(b'}');
    }

    fn write_micros(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(b",\"micros\":{");
        for (name, time) in [
            (&b"\"admitted\":"[..], self.micros.admitted),
            (b"\"answered\":", self.micros.answered),
        ] {
            if let Some(time) = time {
                to.extend_from_slice(name);
                digits(time, to);
                to.push(b',');
            }
        }
        to.extend_from_slice(b"\"ended\":");
        digits(self.micros.ended, to);
        to.push(b'}');
    }
}

impl Decision {
    const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Allowed => "allowed",
            Self::Refused => "refused",
        }
    }
}

impl Id {
    fn write(&self, to: &mut Vec<u8>) {
        hex_into(&self.0.to_be_bytes(), to);
        to.push(b'-');
        digits(self.1, to);
    }
}

/// A member with a text of somebody else.
fn text(member: &[u8], value: Option<&str>, to: &mut Vec<u8>) {
    if let Some(value) = value {
        to.extend_from_slice(member);
        string(value, to);
    }
}

/// A member with a word of our own tables: there is nothing to escape in it.
fn word(member: &[u8], value: Option<&str>, to: &mut Vec<u8>) {
    if let Some(value) = value {
        to.extend_from_slice(member);
        plain(value, to);
    }
}

fn number(member: &[u8], value: Option<u64>, to: &mut Vec<u8>) {
    if let Some(value) = value {
        to.extend_from_slice(member);
        digits(value, to);
    }
}

/// Most texts have nothing to escape, which is seen many bytes at a time.
fn string(text: &str, to: &mut Vec<u8>) {
    let odd = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    if text.bytes().fold(false, |any, byte| any | odd(byte)) {
        crate::json::write_string(text, to);
    } else {
        plain(text, to);
    }
}

fn plain(text: &str, to: &mut Vec<u8>) {
    to.push(b'"');
    to.extend_from_slice(text.as_bytes());
    to.push(b'"');
}

fn digits(number: u64, to: &mut Vec<u8>) {
    to.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn address(of: &SocketAddr, to: &mut Vec<u8>) {
    let SocketAddr::V4(v4) = of else {
        to.extend_from_slice(of.to_string().as_bytes());
        return;
    };
    for (at, part) in v4.ip().octets().into_iter().enumerate() {
        if at > 0 {
            to.push(b'.');
        }
        digits(part.into(), to);
    }
    to.push(b':');
    digits(v4.port().into(), to);
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::audit::entry::{Bytes, Line, Micros, write};

    fn call(peer: &str) -> Call {
        let peer: SocketAddr = peer.parse().unwrap();
        Call {
            place: crate::audit::queue::Place::default(),
            heard: crate::telemetry::Heard::default(),
            time: Timestamp::from_nanosecond(1_796_071_507_123_456_789).unwrap(),
            id: Id(0xa0_1234, 0),
            peer,
            caller: Who::Peer(peer.ip()),
            tenant: None,
            route: None,
            from: None,
            to: None,
            operation: None,
            context: None,
            task: None,
            message: None,
            decision: Decision::None,
            rule: None,
            fault: None,
            status: None,
            state: None,
            left: false,
            bytes: Bytes { from: 0, to: 0 },
            events: 0,
            losses: 0,
            micros: Micros {
                admitted: None,
                answered: None,
                ended: 0,
            },
            digest: None,
            captured: vec![],
        }
    }

    fn full() -> Call {
        let odd = "a\"b\\c\u{1}\n\u{7f}é…/";
        Call {
            id: Id(u64::MAX, u64::MAX),
            caller: Who::Known("key:house|a\"b".into()),
            tenant: Some("t\\1".into()),
            route: Some("/w/{id}".into()),
            from: Some("v0.3 jsonrpc"),
            to: Some("v1.0 rest"),
            operation: Some("SendMessage"),
            context: Some(odd.into()),
            task: Some("t-1".into()),
            message: Some("".into()),
            decision: Decision::Refused,
            rule: Some("limits.\u{2028}x".into()),
            fault: Some("RATE_LIMITED"),
            status: Some(429),
            state: Some("completed"),
            left: true,
            bytes: Bytes {
                from: 10,
                to: u64::MAX,
            },
            events: 9,
            losses: 100,
            micros: Micros {
                admitted: Some(1),
                answered: Some(22),
                ended: 333,
            },
            digest: Some("00ff".into()),
            captured: vec![("a b".into(), odd.into()), ("\"".into(), "".into())],
            ..call("255.255.255.255:65535")
        }
    }

    #[test]
    fn a_record_by_hand_is_byte_by_byte_what_serde_makes_of_it() {
        let all = [
            call("0.0.0.0:0"),
            call("192.0.2.7:80"),
            call("[2001:db8::1]:443"),
            call("[::ffff:192.0.2.7]:443"),
            full(),
            Call {
                decision: Decision::Allowed,
                micros: Micros {
                    admitted: Some(5),
                    answered: None,
                    ended: 7,
                },
                ..call("10.0.0.1:1")
            },
        ];
        for call in all {
            let (mut by_hand, mut by_serde) = (vec![], vec![]);
            call.write(&mut by_hand);
            write(&Line::Call(&call), &mut by_serde);
            let text = |bytes| String::from_utf8(bytes).unwrap();
            assert_eq!(text(by_hand), text(by_serde));
        }
    }
}
