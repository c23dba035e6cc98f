//! Laws of translation, on generated documents: there and back is the same, what is free-form passes byte by
//! byte, strangers are kept or counted, what is written can be read, and nothing panics.
use a2a_gateway::{
    a2a::{
        Dialect, Op,
        answer::{self, Public},
        detect::Accepts,
        reply::ReplyTo,
        request,
        shape::{Options, View},
    },
    cli::Document,
    translate::{Job, Translated},
};
use bytes::Bytes;
use proptest::prelude::*;

#[path = "properties/documents.rs"]
mod documents;
#[path = "vectors/tree.rs"]
mod tree;

use documents::{Extra, hostile, message, odd, task, update, wild_object};
use tree::Tree;

const ALL: [Dialect; 6] = [
    Dialect::J03,
    Dialect::R03P,
    Dialect::R03K,
    Dialect::R03S,
    Dialect::J10,
    Dialect::R10,
];
const OLD: [Dialect; 4] = [Dialect::J03, Dialect::R03P, Dialect::R03K, Dialect::R03S];

/// A canonical document as one of the kinds that clients and agents exchange.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Request,
    Response,
    Event,
}

fn job(kind: Kind, from: Dialect, to: Dialect) -> Job {
    let mut job = Job::new(from, to);
    job.op = match kind {
        Kind::Request => Some(Op::Stream),
        Kind::Response => Some(Op::Get),
        Kind::Event => None,
    };
    job
}

fn translate(kind: Kind, from: Dialect, to: Dialect, text: &str) -> Translated {
    let document = match kind {
        Kind::Request => Document::Request,
        Kind::Response => Document::Response,
        Kind::Event => Document::Event,
    };
    job(kind, from, to)
        .run(document, text)
        .unwrap_or_else(|e| panic!("{} -> {}: {e}: {text}", from.name(), to.name()))
}

fn body(text: &str) -> Tree {
    let at = text.find(['{', '[']).unwrap_or(0);
    Tree::read(&text[at..])
}

fn same(a: &str, b: &str) -> Result<(), TestCaseError> {
    let difference = body(a).difference(&body(b), "");
    prop_assert!(difference.is_none(), "{difference:?}\n{a}\n{b}");
    Ok(())
}

/// Requests as v1.0 REST writes them, tasks, and events.
fn canonical(extra: Extra) -> impl Strategy<Value = (Kind, String)> {
    prop_oneof![
        message(extra).prop_map(|m| {
            let text = format!("POST /message:stream\n\n{{\"message\":{m}}}");
            (Kind::Request, text)
        }),
        task(extra).prop_map(|t| (Kind::Response, t)),
        update(extra).prop_map(|u| (Kind::Event, u)),
    ]
}

proptest! {
    // A case that fails becomes a vector, not a line in a file.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn there_and_back_is_the_same((kind, text) in canonical(Extra::Kept)) {
        for old in OLD {
            let down = translate(kind, Dialect::R10, old, &text);
            prop_assert!(down.losses.is_empty(), "{:?}", down.losses);
            same(&text, &translate(kind, old, Dialect::R10, &down.output).output)?;
            let again = translate(kind, old, old, &down.output);
            prop_assert!(again.losses.is_empty(), "{:?}", again.losses);
            same(&down.output, &again.output)?;
        }
    }

    #[test]
    fn any_way_round_is_the_same((kind, text) in canonical(Extra::Kept), a in 0..6_usize, b in 0..6_usize) {
        let first = translate(kind, Dialect::R10, ALL[a], &text).output;
        let second = translate(kind, ALL[a], ALL[b], &first).output;
        same(&second, &translate(kind, Dialect::R10, ALL[b], &text).output)?;
    }

    #[test]
    fn free_form_passes_byte_by_byte(a in odd(), b in wild_object(), c in wild_object()) {
        let message = format!(
            r#"{{"messageId":"m","role":"ROLE_USER","parts":[{{"data":{c},"metadata":{b}}},{{"data":{a}}}],"metadata":{c}}}"#
        );
        let texts = [
            (Kind::Request, format!("POST /message:stream\n\n{{\"message\":{message},\"metadata\":{b}}}")),
            (Kind::Response, format!(r#"{{"id":"t","contextId":"c","status":{{"state":"TASK_STATE_WORKING"}},"history":[{message}],"artifacts":[{{"artifactId":"a","parts":[{{"text":"x","metadata":{c}}}],"metadata":{b}}}],"metadata":{c}}}"#)),
            (Kind::Event, format!(r#"{{"statusUpdate":{{"taskId":"t","contextId":"c","status":{{"state":"TASK_STATE_WORKING","message":{message}}},"metadata":{b}}}}}"#)),
        ];
        for (kind, text) in &texts {
            for from in ALL {
                let there = translate(*kind, Dialect::R10, from, text).output;
                for to in ALL {
                    let out = translate(*kind, from, to, &there).output;
                    for (n, free) in [(1, &a), (2, &b), (2, &c)] {
                        prop_assert!(out.matches(free.as_str()).count() >= n, "{free} in {out}");
                    }
                }
            }
        }
    }

    #[test]
    fn free_form_in_cards_passes_byte_by_byte(a in wild_object()) {
        let card = format!(r#"{{"name":"n","supportedInterfaces":[{{"url":"u","protocolBinding":"JSONRPC","protocolVersion":"1.0"}}],"capabilities":{{"extensions":[{{"uri":"e","params":{a}}}]}},"skills":[],"x":{a}}}"#);
        for to in ALL {
            let down = Job::new(Dialect::R10, to).run(Document::Card, &card).unwrap().output;
            prop_assert_eq!(down.matches(a.as_str()).count(), 2, "{}", down);
        }
    }

    #[test]
    fn strangers_stay_within_v10_and_are_counted_across((kind, text) in canonical(Extra::Strangers)) {
        let strangers = text.matches("\"stranger").count();
        for to in [Dialect::J10, Dialect::R10] {
            let kept = translate(kind, Dialect::R10, to, &text);
            prop_assert!(kept.losses.is_empty());
            prop_assert_eq!(kept.output.matches("\"stranger").count(), strangers);
        }
        for to in OLD {
            let told = translate(kind, Dialect::R10, to, &text);
            prop_assert_eq!(told.losses.len(), strangers, "{:?} {}", told.losses, text);
            prop_assert!(!told.output.contains("\"stranger"), "{}", told.output);
        }
    }

    #[test]
    fn strangers_of_v03_are_counted((kind, text) in canonical(Extra::Kept), to in 0..6_usize) {
        for old in OLD {
            let down = translate(kind, Dialect::R10, old, &text).output;
            // Not in `status`, which stands in free-form places too.
            let (mark, of) = match old {
                Dialect::R03P => ("\"content\":[", "message"),
                _ => ("\"parts\":[", "message"),
            };
            let odd = down.replacen(mark, &format!("\"stranger\":1,{mark}"), 1);
            if odd == down {
                continue;
            }
            let told = translate(kind, old, ALL[to], &odd);
            prop_assert!(!told.output.contains("stranger"));
            prop_assert!(
                told.losses.iter().any(|l| l.member == "stranger" && (l.of == of || l.of == "artifact")),
                "{:?}", told.losses
            );
        }
    }

    #[test]
    fn a_member_given_twice_is_refused(which in 0..7_usize, snake in any::<bool>()) {
        let members = ["messageId", "contextId", "taskId", "role", "parts", "metadata", "referenceTaskIds"];
        let key = members[which];
        let all = r#""messageId":"m","contextId":"c","taskId":"t","role":"ROLE_USER","parts":[{"text":"x"}],"metadata":{},"referenceTaskIds":["r"]"#;
        let other: String = if snake {
            key.chars().flat_map(|c| if c.is_ascii_uppercase() { vec!['_', c.to_ascii_lowercase()] } else { vec![c] }).collect()
        } else {
            key.to_owned()
        };
        let value = match key { "parts" => "[]", "metadata" => "{}", _ => "\"x\"" };
        for message in [format!(r#"{{{all},"{other}":{value}}}"#), format!(r#"{{"{other}":{value},{all}}}"#)] {
            let rest = format!("POST /message:stream\n\n{{\"message\":{message}}}");
            let rpc = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{{"message":{message}}}}}"#);
            let proto = rest.replace("/message", "/v1/message").replace("\"parts\"", "\"content\"");
            for (from, text) in [(Dialect::R10, &rest), (Dialect::J10, &rpc), (Dialect::R03P, &proto)] {
                if from == Dialect::R03P && key == "referenceTaskIds" && snake {
                    continue; // not a member there, so that it has no second spelling
                }
                let told = job(Kind::Request, from, Dialect::J03).run(Document::Request, text);
                prop_assert!(told.is_err(), "{}: {}: {:?}", from.name(), text, told);
            }
        }
    }

    #[test]
    fn an_r03p_client_gets_only_what_its_proto_has((kind, text) in canonical(Extra::Strangers)) {
        let out = translate(kind, Dialect::R10, Dialect::R03P, &text).output;
        match kind {
            Kind::Request => {}
            Kind::Response => documents::proto_task(&body(&out)),
            Kind::Event => documents::proto_event(&body(&out)),
        }
    }

    #[test]
    fn what_is_written_can_be_read(text in hostile(), from in 0..6_usize, to in 0..6_usize, op in 0..11_usize) {
        let op = a2a_gateway::a2a::op::OPS[op].op;
        for wrapped in documents::wrappings(&text, op) {
            let mut job = Job::new(ALL[from], ALL[to]);
            job.op = Some(op);
            for document in [Document::Request, Document::Response, Document::Event, Document::Error, Document::Card] {
                if let Ok(told) = job.run(document, &wrapped)
                    && let Some(at) = told.output.find(['{', '['])
                {
                    let json = &told.output[at..];
                    let read = serde_json::from_str::<&serde_json::value::RawValue>(json);
                    prop_assert!(read.is_ok(), "{:?} {}: {json}", read, wrapped);
                }
            }
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), op in 0..11_usize) {
        read_everything(&Bytes::from(bytes), a2a_gateway::a2a::op::OPS[op].op);
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in "\\PC*", op in 0..11_usize) {
        read_everything(&Bytes::from(text), a2a_gateway::a2a::op::OPS[op].op);
    }
}

/// Every reader there is, on the same bytes.
fn read_everything(bytes: &Bytes, op: Op) {
    let options = Options::default();
    let accepts = Accepts {
        snake: true,
        v03_list: true,
        ..Accepts::default()
    };
    let public = Public {
        interfaces: vec![],
        push: false,
        security: None,
    };
    for dialect in ALL {
        let mut to = ReplyTo::new(dialect);
        let _ = request::read_rpc(
            bytes,
            &request::Reading::new(None, &accepts, &options),
            &mut to,
        );
        for version in [
            a2a_gateway::a2a::Version::V03,
            a2a_gateway::a2a::Version::V10,
        ] {
            let found = a2a_gateway::a2a::rest::Found {
                op,
                version,
                tenant: Some("x".into()),
                id: Some("t".into()),
                config: None,
            };
            let query = std::str::from_utf8(bytes).ok();
            for body in [bytes, &Bytes::new()] {
                let mut to = ReplyTo::new(dialect);
                let reading = request::Reading::new(None, &accepts, &options);
                let _ = request::read_rest(&found, query, body, &reading, &mut to);
            }
        }
        for from in ALL {
            let mut to = ReplyTo::new(dialect);
            to.op = Some(op);
            let _ = answer::document(&to, from, op, bytes, &public, &options);
            let (mut lost, mut out) = (vec![], vec![]);
            let _ = answer::event(&mut to, from, bytes, true, &options, &mut lost, &mut out);
        }
        if let Ok(text) = std::str::from_utf8(bytes) {
            let fault = answer::read_fault(400, text, op);
            let told = ReplyTo::new(dialect).fault(&fault);
            let told = String::from_utf8(told.body).expect("a fault is told in UTF-8");
            let _ = Tree::read(&told); // it is JSON
            for view in [View::V10, View::V03, View::V03Proto, View::Superset] {
                let _ = answer::card(text, Some(&public), view, &options);
            }
        }
    }
}
