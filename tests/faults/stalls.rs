//! Agents that are there and say nothing, or no more.
use tokio::time::Instant;

use crate::{
    proxy::Fault,
    scene::{Ended, Place, at_rest, send},
    support::{
        PATIENCE,
        gateway::Gateway,
        message::Message,
        words::{ALL, J10},
    },
};

/// Deadlines that a test can wait for.
const SHORT: &str = "limits: {send: 200ms, first_byte: 200ms, stream_idle: 200ms}";

#[test]
fn silence_at_each_stage_ends_at_a_deadline() {
    let place = Place::of("a");
    let gateway = Gateway::with(place.proxy.addr, "", SHORT);
    for speak in ALL {
        // Within the status line, within the fields, within the body.
        for at in [1, 40, 110] {
            for stream in [false, true] {
                place.proxy.does(Fault::StallDown(at));
                let id = format!("{speak:?}-{at}-{stream}");
                let message = if stream {
                    Message::stream(&id)
                } else {
                    Message::send(&id)
                };
                let start = Instant::now();
                let ended = send(&gateway, speak, message);
                assert!(start.elapsed() < PATIENCE / 2);
                let told = match &ended {
                    Ended::Fault(reason) => reason == "BACKEND_TIMEOUT",
                    Ended::Broke => stream,
                    Ended::Well => false,
                };
                assert!(told, "{id}: {ended:?}");
                assert_eq!(place.proxy.sends_of(&id), 1, "{id}");
            }
        }
    }
    at_rest(&gateway);
    place.proxy.does(Fault::None);
    assert_eq!(send(&gateway, J10, Message::send("after")), Ended::Well);
}

#[test]
fn who_waits_for_a_place_is_told_that_there_is_none() {
    let place = Place::of("a");
    let backend = "max_connections: 1, wait: 100ms";
    let gateway = Gateway::with(place.proxy.addr, backend, "limits: {send: 2s}");
    place.proxy.does(Fault::StallDown(1));
    let mut held = gateway.client();
    let (line, body) = Message::send("held").words(J10);
    held.send(line, &crate::scene::fields(J10), &body);
    crate::support::until("it is under way", || {
        crate::scene::status(&gateway).addresses[0].busy == 1
    });
    let overloaded = Ended::Fault("OVERLOADED".to_owned());
    assert_eq!(send(&gateway, J10, Message::send("late")), overloaded);
    assert_eq!(place.proxy.sends_of("late"), 0);
    drop(held);
    place.proxy.does(Fault::None);
    at_rest(&gateway);
    assert_eq!(send(&gateway, J10, Message::send("after")), Ended::Well);
}
