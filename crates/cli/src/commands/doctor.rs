//! `doctor`: what would make a sync fail or go slowly.

use tidelake_connector::{Finding, Verdict};
use tidelake_model::Result;
use tidelake_sync::{Diagnosis, DoctorRequest, doctor};

use super::Session;
use crate::args::DoctorArgs;
use crate::exit::Exit;
use crate::output::{counted, fields, one_line};
use crate::terminal::Terminal;

/// Looks at everything and tells what was found.
pub(super) async fn run(session: &Session, args: &DoctorArgs) -> Result<Exit> {
    let app = session.application().await?;
    let request = DoctorRequest {
        env: session.env().to_owned(),
        sync_id: args.sync_id.clone(),
        source: args.source_db_auth_id.clone(),
        cancel: session.interrupt.clone(),
    };
    let diagnosis = doctor(&app, &request).await?;
    session.output.emit(&diagnosis, |terminal| described(&diagnosis, args.verbose, terminal))?;
    Ok(match diagnosis.verdict() {
        Verdict::Failure => Exit::Failed,
        Verdict::Fine | Verdict::Warning => Exit::Done,
    })
}

fn described(diagnosis: &Diagnosis, verbose: bool, terminal: &Terminal) -> String {
    let mut text = String::new();
    let mut counts = [0_u64; 3];
    for part in &diagnosis.parts {
        let of = part.sync_id.as_ref().map(|sync| format!(" of {sync}")).unwrap_or_default();
        text.push_str(&format!("{}{of}: {}\n", part.part, one_line(&part.place)));
        let mut fine = 0;
        for finding in &part.findings {
            let [is_fine, warnings, failures] = &mut counts;
            *match finding.verdict {
                Verdict::Fine => is_fine,
                Verdict::Warning => warnings,
                Verdict::Failure => failures,
            } += 1;
            if finding.verdict == Verdict::Fine && !verbose {
                fine += 1;
            } else {
                text.push_str(&shown(finding, terminal));
            }
        }
        if fine > 0 {
            text.push_str(&format!("  fine     {}\n", counted(fine, "other thing")));
        }
        text.push('\n');
    }
    let [fine, warnings, failures] = counts;
    text.push_str(&format!(
        "{}, {}, {fine} fine\n",
        counted(failures, "failure"),
        counted(warnings, "warning")
    ));
    text
}

fn shown(finding: &Finding, terminal: &Terminal) -> String {
    let verdict = match finding.verdict {
        Verdict::Fine => "fine   ",
        Verdict::Warning => "warning",
        Verdict::Failure => "failure",
    };
    let table = finding.table.as_ref().map(|table| format!("{table}: ")).unwrap_or_default();
    let mut text = format!("{table}{}: {}", finding.topic, finding.message);
    if let Some(hint) = &finding.hint {
        text.push_str(&format!("\nhint: {hint}"));
    }
    fields(2, &[(verdict, text)], terminal.width())
}
