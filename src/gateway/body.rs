//! Reading a request's body: bounded in bytes, in time, and in what all bodies hold together.
use std::{pin::Pin, task::Poll, time::Duration};

use bytes::{Bytes, BytesMut};
use http_body::Body;

use crate::{
    a2a::{Fault, Kind},
    budget::Hold,
};

/// So much is made room for at once for what is only announced: many may announce much and send nothing.
const AHEAD: usize = 1024 * 1024;

/// The whole body. `time` is for all of it; no timer is made where it came with the head.
pub(super) async fn read<B>(
    body: B,
    limit: usize,
    time: Duration,
    hold: &mut Hold,
) -> Result<Bytes, Fault>
where
    B: Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
{
    let announced = body.size_hint().lower();
    if announced > limit as u64 {
        return Err(too_large(limit)); // before anything is read, or asked for by 100 Continue
    }
    let mut gather = Gather {
        body,
        limit,
        first: None,
        more: BytesMut::new(),
    };
    let at_once = std::future::poll_fn(|cx| Poll::Ready(gather.poll(cx, hold))).await;
    match at_once {
        Poll::Ready(done) => done?,
        Poll::Pending => {
            let rest = std::future::poll_fn(|cx| gather.poll(cx, hold));
            tokio::time::timeout(time, rest).await.map_err(|_| {
                Fault::new(Kind::SlowBody, "the request's body did not come in time")
            })??;
        }
    }
    Ok(gather.whole())
}

struct Gather<B> {
    body: B,
    limit: usize,
    /// Mostly all there is: no copy is made of it.
    first: Option<Bytes>,
    more: BytesMut,
}

impl<B> Gather<B>
where
    B: Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
{
    fn poll(
        &mut self,
        cx: &mut std::task::Context<'_>,
        hold: &mut Hold,
    ) -> Poll<Result<(), Fault>> {
        loop {
            let frame = match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(Some(Err(e))) => {
                    let fault = Fault::new(Kind::InvalidRequest, "the request's body broke off");
                    return Poll::Ready(Err(fault.because(e.to_string())));
                }
            };
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if let Err(fault) = self.add(data, hold) {
                return Poll::Ready(Err(fault));
            }
        }
    }

    fn add(&mut self, data: Bytes, hold: &mut Hold) -> Result<(), Fault> {
        let so_far = self.first.as_ref().map_or(0, Bytes::len) + self.more.len();
        if so_far + data.len() > self.limit {
            return Err(too_large(self.limit));
        }
        if !hold.grow(data.len()) {
            return Err(no_room());
        }
        match &self.first {
            None => self.first = Some(data),
            Some(first) => {
                if self.more.is_empty() {
                    let expected = self.body.size_hint().lower();
                    let expected = usize::try_from(expected).unwrap_or(0).min(AHEAD);
                    self.more.reserve(first.len() + data.len() + expected);
                    self.more.extend_from_slice(first);
                    self.first = Some(Bytes::new());
                }
                self.more.extend_from_slice(&data);
            }
        }
        Ok(())
    }

    fn whole(self) -> Bytes {
        match self.first {
            Some(first) if self.more.is_empty() => first,
            _ => self.more.freeze(),
        }
    }
}

fn too_large(limit: usize) -> Fault {
    Fault::new(
        Kind::TooLarge,
        format!("payload too large; at most {limit} bytes are taken"),
    )
}

/// All bodies together hold too much.
pub(super) fn no_room() -> Fault {
    let mut fault = Fault::new(
        Kind::Overloaded,
        "the gateway holds too many bytes now; try again later",
    );
    fault.retry_after = Some(1);
    fault
}
