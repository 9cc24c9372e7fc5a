//! The cases of a publisher, by what they are about.

mod evolution;
mod loading;
mod target;
mod types;

use tidelake_model::PublishMethod;

use super::harness::{Case, run};
use super::{Failure, Need, Outcome, PublisherFixture, Report};

type PublisherCase = Case<dyn PublisherFixture>;

/// Every case of a publisher.
pub fn publisher_cases() -> Vec<Case<dyn PublisherFixture>> {
    let cases = loading::cases().into_iter().chain(evolution::cases());
    cases.chain(types::cases()).collect()
}

fn applies(fixture: &dyn PublisherFixture, need: Need) -> bool {
    match need {
        Need::Nothing => true,
        Need::Internal(strategy) => fixture.publisher().supports(PublishMethod::Internal, strategy),
        _ => false,
    }
}

/// Runs every case that applies.
pub async fn run_publisher_suite(
    connector: &str,
    fixture: &(impl PublisherFixture + 'static),
) -> Report {
    let dynamic: &(dyn PublisherFixture + 'static) = fixture;
    run(connector, dynamic, publisher_cases(), |need| applies(fixture, need)).await
}

/// Runs one case by its name. It passes where it does not apply.
pub async fn run_publisher_case(
    name: &str,
    fixture: &(impl PublisherFixture + 'static),
) -> Outcome {
    let case = publisher_cases().into_iter().find(|case| case.name == name);
    let case = case.ok_or_else(|| Failure::new(format!("there is no case {name:?}")))?;
    if applies(fixture, case.needs) { case.outcome(fixture).await } else { Ok(()) }
}
