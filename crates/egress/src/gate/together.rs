//! Two futures at once, without a macro.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Waits for both.
pub(super) async fn both<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut first, mut second) = (None, None);
    poll_fn(move |context| {
        if first.is_none()
            && let Poll::Ready(value) = one.as_mut().poll(context)
        {
            first = Some(value);
        }
        if second.is_none()
            && let Poll::Ready(value) = other.as_mut().poll(context)
        {
            second = Some(value);
        }
        match (first.take(), second.take()) {
            (Some(a), Some(b)) => Poll::Ready((a, b)),
            (a, b) => {
                (first, second) = (a, b);
                Poll::Pending
            }
        }
    })
    .await
}

/// Waits for both to succeed, or for one to fail; the other one is then dropped.
pub(super) async fn both_or_error<E>(
    one: impl Future<Output = Result<(), E>>,
    other: impl Future<Output = Result<(), E>>,
) -> Result<(), E> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let mut done = [false; 2];
    poll_fn(move |context| {
        if !done[0]
            && let Poll::Ready(result) = one.as_mut().poll(context)
        {
            done[0] = true;
            if result.is_err() {
                return Poll::Ready(result);
            }
        }
        if !done[1]
            && let Poll::Ready(result) = other.as_mut().poll(context)
        {
            done[1] = true;
            if result.is_err() {
                return Poll::Ready(result);
            }
        }
        if done == [true; 2] { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}

/// Waits for the first one; the other one is dropped.
pub(super) async fn first<T>(one: impl Future<Output = T>, other: impl Future<Output = T>) -> T {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(move |context| match one.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(value),
        Poll::Pending => other.as_mut().poll(context),
    })
    .await
}
