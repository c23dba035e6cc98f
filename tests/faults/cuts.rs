//! Connections that end at each byte: of a request, of a head, of a body, of a stream.
use crate::{
    proxy::Fault,
    scene::{Ended, Place, answer, at_rest, send},
    support::{
        gateway::Gateway,
        message::Message,
        words::{ALL, J10, Speak},
    },
};

/// What one message comes to whose connection fares so; it was sent once.
fn cut(place: &Place, gateway: &Gateway, speak: Speak, fault: Fault, stream: bool) -> Ended {
    place.proxy.does(fault);
    let id = format!("{speak:?}-{fault:?}-{stream}");
    let message = if stream {
        Message::stream(&id)
    } else {
        Message::send(&id)
    };
    let ended = send(gateway, speak, message);
    assert_eq!(place.proxy.sends_of(&id), 1, "{id}: {ended:?}");
    ended
}

/// The length of the answer to such a message, and of its head.
fn lengths(stream: bool) -> (usize, usize) {
    let (agent, log) = crate::support::agent::Agent::always(|asked| answer(asked, "a"));
    let gateway = Gateway::before(agent);
    let message = if stream {
        Message::stream("J10-ResetDown(100)-false")
    } else {
        Message::send("J10-ResetDown(100)-false")
    };
    assert_eq!(send(&gateway, J10, message), Ended::Well);
    let whole = answer(&log.all()[0], "a");
    let head = whole.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
    (whole.len(), head)
}

fn broken() -> Ended {
    Ended::Fault("BACKEND_BROKEN".to_owned())
}

#[test]
fn an_answer_that_is_cut_at_any_byte_is_a_fault_and_sent_once() {
    let place = Place::of("a");
    let gateway = Gateway::before(place.proxy.addr);
    let (whole, _) = lengths(false);
    for at in 1..whole - 20 {
        for fault in [Fault::ResetDown(at), Fault::CloseDown(at)] {
            let ended = cut(&place, &gateway, J10, fault, false);
            assert_eq!(ended, broken(), "{fault:?} of {whole}");
        }
    }
    place.proxy.does(Fault::None);
    assert_eq!(cut(&place, &gateway, J10, Fault::None, false), Ended::Well);
    at_rest(&gateway);
}

#[test]
fn a_stream_that_is_cut_at_any_byte_ends_with_a_fault() {
    let place = Place::of("a");
    let gateway = Gateway::before(place.proxy.addr);
    let (whole, head) = lengths(true);
    // The last frame shows the task at rest: from there on nothing is missing.
    for at in (1..whole - 200).step_by(3) {
        let ended = cut(&place, &gateway, J10, Fault::ResetDown(at), true);
        if at < head {
            assert_eq!(ended, broken(), "cut at {at}, head {head}, whole {whole}");
        } else {
            let told = matches!(&ended, Ended::Broke | Ended::Fault(_));
            assert!(told, "cut at {at}, head {head}, whole {whole}: {ended:?}");
        }
    }
    at_rest(&gateway);
}

#[test]
fn a_request_that_is_cut_at_any_byte_is_not_sent_again() {
    let place = Place::of("a");
    let gateway = Gateway::before(place.proxy.addr);
    for at in (1..300).step_by(7) {
        for stream in [false, true] {
            let ended = cut(&place, &gateway, J10, Fault::ResetUp(at), stream);
            assert_eq!(ended, broken(), "cut at {at}");
        }
    }
    assert_eq!(place.messages(), Vec::<String>::new());
    at_rest(&gateway);
}

#[test]
fn each_dialect_is_told_what_broke() {
    let place = Place::of("a");
    let gateway = Gateway::before(place.proxy.addr);
    for speak in ALL {
        for at in [1, 20, 90, 110] {
            for stream in [false, true] {
                let ended = cut(&place, &gateway, speak, Fault::ResetDown(at), stream);
                let told = matches!(&ended, Ended::Broke | Ended::Fault(_));
                assert!(told, "{speak:?}, {at}, {stream}: {ended:?}");
            }
        }
        for stream in [false, true] {
            let ended = cut(&place, &gateway, speak, Fault::Dribble, stream);
            assert_eq!(ended, Ended::Well, "{speak:?}, byte by byte, {stream}");
        }
    }
    at_rest(&gateway);
}

#[test]
fn nobody_there_is_unreachable_and_leaves_nothing_behind() {
    let place = Place::of("a");
    let gateway = Gateway::before(place.proxy.addr);
    place.proxy.does(Fault::Refuse);
    let unreachable = Ended::Fault("BACKEND_UNREACHABLE".to_owned());
    for speak in ALL {
        for stream in [false, true] {
            let id = format!("{speak:?}-{stream}");
            let message = if stream {
                Message::stream(&id)
            } else {
                Message::send(&id)
            };
            // Nothing was begun, so its conversation is free for the next.
            assert_eq!(send(&gateway, speak, message.of("talk")), unreachable);
            assert_eq!(place.proxy.sends_of(&id), 0);
        }
    }
    place.proxy.does(Fault::None);
    let message = Message::send("after").of("talk");
    assert_eq!(send(&gateway, J10, message), Ended::Well);
    at_rest(&gateway);
}
