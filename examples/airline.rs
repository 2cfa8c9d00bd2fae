//! Forecasts the monthly airline passengers two years ahead: `cargo run --release --example airline`.

use covary::{Dataset, Fit, Kernel};

fn main() -> Result<(), covary::Error> {
    let data = Dataset::from_csv("examples/data/airline.csv", "passengers")?;
    let kernel = Kernel::nkn("2 LIN, 2 PER, 2 RBF, 2 RQ", "Linear8-Product4-Linear4-Product2-Linear1")?;
    let model = Fit::new(kernel).seed(7).run(&data)?;
    let account = model.account();
    println!("log marginal likelihood {:.1}, noise {:.1}", account.log_marginal_likelihood, account.noise_sd);
    println!("{} evaluations in {:.2} s: {}", account.evaluations, account.seconds, account.reason);
    for r in &account.restarts {
        println!("  objective {:?} after {} iterations: {}", r.objective, r.iterations, r.reason);
    }
    let ahead = data.ahead(24);
    let prediction = model.predict(&ahead)?;
    for ((t, mean), v) in ahead.column(0).iter().zip(&prediction.mean).zip(&prediction.variance_y) {
        println!("{t:6.0} {mean:8.1} ± {:.1}", 1.96 * v.sqrt());
    }
    Ok(())
}
