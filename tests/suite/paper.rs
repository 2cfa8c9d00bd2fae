//! What the paper says of its networks.

use covary::Kernel;
use covary::kernel::Task;

#[test]
fn parameter_counts_are_those_of_the_paper() {
    // 111 and 4d + 85 in the paper, which leaves out the two α.
    assert_eq!(Kernel::default_network(Task::Series).bind_to(1).unwrap().params().len(), 113);
    for d in [1, 4, 8, 13] {
        assert_eq!(Kernel::paper_regression().bind_to(d).unwrap().params().len(), 4 * d + 87);
    }
    assert_eq!(Kernel::spectral_mixture(4).bind_to(3).unwrap().params().len(), 4 * 7);
}
