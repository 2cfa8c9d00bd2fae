//! Printing a kernel and parsing it again gives the same kernel; what cannot be read is pointed at.

use covary::kernel::Task;
use covary::{ErrorKind, Kernel};

#[test]
fn text_reads_as_the_kernel_it_says() {
    let k: Kernel = "LIN * (PER + RBF) + WN".parse().unwrap();
    assert_eq!(k, Kernel::lin() * (Kernel::per() + Kernel::rbf()) + Kernel::white());
    assert_eq!(k.to_string(), "LIN * (PER + RBF) + WN");
    assert_eq!("heuristic".parse::<Kernel>().unwrap(), "LIN + PER + RBF + C".parse().unwrap());
    assert_eq!("SM2".parse::<Kernel>().unwrap().bind_to(3).unwrap().params().len(), 2 * (2 * 3 + 1));
    let values: Kernel = "RBF(l=0.5, v=2)".parse().unwrap();
    assert_eq!(values.bind_to(1).unwrap().values(), [2.0, 0.5]);
    assert_eq!(
        Kernel::parse("nkn", Task::Series).unwrap(),
        "nkn(2 LIN, 2 PER, 2 RBF, 2 RQ; Linear8-Product4-Linear4-Product2-Linear1)".parse().unwrap()
    );
}

#[test]
fn columns_are_found_by_name_or_number() {
    let names = ["age", "rm", "the tax"].map(String::from);
    let k: Kernel = "RBF[age,rm] + LIN[2] + PER[\"the tax\"]".parse().unwrap();
    assert_eq!(k.bind(&names).unwrap().to_string(), "RBF[0,1](l=[?, ?]) + LIN[2](v=?) + PER[2](l=?, p=?)");
    assert_eq!(k, k.to_string().parse().unwrap());
    let missing = "RBF[zn]".parse::<Kernel>().unwrap().bind(&names).unwrap_err();
    assert_eq!(missing.to_string(), "no column `zn`");
    assert_eq!(missing.hint(), Some("the input columns are: age, rm, the tax"));
    assert!("RBF[3]".parse::<Kernel>().unwrap().bind(&names).is_err());
}

#[test]
fn sharing_survives_the_text() {
    let a = Kernel::rbf();
    let shared = a.clone() * a.clone() + a;
    assert_eq!(shared.to_string(), "let a = RBF; a * a + a");
    assert_ne!(shared, "RBF * RBF + RBF".parse().unwrap());
    assert_eq!(shared.bind_to(1).unwrap().params().len(), 2);
    let tied: Kernel = "let s = 0.5; RBF(l=s) + PER(l=s, p=2!)".parse().unwrap();
    assert_eq!(tied.bind_to(1).unwrap().params().len(), 3);
    assert_eq!(tied, tied.to_string().parse().unwrap());
}

#[test]
fn an_error_points_at_the_character() {
    for (text, at) in [
        ("", 0),
        ("LIN * ", 6),
        ("LIN * (PER + RBF", 16),
        ("LIN + RFB", 6),
        ("RBF(q=1)", 4),
        ("RBF(l=-1)", 6),
        ("RBF(l=[1,)", 9),
        ("nkn(2 LIN; Linear8)", 3),
        ("nkn(2 LIN; Linear3-Product2-Linear1)", 3),
        ("nkn(2 LIN; Foo1)", 10),
        ("RBF RBF", 4),
        ("POLY0", 0),
        ("RBF[1,1]", 6),
        ("0 * RBF", 0),
        ("search", 0),
        ("λ + RBF", 0),
        ("RBF(v=1e999)", 6),
    ] {
        let error = text.parse::<Kernel>().unwrap_err();
        match error.kind() {
            ErrorKind::KernelText { at: found, .. } => assert_eq!(*found, at, "{text}: {error}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    let lines = "LIN + RFB".parse::<Kernel>().unwrap_err().to_string();
    assert_eq!(lines, "kernel text, character 7: no kernel called `RFB`\n  LIN + RFB\n        ^");
    let deep = "(".repeat(100_000);
    assert!(deep.parse::<Kernel>().is_err());
}
