//! The bytes of a connection, watched: what comes and goes is noted in [`State`]. It also gives back the bytes that
//! were read to find out which HTTP the peer speaks.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::state::State;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What is read at first: most requests whole, so that looking for the preface costs no read of its own.
const FIRST_READ: usize = 4096;

pub(super) struct Watched<I> {
    inner: I,
    state: Arc<State>,
    start: Vec<u8>,
    given: usize,
}

impl<I: AsyncRead + Unpin> Watched<I> {
    pub(super) fn new(inner: I, state: Arc<State>) -> Self {
        Self {
            inner,
            state,
            start: Vec::new(),
            given: 0,
        }
    }

    /// Reads until it is clear whether the peer begins with the HTTP/2 preface. The end of input is no preface.
    pub(super) fn poll_preface(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool>> {
        loop {
            let compared = self.start.len().min(PREFACE.len());
            if self.start[..compared] != PREFACE[..compared] {
                return Poll::Ready(Ok(false));
            }
            if compared == PREFACE.len() {
                return Poll::Ready(Ok(true));
            }
            let mut space = [0; FIRST_READ];
            let mut buf = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut self.inner).poll_read(cx, &mut buf))?;
            if buf.filled().is_empty() {
                return Poll::Ready(Ok(false));
            }
            self.state.read();
            self.start.extend_from_slice(buf.filled());
        }
    }

    fn give_back(&mut self, buf: &mut ReadBuf<'_>) {
        let rest = &self.start[self.given..];
        let taken = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..taken]);
        self.given += taken;
        if self.given == self.start.len() {
            self.start = Vec::new();
        }
    }

    fn noted(&self, wrote: Poll<Result<usize>>) -> Poll<Result<usize>> {
        match &wrote {
            Poll::Ready(Ok(bytes)) => self.state.wrote(*bytes),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.state.blocked(),
        }
        wrote
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Watched<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        if !self.start.is_empty() {
            self.give_back(buf);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.state.read();
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<Result<usize>> {
        let wrote = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.noted(wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let wrote = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.noted(wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        // A flush that is done says nothing new; the write before it did.
        if flushed.is_pending() {
            self.state.blocked();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(cx);
        if shut.is_pending() {
            self.state.blocked();
        }
        shut
    }
}
