//! What v0.3 has no place for, and where in `metadata` it is kept on the way (decisions 26 and 27).
use super::super::Notes;
use crate::json::{Form, Limits, Node, Obj, write_string};

/// Keys of ours; `data_part_compat` is the convention of the SDKs.
const MEDIA_TYPE: &str = "a2a-gateway/mediaType";
const FILENAME: &str = "a2a-gateway/filename";
const REFERENCES: &str = "a2a-gateway/referenceTaskIds";
const WRAPPED: &str = "data_part_compat";

/// Puts a member into `metadata` without reading what else is in it. False where `metadata` is no object, or
/// seems to have that member already.
fn remember(o: &mut Obj<'_>, key: &str, value: &str) -> bool {
    let before = match o.get("metadata") {
        None | Some(Node::Text("null")) => "{}",
        Some(Node::Text(t)) => *t,
        Some(Node::Made(t)) => t.as_str(),
        Some(Node::Word(_) | Node::Obj(_) | Node::List(_)) => return false,
    };
    let Some(rest) = before.strip_prefix('{').map(str::trim_start) else {
        return false;
    };
    if rest.contains(key) {
        return false;
    }
    let mut text = vec![b'{'];
    write_string(key, &mut text);
    text.push(b':');
    text.extend_from_slice(value.as_bytes());
    if !rest.starts_with('}') {
        text.push(b',');
    }
    text.extend_from_slice(rest.as_bytes());
    // Both parts are JSON text, so they are UTF-8.
    let Ok(text) = String::from_utf8(text) else {
        return false;
    };
    o.put("metadata", Node::Made(text));
    true
}

/// `metadata`, opened because something of ours may be in it. Metadata that is not ours to read, such as one
/// with a key twice, stays as it is.
fn open<'a>(o: &Obj<'a>) -> Option<Obj<'a>> {
    let text = o.raw("metadata")?;
    if !text.contains("a2a-gateway/") && !text.contains(WRAPPED) {
        return None;
    }
    Obj::open(text, &Form::FLAT, Limits::CHECKED).ok()
}

/// Moves a kept member back to where it belongs.
fn restore<'a>(o: &mut Obj<'a>, metadata: &mut Obj<'a>, kept: &str, name: &'static str) {
    if !o.has(name)
        && let Some(value) = metadata.take(kept)
    {
        o.put(name, value);
    }
}

/// Puts what is left of `metadata` back, as text, since a lowering may add to it.
fn close(o: &mut Obj<'_>, metadata: &Obj<'_>) {
    if !metadata.changed() {
        return;
    }
    if metadata.is_empty() {
        o.take("metadata");
        return;
    }
    let mut left = vec![];
    metadata.write(&mut left);
    if let Ok(left) = String::from_utf8(left) {
        o.put("metadata", Node::Made(left));
    }
}

/// Brings back what [`lower_rest`] and [`wrap_data`] kept.
pub(in crate::a2a::shape) fn restore_part(p: &mut Obj<'_>) {
    let Some(mut metadata) = open(p) else { return };
    restore(p, &mut metadata, MEDIA_TYPE, "mediaType");
    restore(p, &mut metadata, FILENAME, "filename");
    if let (Some(value), Some("true")) = (wrapped(p), metadata.raw(WRAPPED)) {
        p.put("data", value);
        metadata.take(WRAPPED);
    }
    close(p, &metadata);
}

/// The value in `{"value": …}`.
fn wrapped<'a>(p: &Obj<'a>) -> Option<Node<'a>> {
    let text = p.raw("data").filter(|d| d.starts_with('{'))?;
    let mut data = Obj::open(text, &Form::FLAT, Limits::CHECKED).ok()?;
    let value = data.take("value")?;
    data.is_empty().then_some(value)
}

/// `mediaType` and `filename` of a text or data part, which only files have in v0.3.
pub(in crate::a2a::shape) fn lower_rest(p: &mut Obj<'_>, obvious: &str, notes: &mut Notes<'_>) {
    for (name, kept, plain) in [
        ("mediaType", MEDIA_TYPE, obvious),
        ("filename", FILENAME, "\"\""),
    ] {
        let Some(node) = p.take(name) else {
            continue;
        };
        let Node::Text(value) = node else {
            notes.lose("part", name, "only file parts have it in v0.3");
            continue;
        };
        if value == plain || value == "\"\"" || value == "null" {
            continue;
        }
        if !notes.options.preserve_lossy || !remember(p, kept, value) {
            notes.lose("part", name, "only file parts have it in v0.3");
        }
    }
}

/// v0.3 `data` is an object; anything else is wrapped and marked.
pub(in crate::a2a::shape) fn wrap_data(p: &mut Obj<'_>) {
    let Some(data) = p.raw("data") else { return };
    if data.starts_with('{') {
        return;
    }
    p.put("data", Node::Made(format!("{{\"value\":{data}}}")));
    remember(p, WRAPPED, "true");
}

/// `referenceTaskIds`, which v0.3 `ProtoJSON` does not have.
pub(in crate::a2a::shape) fn lower_references(m: &mut Obj<'_>, notes: &mut Notes<'_>) {
    m.no_blanks(&["referenceTaskIds"]);
    let Some(node) = m.take("referenceTaskIds") else {
        return;
    };
    let kept = match node {
        Node::Text(list) if notes.options.preserve_lossy => remember(m, REFERENCES, list),
        Node::Text(_) | Node::Made(_) | Node::Word(_) | Node::Obj(_) | Node::List(_) => false,
    };
    if !kept {
        notes.lose("message", "referenceTaskIds", "v0.3 REST does not have it");
    }
}

/// The other way.
pub(in crate::a2a::shape) fn restore_references(m: &mut Obj<'_>) {
    let Some(mut metadata) = open(m) else { return };
    restore(m, &mut metadata, REFERENCES, "referenceTaskIds");
    close(m, &metadata);
}
