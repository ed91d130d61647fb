//! What a supervisor says, taken as soon as it comes: one whose words nobody takes waits, and with it the command, its streams
//! and its lock.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use sandtable_launch::outside::delegate::Line;
use sandtable_protocol::wire::WireError;

use super::News;

/// As many pieces of news are kept. Only lines about an image can be more, and of those the last ones are worth most.
const MOST: usize = 1000;

/// What has arrived and was not heard yet.
#[derive(Debug)]
pub(super) struct Inbox {
    line: Arc<Line>,
    arrived: Arc<Arrived>,
}

#[derive(Debug, Default)]
struct Arrived {
    kept: Mutex<Kept>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct Kept {
    news: VecDeque<News>,
    /// Why nothing more will come.
    over: Option<WireError>,
}

impl Inbox {
    /// Takes what arrives on `line` from now on, in a thread of its own. It ends with the line.
    pub(super) fn of(line: Line) -> io::Result<Self> {
        let (line, arrived) = (Arc::new(line), Arc::<Arrived>::default());
        let taken = Arc::clone(&arrived);
        let source = Arc::clone(&line);
        std::thread::Builder::new().spawn(move || while taken.take(source.receive()) {})?;
        Ok(Self { line, arrived })
    }

    /// Waits for the next piece of news.
    pub(super) fn next(&self) -> Result<News, WireError> {
        let waiting = |kept: &mut Kept| kept.news.is_empty() && kept.over.is_none();
        let kept = self.arrived.more.wait_while(self.arrived.kept(), waiting);
        let mut kept = kept.unwrap_or_else(PoisonError::into_inner);
        match kept.news.pop_front() {
            Some(news) => Ok(news),
            None => Err(kept.over.take().unwrap_or(WireError::Closed)),
        }
    }

    /// Says that nobody waits any more.
    pub(super) fn close(&self) {
        self.line.close();
    }
}

impl Arrived {
    /// Whether there may be more.
    fn take(&self, received: Result<News, WireError>) -> bool {
        let mut kept = self.kept();
        let more = received.is_ok();
        match received {
            Ok(news) => kept.keep(news),
            Err(error) => kept.over = Some(error),
        }
        self.more.notify_all();
        more
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn keep(&mut self, news: News) {
        let is_newer = |last: &News| std::mem::discriminant(last) == std::mem::discriminant(&news);
        // How far something was is of no interest when it is further.
        let is_overtaken = |last: &News| {
            matches!(last, News::Copying { .. } | News::Recording { .. } | News::Waiting { .. })
                && is_newer(last)
        };
        if self.news.back().is_some_and(is_overtaken) {
            self.news.pop_back();
        }
        if self.news.len() == MOST {
            self.news.pop_front();
        }
        self.news.push_back(news);
    }
}

#[cfg(test)]
mod tests {
    use super::{Kept, MOST, News};

    fn kept(news: impl IntoIterator<Item = News>) -> Vec<String> {
        let mut kept = Kept::default();
        news.into_iter().for_each(|news| kept.keep(news));
        kept.news.iter().map(|news| format!("{news:?}")).collect()
    }

    #[test]
    fn of_how_far_something_is_only_the_newest_is_kept() {
        let recording = |entries| News::Recording { entries, bytes: 0 };
        let copying = |files| News::Copying { files, bytes: 0 };
        let news = (0..5000).map(copying).chain([News::Copied]).chain((0..5000).map(recording));
        let wanted = [copying(4999), News::Copied, recording(4999)].map(|news| format!("{news:?}"));
        assert_eq!(kept(news), wanted);
    }

    #[test]
    fn lines_about_an_image_are_kept_up_to_a_bound() {
        let fetching = |number: usize| News::Fetching { image: "i".to_owned(), line: number.to_string() };
        let kept = kept((0..MOST + 3).map(fetching));
        assert_eq!(kept.len(), MOST);
        assert_eq!(kept[0], format!("{:?}", fetching(3)));
    }
}
