//! `covary kernels`: the primitives, their formulas and parameters.

use crate::args::Common;
use crate::failure::Failure;
use crate::output::{Talk, columns, print, print_json};
use covary::kernel::Kind;
use serde_json::json;

const WRITING: &str = "
Kernel text:
  nkn                                 the default network for the task at hand
  nkn(2 LIN, 2 PER, 2 RBF, 2 RQ; Linear8-Product4-Linear4-Product2-Linear1)
  LIN * (PER + RBF) + WN              an expression; RBF[0,3] or RBF[age,rm] restricts columns
  RBF(l=0.5, v=2)                     starts at values
  SM4                                 spectral mixture
  heuristic                           LIN + PER + RBF + C
";

pub fn run(_: &Common, talk: &Talk) -> Result<(), Failure> {
    let rows = Kind::all().into_iter().map(Kind::row);
    if talk.json {
        let kernels: Vec<_> = rows
            .map(|r| {
                let parameters: Vec<_> = r.groups.iter().map(|g| json!({"name": g.0, "role": g.1.name()})).collect();
                json!({"name": r.name, "formula": r.formula, "parameters": parameters})
            })
            .collect();
        return print_json(&json!({ "kernels": kernels }));
    }
    let cells: Vec<Vec<String>> = rows
        .map(|r| {
            let parameters: Vec<String> = r.groups.iter().map(|g| format!("{} {}", g.0, g.1.name())).collect();
            vec![r.name.into_owned(), r.formula.to_string(), parameters.join(", ")]
        })
        .collect();
    let mut text = columns(&["name", "formula (t = x - x')", "parameters"], &cells);
    if !talk.quiet {
        text.push_str(WRITING);
    }
    print(&text)
}
