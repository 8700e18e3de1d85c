//! How fast one cluster is written to.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One request in so long, in the long run: 50 in a second.
const EACH: Duration = Duration::from_millis(20);

/// How many may go at once after a pause.
const BURST: u32 = 50;

/// Turns for requests, given out in the order in which they are asked for.
pub struct RequestPace {
    /// When the next turn would be if there were no bursts.
    next: Mutex<Instant>,
}

impl RequestPace {
    /// Nothing was sent yet.
    pub fn new() -> Self {
        Self { next: Mutex::new(Instant::now()) }
    }

    /// Waits for a turn.
    pub async fn wait_turn(&self) {
        let wait = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            take_turn(&mut next, Instant::now())
        };
        tokio::time::sleep(wait).await;
    }
}

/// Takes the next turn; how long it is until then.
fn take_turn(next: &mut Instant, now: Instant) -> Duration {
    // One turn is the request's own.
    let saved = EACH * (BURST - 1);
    let at = (*next).max(now);
    *next = at + EACH;
    (at - now).saturating_sub(saved)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_pace() {
        let start = Instant::now();
        let mut next = start;
        let waits: Vec<Duration> = (0..BURST + 100).map(|_| take_turn(&mut next, start)).collect();
        let (burst, rest) = waits.split_at(usize::try_from(BURST).unwrap());
        assert!(burst.iter().all(Duration::is_zero), "{burst:?}");
        for (n, wait) in (1..).zip(rest) {
            assert_eq!(*wait, EACH * n);
        }
        // After a long pause no more than one burst was saved up.
        let later = start + Duration::from_secs(3600);
        let waits: Vec<Duration> = (0..=BURST).map(|_| take_turn(&mut next, later)).collect();
        assert_eq!(waits.iter().filter(|wait| wait.is_zero()).count(), usize::try_from(BURST).unwrap());
        // Who asks no faster than the pace never waits.
        for n in 0..1000 {
            assert!(take_turn(&mut next, later + Duration::from_secs(10) + EACH * n).is_zero());
        }
    }
}
