//! Any bytes as what an agent answers: a result, an error, a card. What reaches the client is one document of its
//! dialect, which reads again.
use a2a_gateway::a2a::{
    Dialect, Op, Version,
    answer::{self, Public},
    shape::{Options, View, card::Interface},
};
use bytes::Bytes;

use super::{AGENTS, CLIENTS, asked, is_of_bytes, must_be_json, must_be_told, roomy};

/// One operation for each kind of result, asked for and sent.
const KINDS: [(Op, Op); 8] = [
    (Op::Send, Op::Send),
    (Op::Get, Op::Get),
    (Op::List, Op::List),
    (Op::GetPush, Op::GetPush),
    (Op::GetPush, Op::ListPush),
    (Op::ListPush, Op::ListPush),
    (Op::DeletePush, Op::DeletePush),
    (Op::ExtendedCard, Op::ExtendedCard),
];

pub(super) fn any(bytes: &[u8], options: &Options) {
    let body = Bytes::copy_from_slice(bytes);
    for from in AGENTS.into_iter().chain([Dialect::R03K]) {
        for (op, sent) in KINDS {
            document(from, op, sent, &body, options);
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        error(text);
        card(text, options);
    }
}

fn document(from: Dialect, op: Op, sent: Op, body: &Bytes, options: &Options) {
    for client in CLIENTS {
        let to = asked(client, op);
        match answer::document(&to, from, sent, body, &public(), options) {
            Ok(document) => {
                if let Some(text) = &document.body {
                    must_be_json(text, "an answer");
                    must_read_again(client, op, text, options);
                }
            }
            Err(fault) => {
                must_be_told(&to, &fault);
                return; // what cannot be read is not read differently for another client
            }
        }
    }
}

/// A gateway behind a gateway.
fn must_read_again(from: Dialect, op: Op, text: &Bytes, options: &Options) {
    // No agent of v0.3 is asked for a list, and none speaks R03S.
    if from == Dialect::R03S || (op == Op::List && from.shape.version() == Version::V03) {
        return;
    }
    let to = asked(Dialect::R10, op);
    if let Err(fault) = answer::document(&to, from, op, text, &public(), &roomy(options))
        && !is_of_bytes(&fault)
    {
        let shown = String::from_utf8_lossy(text);
        panic!("{} {op:?} is not read again: {fault} {shown}", from.name());
    }
}

fn error(text: &str) {
    for (status, op) in [
        (200, Op::Send),
        (404, Op::Get),
        (409, Op::Cancel),
        (500, Op::Subscribe),
    ] {
        let fault = answer::read_fault(status, text, op);
        for client in AGENTS {
            must_be_told(&asked(client, op), &fault);
        }
    }
}

fn card(text: &str, options: &Options) {
    let public = public();
    for view in [View::V10, View::V03, View::V03Proto, View::Superset] {
        for public in [None, Some(&public)] {
            let Ok((card, _)) = answer::card(text, public, view, options) else {
                return;
            };
            must_be_json(&card, "a card");
            let card = String::from_utf8_lossy(&card);
            if let Err(fault) = answer::card(&card, public, View::V10, &roomy(options)) {
                panic!("a card as {view:?} is not read again: {fault} {card}");
            }
        }
    }
}

fn public() -> Public {
    let interface = |binding, version| Interface {
        url: "https://gateway.test/a".to_owned(),
        binding,
        version,
    };
    Public {
        interfaces: vec![
            interface("JSONRPC", "1.0"),
            interface("HTTP+JSON", "1.0"),
            interface("JSONRPC", "0.3"),
        ],
        push: false,
        security: None,
    }
}
