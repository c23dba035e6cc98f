//! Streams while a gateway ends: they run for the grace, and then each ends with a word in its client's dialect.
use std::{fs, process::Command, thread, time::Duration};

use a2a_gateway::audit::{Key, verify};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::{
    program::{Program, settings},
    support::{
        agent::{Agent, Call},
        client::Client,
        message::Message,
        place::KEY,
        words::{self, DONE, J03, J10, R03K, R03P, R10, Speak, data},
    },
};

const STREAMS: usize = 500;
const GRACE: Duration = Duration::from_secs(3);

/// A stream that has said its task.
struct Live {
    number: usize,
    speak: Speak,
    client: Client,
    call: Call,
}

fn live(program: &Program, agent: &Agent, n: usize) -> Live {
    let speak = [J03, R03P, R03K, J10, R10][n % 5];
    let mut client = program.client();
    let (id, context) = (format!("m{n}"), format!("c{n}"));
    let (line, body) = Message::stream(&id).of(&context).words(speak);
    client.send(line, "content-type: application/json\r\n", &body);
    let mut call = agent.next();
    call.begin();
    call.event(&words::result(&format!(
        r#"{{"task":{{"id":"t{n}","contextId":"{context}","status":{{"state":"TASK_STATE_WORKING"}}}}}}"#
    )));
    assert_eq!(client.head().status(), 200);
    let (_, error) = data(&client.event().unwrap());
    assert!(!error);
    Live {
        number: n,
        speak,
        client,
        call,
    }
}

/// The last frame: an error of the client's dialect, and nothing after it but a clean end.
fn told_to_subscribe_again(live: &mut Live) {
    let speak = live.speak;
    let events = live.client.rest();
    assert_eq!(events.len(), 1, "{speak:?}: {events:?}");
    let (frame, labelled) = data(&events[0]);
    assert_eq!(labelled, !speak.is_rpc(), "{speak:?}: {}", events[0]);
    if speak.is_rpc() {
        assert_eq!(frame["id"], "q1", "{frame}");
        assert_eq!(frame["jsonrpc"], "2.0", "{frame}");
    }
    let code = match speak {
        R10 => 503,
        J03 | J10 | R03P | R03K => -32603,
    };
    assert_eq!(speak.code(&frame), code, "{frame}");
    assert!(
        speak
            .message_of(&frame)
            .contains("subscribe to the task again"),
        "{frame}"
    );
    let task = format!(r#""taskId":"t{}""#, live.number);
    assert!(frame.to_string().contains(&task), "{frame}");
}

fn may_open(many: usize) {
    let pid = std::process::id().to_string();
    let limit = format!("--nofile={many}:");
    let _it_is_more_already = Command::new("prlimit")
        .arg("--pid")
        .arg(pid)
        .arg(limit)
        .status();
}

#[test]
fn five_hundred_streams_end_as_said() {
    may_open(8 * STREAMS); // the program inherits it
    let (folder, agent) = (TempDir::new().unwrap(), Agent::start());
    let key = folder.path().join("key");
    fs::write(&key, KEY).unwrap();
    let log = folder.path().join("log");
    let rest = format!(
        "workers: 2\ndrain: {{grace: {}s}}\naudit: {{folder: '{}', key_file: '{}', flush: 10ms}}",
        GRACE.as_secs(),
        log.display(),
        key.display()
    );
    let yaml = settings(folder.path(), agent.addr, &rest);
    let mut program = Program::start(folder.path(), &yaml);
    let mut all: Vec<Live> = (0..STREAMS).map(|n| live(&program, &agent, n)).collect();
    let began = Instant::now();
    program.signal("TERM");
    // Some end by themselves within the grace, as their agent ends them.
    let ends = all.split_off(STREAMS - 50);
    for mut live in ends {
        live.call.event(&words::result(DONE));
        live.call.end();
        let events = live.client.rest();
        assert_eq!(events.len(), 1, "{events:?}");
        let (frame, _) = data(&events[0]);
        let state = frame.to_string().to_ascii_lowercase();
        assert!(state.contains("completed"), "{frame}");
    }
    assert!(
        began.elapsed() < GRACE,
        "the machine is too slow for this test"
    );
    let ended: Vec<_> = all
        .into_iter()
        .map(|mut live| {
            thread::spawn(move || {
                told_to_subscribe_again(&mut live);
                let when = Instant::now();
                live.call.closed(); // and its agent is told
                when
            })
        })
        .collect();
    let code = program.code();
    let took = began.elapsed();
    for thread in ended {
        let after = thread.join().unwrap() - began;
        assert!(after >= GRACE, "{after:?}");
        assert!(after < GRACE + Duration::from_secs(2), "{after:?}");
    }
    assert_eq!(code, Some(0), "nothing was cut: {}", program.log());
    assert!(took < GRACE + Duration::from_secs(5), "{took:?}");
    // The record of calls is whole, and knows how each of them ended.
    let files = a2a_gateway::audit::files_in(&log).unwrap();
    let report = verify::verify(&files, Some(&Key::read(&key).unwrap()), None).unwrap();
    assert!(report.is_good(), "{report}");
    let text: String = files
        .iter()
        .map(|f| fs::read_to_string(f).unwrap())
        .collect();
    assert_eq!(text.matches(r#""kind":"call""#).count(), STREAMS);
}

#[test]
fn a_stream_whose_client_does_not_read_is_cut() {
    let (folder, agent) = (TempDir::new().unwrap(), Agent::start());
    let rest = "workers: 1\ndrain: {grace: 1s}";
    let yaml = settings(folder.path(), agent.addr, rest);
    let mut program = Program::start(folder.path(), &yaml);
    let mut live = live(&program, &agent, 4);
    // More than all buffers between here and there hold.
    let text = "x".repeat(1024 * 1024);
    let event = words::result(&format!(
        r#"{{"statusUpdate":{{"taskId":"t4","contextId":"c4","status":{{"state":"TASK_STATE_WORKING"}},"metadata":{{"x":"{text}"}}}}}}"#
    ));
    let io = live.call.wire.io.try_clone().unwrap();
    io.set_write_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let mut full = false;
    for _ in 0..64 {
        if !live.call.chunk(format!("data: {event}\n\n")) {
            full = true;
            break;
        }
    }
    assert!(full, "the gateway stops reading what it cannot write");
    let began = Instant::now();
    program.signal("TERM");
    assert_eq!(program.code(), Some(1));
    assert!(began.elapsed() < Duration::from_secs(6));
}
