//! Something that a run needs goes away under it, and comes back.

use std::fs;

use tidelake_model::Step;

use crate::fleet::each;
use crate::place::{Parts, Place, said};
use crate::reader::Reader;

/// What goes away: takes it, and brings it back.
#[derive(Debug, Clone, Copy)]
enum Outage {
    Lake,
    State,
    Source,
}

impl Outage {
    fn begin(self, place: &Place) {
        match self {
            // Where the folder was is a file, which no right to write gets around.
            Self::Lake => {
                fs::rename(place.desk.path("lake/main/orders"), place.desk.path("aside")).unwrap();
                fs::write(place.desk.path("lake/main/orders"), "").unwrap();
            }
            Self::State => server(place).execute("ALTER SCHEMA own_state RENAME TO aside"),
            Self::Source => {
                server(place).execute(
                    "ALTER SCHEMA main RENAME TO aside;
                     SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                     WHERE pid <> pg_backend_pid() AND datname = current_database()",
                );
            }
        }
    }

    fn end(self, place: &Place) {
        match self {
            Self::Lake => {
                fs::remove_file(place.desk.path("lake/main/orders")).unwrap();
                fs::rename(place.desk.path("aside"), place.desk.path("lake/main/orders")).unwrap();
            }
            Self::State => server(place).execute("ALTER SCHEMA aside RENAME TO own_state"),
            Self::Source => server(place).execute("ALTER SCHEMA aside RENAME TO main"),
        }
    }
}

fn server(place: &Place) -> &crate::server::Server {
    place.server.as_ref().unwrap()
}

#[test]
fn pass_without_a_trace() {
    let on_servers = Parts { server_source: true, server_state: true, ..Parts::default() };
    let cases = vec![
        (Outage::Lake, Parts::default()),
        (Outage::State, Parts { server_state: true, ..Parts::default() }),
        (Outage::State, on_servers),
        (Outage::Source, Parts { server_source: true, ..Parts::default() }),
    ];
    each(cases, 2, |(outage, parts)| {
        let Some(reader) = Reader::start() else { return };
        let Some(place) = Place::make(parts, "--n-jobs 1") else { return };
        place.shop.grow(5);
        place.sync();
        let steps = [
            Step::Load,
            Step::Clock,
            Step::Split,
            Step::Window,
            Step::Batch,
            Step::Staged,
            Step::Committing,
            Step::Completed,
            Step::Manifest,
            Step::Latest,
        ];
        for step in steps {
            let because = format!("{outage:?} after {}", step.name());
            place.shop.grow(5);
            let mut run = place.hold(&format!("{}:main.orders", step.name()));
            outage.begin(&place);
            run.go_on();
            let output = run.end();
            outage.end(&place);
            // What was read needs no source any more, what is listed no lake.
            let may_end_well = match outage {
                Outage::Lake => step == Step::Latest,
                Outage::State => false,
                Outage::Source => step != Step::Load,
            };
            let code = output.status.code().unwrap();
            assert!(code > 0 || may_end_well, "{because}: {}", said(&output));
            assert!([0, 1, 2, 3].contains(&code), "{because}: {}", said(&output));
            let talk = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(code == 0 || talk.contains("hint: "), "{because}: {}", said(&output));
            place.shop.grow(2);
            let report = place.sync();
            place.is_whole(&reader, &report, &because);
        }
    });
}
