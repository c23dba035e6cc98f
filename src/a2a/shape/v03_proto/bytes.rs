//! `fileWithBytes`, which some peers encode twice.
use base64::{Engine, engine::general_purpose::STANDARD};

use super::super::{FileBytes, Notes, v10};
use crate::json::{Error, Node, Obj, Result};

/// `fileWithBytes` as it is meant: Python and Java put base64 text into a field that is encoded again
/// (decision 6).
pub(super) fn lift_bytes(file: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    let Some(text) = file.string("fileWithBytes") else {
        return Ok(());
    };
    let once = v10::decode(&text).ok_or(Error::Member {
        key: "fileWithBytes",
        why: "is not base64",
    })?;
    let inner = std::str::from_utf8(&once).ok().filter(|t| {
        let pure = !t.is_empty() && t.len().is_multiple_of(4);
        pure && STANDARD.decode(t).is_ok()
    });
    let twice = match notes.options.file_bytes {
        FileBytes::Auto => inner.is_some(),
        FileBytes::Single => false,
        FileBytes::Double => true,
    };
    if twice {
        let Some(inner) = inner else {
            return Err(Error::Member {
                key: "fileWithBytes",
                why: "is not base64 of base64",
            });
        };
        let made = Node::Made(format!("\"{inner}\""));
        notes.twice = Some(true);
        file.put("fileWithBytes", made);
        return Ok(());
    }
    if !once.is_empty() {
        notes.twice = Some(false);
    }
    v10::standard_base64(file, "fileWithBytes");
    Ok(())
}

/// Written as this caller writes it, else twice: a Python client breaks on bytes encoded once, a JS client
/// merely sees base64 text.
pub(super) fn lower_bytes(file: &mut Obj<'_>, notes: &Notes<'_>) {
    let twice = match notes.options.file_bytes {
        FileBytes::Auto => notes.twice.unwrap_or(true),
        FileBytes::Single => false,
        FileBytes::Double => true,
    };
    if !twice {
        return;
    }
    let encoded = file.string("fileWithBytes").map(|t| STANDARD.encode(&*t));
    if let Some(encoded) = encoded {
        file.put("fileWithBytes", Node::Made(format!("\"{encoded}\"")));
    }
}
