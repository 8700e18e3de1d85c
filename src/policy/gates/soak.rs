//! Soak: whether the deployments of one change on an upstream were healthy for long enough.
//!
//! One deployment must have been healthy for the whole soak. One that ended Degraded never counts: its
//! recovery is a deployment of its own, which starts again. One that was superseded counts when its soak was
//! complete by then. The one that still runs counts once its soak is over. Both only count if it was observed
//! healthy at or after that moment: an upstream that is not observed any more does not soak.
//!
//! The caller decides which deployments are of the same change, and whether they are proven.

use crate::model::reason::Ended;
use crate::model::time::{SKEW, Span, Time};

/// One deployment of the change on the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoakRun {
    /// When it was promoted there.
    pub promoted: Time,
    /// Healthy on every Ready Cluster since.
    pub first_healthy: Option<Time>,
    /// How and when it ended; `None`: it is still deployed there.
    pub ended: Option<(Time, Ended)>,
    /// When a superseded deployment was last observed healthy; `None`: that was not stored.
    pub healthy_until: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Soak {
    Passed {
        /// Since when it was healthy.
        first_healthy: Time,
        /// When its soak was over.
        complete: Time,
    },
    /// Healthy, and the soak is over then.
    Until(Time),
    /// The soak was over then, but it has not been observed healthy since.
    Unseen(Time),
    /// It runs there and is not healthy yet.
    NotHealthy,
    /// It ended Degraded (the newest such end), so it does not count.
    Degraded(Time),
    /// It was superseded (the newest such end) before its soak was over.
    TooShort(Time),
    /// It ran long enough and was superseded, and was last seen healthy before its soak was over.
    Unwatched {
        /// When it was superseded.
        ended: Time,
        /// When it was last seen healthy.
        seen: Time,
    },
    /// One of its times is ahead of the run's clock, so it cannot pass.
    ClockAhead(Time),
    /// It never ran there.
    Never,
}

/// Judges `runs`, in any order. `seen` is when the current deployment was last observed healthy, if it is
/// healthy now.
#[must_use]
pub fn judge_soak(runs: &[SoakRun], span: Span, seen: Option<Time>, now: Time) -> Soak {
    runs.iter().map(|run| judge_run(run, span, seen, now)).max_by_key(rank_soak).unwrap_or(Soak::Never)
}

/// The best answer is the one nearest to passing; of equal ones the latest, but the earliest instant.
fn rank_soak(soak: &Soak) -> (u8, i64) {
    match soak {
        Soak::Passed { complete, .. } => (8, complete.unix()),
        Soak::Unseen(time) => (7, time.unix()),
        Soak::Until(time) => (6, -time.unix()),
        Soak::ClockAhead(time) => (5, time.unix()),
        Soak::NotHealthy => (4, 0),
        Soak::Degraded(time) => (3, time.unix()),
        Soak::Unwatched { ended, .. } => (2, ended.unix()),
        Soak::TooShort(time) => (1, time.unix()),
        Soak::Never => (0, 0),
    }
}

fn judge_run(run: &SoakRun, span: Span, seen: Option<Time>, now: Time) -> Soak {
    if let Some((ended, Ended::Degraded)) = run.ended {
        return Soak::Degraded(ended);
    }
    let Some(first_healthy) = run.first_healthy else {
        return match run.ended {
            Some((ended, _)) => Soak::TooShort(ended),
            None => Soak::NotHealthy,
        };
    };
    // A time before the promotion is the health of another deployment.
    let first_healthy = first_healthy.max(run.promoted);
    let complete = first_healthy.add_span(span);
    if first_healthy > now.add_span(SKEW) {
        return Soak::ClockAhead(first_healthy);
    }
    match (run.ended, run.healthy_until) {
        (Some((ended, _)), _) if ended > now.add_span(SKEW) => Soak::ClockAhead(ended),
        (Some((ended, _)), _) if ended < complete => Soak::TooShort(ended),
        (Some((ended, _)), Some(seen)) if seen < complete => Soak::Unwatched { ended, seen },
        (Some(_), _) if complete <= now => Soak::Passed { first_healthy, complete },
        (Some(_) | None, _) if complete > now => Soak::Until(complete),
        (Some(_) | None, _) => match seen {
            Some(seen) if seen >= complete => Soak::Passed { first_healthy, complete },
            Some(_) | None => Soak::Unseen(complete),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    const DAY: i64 = 1_000_000;

    fn at(minute: i64) -> Time {
        Time::from_unix((DAY + minute) * 60)
    }
    fn minutes(n: u64) -> Span {
        Span::from_seconds(n * 60)
    }
    fn running(promoted: i64, healthy: Option<i64>) -> SoakRun {
        SoakRun { promoted: at(promoted), first_healthy: healthy.map(at), ended: None, healthy_until: None }
    }
    fn ended(promoted: i64, healthy: Option<i64>, end: i64, how: Ended) -> SoakRun {
        SoakRun { ended: Some((at(end), how)), ..running(promoted, healthy) }
    }
    fn passed(healthy: i64, complete: i64) -> Soak {
        Soak::Passed { first_healthy: at(healthy), complete: at(complete) }
    }

    #[test]
    fn what_never_ran_there_does_not_soak() {
        assert_eq!(judge_soak(&[], minutes(0), Some(at(9)), at(10)), Soak::Never);
    }

    #[test]
    fn the_one_that_runs_soaks_to_the_second_and_must_be_seen_afterwards() {
        let run = [running(0, Some(10))];
        let one_second_before = Time::from_unix(at(40).unix() - 1);
        assert_eq!(judge_soak(&run, minutes(30), Some(at(39)), one_second_before), Soak::Until(at(40)));
        assert_eq!(judge_soak(&run, minutes(30), Some(at(40)), at(40)), passed(10, 40));
        assert_eq!(
            judge_soak(&run, minutes(30), Some(at(39)), at(90)),
            Soak::Unseen(at(40)),
            "a dead upstream"
        );
        assert_eq!(
            judge_soak(&run, minutes(30), None, at(90)),
            Soak::Unseen(at(40)),
            "not healthy as of now"
        );
        assert_eq!(judge_soak(&[running(0, None)], minutes(0), Some(at(9)), at(9)), Soak::NotHealthy);
    }

    #[test]
    fn without_soak_healthy_once_is_enough() {
        assert_eq!(judge_soak(&[running(0, Some(10))], minutes(0), Some(at(10)), at(10)), passed(10, 10));
        let short = [ended(0, Some(10), 10, Ended::Superseded)];
        assert_eq!(judge_soak(&short, minutes(0), None, at(20)), passed(10, 10));
        let never = [ended(0, None, 10, Ended::Superseded)];
        assert_eq!(
            judge_soak(&never, minutes(0), None, at(20)),
            Soak::TooShort(at(10)),
            "it was never healthy"
        );
    }

    #[test]
    fn a_superseded_one_counts_once_its_soak_was_complete() {
        let at_40 = |end| [ended(0, Some(10), end, Ended::Superseded)];
        assert_eq!(judge_soak(&at_40(40), minutes(30), None, at(90)), passed(10, 40));
        assert_eq!(judge_soak(&at_40(39), minutes(30), None, at(90)), Soak::TooShort(at(39)));
    }

    #[test]
    fn a_degraded_end_starts_it_again() {
        let long = ended(0, Some(0), 500, Ended::Degraded);
        assert_eq!(judge_soak(&[long], minutes(30), Some(at(600)), at(600)), Soak::Degraded(at(500)));
        let recovered = [running(0, Some(510)), long];
        assert_eq!(judge_soak(&recovered, minutes(30), Some(at(539)), at(539)), Soak::Until(at(540)));
        assert_eq!(judge_soak(&recovered, minutes(30), Some(at(540)), at(540)), passed(510, 540));
    }

    #[test]
    fn health_before_the_promotion_belongs_to_another_deployment() {
        assert_eq!(
            judge_soak(&[running(20, Some(10))], minutes(30), Some(at(45)), at(45)),
            Soak::Until(at(50))
        );
    }

    #[test]
    fn times_ahead_make_nothing_pass() {
        assert_eq!(
            judge_soak(&[running(0, Some(10))], minutes(5), Some(at(10)), at(0)),
            Soak::ClockAhead(at(10))
        );
        let end = [ended(0, Some(1), 10, Ended::Superseded)];
        assert_eq!(judge_soak(&end, minutes(5), None, at(2)), Soak::ClockAhead(at(10)));
        assert_eq!(judge_soak(&[running(0, Some(4))], minutes(0), Some(at(4)), at(0)), Soak::Until(at(4)));
        let epoch = Time::from_unix(0);
        assert_eq!(judge_soak(&[running(0, Some(10))], minutes(0), None, epoch), Soak::ClockAhead(at(10)));
    }

    #[test]
    fn one_that_passed_is_not_undone_by_others() {
        let all = [
            running(100, None),
            ended(50, Some(60), 70, Ended::Degraded),
            ended(0, Some(0), 40, Ended::Superseded),
        ];
        assert_eq!(judge_soak(&all, minutes(30), None, at(200)), passed(0, 30));
    }

    /// What happens upstream in one minute.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Event {
        Nothing,
        Promote(bool),
        Healthy,
        Degraded,
    }

    fn any_event() -> impl Strategy<Value = Event> {
        prop_oneof![
            6 => Just(Event::Nothing),
            1 => Just(Event::Promote(true)),
            1 => Just(Event::Promote(false)),
            3 => Just(Event::Healthy),
            1 => Just(Event::Degraded),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        /// Against a model that walks the minutes and only counts.
        #[test]
        fn agrees_with_counting_minutes(
            events in proptest::collection::vec(any_event(), 1..60),
            span in 0u64..8,
            stale in 0i64..4,
        ) {
            // What a recorder would have written.
            let mut runs: Vec<SoakRun> = Vec::new();
            let mut ours = false;
            let mut current: Option<SoakRun> = None;
            // The model: for how many minutes what runs has been healthy without a break.
            let mut healthy_for: Option<u64> = None;
            for (minute, event) in events.iter().enumerate() {
                let minute = minute as i64;
                if let Some(n) = &mut healthy_for {
                    *n += 1;
                }
                match event {
                    Event::Nothing => {}
                    Event::Promote(same) => {
                        if let Some(run) = current.take() {
                            runs.push(SoakRun { ended: run.ended.or(Some((at(minute), Ended::Superseded))), ..run });
                        }
                        ours = *same;
                        current = ours.then(|| running(minute, None));
                        healthy_for = None;
                    }
                    Event::Healthy if ours => {
                        if let Some(run) = &mut current {
                            match run.ended {
                                Some(_) => {
                                    runs.push(*run);
                                    *run = SoakRun { first_healthy: Some(at(minute)), ended: None, ..*run };
                                    healthy_for = Some(0);
                                }
                                None if run.first_healthy.is_none() => {
                                    run.first_healthy = Some(at(minute));
                                    healthy_for = Some(0);
                                }
                                None => {}
                            }
                        }
                    }
                    Event::Degraded => {
                        if let Some(run) = &mut current
                            && run.first_healthy.is_some()
                            && run.ended.is_none()
                        {
                            run.ended = Some((at(minute), Ended::Degraded));
                            healthy_for = None;
                        }
                    }
                    Event::Healthy => {}
                }
            }
            runs.extend(current);
            let last = events.len() as i64 - 1;
            let running_healthy = healthy_for.is_some();
            let seen = running_healthy.then(|| at(last - stale));
            let answer = judge_soak(&runs, minutes(span), seen, at(last));

            // The model counts what ended well, and of what runs only what was seen.
            let seen_for = healthy_for.and_then(|n| n.checked_sub(stale as u64));
            let ended_best = longest(&runs);
            let expected = ended_best.max(seen_for).is_some_and(|n| n >= span);
            prop_assert_eq!(matches!(answer, Soak::Passed { .. }), expected, "{:?} {:?}", answer, runs);
            if let Soak::Until(time) = answer {
                let later = judge_soak(&runs, minutes(span), Some(time), time);
                prop_assert!(matches!(later, Soak::Passed { .. }), "{:?} at {}", later, time);
            }
        }
    }

    /// The longest health, in minutes, of what was superseded.
    fn longest(runs: &[SoakRun]) -> Option<u64> {
        runs.iter()
            .filter_map(|run| match (run.first_healthy, run.ended) {
                (Some(healthy), Some((end, Ended::Superseded))) => Some(end.seconds_since(healthy) / 60),
                _ => None,
            })
            .max()
    }
}
