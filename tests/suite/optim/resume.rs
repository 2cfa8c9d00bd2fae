//! A run that was stopped goes on as if it had not been.

use std::ops::ControlFlow;

use covary::ErrorKind;
use covary::optim::*;

use super::{methods, rosenbrock, standard_start, walled};

/// Keeps the state after one iteration, as a checkpoint file would.
struct Keep {
    at: usize,
    stored: String,
}

impl Observer for Keep {
    fn observe(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        if progress.iteration == self.at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn checkpoint(&mut self, state: &State) {
        if state.iterations() == self.at {
            self.stored = serde_json::to_string(state).unwrap();
        }
    }
}

#[test]
fn a_resumed_run_is_equal_in_every_bit() {
    for method in methods() {
        let limits = Limits { iterations: 60, ..Limits::default() };
        let whole = method.minimize(&mut walled, standard_start(6), &limits, &mut ()).unwrap();
        for at in 0..whole.iterations {
            let mut keep = Keep { at, stored: String::new() };
            let part = method.minimize(&mut walled, standard_start(6), &limits, &mut keep).unwrap();
            assert_eq!((part.stop, part.iterations), (Stop::Interrupted, at));
            let state: State = serde_json::from_str(&keep.stored).unwrap();
            let rest = method.minimize(&mut walled, state, &limits, &mut ()).unwrap();
            assert_eq!(rest.state, whole.state);
            assert_eq!((rest.theta, rest.value.to_bits()), (whole.theta.clone(), whole.value.to_bits()));
            assert_eq!((rest.evaluations, rest.stop), (whole.evaluations, whole.stop));
        }
    }
}

#[test]
fn a_run_stopped_within_an_iteration_resumes_equal_too() {
    for method in methods() {
        let limits = Limits { iterations: 40, ..Limits::default() };
        let whole = method.minimize(&mut walled, standard_start(6), &limits, &mut ()).unwrap();
        for evaluations in 1..30 {
            let short = Limits { evaluations, ..limits.clone() };
            let part = method.minimize(&mut walled, standard_start(6), &short, &mut ()).unwrap();
            let rest = method.minimize(&mut walled, part.state.unwrap(), &limits, &mut ()).unwrap();
            assert_eq!(rest.state, whole.state);
        }
    }
}

#[test]
fn a_state_that_does_not_fit_is_refused() {
    let limits = Limits { iterations: 5, ..Limits::default() };
    let state = Optimizer::default().minimize(&mut rosenbrock, standard_start(4), &limits, &mut ()).unwrap().state;
    let state = state.unwrap();
    let resume = |method: Optimizer, state: State| method.minimize(&mut rosenbrock, state, &limits, &mut ());
    let error = resume(Adam::default().into(), state.clone()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Option { option: "optimizer", .. }));
    let boxed = Lbfgs { bounds: Bounds::All(5.0, 6.0), ..Lbfgs::default() };
    assert!(matches!(resume(boxed.into(), state.clone()).unwrap_err().kind(), ErrorKind::Option { .. }));
    let mut damaged = serde_json::to_value(&state).unwrap();
    damaged["at"]["gradient"].as_array_mut().unwrap().pop();
    let error = resume(Optimizer::default(), serde_json::from_value(damaged).unwrap()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Size { expected: 4, found: 3, .. }));
}
