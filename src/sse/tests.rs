use proptest::prelude::*;

use super::*;

type Seen = (Option<String>, String, bool, bool);

fn read(chunks: &[&[u8]]) -> Vec<Seen> {
    let mut reader = Reader::new(1 << 20);
    let mut out = vec![];
    for chunk in chunks {
        reader.push(chunk);
        while let Some(e) = reader.event().unwrap() {
            let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
            out.push((e.data.map(text), text(e.head), e.error, e.other));
        }
    }
    out
}

/// Comments may come alone or with the event after them, as they arrive; all else must be the same.
fn data(chunks: &[&[u8]]) -> (Vec<(String, bool, bool)>, String) {
    let seen = read(chunks);
    let heads = seen.iter().map(|s| s.1.as_str()).collect();
    let data = seen.into_iter().filter_map(|(d, _, e, o)| Some((d?, e, o)));
    (data.collect(), heads)
}

const TEXT: &[u8] = b"\xef\xbb\xbf: ping\n\nid: 7\r\ndata: {\"a\":1}\r\n\r\ndata: x\ndata: y\n\nretry: 5\rdata:z\r\revent: error\ndata\n\nevent: done\ndata: \xe8\xaa\x9e\n\nid: 9\ndata: end\n\n";

proptest! {
    #[test]
    fn splits_never_matter(mut cuts in prop::collection::vec(0..TEXT.len(), 0..8)) {
        cuts.sort_unstable();
        let mut at = 0;
        let mut chunks = vec![];
        for cut in cuts {
            chunks.push(&TEXT[at..cut]);
            at = cut;
        }
        chunks.push(&TEXT[at..]);
        prop_assert_eq!(data(&chunks), data(&[TEXT]));
    }

    #[test]
    fn no_bytes_panic(chunks in prop::collection::vec(prop::collection::vec(
        prop::sample::select(b"data: \r\n:\xefid event{}".to_vec()), 0..12), 0..12)) {
        let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        let mut reader = Reader::new(64);
        for chunk in chunks {
            reader.push(chunk);
            while let Ok(Some(_)) = reader.event() {}
        }
        reader.rest();
    }
}

#[test]
fn what_each_event_says() {
    let said: Vec<_> = data(&[TEXT]).0;
    let event = |d: &str, e, o| (d.to_owned(), e, o);
    assert_eq!(
        said,
        [
            event("{\"a\":1}", false, false),
            event("x\ny", false, false),
            event("z", false, false),
            event("", true, false),
            event("語", false, true),
            event("end", false, false),
        ]
    );
    assert_eq!(data(&[TEXT]).1, ": ping\nid: 7\nid: 9\n");
}

#[test]
fn a_comment_does_not_wait_for_an_event() {
    assert_eq!(read(&[b": keep-alive\n"]).len(), 1);
    assert_eq!(read(&[b": keep-alive\n", b"\n"]).len(), 1);
    let seen = read(&[b"event: error\n: c\n", b"data: x\n\n"]);
    assert_eq!(seen[1], (Some("x".into()), String::new(), true, false));
}

#[test]
fn a_lone_cr_at_the_end_of_a_chunk_is_not_waited_on() {
    assert_eq!(read(&[b"data: a\r\r"]).len(), 1);
    assert_eq!(read(&[b"data: a\r\n\r", b"\ndata: b\n\n"]).len(), 2);
}

#[test]
fn an_event_without_data_says_nothing() {
    assert_eq!(read(&[b"event: error\n\nretry: 1\n\ndata: x\n\n"]).len(), 1);
    assert!(!read(&[b"event: error\n\ndata: x\n\n"])[0].2);
}

#[test]
fn a_long_event_is_refused_and_never_held() {
    let mut reader = Reader::new(8);
    reader.push(b"data: 123456789");
    assert_eq!(reader.event(), Err(TooLong));
    let mut reader = Reader::new(8);
    reader.push(b"data: 12345\ndata: 12345\n");
    assert_eq!(reader.event(), Err(TooLong));
}

#[test]
fn buffers_are_empty_between_events() {
    let mut reader = Reader::new(1 << 20);
    let long = format!("data: {}\n\n", "x".repeat(100_000));
    reader.push(long.as_bytes());
    assert!(reader.event().unwrap().is_some());
    assert!(reader.event().unwrap().is_none());
    let held =
        reader.bytes.capacity() + reader.given.data.capacity() + reader.pending.data.capacity();
    assert!(held <= 3 * KEPT, "{held}");
}

#[test]
fn what_is_left_at_the_end_is_there_to_look_at() {
    let mut reader = Reader::new(1 << 20);
    reader.push(b"data: {\"a\":\ndata: 1}");
    assert!(reader.event().unwrap().is_none());
    assert_eq!(reader.rest().unwrap().data, Some(&b"{\"a\":\n1}"[..]));
    let mut none = Reader::new(1 << 20);
    none.push(b"data: x\n\n");
    assert!(none.event().unwrap().is_some());
    assert!(none.event().unwrap().is_none());
    assert_eq!(none.rest(), None);
}

#[test]
fn half_a_line_is_half_an_event_unless_it_is_a_comment() {
    for (text, data, error) in [
        (&b"dat"[..], Some(&b""[..]), false),
        (b"event: error\ndata: {\"a", Some(b"{\"a"), true),
        (b"event: error\n", Some(b""), true),
        (b": ping", None, false),
        (b": ping\n", None, false),
        (b"", None, false),
    ] {
        let mut reader = Reader::new(1 << 20);
        reader.push(text);
        while reader.event().unwrap().is_some() {}
        let rest = reader.rest();
        let said = rest.map_or((None, false), |r| (r.data, r.error));
        assert_eq!(said, (data, error), "{}", text.escape_ascii());
    }
}
