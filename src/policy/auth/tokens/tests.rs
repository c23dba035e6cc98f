//! Tokens as issuers make them, and as others would like them to be.
use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, jwk::Jwk};
use serde_json::{Value, json};

use super::*;
use crate::policy::auth::wall;

/// A key pair of an issuer.
struct Pair {
    id: &'static str,
    by: Algorithm,
    private: EncodingKey,
    /// The public half, as rcgen gives it.
    raw: Vec<u8>,
}

impl Pair {
    fn new(id: &'static str, by: Algorithm) -> Self {
        use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_RSA_SHA256};
        let kind = if by == Algorithm::ES256 {
            &PKCS_ECDSA_P256_SHA256
        } else if by == Algorithm::EdDSA {
            &PKCS_ED25519
        } else {
            &PKCS_RSA_SHA256
        };
        let pair = KeyPair::generate_for(kind).unwrap();
        let (der, raw) = (pair.serialize_der(), pair.public_key_raw().to_vec());
        let private = if by == Algorithm::ES256 {
            EncodingKey::from_ec_der(&der)
        } else if by == Algorithm::EdDSA {
            EncodingKey::from_ed_der(&der)
        } else {
            // PKCS #1 lies behind the head of PKCS #8, which is as long for each key of 2048 bits.
            EncodingKey::from_rsa_der(&der[26..])
        };
        Self {
            id,
            by,
            private,
            raw,
        }
    }

    fn public(&self) -> Value {
        if self.by == Algorithm::EdDSA {
            let x = URL_SAFE_NO_PAD.encode(&self.raw);
            return json!({"kty": "OKP", "crv": "Ed25519", "kid": self.id, "x": x});
        }
        let mut key = Jwk::from_encoding_key(&self.private, self.by).unwrap();
        key.common.key_id = Some(self.id.to_owned());
        serde_json::to_value(key).unwrap()
    }

    fn signs(&self, claims: &Value) -> String {
        let mut head = Header::new(self.by);
        head.kid = Some(self.id.to_owned());
        encode(&head, claims, &self.private).unwrap()
    }
}

fn said() -> config::Jwt {
    config::Jwt {
        issuer: "https://issuer".to_owned(),
        audience: vec!["gateway".to_owned()],
        algorithms: vec![config::Algorithm::ES256, config::Algorithm::EdDSA],
        tenant: Some("org".to_owned()),
        labels: [
            ("plan".to_owned(), "plan".to_owned()),
            ("level".to_owned(), "n".to_owned()),
        ]
        .into(),
        ..config::Jwt::default()
    }
}

fn claims() -> Value {
    json!({
        "iss": "https://issuer", "aud": "gateway", "sub": "ann", "exp": wall() + 60, "org": "acme",
        "plan": "gold", "n": 7, "secret": [1],
    })
}

fn set(tokens: &Tokens, keys: &[Value]) -> Arc<Set> {
    let text = json!({ "keys": keys }).to_string();
    Arc::new(Set::read(&text, tokens.algorithms()).unwrap())
}

#[tokio::test]
async fn a_good_token_names_its_caller() {
    for (pair, by) in [
        (Pair::new("a", Algorithm::ES256), config::Algorithm::ES256),
        (Pair::new("b", Algorithm::EdDSA), config::Algorithm::EdDSA),
        (Pair::new("c", Algorithm::RS256), config::Algorithm::RS256),
    ] {
        let said = config::Jwt {
            algorithms: vec![config::Algorithm::ES384, by],
            ..said()
        };
        let tokens = Tokens::new(&said, config::Realm::default());
        let keys = set(&tokens, &[pair.public()]);
        let token = pair.signs(&claims());
        assert!(tokens.concern(&token));
        assert!(tokens.proven(&token, &keys, wall()).await.is_none());
        let proven = tokens.check(&token, &keys).await.unwrap();
        let caller = &proven.caller;
        assert_eq!(&*caller.name, "jwt:https://issuer/ann");
        assert_eq!(caller.tenant.as_deref(), Some("acme"));
        assert_eq!(
            (&*caller.labels["plan"], &*caller.labels["level"]),
            ("gold", "7")
        );
        assert_eq!(caller.claims.as_ref().unwrap()["secret"], json!([1]));
        assert!(caller.verified);
        // It is known again, as long as it is good and the keys are the same.
        assert!(tokens.proven(&token, &keys, wall()).await.is_some());
        assert!(tokens.proven(&token, &keys, proven.until).await.is_none());
        let others = set(&tokens, &[pair.public()]);
        assert!(tokens.proven(&token, &others, wall()).await.is_none());
    }
}

#[tokio::test]
async fn a_claim_that_is_off_is_refused() {
    let tokens = Tokens::new(&said(), config::Realm::default());
    let pair = Pair::new("a", Algorithm::ES256);
    let keys = set(&tokens, &[pair.public()]);
    let leeway = i64::try_from(LEEWAY.as_secs()).unwrap();
    for (claim, value) in [
        ("exp", json!(wall() - leeway - 2)),
        ("exp", json!("soon")),
        ("exp", Value::Null),
        ("nbf", json!(wall() + leeway + 5)),
        ("aud", json!("agent")),
        ("aud", json!(["agent", "other"])),
        ("aud", Value::Null),
        ("iss", json!("https://issuer/")),
        ("iss", Value::Null),
        ("sub", json!("")),
        ("sub", json!("x".repeat(257))),
        ("sub", json!(5)),
        ("sub", Value::Null),
        ("org", json!("")),
        ("org", json!({"a": 1})),
        ("org", Value::Null),
    ] {
        let mut off = claims();
        off[claim] = value.clone();
        let told = tokens.check(&pair.signs(&off), &keys).await;
        let expired = claim == "exp" && value.is_number();
        assert_eq!(
            told.err().map(|r| r == Refused::Expired),
            Some(expired),
            "{claim}: {value}"
        );
    }
    let mut late = claims();
    late["exp"] = json!(wall() - leeway + 5);
    late["aud"] = json!(["other", "gateway"]);
    assert!(tokens.check(&pair.signs(&late), &keys).await.is_ok());
}

#[tokio::test]
async fn a_token_does_not_choose_how_it_is_checked() {
    let tokens = Tokens::new(&said(), config::Realm::default());
    let pair = Pair::new("a", Algorithm::ES256);
    let rsa = Pair::new("r", Algorithm::RS256);
    let keys = set(&tokens, &[pair.public(), rsa.public()]);
    let good = pair.signs(&claims());
    let [head, body, signature] = good.split('.').collect::<Vec<_>>()[..] else {
        panic!()
    };
    let b64 = |text: &Value| URL_SAFE_NO_PAD.encode(text.to_string());
    let none = b64(&json!({"alg": "none", "kid": "a"}));
    let shared = |secret: &[u8]| {
        let mut head = Header::new(Algorithm::HS256);
        head.kid = Some("a".to_owned());
        encode(&head, &claims(), &EncodingKey::from_secret(secret).unwrap()).unwrap()
    };
    let public = pair.public().to_string();
    let mut other = claims();
    other["sub"] = json!("bob");
    let forged = pair.signs(&other);
    let forged = forged.split('.').nth(1).unwrap();
    let crit = b64(&json!({"alg": "ES256", "kid": "a", "crit": ["exp"], "exp": 1}));
    let stranger = Pair::new("a", Algorithm::ES256);
    for (what, token) in [
        ("none", format!("{none}.{body}.")),
        ("none, signed", format!("{none}.{body}.{signature}")),
        ("a public key as a secret", shared(public.as_bytes())),
        (
            "an algorithm that settings do not have",
            rsa.signs(&claims()),
        ),
        ("another body", format!("{head}.{forged}.{signature}")),
        ("no signature", format!("{head}.{body}.")),
        ("crit", format!("{crit}.{body}.{signature}")),
        ("another's key by the same name", stranger.signs(&claims())),
        ("two parts", format!("{head}.{body}")),
        ("four parts", format!("{good}.{signature}")),
        ("nothing", String::new()),
        ("long", format!("{good}{}", "x".repeat(LONGEST))),
    ] {
        let told = tokens.check(&token, &keys).await;
        assert!(
            matches!(told, Err(Refused::Invalid(_) | Refused::WrongSignature)),
            "{what}: {told:?}"
        );
    }
    let unknown = Pair::new("z", Algorithm::ES256).signs(&claims());
    assert_eq!(
        tokens.check(&unknown, &keys).await.err(),
        Some(Refused::UnknownKey)
    );
    assert!(tokens.check(&good, &keys).await.is_ok());
}

#[test]
fn a_set_is_of_use_by_what_fits() {
    let tokens = Tokens::new(&said(), config::Realm::default());
    let read = |keys: Value| Set::read(&json!({ "keys": keys }).to_string(), tokens.algorithms());
    let pair = Pair::new("a", Algorithm::ES256);
    let mut encrypts = pair.public();
    encrypts["use"] = json!("enc");
    let mut signs = pair.public();
    signs["key_ops"] = json!(["sign"]);
    let secret =
        json!({"kty": "oct", "kid": "a", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQ", "alg": "HS256"});
    let rsa = Pair::new("r", Algorithm::RS256).public();
    for useless in [&encrypts, &signs, &secret, &rsa] {
        let told = read(json!([useless])).err().unwrap();
        assert!(told.contains("no key for"), "{told}");
    }
    // What nobody knows does not spoil the others.
    let strange = json!({"kty": "new", "kid": "q"});
    let keys = read(json!([strange, secret, pair.public()])).unwrap();
    assert!(keys.find(Some("a"), Algorithm::ES256).is_ok());
    assert_eq!(
        keys.find(Some("a"), Algorithm::EdDSA).err(),
        Some(Missing::Unfit)
    );
    assert_eq!(
        keys.find(Some("b"), Algorithm::ES256).err(),
        Some(Missing::Unknown)
    );
    assert!(keys.find(None, Algorithm::ES256).is_ok());
    let two = read(json!([
        pair.public(),
        Pair::new("b", Algorithm::ES256).public()
    ]))
    .unwrap();
    assert_eq!(two.find(None, Algorithm::ES256).err(), Some(Missing::Unfit));
    for bad in ["", "[]", "{}", "{\"keys\":[]}", "hunter2"] {
        let told = Set::read(bad, tokens.algorithms()).err().unwrap();
        assert!(!told.contains("hunter2"), "{told}");
    }
}

#[tokio::test]
async fn no_two_subjects_have_one_name() {
    let pair = Pair::new("a", Algorithm::ES256);
    let name = |issuer: &str, sub: &str| {
        let mut said = said();
        issuer.clone_into(&mut said.issuer);
        let tokens = Tokens::new(&said, config::Realm::default());
        let keys = set(&tokens, &[pair.public()]);
        let mut claims = claims();
        claims["iss"] = json!(issuer);
        claims["sub"] = json!(sub);
        let token = pair.signs(&claims);
        async move {
            tokens
                .check(&token, &keys)
                .await
                .unwrap()
                .caller
                .name
                .clone()
        }
    };
    assert_ne!(
        name("https://a", "b/c").await,
        name("https://a/b", "c").await
    );
    assert_ne!(
        name("https://a", "b%2Fc").await,
        name("https://a", "b/c").await
    );
    assert!(!name("https://a", "b\nc").await.contains('\n'));
}
