//! Who may look at what callers do, and change it: who shows the admin token.
use http::{Method, StatusCode};

use super::{Asked, Page, Route};

/// A path that says what `page` does to who shows the token, or to all if it is `open`. Else without a token, nobody may.
pub(super) fn guarded<F>(
    verb: Method,
    path: &'static str,
    token: Option<&str>,
    open: bool,
    page: impl Fn(Asked) -> F + Send + Sync + 'static,
) -> Route
where
    F: Future<Output = Page> + Send + 'static,
{
    let expected = token.map(|token| blake3::hash(token.as_bytes()));
    Route::waiting(verb, path, move |asked| {
        // Digests are compared, and in constant time: how long it takes says nothing of the token.
        let given = asked.token.as_ref();
        let given = given.map(|token| blake3::hash(token.as_bytes()));
        let may = open || expected.is_some() && expected == given;
        let page = may.then(|| page(asked));
        async move {
            match page {
                Some(page) => page.await,
                None => Page::plain(StatusCode::UNAUTHORIZED, "this needs the admin token\n"),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_who_shows_the_token_is_told() {
        let asks = async |given: Option<&str>, token, open| {
            let page = |_| std::future::ready(Page::plain(StatusCode::OK, "told"));
            let route = guarded(Method::GET, "/", token, open, page);
            let asked = Asked {
                rest: String::new(),
                token: given.map(str::to_owned),
                query: String::new(),
            };
            (route.page)(asked).await.status == StatusCode::OK
        };
        let token = Some("a long enough token");
        assert!(asks(token, token, false).await);
        for given in [None, Some(""), Some("a long enough toke"), Some("another")] {
            assert!(!asks(given, token, false).await, "{given:?}");
            assert!(
                !asks(given, None, false).await,
                "without a token, nobody may"
            );
            assert!(asks(given, token, true).await && asks(given, None, true).await);
        }
    }
}
