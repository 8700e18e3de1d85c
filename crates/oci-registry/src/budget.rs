//! The time limit of one artifact. Only active time counts, not waiting for a free slot, so that the last of a thousand
//! artifacts has as much time as the first.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Active time of operations that may run in parallel: the union of their intervals.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: Duration,
    state: Mutex<BudgetState>,
}

#[derive(Debug, Default)]
struct BudgetState {
    spent: Duration,
    active: usize,
    since: Option<Instant>,
}

impl Budget {
    pub(crate) fn new(limit: Duration) -> Arc<Self> {
        Arc::new(Self { limit, state: Mutex::default() })
    }

    /// The remaining time.
    pub(crate) fn remaining(&self) -> Duration {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let running = state.since.map_or(Duration::ZERO, |s| s.elapsed());
        self.limit.saturating_sub(state.spent + running)
    }

    /// Time counts until the guard is dropped.
    pub(crate) fn start_activity(self: &Arc<Self>) -> Activity {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.active == 0 {
            state.since = Some(Instant::now());
        }
        state.active += 1;
        Activity(Arc::clone(self))
    }
}

/// An operation is running.
#[derive(Debug)]
pub(crate) struct Activity(Arc<Budget>);

impl Drop for Activity {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.active -= 1;
        if state.active == 0 {
            let ran = state.since.take().map_or(Duration::ZERO, |s| s.elapsed());
            state.spent += ran;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_outside_an_activity_costs_nothing_and_two_at_once_cost_once() {
        let budget = Budget::new(Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(budget.remaining(), Duration::from_secs(10));
        let wall = Instant::now();
        {
            let _a = budget.start_activity();
            let _b = budget.start_activity();
            std::thread::sleep(Duration::from_millis(40));
        }
        let wall = wall.elapsed();
        let spent = Duration::from_secs(10) - budget.remaining();
        assert!(spent >= Duration::from_millis(40), "{spent:?}");
        assert!(spent <= wall, "counted twice: {spent:?} of {wall:?}");
    }
}
