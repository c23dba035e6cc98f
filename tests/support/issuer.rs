//! An issuer of tokens: its key pairs, and where it serves the public ones.
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, jwk::Jwk};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::{Value, json};

use super::agent::{Agent, Log, answer};

pub const ISSUER: &str = "https://issuer.test";

/// A key pair.
#[derive(Clone)]
pub struct Pair {
    pub id: &'static str,
    private: EncodingKey,
}

impl Pair {
    pub fn new(id: &'static str) -> Self {
        let der = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let private = EncodingKey::from_ec_der(&der.serialize_der());
        Self { id, private }
    }

    pub fn public(&self) -> Value {
        let mut key = Jwk::from_encoding_key(&self.private, Algorithm::ES256).unwrap();
        key.common.key_id = Some(self.id.to_owned());
        serde_json::to_value(key).unwrap()
    }

    pub fn signs(&self, claims: &Value) -> String {
        let mut head = Header::new(Algorithm::ES256);
        head.kid = Some(self.id.to_owned());
        encode(&head, claims, &self.private).unwrap()
    }
}

pub fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// What a good token says.
pub fn claims() -> Value {
    json!({"iss": ISSUER, "aud": "gateway", "sub": "ann", "exp": now() + 600, "org": "acme"})
}

pub fn set(pairs: &[Pair]) -> String {
    let keys: Vec<_> = pairs.iter().map(Pair::public).collect();
    json!({ "keys": keys }).to_string()
}

/// Serves its keys, as they are now.
pub struct Issuer {
    pub addr: SocketAddr,
    pub log: Log,
    says: Arc<Mutex<(u16, String)>>,
}

impl Issuer {
    pub fn with(pairs: &[Pair]) -> Self {
        let says = Arc::new(Mutex::new((200, set(pairs))));
        let said = says.clone();
        let (addr, log) = Agent::always(move |_| {
            let (status, text) = said.lock().unwrap().clone();
            answer(status, "content-type: application/json\r\n", text)
        });
        Self { addr, log, says }
    }

    pub fn says(&self, status: u16, text: String) {
        *self.says.lock().unwrap() = (status, text);
    }

    pub fn way(&self) -> String {
        format!(
            "{{jwt: {{issuer: '{ISSUER}', audience: [gateway], algorithms: [ES256], tenant: org, \
             jwks_url: 'http://{}/keys'}}}}",
            self.addr
        )
    }
}
