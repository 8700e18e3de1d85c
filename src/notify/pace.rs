//! Limits the rate of writes to one cluster.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Average time between requests: 50 in a second.
const EACH: Duration = Duration::from_millis(20);

/// Requests that may be sent at once after a pause.
const BURST: u32 = 50;

/// Turns for requests, in the order in which they are requested.
pub struct RequestPace {
    /// Time of the next turn without bursts.
    next: Mutex<Instant>,
}

impl RequestPace {
    /// A pace before the first request.
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

/// Takes the next turn; returns the time until it.
fn take_turn(next: &mut Instant, now: Instant) -> Duration {
    // One turn belongs to the request itself.
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
        // A long pause allows only one burst.
        let later = start + Duration::from_secs(3600);
        let waits: Vec<Duration> = (0..=BURST).map(|_| take_turn(&mut next, later)).collect();
        assert_eq!(waits.iter().filter(|wait| wait.is_zero()).count(), usize::try_from(BURST).unwrap());
        // Requests that are not faster than the pace never wait.
        for n in 0..1000 {
            assert!(take_turn(&mut next, later + Duration::from_secs(10) + EACH * n).is_zero());
        }
    }
}
